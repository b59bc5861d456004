"""The code that constructs the layers of live models, as it has been edited so far; nothing of it is on disk yet.

It is imported in place of what lies there, by its own model and by all others of the run that construct layers with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from convlint.errors import InputFault
from convlint.files.bounded_file import python_bytes, python_encoding
from convlint.fixes.edits import Edit
from convlint.fixes.plan import Plan, Planner, Wish
from convlint.fixes.verify import disturbed, longer, new_error, unexpected
from convlint.linting.attempt import Attempt, written
from convlint.linting.fixed import Edited
from convlint.linting.one_input import Checked, Job, as_asked, check_read, read_input
from convlint.model.network import Network
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.report import InputError, Scalar
from convlint.reporters.words import duration
from convlint.rulebook.book import Rulebook

if TYPE_CHECKING:
    from convlint.fixes.python_text import PythonEditor

_NO_CODE = "no code of the project states it"
CodeEdits = Mapping[str, tuple[Edit, ...]]


class Member(Struct, frozen=True, kw_only=True):
    """One model of a run. Where it is not `judged`, it is enough that it runs."""

    source: Input
    rulebook: Rulebook
    job: Job
    checked: Checked
    judged: bool = True

    @property
    def paths(self) -> frozenset[str]:
        """Where its layers, and what has sizes of its own beside them, are constructed."""
        network = self.checked.network
        if network is None:
            return frozenset()
        sized = (operation.path for operation in network.operations if operation.sized)
        return frozenset(path for path in (*(layer.path for layer in network.layers), *sized) if path.endswith(".py"))


Others = Callable[[], Sequence[Member]]


class CodeDraft:
    """The code of `model`. `files` are those edited so far, by the path that layers have.

    `others` gives the models that it may be shared with, once they are to be asked.
    """

    cost = 2

    def __init__(self, model: Member, others: Others, files: Mapping[str, Edited], reading: Reading) -> None:
        self.model, self.others, self.files, self._reading = model, others, files, reading
        self.job = with_sources(model.job, files)

    def attempt(self, asked: Sequence[Wish], planner: Planner) -> Attempt | None:
        """See `Draft`."""
        content = contents(self.job)
        plan, refused, edits = written(asked, planner, code_writer(planner, content))
        if not edits:
            return Attempt(plan, refused)
        from convlint.fixes.python.rewriting import applied_to_bytes

        files = dict(self.files)
        for path, several in edits.items():
            now = content(path) or b""  # it was read for the edits
            before = files[path].before if path in files else now
            after = applied_to_bytes(now, several)
            files[path] = Edited(path=path, before=before, after=after, encoding=python_encoding(now))
        made = CodeDraft(self.model, self.others, files, self._reading)._run(plan, planner.network, frozenset(edits))
        return made._replace(refused=refused)

    def _run(self, plan: Plan, before: Network, edited: frozenset[str]) -> Attempt:
        """With what the model is now, and what is wrong with it or with others that run the same code."""
        read, errors = read_input(self.model.source, self.job, self._reading)
        if read is None or errors:
            return Attempt(plan, [], self, wrong={None: _broken(self.model, errors)})
        network = as_asked(read, self.job)
        wrong = unexpected(before, network, plan)
        others: list[Member] = []
        for other in self.others() if not wrong else ():
            if other.paths.isdisjoint(edited):
                others.append(other)
                continue
            found = self._of_other(other, plan)
            if isinstance(found, str):
                wrong = {None: found}
                break
            others.append(found)
        draft = CodeDraft(self.model, lambda: others, self.files, self._reading)
        return Attempt(plan, [], draft, read=read, network=network, wrong=wrong)

    def _of_other(self, other: Member, plan: Plan) -> Member | str:
        """Another model as it is now; or why it must not become that."""
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
    planner: Planner, content: Callable[[str], bytes | None]
) -> Callable[[Plan], tuple[CodeEdits, Mapping[int, str]]]:
    """Says of plans what they change in which file, and of granted wishes, by position, why they cannot be written."""
    from convlint.fixes.python_text import PythonEditor

    editor = PythonEditor(planner.network, content)
    return lambda plan: _written(editor, plan, planner)


def _written(editor: PythonEditor, plan: Plan, planner: Planner) -> tuple[CodeEdits, Mapping[int, str]]:
    made = editor.edits(plan.sets)
    failing = {}
    for number, wish in enumerate(plan.granted):
        own = plan.touched[number] if wish.layer is None else (planner.index_of[wish.layer],)
        reasons = (made.refused.get((index, field)) for field in wish.sets for index in own)
        reason = next(filter(None, reasons), "")
        if not own or any(field in plan.runtime for field in wish.sets):
            reason = "no line that constructs layers states it"
        if reason:
            reason = next(filter(None, (by_hand(field, value) for field, value in wish.sets.items())), reason)
        if reason:
            failing[number] = reason
    left = next(iter(made.refused.values()), "" if made.edits else _NO_CODE)
    if left and not failing:
        failing = dict.fromkeys(range(len(plan.granted)), left)
    if len(set(map(os.path.realpath, made.edits))) < len(made.edits):
        failing = dict.fromkeys(range(len(plan.granted)), "a file that would change is imported under two names")
    return made.edits, failing


def by_hand(field: str, value: Scalar) -> str:
    """Which line of a script, not of the code that constructs layers, does what a fix sets; empty where it is none."""
    lines = {
        ("layout", "NHWC"): "model.to(memory_format=torch.channels_last), and the same of its input",
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


def _broken(model: Member, errors: Sequence[InputError]) -> str:
    mode = "" if model.judged else f" in {'train' if model.job.trains(model.source) else 'eval'} mode"
    why = f": {errors[0].message}" if errors else ""
    return f"{model.source.name} would not run any more{mode}{why}"
