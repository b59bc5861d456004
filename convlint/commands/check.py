"""`convlint check` and `convlint layer`: from options to a written report and an exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convlint import policy as policies
from convlint.commands.output import check_writable, parse_outputs, write_outputs
from convlint.engine import assemble, check_network
from convlint.errors import InputFault, UsageError
from convlint.located_yaml import Value
from convlint.model import Network, Span
from convlint.policy import Policy
from convlint.readers.spec_fields import read_fields
from convlint.readers.spec_layer import conv_layer, conv_op
from convlint.report import InputError, Report
from convlint.rulebook import load_rulebook
from convlint.run import DEFAULT_TARGET, Job, check_paths, resolve_targets

FLAGS_PATH = "<flags>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """How the report is to be shown."""

    outputs: tuple[str, ...] = ()
    color: str = "auto"
    quiet: bool = False


def check(
    paths: Sequence[str], job: Job, policy: Policy, shown: Presentation, *, rules: Sequence[str], jobs: int, allow_empty: bool
) -> int:
    """Checks `paths`, writes the report and returns the exit code. Raises UsageError."""
    outputs = parse_outputs(shown.outputs)
    check_writable(outputs)
    rulebook = load_rulebook(rules)
    policies.selected(policy, rulebook)  # an unknown rule is refused before anything is read
    report = policies.apply(check_paths(paths, rulebook, job, jobs=jobs), policy, rulebook)
    if allow_empty:
        report = _without_empty(report)
    write_outputs(report, outputs, color=shown.color, quiet=shown.quiet)
    return policies.exit_code(report, policy)


def _without_empty(report: Report) -> Report:
    from dataclasses import replace

    return replace(report, errors=tuple(e for e in report.errors if not e.message.startswith("nothing to check")))


def layer(
    flags: Mapping[str, str], job: Job, policy: Policy, shown: Presentation, *, rules: Sequence[str]
) -> int:
    """Checks the one layer that `flags` describe. Raises UsageError for a flag that cannot be read."""
    outputs = parse_outputs(shown.outputs)
    check_writable(outputs)
    rulebook = load_rulebook(rules)
    policies.selected(policy, rulebook)
    network = network_from_flags(flags)
    targets = resolve_targets(job.gpus or (DEFAULT_TARGET,))
    result = check_network(network, rulebook, targets, job.mode or "training")
    report = policies.apply(assemble([result], (), rulebook, files=1), policy, rulebook)
    write_outputs(report, outputs, color=shown.color, quiet=shown.quiet)
    return policies.exit_code(report, policy)


_NOWHERE: Span = (0, 0, 0, 0)


def network_from_flags(flags: Mapping[str, str]) -> Network:
    """A network of one layer. Raises UsageError that names the flag."""
    dims = int(flags.get("dims", "2"))
    op = conv_op(flags.get("op", "conv"))
    if op is None:
        raise UsageError(f"--op: {flags['op']!r} is neither conv nor conv_transpose")
    mapping = {
        name: _flag_value(text)
        for name, text in flags.items()
        if name not in ("op", "dims", "name") and not name.startswith("runtime.")
    }
    errors: list[InputFault] = []
    fields = read_fields(mapping, dims, errors.append, where="flags")
    if not errors:
        fields.spans["layer"] = _NOWHERE
        try:
            layer = conv_layer(flags.get("name", "layer"), "", op, dims, fields, None, None, complete=False)
        except InputFault as error:
            errors.append(error)
    if errors:
        raise UsageError("; ".join(error.message for error in errors))
    from dataclasses import replace

    first = layer.C is not None and layer.C <= 4
    return Network(path=FLAGS_PATH, layers=(replace(layer, path=FLAGS_PATH, first=first, spans={}),), runtime=_runtime(flags))


def _runtime(flags: Mapping[str, str]):  # type: ignore[no-untyped-def]
    from convlint.readers.spec_runtime import runtime_of

    settings = {name.removeprefix("runtime."): _flag_value(text) for name, text in flags.items() if name.startswith("runtime.")}
    runtime, errors = runtime_of(Value(settings, _NOWHERE) if settings else None)
    if errors:
        raise UsageError("; ".join(error.message for error in errors))
    return runtime


def _flag_value(text: str) -> Value:
    """`3` or `3,3` as YAML would hold it."""
    if "," in text:
        return Value([Value(part.strip(), _NOWHERE, plain=True) for part in text.split(",")], _NOWHERE)
    return Value(text, _NOWHERE, plain=True)


__all__ = ["InputError", "Presentation", "check", "layer", "network_from_flags"]
