"""A layer reduced to what its time depends on: what has no problem, and which layers share one."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv, fprop
from msgspec.structs import replace

from convlint.estimate import estimate_layer, estimate_pass
from convlint.estimate.problem import problem_of
from convlint.model.gemm import gemm
from convlint.model.layer import PASSES, ConvLayer, Dtype, with_output


def test_one_dimension_is_a_row_and_three_add_depth():
    line = conv(N=64, H=1, W=4096, R=1, S=5, C=256, K=256)
    assert fprop(replace(line, dims=1)).time_us == fprop(line).time_us
    flat = conv(N=32, C=128, K=128, H=28, W=28)
    deep = with_output(replace(flat, dims=3, N=4, D=8, T=1))
    for which in PASSES:
        one, two = estimate_pass(flat, which, A100, RUNTIME), estimate_pass(deep, which, A100, RUNTIME)
        assert one.time_us == pytest.approx(two.time_us)
    cube = with_output(replace(deep, T=3, PadD=1, PadD_end=1))
    assert fprop(cube).flops == 3 * fprop(deep).flops


def test_transposed_layers_take_the_roles_of_their_mirror():
    generator = with_output(
        ConvLayer(name="up", op="conv_transpose", N=64, C=512, H=8, W=8, K=256, R=4, S=4, U=2, V=2, PadH=1, PadW=1,
                  PadH_end=1, PadW_end=1, dtype=Dtype.fp16, layout="NHWC")
    )  # fmt: skip
    assert (generator.P, generator.Q) == (16, 16)
    layer = estimate_layer(generator, A100, RUNTIME, "training")
    assert layer.passes["fprop"].flops == 2 * 64 * 8 * 8 * 512 * 256 * 16
    assert layer.passes["fprop"].gemm == gemm(generator, "fprop")


@pytest.mark.parametrize("name", ["N", "C", "H", "W", "K", "R", "S", "P", "Q", "D", "T", "Z", "dtype"])
def test_unknown_sizes_give_no_estimate(name):
    assert fprop(replace(conv(), **{name: None})) is None


@pytest.mark.parametrize("change", [{"P": 0}, {"C": 0}, {"K": -1}, {"groups": 5}, {"U": 0}])
def test_invalid_layers_give_no_estimate(change):
    assert fprop(replace(conv(), **change)) is None


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"name": "other"}, True), ({"calls": 3}, True), ({"first": True}, True), ({"bias": True}, True),
        ({"DilH": 2}, True), ({"PadH": 2}, True), ({"PadH": 0, "PadH_end": 0, "PadW": 0, "PadW_end": 0}, False),
        ({"N": 2}, False), ({"layout": "NCHW"}, False), ({"U": 2}, False), ({"groups": 2}, False),
        ({"residual_inputs": 1}, False), ({"dtype": Dtype.fp32}, False),
    ],
)  # fmt: skip
def test_which_layers_are_one_problem(change, same):
    """P and Q stay as they are: what makes them is no part of it."""
    assert (problem_of(replace(conv(), **change)) == problem_of(conv())) is same


def test_a_transposed_layer_is_turned_around():
    layer = replace(conv(C=64, K=32), op="conv_transpose", P=112, Q=114)
    problem = problem_of(layer)
    assert (problem.C, problem.K) == (32, 64)
    assert (problem.H, problem.W, problem.P, problem.Q) == (112, 114, 56, 56)


@pytest.mark.parametrize(
    ("change", "strided"), [({}, False), ({"U": 2}, True), ({"V": 2}, True), ({"StrideD": 2}, True)]
)
def test_any_stride_counts(change, strided):
    assert problem_of(replace(conv(), **change)).strided is strided


@pytest.mark.parametrize(("layout", "nchw"), [("NCHW", True), ("NHWC", False), ("auto", False)])
def test_what_is_known_to_be_nchw(layout, nchw):
    assert problem_of(conv(layout=layout)).nchw is nchw
