"""The page put together: one file, with a policy that lets nothing in it but its own scripts and styles run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from convlint import __version__
from convlint.files.languages.saying import say, sentence, spoken
from convlint.files.safe import clean
from convlint.report import SEVERITIES, InputError, Report
from convlint.reporters.covered import coverage
from convlint.reporters.page.findings import by_layer, items
from convlint.reporters.page.layers import rows
from convlint.reporters.page.planned import BAR, PlanView
from convlint.reporters.page.roofline import chart
from convlint.reporters.page.verdicts import cards, grades, plan_command
from convlint.reporters.page.words import BOUNDS, said_by_scripts, say_marked_up
from convlint.reporters.summary import notes
from convlint.reporters.words import partly_read, place, severity_word

_NOTHING: dict[str, Any] = {  # what only some pages have
    "plan": None, "data": Markup('{"names":[],"targets":[]}'), "targets": [], "cards": [], "layers": [],
    "judged": False, "plan_command": "", "grades": grades, "findings": [], "codes": [], "severities": [],
    "suppressed": [],
}  # fmt: skip
_HERE = "convlint.reporters.page"
_BY = {
    "comment": sentence("by comment"),
    "config": sentence("by config"),
    "baseline": sentence("by baseline"),
}
_SCRIPTS = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "roofline.js", "page.js")
# Of the libraries, and of what is built into them; every page is a copy of those.
_LICENCES = tuple(
    f"vendor/{name}.LICENSE" for name in ("d3", "plot", "isoformat", "interval-tree-1d", "binary-search-bounds")
)
_STYLES = ("page.css", "charts.css", "tiles.css")
_NARROW, _OF_TARGET = 48, 6  # rem: below this width a table has no room for bars, nor has one of more GPUs below more
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
# The style that Plot adds to a chart of the class "plot"; its hash lets that one in.
_OF_PLOT = """:where(.plot) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.plot text),
:where(.plot tspan) {
  white-space: pre;
}"""


def page(report: Report, *, judged: bool = True, unicode: bool = True) -> str:
    """The HTML of a report, without `unicode` in ASCII; of one that was estimated and not `judged` without findings."""
    found = items(report)
    covered = coverage(report)
    return _rendered(
        unicode,
        title=covered if judged else covered.partition(": ")[0],
        data=_embedded(chart(report) | said_by_scripts()),
        targets=[clean(gpu) for gpu in report.targets],
        cards=cards(report, found),
        layers=rows(report, by_layer(found)),
        judged=judged,
        plan_command=plan_command(report) if judged else "",
        findings=found,
        codes=sorted({(item.code, item.name) for item in found}),
        severities=[each for each in SEVERITIES if any(item.severity == each for item in found)],
        notes=notes(report),
        errors=_errors(report.errors, partly_read(report)),
        suppressed=[
            {"code": clean(each.finding.rule.code), "message": clean(each.finding.message), "by": say(_BY[each.by]),
             "reason": clean(each.reason)}
            for each in report.suppressed
        ],
    )  # fmt: skip


def plan_page(plan: PlanView, notes: Sequence[str], errors: Sequence[InputError], *, unicode: bool = True) -> str:
    """The HTML of a plan; `notes` are plain lines that stand below it."""
    return _rendered(unicode, plan=plan, title=plan.title, notes=notes, errors=_errors(errors, frozenset()))


def _rendered(unicode: bool, **context: Any) -> str:
    scripts = [_in_ascii(_file(name)) for name in _SCRIPTS]
    edge = _NARROW + _OF_TARGET * max(len(context.get("targets", ())) - 1, 0)
    styles = [
        *map(_file, _STYLES),
        f"@media (min-width: {edge}.01rem) {{\n{_file('wide.css')}}}\n",
        f"@media (max-width: {edge}rem) {{\n{_file('narrow.css')}}}\n",
    ]
    text = _environment().get_template("page.html.j2").render(
        {
            "version": __version__,
            "language": spoken(),
            "words": {severity: severity_word(severity) for severity in SEVERITIES},
            "bounds": {bound: say(name) for bound, name in BOUNDS.items()},
            "policy": _policy(scripts, [*styles, _OF_PLOT]),
            "scripts": [Markup(text) for text in scripts],
            "styles": [Markup(text) for text in styles],
            "bar": BAR,
            "licences": "\n\n".join(map(_file, _LICENCES)),
            **_NOTHING,
            **context,
        }
    )  # fmt: skip
    text = text.lstrip()
    return text if unicode else text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _errors(errors: Sequence[InputError], partly: frozenset[str]) -> list[dict[str, str]]:
    return [
        {"kind": say("incomplete") if error.path in partly else say("not read"),
         "place": place(error.path, error.line, error.column), "message": clean(error.message)}
        for error in errors
    ]  # fmt: skip


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(_HERE, "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    made.globals["t"] = say_marked_up
    return made


@cache
def _file(name: str) -> str:
    return files(_HERE).joinpath("assets", *name.split("/")).read_text("utf-8")


@cache
def _in_ascii(script: str) -> str:
    r"""The script with `\u00ad` for what has no place in a file of ours as it is: its hash is that of every byte."""
    return _BEYOND_ASCII.sub(lambda found: "".join(f"\\u{unit:04x}" for unit in _units(found[0])), script)


def _units(text: str) -> tuple[int, ...]:
    """The units of UTF-16, which is what JavaScript's escapes name."""
    pairs = text.encode("utf-16-be")
    return tuple(int.from_bytes(pairs[at : at + 2], "big") for at in range(0, len(pairs), 2))


def _embedded(data: dict[str, Any]) -> Markup:
    """JSON inside a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _policy(scripts: list[str], styles: list[str]) -> str:
    own = " ".join(map(_hash, scripts))
    looks = " ".join(map(_hash, styles))
    return (
        f"default-src 'none'; script-src {own}; style-src {looks}; img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
