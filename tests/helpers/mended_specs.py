"""Short builders of networks and wishes, and the planner's edits for them."""

from typing import Any

from convlint.fixes.plan import EditPlan, EditPlanner, Wish
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.model.report import Finding, Fix, RuleInfo, Source
from convlint.readers.spec.reader import read_spec


def network_of(layers: str, top: str = "", defaults: str = "N: 8, H: 32, W: 32, kernel_size: 3, padding: 1") -> Network:
    text = f"version: 1\n{top}defaults: {{ {defaults} }}\nlayers:\n{layers}"
    network, errors = read_spec(text, "net.yaml")
    assert not errors
    assert network is not None
    return network


def wish(
    layer: str | None, code: str = "XY001", gpu: str | None = None, *, lost_us: float | None = None, **sets: Any
) -> Wish:
    """What a rule wants of a layer; `runtime__tf32` stands for `runtime.tf32`."""
    named = {name.replace("__", "."): value for name, value in sets.items()}
    source = Source(document="house", section="1")
    rule = RuleInfo(code=code, name="rule", title="", severity="warning", rationale="", source=source)
    found = Finding(
        rule=rule, severity="warning", message="m", location=Location(path="net.yaml"), layer=layer, gpu=gpu,
        lost_us=lost_us, fix=Fix(describe="", safety="unsafe", set=named),
    )  # fmt: skip
    return Wish(finding=found, layer=layer, sets=named)


def planned(network: Network, *wishes: Wish, **blocked: str) -> EditPlan:
    return EditPlanner(network, blocked).plan(wishes)


def changes(plan: EditPlan) -> set[tuple[int | None, str, Any]]:
    return {(change.layer, change.field, change.value) for change in plan.changes}


def refusals(plan: EditPlan) -> dict[str | None, str]:
    return {each.layer: reason for each, reason in plan.refused}
