"""Which page a rule has, and that every format that can point at one does."""

from __future__ import annotations

import json
import re

import pytest
from msgspec.structs import replace
from reports import ALIGNMENT, finding, full_report

from convlint.model.location import Location
from convlint.report import Report
from convlint.reporters import Style, reporter
from convlint.reporters.addresses import DOCS, page_of, rule_page
from convlint.reporters.harmless import harmless
from convlint.reporters.ink import LINK_CLOSES, LINK_ENDS, LINK_OPENS
from convlint.rulebook.book import load_rulebook

BUILT_IN = replace(ALIGNMENT, built_in=True)
PAGE = "https://convlint.github.io/convlint/rules/CL102.html"
OPENED = f"{LINK_OPENS}{PAGE}{LINK_ENDS}"


def reported(*, built_in: bool = True) -> Report:
    rule = BUILT_IN if built_in else ALIGNMENT
    return full_report(
        findings=(finding(rule, "C=62 is odd", Location(path="net.yaml", line=3), "stem"),),
        suppressed=(),
        rules=(rule,),
    )


def without_links(text: str) -> str:
    return re.sub("\x1b]8;;[^\x1b]*\x1b\\\\", "", text)


def test_rules_that_ship_have_a_page_and_others_none() -> None:
    assert page_of(BUILT_IN) == PAGE == DOCS + rule_page("CL102")
    assert page_of(ALIGNMENT) == ""
    assert DOCS.endswith("/")


def test_all_rules_that_ship_are_known_as_such() -> None:
    assert all(rule.info.built_in for rule in load_rulebook().rules)
    assert all(rule.info.built_in for rule in load_rulebook().of_source)


@pytest.mark.parametrize("name", ["text", "concise"])
@pytest.mark.parametrize("quiet", [False, True])
def test_codes_are_links_where_a_terminal_follows_them(name: str, quiet: bool) -> None:
    style = Style(color=True, links=True, quiet=quiet)
    shown = reporter(name)(reported(), style)
    assert shown.count(OPENED) == 1
    assert shown.count(LINK_OPENS) == 2 * shown.count(LINK_CLOSES) == 2
    assert re.search(re.escape(OPENED) + r"[^\n]*CL102 channel-alignment[^\n]*" + re.escape(LINK_CLOSES), shown)
    assert without_links(shown) == reporter(name)(reported(), replace(style, links=False))
    assert harmless(shown, inks=True) == shown
    assert "\x1b" not in harmless(shown)


@pytest.mark.parametrize("name", ["text", "concise"])
def test_rules_of_ones_own_are_no_links(name: str) -> None:
    style = Style(color=True, links=True)
    assert LINK_OPENS not in reporter(name)(reported(built_in=False), style)


@pytest.mark.parametrize(
    "address", ["https://example.com/rules/CL102.html", f"{PAGE}#x", f"{PAGE}\x07", f"{DOCS}x", "x"]
)
def test_no_other_link_reaches_a_terminal(address: str) -> None:
    shown = harmless(f"{LINK_OPENS}{address}{LINK_ENDS}text{LINK_CLOSES}", inks=True)
    assert "\x1b" not in shown.replace(LINK_CLOSES, "")


@pytest.mark.parametrize(("built_in", "address"), [(True, PAGE), (False, "https://docs.nvidia.com/")])
def test_formats_for_machines_name_the_page(built_in: bool, address: str) -> None:
    report = reported(built_in=built_in)
    sarif = json.loads(reporter("sarif")(report, Style()))
    (rule,) = [each for each in sarif["runs"][0]["tool"]["driver"]["rules"] if each["id"] == "CL102"]
    assert rule["helpUri"].startswith(address)
    rdjson = json.loads(reporter("rdjson")(report, Style()))
    (code,) = [each["code"] for each in rdjson["diagnostics"] if "code" in each]
    assert code["url"].startswith(address)
