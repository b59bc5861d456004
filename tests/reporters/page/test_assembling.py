"""The page as a whole: what is in it, what may run in it, and that texts from outside are texts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from reports import full_report

from convlint.model.layer import ConvLayer
from convlint.report import InputError, LayerReport
from convlint.reporters.harmless import harmless
from convlint.reporters.page.assembling import page, plan_page
from convlint.reporters.page.planned import PlanStep, PlanView

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


class Read(HTMLParser):
    """The elements of a page with their attributes, and what its scripts and styles hold."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag in ("script", "style") and attributes.get("type") is None and data.strip():
            self.raw.append((tag, data))

    @property
    def policy(self) -> str:
        return next(a["content"] or "" for tag, a in self.elements if a.get("http-equiv") == "Content-Security-Policy")


def test_the_policy_lets_in_what_the_page_holds_and_nothing_else() -> None:
    read = Read(page(full_report()))
    assert read.policy.startswith("default-src 'none'; ")
    assert "unsafe" not in read.policy
    assert len(read.raw) == 9
    for tag, text in read.raw:
        found = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{found}'" in read.policy.partition(f"{tag}-src ")[2].partition(";")[0]


def test_nothing_is_asked_of_anybody_and_no_attribute_runs() -> None:
    for tag, attributes in Read(page(full_report())).elements:
        assert not {name for name in attributes if name.startswith("on") or name == "style"}
        assert tag not in ("iframe", "object", "embed", "base", "form") or attributes.get("id") == "filters"
        assert "src" not in attributes
        link = attributes.get("href", "#") or ""
        assert link.startswith(("#", "data:,", "https://")), link
        assert not (link.startswith("https://") and tag != "a")


def test_what_leaves_convlint_is_what_was_hashed() -> None:
    text = page(full_report())
    assert harmless(text) == text
    assert all(script.isascii() for tag, script in Read(text).raw if tag == "script")


def test_names_are_text() -> None:
    layer = LayerReport(layer=ConvLayer(name=HOSTILE, path=HOSTILE))
    report = full_report(layers=(layer,), errors=(InputError(path=HOSTILE, message=HOSTILE),), targets=("a100",))
    read = Read(page(report))
    assert [tag for tag, _ in read.elements].count("script") == 5
    assert "img" not in [tag for tag, _ in read.elements]
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page(report), re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["names"] == [HOSTILE]


@pytest.mark.parametrize("targets", [(), ("a100",), ("a100", "h100"), ("no such GPU",)])
def test_pages_of_reports_of_all_kinds(targets: tuple[str, ...]) -> None:
    empty = full_report(findings=(), errors=(), skipped=(), suppressed=(), layers=(), targets=targets)
    assert "Nothing found." in page(empty)
    assert 'id="layers"' not in page(empty)
    assert page(full_report(targets=targets)).endswith("</html>\n")


def test_what_was_only_estimated_is_not_called_free_of_findings() -> None:
    text = page(full_report(findings=()), judged=False)
    assert "Nothing found" not in text
    assert 'id="findings"' not in text
    assert "errors" not in text.partition("<title>")[2].partition("</title>")[0]


def test_a_plan_has_its_steps_and_their_sum() -> None:
    step = PlanStep(change=HOSTILE, before="2 ms", after="1 ms", saved="-50.0 %", grade="A", parameters="-", flops="-",
                    width=500.0)  # fmt: skip
    whole = replace(step, change="all 2 steps", before="3 ms", saved="-66.7 %")
    plan = PlanView(title="Plan for x", says="3 ms; 1 ms after 2 steps", steps=(step, step), whole=whole)
    text = plan_page(plan, ["a note"], ())
    assert text.count("<img") == 0
    assert text.count('width="500.0"') == 3
    assert text.partition("<tfoot>")[2].count("3 ms") == 2
    assert text.count('data-label="before">2 ms') == 2
    assert "a note" in text
    assert 'id="verdict"' not in text
    assert "<tfoot>" not in plan_page(replace(plan, whole=None), [], ())


def test_sections_are_linked_from_the_top() -> None:
    for report in (full_report(), full_report(findings=(), layers=(), errors=(), skipped=(), suppressed=())):
        text = page(report)
        linked = re.findall(r'href="#(\w+)"', text.partition("<nav")[2].partition("</nav>")[0])
        assert linked == re.findall(r'<section id="(\w+)"', text)
