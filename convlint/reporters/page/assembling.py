"""The page put together: verdicts, layers, findings; or the steps of a plan, and how the time falls with each."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from convlint import __version__
from convlint.files.languages import duration, plural, say, sentence, spoken
from convlint.files.safe import clean, clean_path
from convlint.model.grouping import grouped
from convlint.model.report import GRADES, SEVERITIES, InputError, NetworkReport, NetworkTotal, Report
from convlint.reporters import Style, words
from convlint.reporters.page.findings import ASKED, by_layer, first_steps, items
from convlint.reporters.page.layers import BOUNDS, Costs, chart, costs, known_gpu, rows, said_by_scripts, say_marked_up
from convlint.reporters.summary import coverage, notes

if TYPE_CHECKING:
    from convlint.engine.steps import NetworkPlan, State
    from convlint.reporters.plans import Planned

BAR = 1000  # units of a bar's drawing: the time before all steps


class PlanStep(Struct, frozen=True, kw_only=True):
    """A step, or all; texts are plain, `width` is the time afterwards, where BAR is that before all."""

    change: str
    before: str
    after: str
    saved: str
    grade: str
    parameters: str
    flops: str
    width: float
    whole: str = ""  # the whole step afterwards, where that is known


class PlanView(Struct, frozen=True, kw_only=True):
    """The plan of one network on one GPU; `says` has its headline and verdict, or why there is no plan."""

    title: str
    says: str = "No plan: no layer's time is known."
    steps: tuple[PlanStep, ...] = ()
    whole: PlanStep | None = None  # all steps, where there are several


_UNFOLDED = 10  # errors and warnings that a narrow page does not fold
T = TypeVar("T")


class StepBar(Struct, frozen=True, kw_only=True):
    """One part of a step: where it begins and how wide it is, in hundredths of the bar, and how dark it is drawn."""

    at: str
    width: str
    opacity: str


class TargetVerdict(Struct, frozen=True, kw_only=True):
    """The total of the layers on one target in one mode."""

    gpu: str
    device: str
    mode: str
    grade: str
    time: str  # empty where some layer's is unknown
    after: str  # with all advice taken: the time, or what is saved, where `is_saving`; empty without advice
    is_saving: bool
    asks_for_a_batch: bool  # a warning asks for another batch, whose gain is no part of `after`
    is_to_compile: bool  # a warning asks for torch.compile, whose gain only the step has
    batch: int | None  # where all networks have one
    costs: Costs
    basis: str  # what the times rest on
    pace: str  # where the GPU waits for its host
    steps: Sequence[str]  # each network's in words, as far as they are known
    parts: tuple[StepBar, ...]  # of the step, for a bar


def cards(report: Report, *, judged: bool = True) -> list[TargetVerdict]:
    """The verdict for each target and mode."""
    batches = grouped(((network.gpu, network.mode), network.batch) for network in report.networks)
    asking = words.asking_for_a_batch(report)
    result = []
    for total in words.totals(report):
        times = total.times
        after, is_saving = ("", False) if times is None else words.outcome(times)
        result.append(
            TargetVerdict(
                gpu=clean(total.gpu),
                device="" if (gpu := known_gpu(total.gpu)) is None else gpu.name,
                mode=words.step(total.mode),
                grade=total.grade or "",
                time="" if times is None else duration(times.time_us),
                after=after,
                is_saving=is_saving,
                asks_for_a_batch=total.gpu in asking,
                is_to_compile=words.is_to_compile(report, total.gpu),
                batch=_only(set(batches.get((total.gpu, total.mode), ()))),
                costs=costs(report, total.gpu, total.mode),
                basis=clean(words.basis_of(report, total.gpu, total.mode)),
                pace=_pace([item for item in report.networks if (item.gpu, item.mode) == (total.gpu, total.mode)]),
                steps=words.step_lines(total, judged=judged),
                parts=_parts(total),
            )
        )
    return result


def _parts(total: NetworkTotal) -> tuple[StepBar, ...]:
    """What a step is made of, the largest part first and the wait for the host last, which is a gap."""
    step_us, at, bars = total.step_us if len(total.networks) == 1 else None, 0.0, list[StepBar]()
    for _, us in sorted(total.step_parts.items(), key=lambda part: -part[1]) if step_us else ():
        if us and step_us:
            width = 100 * us / step_us
            bars.append(StepBar(at=f"{at:.2f}", width=f"{width:.2f}", opacity=f"{max(0.2, 0.75 ** len(bars)):.2f}"))
            at += width
    return tuple(bars)


def _pace(networks: Sequence[NetworkReport]) -> str:
    """The times of the host and the GPU for the networks that wait for the host; empty where none does."""
    waiting = [network for network in networks if network.waits]
    if not waiting:
        return ""
    host, gpu = (sum(getattr(network, name) or 0 for network in waiting) for name in ("host_us", "gpu_us"))
    return say(
        "the host needs about {host} to start the kernels, the GPU {gpu} to run them",
        host=duration(host),
        gpu=duration(gpu),
    )


def grades() -> str:
    """`A from 0.90, B from 0.75, C from 0.60, D from 0.40, else F`."""
    letters = say(", ").join(say("{letter} from {least:.2f}", letter=letter, least=least) for least, letter in GRADES)
    return say("{letters}, else F", letters=letters)


def plan_command(report: Report) -> str:
    """The shell command for the network's plan; FILE or GPU stands for an input or a GPU that is not the only one."""
    if not any(total.times for total in words.totals(report)):
        return ""  # a plan is made of times
    model = _only({entry.layer.model for entry in report.layers})
    path = _only({network.path for network in report.networks} | {entry.layer.path for entry in report.layers})
    what = "FILE"
    if model:
        what = f"--model {shlex.quote(clean(model))}"
    elif path and not path.startswith(("<", "-")):
        what = shlex.quote(clean_path(path))
    gpu = shlex.quote(clean(report.targets[0])) if len(report.targets) == 1 else "GPU"
    return f"convlint plan {what} --gpu {gpu}"


def _only(values: set[T]) -> T | None:
    return next(iter(values)) if len(values) == 1 else None


_NOTHING: dict[str, Any] = {  # what only some pages have
    "plan": None, "data": Markup('{"names":[],"targets":[]}'), "targets": [], "cards": [], "first": [], "layers": [],
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
# Of the libraries and of what is built into them: every page holds a copy of those.
_LICENCES = tuple(
    f"vendor/{name}.LICENSE" for name in ("d3", "plot", "isoformat", "interval-tree-1d", "binary-search-bounds")
)
_STYLES = ("page.css", "charts.css", "tiles.css")
_NARROW, _OF_TARGET = 48, 6  # rem: below this width a table has no room for bars, nor has one of more GPUs below more
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
# The style that Plot adds to a chart of the class "plot"; its hash allows it in the page's policy.
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
    """The HTML of a report, without `unicode` in ASCII; without findings where it is an estimate (not `judged`)."""
    findings = items(report)
    covered = coverage(report)
    return _rendered(
        unicode,
        title=covered if judged else covered.partition(": ")[0],
        data=_embedded(chart(report) | said_by_scripts() | {"narrow": f"(max-width: {_edge(report.targets)}rem)"}),
        targets=[clean(gpu) for gpu in report.targets],
        cards=cards(report, judged=judged),
        first=first_steps(report, findings) if judged else (),
        layers=rows(report, by_layer(findings)),
        judged=judged,
        plan_command=plan_command(report) if judged else "",
        findings=findings,
        codes=sorted({(item.code, item.name) for item in findings}),
        severities=[severity for severity in SEVERITIES if any(item.severity == severity for item in findings)],
        notes=notes(report),
        errors=_errors(report.errors, words.partly_read(report)),
        suppressed=[
            {"code": clean(entry.finding.rule.code), "message": clean(entry.finding.message), "by": say(_BY[entry.by]),
             "reason": clean(entry.reason)}
            for entry in report.suppressed
        ],
    )  # fmt: skip


def render_plan(planned: Planned, style: Style) -> str:
    """The HTML of a plan, also of one without steps, and where there is no plan."""
    from convlint.reporters import plans  # the page of a report needs nothing of it

    plan, view = planned.plan, PlanView(title=f"Plan for {clean_path(planned.path)}")
    if plan is not None:
        steps = tuple(_plan_step(plan, clean(plans.change(step)), step.before, step.after) for step in plan.steps)
        total = _plan_step(plan, f"all {len(steps)} steps", plan.now, plan.after) if len(steps) > 1 else None
        says = clean(f"{plans.headline(plan)}; {plans.verdict(plan)}")
        view = replace(view, says=says, steps=steps, whole=total)
    return plan_page(view, [clean(note) for note in plans.notes(planned)], planned.errors, unicode=style.unicode)


def _plan_step(plan: NetworkPlan, says: str, before: State, after: State) -> PlanStep:
    from convlint.reporters.plans import percent

    return PlanStep(
        change=says,
        before=duration(before.time_us),
        after=duration(after.time_us),
        saved=percent(before.time_us, after.time_us),
        grade=after.grade or "",
        parameters=percent(before.parameters, after.parameters),
        flops=percent(before.flops, after.flops),
        whole="" if after.step_us is None else duration(after.step_us),
        width=round(BAR * after.time_us / plan.now.time_us, 1) if plan.now.time_us > 0 else 0.0,
    )


def plan_page(plan: PlanView, notes: Sequence[str], errors: Sequence[InputError], *, unicode: bool = True) -> str:
    """The HTML of a plan; `notes` are plain lines that stand below it."""
    return _rendered(unicode, plan=plan, title=plan.title, notes=notes, errors=_errors(errors, frozenset()))


def _rendered(unicode: bool, **context: Any) -> str:
    scripts = [_in_ascii(_file(name)) for name in _SCRIPTS]
    edge = _edge(context.get("targets", ()))
    styles = [
        *map(_file, _STYLES),
        f"@media (min-width: {edge}.01rem) {{\n{_file('wide.css')}}}\n",
        f"@media (max-width: {edge}rem) {{\n{_file('narrow.css')}}}\n",
    ]
    text = _environment().get_template("page.html.j2").render(
        {
            "version": __version__,
            "language": spoken(),
            "words": {severity: words.severity_word(severity) for severity in SEVERITIES},
            "bounds": {bound: say(name) for bound, name in BOUNDS.items()},
            "policy": _policy(scripts, [*styles, _OF_PLOT]),
            "scripts": [Markup(text) for text in scripts],
            "styles": [Markup(text) for text in styles],
            "bar": BAR,
            "unfolded": _UNFOLDED,
            "licences": "\n\n".join(map(_file, _LICENCES)),
            **_NOTHING,
            **context,
        }
    )  # fmt: skip
    text = text.lstrip()
    return text if unicode else text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _edge(targets: Sequence[str]) -> int:
    """The width, in rem, up to which the page is narrow."""
    return _NARROW + _OF_TARGET * max(len(targets) - 1, 0)


def _errors(errors: Sequence[InputError], partly: frozenset[str]) -> list[dict[str, str]]:
    return [
        {"kind": say("incomplete") if error.path in partly else say("not read"),
         "place": words.place(error.path, error.line, error.column), "message": clean(error.message)}
        for error in errors
    ]  # fmt: skip


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_HERE, "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.globals.update(t=say_marked_up, plural=plural, **ASKED)
    return environment


@cache
def _file(name: str) -> str:
    return files(_HERE).joinpath("assets", *name.split("/")).read_text("utf-8")


@cache
def _in_ascii(script: str) -> str:
    r"""The script with characters beyond ASCII as escapes (`\u00ad`): its hash must be that of every byte."""
    return _BEYOND_ASCII.sub(lambda match: "".join(f"\\u{unit:04x}" for unit in _units(match[0])), script)


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
