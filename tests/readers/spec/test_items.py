"""Which operations of a network a spec has to hold."""

from __future__ import annotations

from msgspec.structs import replace
from wired_spec_networks import Wired

from convlint.model.channels import channels_of
from convlint.readers.spec.writing import uses


def named(net: Wired, wanted: str = "written") -> list[str]:
    network = net.network()
    found = uses(network.operations, channels_of(network))
    return [operation.name for operation, use in zip(network.operations, found, strict=True) if use == wanted]


def stem() -> tuple[Wired, int]:
    net = Wired()
    return net, net.conv(net.step("input", C=3, sizes=(8, 8), name="x"), 24)


def test_a_classifier_is_needed_as_far_as_it_fixes_channels() -> None:
    net, a = stem()
    flat = net.step("reshape", net.same("resize", a, sizes=(1, 1), name="pool"), C=24, name="flat")
    net.same("identity", net.step("reshape", flat, C=10, name="linear"), name="softmax")
    assert named(net) == ["x", "op1", "pool", "flat"]


def test_what_leads_nowhere_is_needed_only_where_it_ties_channels() -> None:
    net, a = stem()
    b = net.conv(a, 24)
    for kind in ("identity", "resize", "concat", "add", "reshape"):
        net.same(kind, *((a, b) if kind == "add" else (a,)), name=kind)
    net.same("identity", a, name="norm", groups=4)
    network = net.network()
    operations = [operation.kind for operation in network.operations]
    assert operations.count("conv") == 2
    quiet = [replace(operation, output=False) for operation in network.operations]
    found = uses(quiet, channels_of(network))
    assert [each.name for each, use in zip(quiet, found, strict=True) if use == "written"] == [
        "x", "op1", "op2", "add", "reshape", "norm",
    ]  # fmt: skip


def test_what_only_computes_weights_is_not_needed() -> None:
    net, a = stem()
    kernel = net.step("input", C=7, sizes=(8, 8), name="kernel")
    made = net.same("identity", kernel, name="made")
    net.operations.append(replace(net.operations[a], inputs=(0, made), name="dynamic"))
    net.producers.append((0,))
    assert "kernel" not in named(net)


def test_what_lies_among_opaque_operations_is_passed_through() -> None:
    net, a = stem()
    tokens = net.step("reshape", a, C=64, name="tokens")
    attended = net.step("reshape", tokens, C=64, name="attention")
    total = net.step("add", attended, tokens, C=64, name="sum")
    net.conv(net.step("reshape", total, C=16, sizes=(2, 2), name="image"), 8)
    assert named(net) == ["x", "op1", "tokens", "image", "op6"]
    assert named(net, "passed through") == ["attention", "sum"]
    net.conv(total, 8, H=8, W=8)
    assert named(net) == ["x", "op1", "tokens", "attention", "sum", "image", "op6", "op7"]
