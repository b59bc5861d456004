"""Family 4, layout: which layout is advised, at which price, and which frameworks choose it themselves."""

import pytest
from rule_outcomes import SILENT, findings, outcome, rows

ROW = "N: 32, C: 64, K: 64, W: 1000, kernel_size: 3, dims: 1, dtype: fp16, layout: NCHW"
MAP = "N: 32, C: 64, K: 64, H: 56, W: 56, kernel_size: 3, padding: 1"


@pytest.mark.parametrize("gpu", ["v100", "a100"])
@pytest.mark.parametrize(
    ("runtime", "describe"),
    [
        (
            "framework: pytorch",
            "Conv2d with H=1, memory_format=torch.channels_last for model and input: Conv1d has no such format",
        ),
        (
            "framework: pytorch, compile: true",  # which chooses layouts in two dimensions alone
            "Conv2d with H=1, memory_format=torch.channels_last for model and input: Conv1d has no such format",
        ),
        ("", "NWC (Keras: channels_last; PyTorch: Conv2d with H=1 and channels_last)"),
    ],
)
def test_prefer_nhwc_in_one_dimension(runtime: str, describe: str, gpu: str) -> None:
    (finding,) = findings("CL401", f"{{ {ROW} }}", gpu=gpu, runtime=runtime)
    assert finding.severity == "warning"
    assert finding.message == "NCW: the library transposes tensors for the Tensor Cores"
    assert (finding.fix.set, finding.fix.describe) == ({"layout": "NHWC"}, describe)
    (joined,) = findings("CL401", f"{{ {ROW} }}, {{ {ROW} }}", gpu=gpu, runtime=runtime)
    assert joined.message == "NCW in 2 layers: the library transposes tensors for the Tensor Cores"


@pytest.mark.parametrize("runtime", ["", "framework: pytorch"])
def test_prefer_nhwc_in_three_dimensions(runtime: str) -> None:
    row = "N: 32, C: 64, K: 64, D: 16, H: 56, W: 56, kernel_size: 3, padding: 1, dims: 3, dtype: fp16, layout: NCHW"
    (joined,) = findings("CL401", f"{{ {row} }}, {{ {row} }}", gpu="a100", runtime=runtime)
    assert joined.message == "NCDHW in 2 layers: the library transposes tensors for the Tensor Cores"


# what it costs a layer of unknown size is not known: an info
UNSIZED = "C: 64, K: 64, kernel_size: 3, dtype: fp16, layout: NCHW"
CASES: dict[str, list[tuple[str, str, str, str]]] = {
    "CL401": [
        (f"{MAP}, dtype: fp16, layout: NHWC", "a100", "", SILENT),
        (f"{MAP}, dtype: fp16", "a100", "", SILENT),  # nobody says which layout
        (f"{MAP}, dtype: fp32, layout: NCHW", "a100", "tf32: false", SILENT),
        (ROW, "a100", "framework: tensorflow", SILENT),
        (ROW, "a100", "framework: jax", SILENT),
        (ROW.replace("NCHW", "NHWC"), "a100", "", SILENT),
        (UNSIZED, "a100", "", "info"),
        (f"{UNSIZED}, dims: 1", "a100", "", "info"),
    ],
    "CL403": [
        (f"{MAP}, dtype: fp32, layout: NHWC", "k80", "", "warning"),
        (f"{MAP}, dtype: fp16, layout: NHWC", "p100", "", "warning"),
        (f"{MAP}, dtype: fp16, layout: NHWC", "v100", "", SILENT),
        (f"{MAP}, dtype: fp32, layout: NHWC", "a100", "", SILENT),  # TF32
        (f"{MAP}, dtype: fp32, layout: NHWC", "k80", "framework: tensorflow", SILENT),
        ("C: 64, K: 64, kernel_size: 3, dtype: fp32, layout: NHWC", "k80", "", "info"),
    ],
}


@pytest.mark.parametrize(("code", "layer", "gpu", "runtime", "expected"), rows(CASES))
def test_who_is_advised_another_layout(code: str, layer: str, gpu: str, runtime: str, expected: str) -> None:
    assert outcome(code, f"{{ {layer} }}", gpu=gpu, runtime=runtime) == expected


def test_nhwc_without_tensor_cores_has_a_price() -> None:
    (finding,) = findings("CL403", f"{{ {MAP}, dtype: fp32, layout: NHWC }}", gpu="k80")
    assert finding.fix.set == {"layout": "NCHW"}
    assert finding.lost_us > 0
    assert finding.lost_us == pytest.approx(-(finding.fix.time_change_us or 0.0))


def grouped(width: int, groups: int, H: int, name: str = "x") -> str:
    C = width * groups
    sizes = f"N: 128, C: {C}, K: {C}, H: {H}, W: {H}, kernel_size: 3, padding: 1, groups: {groups}"
    return f"{{ name: {name}, {sizes}, dtype: fp16, layout: NHWC }}"


RESNEXT = [(4, 32, 56), (8, 32, 28), (16, 32, 14), (32, 32, 7)]
REGNETY = [(24, 3, 56), (24, 9, 28), (24, 24, 14), (24, 63, 7)]


@pytest.mark.parametrize("gpu", ["v100", "t4", "a100", "h100"])
@pytest.mark.parametrize(("width", "groups", "H"), RESNEXT)
def test_groups_as_wide_as_a_power_of_two_are_fast_in_nhwc(width: int, groups: int, H: int, gpu: str) -> None:
    assert outcome("CL404", grouped(width, groups, H), gpu=gpu, runtime="framework: pytorch") == SILENT


@pytest.mark.parametrize(("width", "groups", "H"), REGNETY)
def test_groups_of_an_odd_width_are_slow_in_nhwc(width: int, groups: int, H: int) -> None:
    (finding,) = findings("CL404", grouped(width, groups, H), runtime="framework: pytorch")
    assert finding.severity == "warning"
    assert finding.message == f"24 channels in each of {groups} groups: the library has no fast kernel for them in NHWC"
    assert finding.fix.set == {"layout": "NCHW"}
    assert finding.fix.time_change_us < 0


@pytest.mark.parametrize(
    ("layer", "runtime", "expected"),
    [
        (grouped(24, 9, 28).replace("NHWC", "NCHW"), "framework: pytorch", SILENT),
        (grouped(24, 9, 28), "framework: jax", SILENT),
        # Inductor leaves the layout of a network with groups alone
        (grouped(24, 9, 28), "framework: pytorch, compile: true", "warning"),
        ("{ C: 72, K: 72, kernel_size: 3, groups: 3, dtype: fp16, layout: NHWC }", "framework: pytorch", "info"),
    ],
)
def test_nhwc_grouped(layer: str, runtime: str, expected: str) -> None:
    assert outcome("CL404", layer, runtime=runtime) == expected


def test_grouped_layers_are_said_once() -> None:
    layers = [grouped(width, groups, H, name) for (width, groups, H), name in zip(REGNETY, "abcd", strict=True)]
    resnext = [grouped(width, groups, H, name) for (width, groups, H), name in zip(RESNEXT, "efgh", strict=True)]
    (finding,) = findings("CL404", ", ".join(layers + resnext), runtime="framework: pytorch")
    assert finding.layers == ("a", "b", "c", "d")
    assert finding.severity == "warning"
    assert finding.message == ("in NHWC the library has no fast kernel for the groups of 4 layers: a, b, c, d")
    unsized = ", ".join(
        f"{{ name: {name}, C: {72 * n}, K: {72 * n}, kernel_size: 3, groups: {3 * n}, dtype: fp16, layout: NHWC }}"
        for n, name in ((1, "a"), (3, "b"), (8, "c"))
    )
    (finding,) = findings("CL404", unsized, runtime="framework: pytorch")
    assert finding.severity == "info"
    assert finding.message == "3 convolutions with groups may be slower in NHWC than in NCHW: a, b, c"
