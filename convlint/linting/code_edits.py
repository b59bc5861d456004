"""What findings on a live model advise, as edits of the code that constructs it; nothing is written here."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.fixes.plan import applicability, wishes
from convlint.fixes.python.source import by_columns
from convlint.linting.one_input import Checked, Job
from convlint.model.location import CodeEdit
from convlint.report import Finding, Fix

MOST_EDITED = 100  # findings of one model: each is planned for, and its modules parsed again, on its own


def with_code_edits(checked: Checked, job: Job) -> NetworkResult | None:
    """The result, its findings with all edits that their fixes need; or with the line that prevents them."""
    result, network = checked.result, checked.network
    if result is None or network is None or not network.operations:  # widths would be anyone's guess
        return result
    asked = [finding for finding in result.findings if applicability(finding) is not None][:MOST_EDITED]
    if not asked:
        return result
    from convlint.fixes.plan import Planner
    from convlint.fixes.python_text import PythonEditor
    from convlint.linting.code_draft import contents

    content = contents(job)
    planner, editor = Planner(network, job.overridden(), result.silenced), PythonEditor(network, content)
    edited: dict[int, Finding] = {}
    for finding in asked:
        plan = planner.plan(wishes([finding]))
        if finding.fix is None or plan.refused or plan.runtime or not plan.sets:
            continue
        made = editor.edits(plan.sets)
        edits = tuple(
            CodeEdit(path=path, start=edit.start, end=edit.end, new=edit.new)
            for path, several in sorted(made.edits.items())
            for edit in several
        )
        fix = replace(finding.fix, no_edit=made.in_code) if made.refused else _with_edits(finding.fix, edits, content)
        edited[id(finding)] = replace(finding, fix=fix)
    return replace(result, findings=tuple(edited.get(id(finding), finding) for finding in result.findings))


def _with_edits(fix: Fix, edits: tuple[CodeEdit, ...], content: Callable[[str], bytes | None]) -> Fix:
    """The fix with its edits, by bytes and by columns; what changes a model's code changes the network."""
    found = tuple(by_columns(edit, content(edit.path) or b"") for edit in edits)
    return replace(fix, code_edits=edits, edits=found, edits_safety="unsafe")
