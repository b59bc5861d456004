"""Findings carry the edits of the code that constructs their layers; where nothing connects the layers, none."""

from pathlib import Path

import pytest
from constructed import NN, alone, chain, conv, norm
from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.mend.attempt import by_hand, with_code_edits
from convlint.mend.checking import Checked, Job
from convlint.model.location import CodeEdit, Location
from convlint.model.network import Network
from convlint.model.report import Finding, Fix, RuleInfo, Source

TEXT = f"{NN}a = nn.Conv2d(3, 60, 3)\nn = nn.BatchNorm2d(60)\nb = nn.Conv2d(60, w, 3)\n"
A, N, B = (line.split(" = ")[1] for line in TEXT.splitlines()[1:])
RULE = RuleInfo(
    code="CL102", name="x", title="x", severity="warning", rationale="", source=Source(document="", section="")
)


@pytest.fixture(autouse=True)
def in_its_folder(here: Path) -> None:
    (here / "net.py").write_text(TEXT)


def network() -> Network:
    return chain(conv(TEXT, A, name="a"), norm(TEXT, N, 60), conv(TEXT, B, name="b", C=60, K=7))


def fixes(network: Network, *several: tuple[str, dict[str, int | bool]]) -> list[Fix | None]:
    """The fixes of findings that set this in that layer, once their edits are looked up."""
    found = tuple(
        Finding(rule=RULE, severity="warning", message="", location=Location(path="net.py"), layer=layer,
                fix=Fix(describe="", safety="unsafe", set=sets))
        for layer, sets in several
    )  # fmt: skip
    result = NetworkResult(path="", labels=(), mode="training", layers=(), findings=found, skipped=())
    checked = with_code_edits(Checked(read=network, network=network, result=result), Job())
    return [finding.fix for finding in checked.findings]


def edits(fix: Fix | None) -> list[str]:
    return [f"{TEXT[each.start : each.end]}>{each.new}" for each in fix.code_edits]


def test_each_finding_has_all_edits_that_it_needs() -> None:
    width, bias, other = fixes(network(), ("a", {"K": 64}), ("a", {"bias": False}), ("b", {"bias": False}))
    assert edits(width) == ["60>64", "60>64", "60>64"]
    assert edits(bias) == [">, bias=False"]
    assert bias.code_edits == (
        CodeEdit(path="net.py", start=TEXT.index("3)\n") + 1, end=TEXT.index("3)\n") + 1, new=", bias=False"),
    )
    assert edits(other) == [">, bias=False"]


def test_a_line_that_prevents_them_is_named() -> None:
    Path("net.py").write_text(TEXT.replace("BatchNorm2d(60)", "BatchNorm2d(xx)"))
    width, bias = fixes(network(), ("a", {"K": 64}), ("a", {"bias": False}))
    assert edits(width) == []
    assert width.no_edit == "net.py:3: num_features comes from `xx`, which this file does not set"
    assert edits(bias) == [">, bias=False"]


def test_what_no_code_states_is_not_spoken_of() -> None:
    layout, outside = fixes(network(), ("a", {"N": 64}), ("b", {"K": 8}))
    assert (layout.code_edits, layout.no_edit, outside.code_edits, outside.no_edit) == ((), "", (), "")


def test_without_dataflow_or_files_there_are_no_edits() -> None:
    (fix,) = fixes(alone(network().layers), ("a", {"bias": False}))
    assert edits(fix) == []
    Path("net.py").unlink()
    (fix,) = fixes(network(), ("a", {"bias": False}))
    assert (fix.code_edits, fix.no_edit) == ((), "net.py:2: the file cannot be read")


def test_what_could_not_be_checked_is_left_alone() -> None:
    assert with_code_edits(Checked(network=replace(network())), Job()) is None


@pytest.mark.parametrize(
    ("dims", "format_"), [((2,), "torch.channels_last)"), ((3,), "torch.channels_last_3d)"), ((2, 3), "_3d)")]
)
def test_the_memory_format_is_that_of_the_layers(dims: tuple[int, ...], format_: str) -> None:
    assert format_ in by_hand("layout", "NHWC", dims)


def test_layers_of_one_axis_have_no_memory_format() -> None:
    assert by_hand("layout", "NHWC", (1,)) == by_hand("layout", "NHWC", (1, 2)) == ""


def test_some_layers_in_nchw_are_no_format_of_the_model() -> None:
    """A whole RegNet in NCHW trained slower than with its grouped layers alone in it."""
    assert "contiguous_format" in by_hand("layout", "NCHW")
    alone = by_hand("layout", "NCHW", some=True)
    assert "x.contiguous()" in alone
    assert "contiguous_format" not in alone
    assert by_hand("layout", "NHWC", some=True) == by_hand("layout", "NHWC")


def test_what_only_runs_forward_takes_weights_of_16_bits() -> None:
    assert "model.to(torch.float16)" in by_hand("dtype", "fp16", mode="inference")
    assert "torch.autocast" in by_hand("dtype", "bf16", mode="training")
