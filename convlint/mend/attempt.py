"""One attempt to apply several fixes: the edited text or code, and the network that is read from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.files.bounded_file import python_bytes, python_encoding
from convlint.files.languages import duration
from convlint.files.located_yaml import may_share
from convlint.fixes.edits import Edit, applied
from convlint.fixes.plan import EditPlan, EditPlanner, ValueChange, Wish, applicability, wishes
from convlint.fixes.spec_text import Edits, SpecText, spec_edits
from convlint.fixes.verify import disturbed, longer, new_error, unexpected
from convlint.mend.checking import Checked, Edited, Job, as_asked, check_read, read_input
from convlint.model.errors import InputFault
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.model.report import Finding, InputError, Scalar
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook

# Plans for one attempt: each leaves out the wishes that the last could not write, which may stop others in turn.
MOST_PLANS = 5
_NOT_STATED = "the file does not state what it would change"
_T = TypeVar("_T")


class Attempt(NamedTuple):
    """The outcome of an attempt.

    `read` is the network as the edited `draft` has it, `network` as it runs. `wrong` says of layers, by index, and of
    the whole (None) how it is not what was meant; then nothing of it may be used.
    """

    plan: EditPlan
    refused: list[tuple[Wish, str]]
    draft: Draft | None = None
    read: Network | None = None
    network: Network | None = None
    wrong: Mapping[int | None, str] = {}


class SpecDraft:
    """A spec with the edits made so far, none of which is written to disk yet; `read` is the network in it.

    Its text is that of `source`, and `job` what it is read and checked for.
    """

    cost = 1  # how long one reading takes, as a multiple of a spec's

    def __init__(self, source: Input, job: Job, reading: Reading, read: Network | None) -> None:
        self.source, self.job, self._reading, self._read = source, job, reading, read

    @property
    def text(self) -> str:
        """The text as edited so far."""
        return self.source.text or ""

    def attempt(self, asked: Sequence[Wish], planner: EditPlanner) -> Attempt | None:
        """The wishes as edits of the text; those that cannot be edits are `refused`. None where it holds no network."""
        network = as_stated(self.source, self.job, self._reading, self._read)
        if network is None:
            return None
        plan, refused, edits = edited(asked, planner, lambda changes: spec_edits(self.text, network, changes))
        if not plan.granted:
            return Attempt(plan, refused)
        return self.after(edits, plan, planner.network)._replace(refused=refused)

    def after(self, edits: Iterable[Edit], plan: EditPlan, before: Network) -> Attempt:
        """The attempt with the network of the edited text, and its defects; `before` is the network as it ran.

        Raises ValueError where edits overlap.
        """
        source = replace(self.source, text=applied(self.text, edits))
        read, errors = read_input(source, self.job, self._reading)
        attempt = Attempt(plan, [], SpecDraft(source, self.job, self._reading, read))
        if read is None or errors:
            return attempt._replace(wrong=_placed(errors, read))
        network = as_asked(read, self.job)
        return attempt._replace(read=read, network=network, wrong=unexpected(before, network, plan))


# Of wishes: the plan for those that can be written, and why the others cannot.
Planned = Callable[[Sequence[Wish], EditPlanner], tuple[EditPlan, list[tuple[Wish, str]]]]


class NetworkDraft:
    """A network whose file or code is not edited: what that would hold once the fixes are in it."""

    cost = 1

    def __init__(self, job: Job, planned: Planned) -> None:
        self.job, self._planned = job, planned

    def attempt(self, asked: Sequence[Wish], planner: EditPlanner) -> Attempt:
        """The wishes as changes of the network; those that could not be written are `refused`."""
        plan, refused = self._planned(asked, planner)
        return Attempt(plan, refused, self, network=planner.after(plan))


def as_stated(source: Input, job: Job, reading: Reading, read: Network | None) -> Network | None:
    """The network that a spec states: edits are of that, and `read` has the batch of the command line."""
    if job.reading.batch is None:
        return read
    return reading.read(source, replace(job.reading, batch=None))[0]


EditsOf = Callable[[Sequence[ValueChange]], Edits]


def edits_where_shared(source: Input, job: Job, reading: Reading, read: Network | None) -> EditsOf | None:
    """The edits of a spec in which anchors or merge keys may share values; None if its text has neither.

    Only such a spec is parsed again to tell whether a fix can be written: that takes about as long as to read it.
    """
    text = source.text or ""
    if not may_share(text):
        return None

    @cache  # nothing is parsed where no fix is asked for
    def spec() -> SpecText | None:
        network = as_stated(source, job, reading, read)
        return None if network is None else SpecText(text, network)

    def edits(changes: Sequence[ValueChange]) -> Edits:
        known = spec()
        return Edits(edits=(), refused={}) if known is None else known.edits(changes)

    return edits


def edited(
    asked: Sequence[Wish], planner: EditPlanner, edits_of: EditsOf
) -> tuple[EditPlan, list[tuple[Wish, str]], tuple[Edit, ...]]:
    """(the plan for those of the wishes that can be granted and written into a spec, the others, the edits)."""

    def write(plan: EditPlan) -> tuple[tuple[Edit, ...], Mapping[int, str]]:
        edits = edits_of(list(plan.changes))
        return edits.edits, whole_settings(plan, _unedited(plan, edits.refused))

    plan, refused, edits = written(asked, planner, write)
    return plan, refused, edits or ()


def written(
    asked: Sequence[Wish], planner: EditPlanner, write: Callable[[EditPlan], tuple[_T, Mapping[int, str]]]
) -> tuple[EditPlan, list[tuple[Wish, str]], _T | None]:
    """(the plan for those of the wishes that can be granted and written, the others, what is written).

    `write` says what a plan comes to, and of granted wishes, by position, why they cannot be written.
    """
    refused: list[tuple[Wish, str]] = []
    for _ in range(MOST_PLANS):
        plan = planner.plan(asked)
        refused += plan.refused
        if not plan.granted:
            return plan, refused, None
        result, failing = write(plan)
        if not failing:
            return plan, refused, result
        refused += [(plan.granted[number], reason) for number, reason in failing.items()]
        asked = [wish for number, wish in enumerate(plan.granted) if number not in failing]
    return EditPlan(), refused + [(wish, "it does not go together with other fixes") for wish in asked], None


def _unedited(plan: EditPlan, refusals: Mapping[ValueChange, str]) -> dict[int, str]:
    """The granted wishes of which something cannot be written, by position."""
    distinct = {id(numbers): numbers for numbers in plan.changes.values()}  # many changes share the same wishes
    written = set(chain(*distinct.values()))
    failing = {number: _NOT_STATED for number in range(len(plan.granted)) if number not in written}
    reasons = {id(numbers := plan.changes[change]): (numbers, reason) for change, reason in refusals.items()}
    for numbers, reason in reasons.values():
        failing.update(dict.fromkeys(numbers, reason))
    return failing


def whole_settings(plan: EditPlan, failing: Mapping[int, str]) -> dict[int, str]:
    """The wishes that cannot be had, with all layers of a setting of the network: it is for all of them, or for none.

    A layout in some layers alone would cost transposes that its price does not have.
    """
    reasons = {
        id(wish.finding): reason for number, reason in failing.items() if is_of_setting(wish := plan.granted[number])
    }
    of_settings = {
        number: reasons[id(wish.finding)]
        for number, wish in enumerate(plan.granted)
        if id(wish.finding) in reasons and is_of_setting(wish)
    }
    return {**of_settings, **failing}


def is_of_setting(wish: Wish) -> bool:
    """Whether a wish is one layer's part of advice for the whole network."""
    return wish.finding.advised and wish.sets.keys() <= {"layout", "dtype"}


def _placed(errors: Sequence[InputError], read: Network | None) -> dict[int | None, str]:
    """Errors of the edited file, by the layer on whose lines each stands."""
    reasons: dict[int | None, str] = {}
    lines: dict[int, int] = {}
    for index, layer in enumerate(read.layers if read is not None else ()):
        first, _, last, _ = layer.spans["layer"]
        lines.update(dict.fromkeys(range(first, last + 1), index))
    for error in errors:
        reasons.setdefault(lines.get(error.line or 0), f"the file could not be read any more: {error.message}")
    return reasons or {None: "the file would hold no network any more"}


CodeEdits = Mapping[str, tuple[Edit, ...]]


class RunModel(Struct, frozen=True, kw_only=True):
    """One model of a run. Where it is not `judged`, it is enough that it runs."""

    source: Input
    rulebook: Rulebook
    job: Job
    checked: Checked
    judged: bool = True

    @property
    def paths(self) -> frozenset[str]:
        """The files that construct its layers, and its other operations with sizes of their own."""
        network = self.checked.network
        if network is None:
            return frozenset()
        sized = (operation.path for operation in network.operations if operation.sized)
        return frozenset(path for path in (*(layer.path for layer in network.layers), *sized) if path.endswith(".py"))


Others = Callable[[], Sequence[RunModel]]


class CodeDraft:
    """The code of `model`, as a `SpecDraft` is a spec. `files` are those edited so far, by the path that layers have.

    `others` gives the models that it may be shared with, once they are to be asked.
    """

    cost = 2

    def __init__(self, model: RunModel, others: Others, files: Mapping[str, Edited], reading: Reading) -> None:
        self.model, self.others, self.files, self._reading = model, others, files, reading
        self.job = with_sources(model.job, files)

    def attempt(self, asked: Sequence[Wish], planner: EditPlanner) -> Attempt | None:
        """The wishes as edits of the code; those that cannot be edits are `refused`."""
        content = contents(self.job)
        plan, refused, edits = written(asked, planner, code_writer(planner, content))
        if not edits:
            return Attempt(plan, refused)
        from convlint.fixes.python.source import applied_to_bytes

        files = dict(self.files)
        for path, file_edits in edits.items():
            now = content(path) or b""  # it was read for the edits
            before = files[path].before if path in files else now
            after = applied_to_bytes(now, file_edits)
            files[path] = Edited(path=path, before=before, after=after, encoding=python_encoding(now))
        attempt = CodeDraft(self.model, self.others, files, self._reading)._run(plan, planner.network, frozenset(edits))
        return attempt._replace(refused=refused)

    def _run(self, plan: EditPlan, before: Network, edited: frozenset[str]) -> Attempt:
        """The attempt with the edited model, and what is wrong with it or with models that run the same code."""
        read, errors = read_input(self.model.source, self.job, self._reading)
        if read is None or errors:
            return Attempt(plan, [], self, wrong={None: _broken(self.model, errors)})
        network = as_asked(read, self.job)
        wrong = unexpected(before, network, plan)
        others: list[RunModel] = []
        for other in self.others() if not wrong else ():
            if other.paths.isdisjoint(edited):
                others.append(other)
                continue
            outcome = self._of_other(other, plan)
            if isinstance(outcome, str):
                wrong = {None: outcome}
                break
            others.append(outcome)
        draft = CodeDraft(self.model, lambda: others, self.files, self._reading)
        return Attempt(plan, [], draft, read=read, network=network, wrong=wrong)

    def _of_other(self, other: RunModel, plan: EditPlan) -> RunModel | str:
        """Another model with the edited code, or the reason why the edits would harm it."""
        job, before, errors = with_sources(other.job, self.files), other.checked, list[InputError]()
        read, wrong = read_input(other.source, job, self._reading)
        if read is None or before.network is None or (wrong and not before.errors):
            return _broken(other, wrong)
        network = as_asked(read, job)
        reason = disturbed(before.network, network, plan)
        result = check_read(network, other.rulebook, job, errors) if other.judged and not reason else None
        if before.result is not None and result is not None and not errors:
            code, slow = new_error(before.result, result), longer(before.result, result)
            if code:
                reason = f"it would lead to {code}"
            elif slow is not None:
                reason = f"it would take {duration(slow[1])} longer on {slow[0]}"
        if reason or errors:
            return f"of {other.source.name}, which runs the same code, {reason or errors[0].message}"
        return replace(other, checked=Checked(read=read, network=network, result=result, errors=list(before.errors)))


Draft = SpecDraft | CodeDraft | NetworkDraft


def with_sources(job: Job, files: Mapping[str, Edited]) -> Job:
    """The job, for the code as it has been edited, of a model that has been read before."""
    sources = {os.path.realpath(path): edited.after.decode("latin-1") for path, edited in files.items()}
    return replace(job, reading=replace(job.reading, sources=sources, again=True))


def contents(job: Job) -> Callable[[str], bytes | None]:
    """The content of modules as the job has it, each read once; None where it cannot be read."""

    @cache
    def content(path: str) -> bytes | None:
        with suppress(InputFault):
            return python_bytes(path, job.reading.sources)
        return None

    return content


def code_writer(
    planner: EditPlanner, content: Callable[[str], bytes | None]
) -> Callable[[EditPlan], tuple[CodeEdits, Mapping[int, str]]]:
    """Says of plans what they change in which file, and of granted wishes, by position, why they cannot be written."""
    from convlint.fixes.python_text import PythonEditor

    editor = PythonEditor(planner.network, content)

    def write(plan: EditPlan) -> tuple[CodeEdits, Mapping[int, str]]:
        code_edits = editor.edits(plan.sets)
        failing = {}
        for number, wish in enumerate(plan.granted):
            own = plan.touched[number] if wish.layer is None else (planner.index_of[wish.layer],)
            reasons = (code_edits.refused.get((index, field)) for field in wish.sets for index in own)
            reason = next(filter(None, reasons), "")
            if not own or any(field in plan.runtime for field in wish.sets):
                reason = "no line that constructs layers states it"
            if reason:
                dims = {planner.network.layers[index].dims for index in own}
                mode, some = planner.network.mode, len(own) < len(planner.network.layers)
                lines = (by_hand(field, value, dims, mode, some=some) for field, value in wish.sets.items())
                reason = next(filter(None, lines), reason)
                failing[number] = reason
        common = next(iter(code_edits.refused.values()), "" if code_edits.edits else "no code of the project states it")
        if common and not failing:
            failing = dict.fromkeys(range(len(plan.granted)), common)
        # Each of the two would be written from the same old content, and the second would undo the first.
        if len(set(map(os.path.realpath, code_edits.edits))) < len(code_edits.edits):
            failing = dict.fromkeys(range(len(plan.granted)), "a file that would change is imported under two names")
        return code_edits.edits, failing

    return write


def by_hand(
    field: str, value: Scalar, dims: Collection[int] = (2,), mode: Mode | None = None, *, some: bool = False
) -> str:
    """The line of a script that has the effect of a setting on layers of these dims; empty without one.

    `some`: on these alone, not on the whole model: PyTorch runs a convolution in channels_last where its input or its
    weight is (ATen/native/ConvUtils.h), so that neither may be to keep one in NCHW.
    What only runs forward takes its weights in 16 bits: autocast, which training has for its fp32 weights, would cast
    them and every norm's input, and that has a price which the setting has not.
    """
    if mode == "inference" and field == "dtype" and value in ("fp16", "bf16"):
        kind = "float16" if value == "fp16" else "bfloat16"
        return f"the script that runs the model has to say model.to(torch.{kind}), and the same of its input"
    if (field, value) == ("layout", "NHWC") and not {2, 3}.issuperset(dims):  # of one axis no format has channels last
        return ""
    if (field, value) == ("layout", "NCHW") and some:
        return (
            "the forward pass has to hand x.contiguous() to these layers alone, and model.to(memory_format=...) must "
            "leave out their weights"
        )
    last = "torch.channels_last_3d" if 3 in dims else "torch.channels_last"
    lines = {
        ("layout", "NHWC"): f"model.to(memory_format={last}), and the same of its input",
        ("layout", "NCHW"): "model.to(memory_format=torch.contiguous_format), and the same of its input",
        ("dtype", "fp16"): 'with torch.autocast("cuda", dtype=torch.float16): around the forward, and a GradScaler',
        ("dtype", "bf16"): 'with torch.autocast("cuda", dtype=torch.bfloat16): around the forward pass',
        ("dtype", "fp32"): "no torch.autocast around these layers",
        ("runtime.tf32", True): "torch.backends.cudnn.allow_tf32 = True",
        ("runtime.cudnn_benchmark", True): "torch.backends.cudnn.benchmark = True",
        ("runtime.cudnn_benchmark", False): "torch.backends.cudnn.benchmark = False",
    }
    line = lines.get((field, value), "")
    return f"the script that runs the model has to say {line}" if line else ""


def _broken(model: RunModel, errors: Sequence[InputError]) -> str:
    mode = "" if model.judged else f" in {'train' if model.job.trains(model.source) else 'eval'} mode"
    why = f": {errors[0].message}" if errors else ""
    return f"{model.source.name} would not run any more{mode}{why}"


# Findings of one model that get edits: each has a plan of its own, and its modules are parsed again.
MOST_EDITED = 100


def with_code_edits(checked: Checked, job: Job) -> NetworkResult | None:
    """The result, its findings with all edits that their fixes need; or with the line that prevents them."""
    result, network = checked.result, checked.network
    if result is None or network is None or not network.operations:  # widths would be anyone's guess
        return result
    findings = [finding for finding in result.findings if applicability(finding) is not None][:MOST_EDITED]
    if not findings:
        return result
    from convlint.fixes.python.source import fix_with_edits
    from convlint.fixes.python_text import PythonEditor

    content = contents(job)
    planner, editor = EditPlanner(network, job.overridden(), result.silenced), PythonEditor(network, content)
    edited: dict[int, Finding] = {}
    for finding in findings:
        plan = planner.plan(wishes([finding]))
        if finding.fix is None or plan.refused or plan.runtime or not plan.sets:
            continue
        code_edits = editor.edits(plan.sets)
        if code_edits.refused:
            fix = replace(finding.fix, no_edit=code_edits.in_code)
        else:
            fix = fix_with_edits(finding.fix, code_edits.edits, content)
        edited[id(finding)] = replace(finding, fix=fix)
    return replace(result, findings=tuple(edited.get(id(finding), finding) for finding in result.findings))
