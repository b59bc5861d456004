"""`convlint plan --write`: the planned network as a spec.

The user's own spec is edited where the result reads as the planned network; otherwise a new one is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps

from msgspec.structs import replace

from convlint.engine.steps import NetworkPlan
from convlint.files.located_yaml import flow
from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.edits import Edit, added, applied, quotes
from convlint.fixes.plan import ValueChange
from convlint.fixes.spec_text import spec_edits
from convlint.mend.outcome import with_content, with_text
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import Version, default_mode
from convlint.readers import SPEC
from convlint.readers.inputs import Input
from convlint.readers.reading import format_of_input
from convlint.readers.spec.reader import read_spec
from convlint.readers.spec.writing import spec_text

_OF_ITEMS = ("C", "K", "groups", "N")  # sizes that an item may leave out, to have those of its input
_ANEW = (
    "# Written anew, without comments and anchors: no edit of single values makes this of the file that was planned.\n"
)
_TARGET = ("target", "targets", "gpu")


def written(plan: NetworkPlan, source: Input) -> str:
    """The spec of a plan, on the GPU and in the mode that it is for."""
    network = replace(plan.network, targets=(plan.gpu,), mode=plan.mode)
    text = _text(source)
    if text is None:
        return spec_text(network)
    edited = _edited(text, network)
    return _ANEW + spec_text(network) if edited is None else edited


def opened(source: Input) -> tuple[Input, tuple[InputError, ...]]:
    """Standard input with its content, as it can be read only once, and the errors of that; other inputs unchanged."""
    source = with_content(source)
    return (source, ()) if source.raw is None else with_text(source)


def _text(source: Input) -> str | None:
    """What the user wrote; None where that is no spec."""
    if source.text is not None or format_of_input(source) is not SPEC:
        return source.text
    return with_text(source)[0].text  # None where it has changed since it was read


def _edited(text: str, planned: Network) -> str | None:
    """The text after which it is the planned network; None where no edit of its values makes it that."""
    read, errors = read_spec(text, planned.path)
    if read is None or errors or len(read.layers) != len(planned.layers):
        return None
    edits = spec_edits(text, read, list(_changes(read, planned)))
    if edits.refused:
        return None
    # Comments, anchors and defaults may give an edit another meaning than it was made for, so the result is read again.
    result = _headed(applied(text, edits.edits), read, planned)
    again, errors = read_spec(result, planned.path)
    if again is None or errors:
        return None
    mode = again.mode or default_mode(again.runtime)
    same = (again.layers, again.runtime, again.targets, mode) == (
        planned.layers, planned.runtime, planned.targets, planned.mode,
    )  # fmt: skip
    return result if same and _wires(again) == _wires(planned) else None


def _wires(network: Network) -> list[tuple[object, ...]]:
    # a convolution has no C of its own to compare: what it hands on is its layer's K
    return [
        (item.kind, item.name, item.inputs, item.layer, None if item.kind == "conv" else item.C)
        for item in network.operations
    ]


def _changes(read: Network, planned: Network) -> Iterator[ValueChange]:
    """The values to write anew; sizes that the spec leaves out follow from those of the input."""
    numbered = reversed(list(enumerate(read.operations)))
    position_of = {operation.layer: number for number, operation in numbered if operation.layer is not None}
    batches = set()
    for index, (old, new) in enumerate(zip(read.layers, planned.layers, strict=True)):
        position = position_of[index]
        for field in _OF_ITEMS:
            value = getattr(new, field)
            if value != getattr(old, field) and value is not None:
                if field in old.spans:
                    yield ValueChange(layer=position, field=field, value=value)
                elif field == "N":
                    batches.add(value)
        if new.dtype != old.dtype and new.dtype is not None:
            yield ValueChange(layer=position, field="dtype", value=new.dtype.value)
        if new.layout != old.layout:
            yield ValueChange(layer=position, field="layout", value=new.layout)
        if new.unfolded != old.unfolded:
            yield ValueChange(layer=position, field="unfolded", value=new.unfolded)
    for number, (before, after) in enumerate(zip(read.operations, planned.operations, strict=True)):
        if before.kind in ("input", "linear"):
            if after.C != before.C and after.C is not None:
                yield ValueChange(layer=number, field="C", value=after.C)
            for N in batches if before.kind == "input" else ():
                yield ValueChange(layer=number, field="N", value=N)
    for name in read.runtime.__struct_fields__:
        value = getattr(planned.runtime, name)
        if name != "spans" and value != getattr(read.runtime, name) and value is not None:
            yield ValueChange(
                layer=None, field=f"runtime.{name}", value=str(value) if isinstance(value, Version) else value
            )


def _headed(text: str, read: Network, planned: Network) -> str:
    """The text with the GPU and the mode of the plan."""
    root = nodes.nodes_of(text)
    if root is None:
        return text
    as_json = quotes(root, otherwise=False)
    targets = list(planned.targets)
    values = {} if read.targets == planned.targets else {"target": dumps(targets) if as_json else flow(targets)}
    if (read.mode or default_mode(planned.runtime)) != planned.mode:
        values["mode"] = dumps(planned.mode) if as_json else str(planned.mode)
    if not values:
        return text
    own, edits, new = root.own, [], {}
    for key, value in values.items():
        entry = next((own[name] for name in (_TARGET if key == "target" else (key,)) if name in own), None)
        if entry is None:
            new[key] = value
        else:
            edits.append(Edit(entry.value.start, entry.value.end, value))
    if new:
        edits.append(added(text, root, new, as_json=as_json, after=("version",)))
    return applied(text, edits)
