"""`convlint plan`: plans the changes of a whole network, in their order, with the time that each step saves."""

from __future__ import annotations

import sys
from datetime import date
from functools import partial

from msgspec.structs import replace

from convlint.cli.commands.estimate import no_time
from convlint.cli.commands.plan_spec import opened, written
from convlint.cli.streams.gate import style_of
from convlint.cli.streams.outputs import FileUse, Presentation, deliver, files_of, inputs, refuse_clashes, replace_file
from convlint.engine.check import Target
from convlint.engine.findings import NetworkResult, lacking
from convlint.engine.hits import with_fix, with_settings
from convlint.engine.plan import plan
from convlint.engine.steps import NetworkPlan, Wishes
from convlint.estimate.sweep import unknown_time
from convlint.fixes.plan import EditPlanner as Corrections
from convlint.fixes.plan import applicability, wishes
from convlint.mend import checking
from convlint.model.errors import UsageError
from convlint.model.layer import ConvLayer, Mode
from convlint.model.network import Network
from convlint.model.report import CalibrationUse, InputError
from convlint.model.runtime import default_mode
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.reporters import Style
from convlint.reporters.plans import Planned, render_json, render_markdown, render_text
from convlint.reporters.words import batch_note, calibration_notes
from convlint.run.plan import Options, RunPlanner, refuse_idle
from convlint.run.plan import RunPlan as Project
from convlint.verdict.select import incomplete

NOT_REACHED = 1  # exit code: the plan is made, but the time asked for is out of reach


def run(
    source: Input, job: checking.Job, chosen: Options, wishes: Wishes, shown: Presentation, file: str | None
) -> int:
    """Writes the plan by the rules that are chosen, and the changed network to `file`; returns the exit code.

    Raises UsageError.
    """
    refuse_idle(job.reading, [source])
    spec = [FileUse(role="the spec", path=file)] if file is not None else []
    refuse_clashes([*files_of(shown.outputs), *spec], inputs([source]))
    checking.resolve_targets(job.gpus)
    source, wrong = (source, ()) if file is None else opened(source)
    job = replace(job, calibrations=checking.calibrations_near(source, isolated=job.isolated))
    project = RunPlanner(chosen, date.today()).plan(source)
    planned = Planned(path=source.name, plan=None, errors=wrong) if wrong else _planned(source, job, project, wishes)
    if file is not None and not planned.is_whole:
        planned = replace(planned, notes=(*planned.notes, f"{file} is not written: the input is incomplete"))
    for place in shown.outputs:
        style = style_of(sys.stdout, shown.color) if place.file is None else Style()
        deliver(place.file, _render(place.format, planned, style), style)
    result = planned.plan
    if file is not None and result is not None and planned.is_whole:
        replace_file(file, written(result, source))
    return incomplete(planned.errors) or (NOT_REACHED if result is not None and result.is_reached is False else 0)


def _render(name: str, planned: Planned, style: Style) -> str:
    if name == "html":
        from convlint.reporters.page.assembling import render_plan  # needs Jinja2, which is optional

        return render_plan(planned, style)
    if name == "json":
        return render_json(planned)
    return render_markdown(planned) if name == "markdown" else render_text(planned, style)


def _planned(source: Input, job: checking.Job, project: Project, wishes: Wishes) -> Planned:
    """The plan for one input; what is wrong with the input is a value in it. Raises only RuleError and UsageError."""
    errors: list[InputError] = []
    result: NetworkPlan | None = None
    uses: tuple[CalibrationUse, ...] = ()
    notes: list[str] = []
    is_whole = True
    with checking.last_resort(errors, source.name), Reading(on_output=checking.say) as reading:
        network, read_errors = checking.read_input(source, job, reading)
        errors += read_errors
        is_whole = not read_errors
        if network is not None:
            target = _target(network, job, errors, notes)
            if not network.layers and not errors:
                errors.append(InputError(path=network.path, message="nothing to plan: no convolution in it"))
            if target is not None and network.layers:
                network = checking.as_asked(network, job)
                targets = [target]
                _, uses = checking.calibrated(targets, network.runtime, job.calibrations)
                notes += calibration_notes(uses, several=False)
                notes += [batch_note(network.unbatched)] if network.unbatched else []
                mode = network.mode or default_mode(network.runtime)
                rulebook, silencing = project.rulebook, project.job.silencing
                judge = partial(
                    checking.judged, rulebook=rulebook, targets=targets, silencing=silencing,
                    calibrations=job.calibrations, allow=job.allow | project.job.allow,
                )  # fmt: skip
                result = plan(network, rulebook, target, mode, wishes, judge)
                stays = wishes.keeps_results or "dtype" in wishes.fixed
                if (result is None or result.without_time) and not stays:  # what is wrong may be why
                    corrected, texts = _without_errors(network, judge(network))
                    if texts:
                        notes += texts
                        result = plan(corrected, rulebook, target, mode, wishes, judge)
                errors += _without_time(network, target, mode, result)
    return Planned(
        path=source.name, plan=result, is_whole=is_whole, errors=tuple(errors), notes=tuple(notes), calibrations=uses
    )


def _without_errors(network: Network, result: NetworkResult) -> tuple[Network, list[str]]:
    """The network with dtypes that its GPU runs, where errors are why layers have no time; and notes on the changes."""
    timeless = {entry.layer.name for entry in result.layers if None in entry.times.values()}
    errors = [
        finding
        for finding in result.findings
        if finding.severity == "error"
        and not timeless.isdisjoint(finding.layers or (finding.layer,))
        and finding.fix is not None
        and finding.fix.set.keys() == {"dtype"}
        and applicability(finding)
    ]
    granted = Corrections(network).plan(wishes(errors))
    layers = [with_fix(layer, granted.sets.get(index, {})) for index, layer in enumerate(network.layers)]
    corrected = replace(network, layers=tuple(layers), runtime=with_settings(network.runtime, granted.runtime))
    fixable = {id(wish.finding): wish.finding for wish in granted.granted}.values()
    notes = (
        f"{finding.rule.code} comes first: {finding.fix.describe}; all times are those with it"
        for finding in fixable
        if finding.fix
    )
    return corrected, list(dict.fromkeys(notes))  # layers of several dtypes have findings of their own


def _target(network: Network, job: checking.Job, errors: list[InputError], notes: list[str]) -> Target | None:
    """The GPU asked for, or the first that the input names."""
    names = job.gpus or network.targets or job.default_gpus
    try:
        (target,) = checking.resolve_targets(names[:1])
    except UsageError as error:
        errors.append(checking.wrong_target(network, error))
        return None
    if len(names) > 1:
        notes.append(f"for {names[0]}, the first of {', '.join(names)}: --gpu names another")
    return target


def _without_time(network: Network, target: Target, mode: Mode, result: NetworkPlan | None) -> list[InputError]:
    """One error for each reason why layers have no time: a plan for the whole network lacks them."""
    left_out = None if result is None else result.without_time
    layers: dict[str, list[ConvLayer]] = {}
    for index, layer in enumerate(network.layers):
        if left_out is None or index in left_out:
            lacks = lacking(layer, network.runtime, mode, {target.label: target.gpu})
            layers.setdefault(lacks.get(target.label) or unknown_time(layer, target.gpu), []).append(layer)
    return [no_time(network.path, reason, of) for reason, of in layers.items()]
