"""What operators of PyTorch do, by their recorded arguments: bytes and products, counted by hand."""

import pytest

from convlint.model.layer import Dtype
from convlint.readers.trace.operators import part_of, work_of

H, F = "c10::Half", "float"
MAP = [2, 8, 16, 16]  # 4,096 elements


@pytest.mark.parametrize(
    ("operator", "part"),
    [
        ("convolution_backward", "convolution"), ("cudnn_convolution", "convolution"), ("conv1d", "convolution"),
        ("native_batch_norm_backward", "normalisation"), ("cudnn_batch_norm", "normalisation"), ("addmm", "linear"),
        ("bmm", "linear"), ("matmul", "linear"), ("mul", "pointwise"), ("add_", "pointwise"), ("to", "copy"),
        ("_flash_attention_forward", "attention"), ("adaptive_avg_pool2d", "pool"), ("mean", "pool"),
        ("upsample_nearest2d_backward", "pool"), ("_fused_adam_", "optimizer"), ("_to_copy", "copy"),
        ("constant_pad_nd", "copy"), ("threshold_backward", "pointwise"), ("cumsum", "pointwise"), ("dim", "pointwise"),
        ("triton_poi_fused_convolution_relu_3", "pointwise"), ("triton_tem_fused_convolution_1", "convolution"),
        ("triton_per_fused_native_group_norm_2", "normalisation"), ("triton_red_fused_mean_silu_4", "pool"),
        ("triton_tem_fused_addmm_5", "linear"),
    ],
)  # fmt: skip
def test_operators_are_parts_of_a_step(operator: str, part: str) -> None:
    assert part_of(operator) == part


@pytest.mark.parametrize(
    ("operator", "dims", "types", "values", "moved"),
    [
        ("relu", [MAP], [H], [""], 2 * 8192),
        ("add", [MAP, MAP, []], [H, H, "Scalar"], ["", "", "1"], 3 * 8192),
        ("mul", [MAP, [2, 8, 1, 1]], [H, H], ["", ""], 2 * 8192 + 32),
        ("zero_", [MAP], [F], [""], 16384),
        ("batch_norm", [MAP, [8], [8]], [H, F, F], ["", "", "", "", "", "False"], 2 * 8192 + 64),
        ("batch_norm", [MAP], [H], ["", "", "", "", "", "True"], 3 * 8192),
        ("native_batch_norm_backward", [MAP, MAP], [H, H], [], 5 * 8192),
        ("native_layer_norm", [MAP], [F], [], 2 * 16384),
        ("max_pool2d", [MAP], [H], ["", "[2, 2]", "[2, 2]"], 8192 + 1024 * (2 + 8)),
        ("avg_pool2d", [MAP], [H], ["", "[2, 2]", "[]"], 8192 + 2048),
        ("adaptive_avg_pool2d", [MAP], [H], ["", "[1, 1]"], 8192 + 32),
        ("mean", [MAP], [H], ["", "[2, 3]"], 8192),
        ("to", [MAP], [F], ["", "5", "False"], 16384 + 8192),
        ("_to_copy", [MAP], [H], ["", "6"], 8192 + 16384),
        ("copy_", [MAP, MAP], [H, F], ["", ""], 8192 + 16384),
        ("clone", [MAP], [H], [""], 2 * 8192),
        ("cat", [[MAP, MAP], []], ["TensorList", "Scalar"], ["", "1"], 4 * 8192),
        ("upsample_nearest2d", [MAP, [], [], []], [H, "", "", ""], ["", "", "[2., 2.]"], 8192 + 4 * 8192),
        ("upsample_bilinear2d", [MAP], [H], ["", "[32, 32]", "False"], 8192 + 4 * 8192),
        ("maximum", [MAP, MAP], [H, H], ["", ""], 3 * 8192), ("amin", [MAP], [H], ["", "[1]"], 8192),
        ("instance_norm", [MAP], [H], [], 3 * 8192),
        ("index_select", [[1000, 64], [], [10]], [F, "Scalar", "long int"], ["", "0", ""], 2 * 10 * 64 * 4),
        ("slice_backward", [MAP], [H], ["", "[2, 8, 32, 32]"], 8192 + 4 * 8192),
        ("add_", [[], [], []], ["long int", "long int", "Scalar"], ["", "", "1"], 3 * 8),
        ("_fused_sgd_", [[[64]], [[64]], [[64]]], ["TensorList"] * 3, [], 5 * 256),
        ("triton_poi_fused_relu_0", [MAP, [8]], [H, H], [], 2 * 8192 + 16),
        ("embedding", [[1000, 64], [2, 10]], [F, "long int"], ["", ""], 2 * 20 * 64 * 4),
        ("_foreach_add_", [[[64], [64]], [[64], [64]]], ["TensorList", "TensorList"], [], 3 * 512),
        ("triton_poi_fused_add_relu_0", [MAP, MAP, MAP, []], [H, H, H, "Scalar"], [], 3 * 8192),
    ],
)  # fmt: skip
def test_bytes_that_operators_move(
    operator: str, dims: list[object], types: list[str], values: list[str], moved: int
) -> None:
    assert work_of(operator, (dims, types, values), 2).moved == moved


@pytest.mark.parametrize(
    ("operator", "dims", "gemm", "flops"),
    [
        ("linear", [[4, 197, 768], [3072, 768], [3072]], (788, 3072, 768), 2 * 788 * 3072 * 768),
        ("addmm", [[10], [64, 512], [512, 10]], (64, 10, 512), 2 * 64 * 10 * 512),
        ("addmm", [[64, 10], [64, 512], [512, 10]], (64, 10, 512), 2 * 64 * 10 * 512),
        ("mm", [[64, 512], [512, 10]], (64, 10, 512), 2 * 64 * 10 * 512),
        ("bmm", [[48, 197, 64], [48, 64, 197]], (), 2 * 48 * 197 * 197 * 64),
        ("matmul", [[4, 197, 64], [64, 32]], (788, 32, 64), 2 * 788 * 32 * 64),
        ("scaled_dot_product_attention", [[4, 12, 197, 64]] * 3, (), 4 * 48 * 197 * 197 * 64),
        ("_flash_attention_forward", [[4, 197, 12, 64]] * 3, (), 4 * 48 * 197 * 197 * 64),
        ("_scaled_dot_product_flash_attention_backward", [[4, 12, 197, 64]] * 4, (), 10 * 48 * 197 * 197 * 64),
    ],
)
def test_products_of_operators(operator: str, dims: list[list[int]], gemm: tuple[int, ...], flops: int) -> None:
    found = work_of(operator, (dims, [H] * len(dims), []), 2)
    assert (found.gemm, found.flops, found.dtype) == (gemm, flops, Dtype.fp16)
    assert found.moved > 0


@pytest.mark.parametrize(
    ("operator", "dims", "types"),
    [
        ("relu", [], []), ("relu", [[]], ["Scalar"]), ("relu", [[2**60, 2**60]], [F]),
        ("linear", [[4, 8], [3, 9]], [H, H]),
        ("lstm", [[4, 8]], [H]), ("_transformer_encoder_layer_fwd", [[4, 8, 16]], [H]),
        ("mm", [[4, 8]], [H]), ("scaled_dot_product_attention", [[4, 8]], [H]), ("relu", ["x"], [7]),
        ("cat", [7], ["TensorList"]), ("relu", [[-1, 4]], [F]), ("relu", [[True, 4]], [F]),
    ],
)  # fmt: skip
def test_what_does_not_tell_its_sizes_has_no_work(operator: str, dims: list[object], types: list[object]) -> None:
    assert work_of(operator, (dims, types, []), 2).moved == 0


def test_causal_attention_has_half_of_the_products() -> None:
    shape = [[4, 12, 256, 64]] * 3
    causal = work_of("scaled_dot_product_attention", (shape, [H] * 3, ["", "", "", "", "0.", "True"]), 2)
    assert causal.flops == 2 * 48 * 256 * 256 * 64
