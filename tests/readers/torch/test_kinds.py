"""What operators do to channels: each in a live trace and in an exported program, and what comes of it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from small_graphs import free, groups, live, stored
from torch import Tensor, nn

from convlint.readers.operations import Effect
from convlint.readers.torch.kinds import (
    IN_32_BITS,
    OPAQUE,
    POINTWISE,
    TAGGED,
    UNTAGGED,
    VIEWED,
    VIEWS,
    OperatorCall,
    effect_of,
    work_of,
)


def overloads(name: str) -> list[Any]:
    """What torch has under a name of the tables, also in place."""
    found = [getattr(torch.ops.aten, each, None) for each in (name, f"{name}_")]
    return [getattr(packet, each) for packet in found if packet is not None for each in packet.overloads()]


@for_each("name", sorted(TAGGED))
def test_torch_tags_what_is_said_to_be_tagged(name: str) -> None:
    assert any(torch.Tag.pointwise in each.tags for each in overloads(name))


def test_what_torch_does_not_tag_is_known_to_it() -> None:
    assert TAGGED.isdisjoint(UNTAGGED)
    assert [name for name in sorted(UNTAGGED) if not overloads(name)] == []
    assert [name for name in UNTAGGED if any(torch.Tag.pointwise in each.tags for each in overloads(name))] == []


@pytest.mark.parametrize("name", ["max", "min", "softmax", "cumsum", "flip", "roll", "sort", "layer_norm", "glu"])
def test_what_mixes_elements_is_not_among_them(name: str) -> None:
    assert name not in POINTWISE


def aliases(name: str) -> list[Any]:
    """What the results of an operator may look into."""
    declared = [value.alias_info for each in overloads(name) for value in each._schema.returns]
    return [alias for alias in declared if alias is not None and not alias.is_write]


def test_views_are_what_torch_declares_to_be_views() -> None:
    assert [name for name in VIEWS if not aliases(name.removeprefix("aten::"))] == []


def test_whatever_networks_may_write_through_is_a_view() -> None:
    """An exported program does not say which operators are views: those that keep channels must not be missing."""
    for name in [*VIEWED, "slice", "narrow", "expand", "chunk", "split", "select", "permute", "transpose", "unbind"]:
        assert (f"aten::{name}" in VIEWS) == bool(aliases(name)), name


C = 8  # of what is read; H is as long
CASES: dict[str, tuple[Callable[[Tensor, Tensor], Any], str]] = {
    "relu": (lambda x, _: F.relu(x), "identity"),
    "gelu": (lambda x, _: F.gelu(x), "identity"),
    "hardswish": (lambda x, _: F.hardswish(x), "identity"),
    "softsign": (lambda x, _: F.softsign(x), "add"),  # x / (|x| + 1)
    "log_sigmoid": (lambda x, _: F.logsigmoid(x), "identity"),
    "in_place": (lambda x, _: F.leaky_relu_(x), "identity"),
    "cast": (lambda x, _: x.to(torch.float64).to(torch.float32), "identity"),
    "clone": (lambda x, _: x.clone(), "identity"),
    "detach": (lambda x, _: x.detach(), "identity"),
    "same_view": (lambda x, _: x.view(x.shape), "identity"),
    "same_slice": (lambda x, _: x[:], "identity"),
    "constant": (lambda x, _: 2 * x + torch.ones(C, 1, 1, device=x.device), "identity"),
    "squared": (lambda x, _: x * x, "identity"),
    "dropout": (lambda x, _: F.dropout2d(x, 0.5), "identity"),
    "batch_norm": (lambda x, _: F.batch_norm(x, None, None, training=True), "batchnorm"),
    "instance_norm": (lambda x, _: F.instance_norm(x), "batchnorm"),
    "group_norm": (lambda x, _: F.group_norm(x, 2), "identity"),
    "max_pool": (lambda x, _: F.max_pool2d(x, 2), "resize"),
    "avg_pool": (lambda x, _: F.avg_pool2d(x, 2), "resize"),
    "adaptive_pool": (lambda x, _: F.adaptive_avg_pool2d(x, 1), "resize"),
    "nearest": (lambda x, _: F.interpolate(x, scale_factor=2), "resize"),
    "bilinear": (lambda x, _: F.interpolate(x, size=(5, 5), mode="bilinear"), "resize"),
    "mean": (lambda x, _: x.mean((2, 3), keepdim=True), "resize"),
    "mean_behind": (lambda x, _: x.mean((-1, -2), True), "resize"),
    "amax": (lambda x, _: x.amax((2, 3), keepdim=True), "resize"),
    "pad": (lambda x, _: F.pad(x, (1, 1, 1, 1)), "resize"),
    "reflect": (lambda x, _: F.pad(x, (1, 1, 1, 1), mode="reflect"), "resize"),
    "crop": (lambda x, _: x[:, :, 1:-1, ::2], "resize"),
    "expand": (lambda x, _: x.mean((2, 3), keepdim=True).expand(-1, -1, 3, 3), "resize"),
    "expand_as": (lambda x, y: x.mean((2, 3), keepdim=True).expand_as(y), "resize"),
    "flattened_mean": (lambda x, _: x.flatten(2).mean(2)[:, :, None, None], "resize"),
    "spread_as": (lambda x, y: x.mean(1, keepdim=True).expand_as(y), "reshape"),
    "sum": (lambda x, y: x + y, "add"),
    "gate": (lambda x, y: x * y.mean((2, 3), keepdim=True).sigmoid(), "add"),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.5), "add"),
    "where": (lambda x, y: torch.where(x > 0, x, y), "add"),
    "maximum": (lambda x, y: torch.maximum(x, y), "add"),
    "max_of_two": (lambda x, y: torch.max(x, y), "add"),
    "addcmul": (lambda x, y: torch.addcmul(x, x, y), "add"),
    "add_": (lambda x, y: x.add_(y), "add"),
    "out": (lambda x, y: torch.add(x, y, out=torch.empty(2, C, C, C, device=x.device)), "add"),
    "cat": (lambda x, y: torch.cat([x, y, x], 1), "concat"),
    "cat_behind": (lambda x, y: torch.concat([x, y], dim=-3), "concat"),
    "pixel_shuffle": (lambda x, _: F.pixel_shuffle(x, 2), "pixel_shuffle"),
    "pixel_unshuffle": (lambda x, _: F.pixel_unshuffle(x, 2), "pixel_unshuffle"),
    "mean_of_channels": (lambda x, _: x.mean(1, keepdim=True), "channel_pool"),
    "max_of_channels": (lambda x, _: torch.max(x, 1, keepdim=True)[0], "channel_pool"),
    "norm_of_channels": (lambda x, _: torch.linalg.vector_norm(x, dim=1, keepdim=True), "channel_pool"),
    "scatter_of_channels": (lambda x, _: x - x.std(1, keepdim=True), "add"),
    "chunk": (lambda x, _: x.chunk(2, 1)[0], "split"),
    "chunk_behind": (lambda x, _: x.chunk(4, -3)[3], "split"),
    "gate_of_halves": (lambda x, _: torch.mul(*x.chunk(2, 1)), "add"),
    "split_in_two": (lambda x, _: x.split(4, 1)[1], "split"),
    "split_by_sizes": (lambda x, _: x.split([2, 2, 2, 2], 1)[1], "split"),
    "glu": (lambda x, _: F.glu(x, 1), "split"),
    "softmax": (lambda x, _: x.softmax(1), "identity"),
    "channel_shuffle": (lambda x, _: F.channel_shuffle(x, 2), "channel_shuffle"),
    "shuffle": (
        lambda x, _: x.view(2, 2, 4, C, C).transpose(1, 2).contiguous().view(2, C, C, C), "channel_shuffle"
    ),
    "shuffle_at_once": (lambda x, _: x.view(2, 2, 4, C, C).transpose(2, 1).relu().flatten(1, 2), "channel_shuffle"),
    "shuffle_of_rows": (
        lambda x, _: x.reshape(2, 4, 2, C * C).permute(0, 2, 1, 3).reshape(x.shape), "channel_shuffle"
    ),
    "parted_and_joined": (lambda x, _: x.view(2, 2, 4, C, C).relu().flatten(1, 2), "identity"),
    # with the channels behind for a while
    "turned": (lambda x, _: x.permute(0, 2, 3, 1).permute(0, 3, 1, 2), "identity"),
    "turned_norm": (
        lambda x, _: F.layer_norm(x.permute(0, 2, 3, 1), (C,), torch.ones(C, device=x.device)).permute(0, 3, 1, 2),
        "identity",
    ),
    "turned_sum": (
        lambda x, y: (x.permute(0, 2, 3, 1) + y.permute(0, 2, 3, 1).relu()).permute(0, -1, 1, 2), "identity"
    ),
    "turned_mean": (lambda x, _: x.permute(0, 2, 3, 1).mean((1, 2), keepdim=True).permute(0, 3, 1, 2), "identity"),
    "turned_crop": (lambda x, _: x.permute(0, 2, 3, 1)[:, 1:, :-1].permute(0, 3, 1, 2), "identity"),
    "turned_cat": (
        lambda x, y: torch.cat([x.permute(0, 2, 3, 1), y.permute(0, 2, 3, 1)], -1).permute(0, 3, 1, 2), "identity"
    ),
    "turned_pool": (lambda x, _: x.permute(0, 2, 3, 1).amax(-1, keepdim=True).permute(0, 3, 1, 2), "identity"),
    "tokens": (lambda x, _: x.flatten(2).transpose(1, 2).sigmoid().transpose(2, 1).reshape(x.shape), "resize"),
    "tokens_as_rows": (lambda x, _: x.flatten(2).transpose(1, 2).reshape(2, C, C, C).permute(0, 3, 1, 2), "identity"),
    "tokens_as_one_row": (lambda x, _: x.flatten(2).mean(2).view(2, 1, 1, C).permute(0, 3, 1, 2), "identity"),
    # with the channels on any axis
    "transpose": (lambda x, _: x.transpose(1, 2), "resize"),  # the same shape
    "permute": (lambda x, _: x.permute(0, 2, 3, 1), "resize"),
    "turned_twice": (lambda x, _: x.permute(0, 2, 3, 1).transpose(1, 3), "identity"),  # H and W have changed places
    "norm_of_others": (
        lambda x, _: F.batch_norm(x.transpose(1, 2), None, None, training=True).transpose(2, 1), "identity"
    ),
    "response_norm": (  # of ConvNeXt V2
        lambda x, _: (x.permute(0, 2, 3, 1) / (x.permute(0, 2, 3, 1).mean(-1, keepdim=True) + 1)).permute(0, 3, 1, 2),
        "identity",
    ),
    "gate_of_rows": (  # triplet attention
        lambda x, _: (x.transpose(1, 2) * x.transpose(1, 2).amax(1).unsqueeze(1)).transpose(1, 2), "identity"
    ),
    "attention_along_channels": (  # efficient channel attention
        lambda x, _: F.conv1d(x.mean((2, 3)).unsqueeze(1), torch.ones(1, 1, 3, device=x.device), padding=1)
        .transpose(1, 2).unsqueeze(-1) * x, "add",
    ),
    "stack": (lambda x, y: torch.stack([x, y], 1).sum(1), "resize"),
    "stack_in_front": (lambda x, y: torch.stack([x, y]).softmax(0).sum(0), "resize"),
    "stack_behind": (lambda x, y: torch.stack([x, y], -1).unbind(-1)[1], "resize"),
    "one_of_a_stack": (lambda x, y: torch.stack([x, y], 2)[:, :, 1], "resize"),
    "cat_of_batches": (lambda x, y: torch.cat([x, y]), "add"),
    "cat_of_rows": (lambda x, y: torch.cat([x, y], 2), "add"),
    "chunk_of_rows": (lambda x, _: x.chunk(2, 2)[1], "resize"),
    # what follows keeps no channels, or not surely
    "cat_of_a_constant": (lambda x, _: torch.cat([x, torch.ones(2, 2, C, C, device=x.device)], 1), "reshape"),
    "two_axes": (lambda x, _: x.view(2, 2, 4, C, C), "identity"),
    "sum_of_parts": (lambda x, _: x.view(2, 2, 4, C, C).sum(1), "reshape"),
    "sum_of_parted": (lambda x, y: (x.view(2, 2, 4, C, C) + y.view(2, 2, 4, C, C)).flatten(1, 2), "reshape"),
    "parts_and_rows": (lambda x, _: x.view(2, 2, 4, C, C).transpose(2, 3).reshape(x.shape), "reshape"),
    "parts_and_space": (lambda x, _: x.view(2, 2, 4, C, C).permute(0, 2, 1, 4, 3).reshape(x.shape), "reshape"),
    "joined_elsewhere": (lambda x, _: x.view(2, 2, 4, C, C).flatten(2, 3), "reshape"),
    "flip": (lambda x, _: x.flip(1), "reshape"),
    "roll": (lambda x, _: x.roll(1, 2), "reshape"),
    "layer_norm": (lambda x, _: F.layer_norm(x, (C, C, C)), "reshape"),
    "linear": (lambda x, _: F.linear(x, torch.ones(C, C, device=x.device)), "reshape"),
    "matmul": (lambda x, y: x @ y, "reshape"),
    "flatten": (lambda x, _: x.flatten(1), "view"),
    "mean_without_place": (lambda x, _: x.mean((2, 3)), "resize"),
    "mean_of_rest": (lambda x, _: x.mean((1, 2), keepdim=True), "reshape"),
    "mean_of_channels_alone": (lambda x, _: x.mean(1).unsqueeze(1), "reshape"),
    "mean_of_channels_and_rows": (lambda x, _: x.transpose(1, 2).mean((1, 2), keepdim=True), "reshape"),
    "turned_unknown": (lambda x, _: x.flip(1).transpose(1, 2), "reshape"),
    "pool_of_turned": (lambda x, _: F.avg_pool2d(x.permute(0, 2, 3, 1), 2), "reshape"),
    "pad_of_turned": (lambda x, _: F.pad(x.permute(0, 2, 3, 1), (0, 0, 1, 1)), "reshape"),
    "sum_of_turned": (lambda x, y: x.permute(0, 2, 3, 1) + y, "reshape"),
    "norm_of_rows": (lambda x, _: F.layer_norm(x, (C,)), "reshape"),
    "norm_of_all": (lambda x, _: F.layer_norm(x, (C, C, C)), "reshape"),
    "matrix_of_rows": (lambda x, _: F.linear(x, torch.ones(C, C, device=x.device)), "reshape"),
    "heads": (lambda x, _: x.flatten(2).transpose(1, 2).reshape(2, C * C, 2, C // 2), "reshape"),
    "pad_of_channels": (lambda x, _: F.pad(x, (0, 0, 0, 0, 1, -1)), "reshape"),
    "slice_of_channels": (lambda x, _: x[:, :4], "reshape"),
    "all_by_number": (lambda x, _: x[:, :C], "reshape"),
    "split": (lambda x, _: x.split([C], 1)[0], "reshape"),
    "split_with_a_rest": (lambda x, _: x.split(3, 1)[0], "reshape"),
    "split_unequally": (lambda x, _: x.split([2, 2, 4], 1)[0], "reshape"),
    "turned_cat_of_channels": (lambda x, y: torch.cat([x.transpose(1, 2), y.transpose(1, 3)], 1), "reshape"),
    "one_of_stacked_channels": (lambda x, y: torch.stack([x, y], 1)[:, :, 0], "reshape"),
    "stack_with_a_constant": (
        lambda x, _: torch.stack([x, torch.ones(x.shape, device=x.device)], 1).sum(1), "reshape"
    ),
    "stack_of_turned": (lambda x, y: torch.stack([x, y.transpose(1, 2)], 1).sum(1), "reshape"),
    "shorter_attention": (
        lambda x, y: F.pad(F.conv1d(y.mean((2, 3)).unsqueeze(1), torch.ones(1, 1, 3, device=x.device)), (1, 1))
        .transpose(1, 2).unsqueeze(-1) * x, "reshape",
    ),
    "index": (lambda x, _: x[:, torch.arange(4, device=x.device)], "reshape"),
    "norm_by_activations": (lambda x, y: F.batch_norm(x, y[0, :, 0, 0], y[0, :, 1, 1]), "batchnorm"),
    "other_rank": (lambda x, y: x + y[0], "reshape"),
    "sizes_of_a_turned_tensor": (lambda x, y: x.reshape_as(y.transpose(1, 2)), "reshape"),
    "spread_by_a_constant": (lambda x, _: x[:, :1] + torch.ones(C, 1, 1, device=x.device), "reshape"),
    "grid_sample": (lambda x, _: F.grid_sample(x, torch.ones_like(x[..., :2]), align_corners=True), "reshape"),
}  # fmt: skip
FREE = {name for name, (_, kind) in CASES.items() if kind != "reshape"} - {"norm_by_activations"}
_VECTORS = {"flatten", "mean_without_place", "two_axes", "transpose", "permute"}  # which leave the network
_LAST = {"spread_as", "mean_of_channels_alone"}  # whose last operation alone may do anything, to one channel


class Fed(nn.Module):
    """Two convolutions, what is computed from them, and one that reads it, where it is an image."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.compute, _ = CASES[name]
        self.stem, self.other = nn.Conv2d(3, C, 1), nn.Conv2d(3, C, 1)
        with torch.no_grad():
            made = self.compute(torch.rand(2, C, C, C), torch.rand(2, C, C, C))
        self.last = nn.Conv2d(made.shape[1], 5, 1) if made.dim() == 4 else nn.Identity()

    def forward(self, x: Tensor) -> Any:
        return self.last(self.compute(self.stem(x), self.other(x)))


class All(nn.Module):
    """One of each, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.every = nn.ModuleDict({f"the_{name}": Fed(name) for name in CASES})

    def forward(self, x: Tensor) -> list[Any]:
        return [each(x) for each in self.every.values()]


@for_each("name", CASES)
def test_kinds_of_operators(name: str) -> None:
    network = live(Fed(name), (2, 3, C, C))
    computed = [each for each in network.operations if each.kind not in ("conv", "input")]
    assert computed[-1].kind == CASES[name][1]
    writers = {writer for writers in free(network) for writer in writers}
    assert ("stem" in writers) == (name in (FREE | _LAST) - _VECTORS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_live_traces_and_exported_programs_agree(tmp_path: Path) -> None:
    program = stored(tmp_path, All().requires_grad_(False), (2, 3, C, C))
    assert groups(program) == groups(live(All(), (2, 3, C, C)))


def step(*reads: tuple[int | None, ...], written: tuple[int | None, ...], **given: Any) -> OperatorCall:
    tensors, at = given.pop("tensors", len(reads)), given.pop("at", 0)
    return OperatorCall(reads, len(set(reads)), tensors, at, written, given.get, (1,) * len(reads))


ONE = (2, 1, 8, 8)


@pytest.mark.parametrize(
    ("name", "given", "effect"),
    [
        ("aten::relu", step((None, 8, None, None), written=(None, 8, None, None)), Effect("identity")),
        ("aten::relu", step((2, None, 8, 8), written=(2, None, 8, 8)), OPAQUE),
        ("aten::view", step((2, 8, None, 8), written=(2, 8, None, 8)), OPAQUE),  # two sizes may have changed places
        ("aten::max", step(ONE, written=ONE, tensors=1, dim=1, keepdim=True), Effect("channel_pool")),
        ("aten::mean", step(ONE, written=ONE, dim=[1], keepdim=True), Effect("channel_pool")),
        ("aten::mean", step(ONE, written=(2, 1, 1, 8), dim=2, keepdim=True), Effect("resize")),
        ("aten::mean", step(ONE, written=(2, 1, 1, 8), dim=None, keepdim=True), OPAQUE),
        ("aten::cat", step((0, 8, 8, 8), written=(2, 8, 8, 8), dim=1, tensors=2), OPAQUE),
        ("aten::cat", step((2, 8, 8, 8), written=(2, 8, 8, 8), dim=object()), OPAQUE),
        ("aten::slice", step(ONE, written=ONE, dim=1, start=0, end=2**63 - 1, step=1), Effect("identity")),
        ("aten::slice", step(ONE, written=ONE, dim=1, start=0, end=object(), step=1), OPAQUE),
        ("aten::max_pool2d", step((2, 8, 8), written=(2, 8, 4)), OPAQUE),
        ("aten::avg_pool3d", step((2, 8, 4, 4, 4), written=(2, 8, 2, 2, 2)), Effect("resize")),
        ("aten::pixel_shuffle", step((2, 8, 8, 8), written=(2, 2, 16, 16), upscale_factor=2),
         Effect("pixel_shuffle", factor=2)),
        ("aten::pixel_shuffle", step((2, 8, 8, 8), written=(2, 2, 16, 16), upscale_factor=0), OPAQUE),
        ("aten::group_norm", step((2, 8, 8), written=(2, 8, 8), num_groups=4), Effect("identity", groups=4)),
        ("aten::native_group_norm", step((2, 8, 8), written=(2, 8, 8), group=3), OPAQUE),
        ("aten::batch_norm", step((2, 8), written=(2, 8)), Effect("batchnorm")),
        ("my::relu", step((2, 8, 8), written=(2, 8, 8)), OPAQUE),
        ("aten::relu", step((), written=()), OPAQUE),
        ("aten::relu", step((2,) * 1, written=(2,) * 1), OPAQUE),
        ("aten::relu", step((2,) * 2, written=(2,) * 2), Effect("identity")),
        ("aten::view", step((2, 8, 4, 4), written=(2, 128)), Effect("view")),
        ("aten::view", step((2, 8, 4, 4), written=(4, 64)), OPAQUE),
        ("aten::view", step((2, 8, 1, 1), written=(2, 8)), Effect("resize")),
        ("aten::view", step((2, 8), written=(2, 8, 1, 1)), Effect("resize")),
        ("aten::unsqueeze", step((2, 1, 4), written=(2, 1, 1, 4), dim=1), Effect("resize", 2)),
        ("aten::unsqueeze", step((2, 1, 4), written=(2, 1, 1, 4), dim=-2), Effect("resize", 1)),
        ("aten::squeeze", step((2, 1, 4), written=(2, 4), dim=1), OPAQUE),  # no view of all: more channels would stay
        ("aten::squeeze", step((2, 1, 1, 4), written=(2, 1, 4), dim=2), Effect("resize")),
        ("aten::squeeze", step((2, 8, 1, 1), written=(2, 8)), Effect("resize")),
        ("aten::squeeze", step((2, 8, 1, 1), written=(2, 8), dim=[-1, -2, 1]), Effect("resize")),
        ("aten::squeeze", step((2, 8, 4), written=(2, 8, 4), dim=2), Effect("resize")),
        ("aten::squeeze", step((1, 8, 4), written=(8, 4)), OPAQUE),
        ("aten::squeeze", step((2, 8, 1), written=(2, 8), dim=object()), OPAQUE),
        ("aten::view", step((2, 8), written=(2, 2, 4)), Effect("identity", axis=(1, 2))),
        ("aten::view", step((2, 8, 4, 4), written=(2, 8, 16)), Effect("resize")),
        ("aten::view_as", step((2, 8), (2, 8, 1, 1), written=(2, 8, 1, 1)), Effect("resize")),
        ("aten::view_as", step((2, 1, 16), (2, 16, 1, 1), written=(2, 16, 1, 1)), OPAQUE),
        ("aten::reshape_as", step((2, 8, 4, 4), (2, 8, 16), written=(2, 8, 16)), Effect("resize")),
        ("aten::permute", step((2, 8, 4, 4), written=(2, 4, 4, 8), dims=[0, 2, 3, 1]), Effect("identity", axis=3)),
        ("aten::permute", step((2, 8, 4, 4), written=(2, 4, 4, 8), dims=[0, 2, 3]), OPAQUE),
        ("aten::permute", step((2, 8, 4, 4), written=(2, 4, 4, 8), dims=[0, 2, 3, 3]), OPAQUE),
        ("aten::permute", step((2, 8, 4, 4), written=(2, 4, 4, 8), dims=[0, 2, 3, "x"]), OPAQUE),
        ("aten::permute", step((2, 8, 4, 4), written=(2, 4, 4, 8)), OPAQUE),
        ("aten::transpose", step((2, 8, 4), written=(2, 4, 8), dim0=-1, dim1=1), Effect("identity", axis=2)),
        ("aten::transpose", step((2, 8, 4), written=(8, 2, 4), dim0=0, dim1=1), OPAQUE),
        ("aten::transpose", step((2, 8, 4), written=(2, 4, 8), dim0=1), OPAQUE),
        ("aten::split_with_sizes", step((2, 8, 4), written=(2, 4, 4), split_sizes=[4, [4]], dim=1), OPAQUE),
        ("aten::mean", step((2, 8, 4, 4), written=(2, 8), dim=[-1, -2], keepdim=False), Effect("resize")),
        ("aten::mean", step((8, 8, 4, 4), written=(8, 8), dim=[2, 0], keepdim=False), OPAQUE),
        ("aten::mean", step((2, 4, 4, 4), written=(2, 4), dim=[1, 2], keepdim=False), OPAQUE),
        ("aten::linear", step((2, 8), written=(2, 5), tensors=2), Effect("linear")),
        ("aten::linear", step((2, 7, 8), written=(2, 7, 5), tensors=2), OPAQUE),
        ("aten::addmm", step((2, 8), written=(2, 5), tensors=3, at=1), Effect("linear")),
        ("aten::addmm", step((2, 8), written=(2, 8), tensors=3), OPAQUE),  # added to a product of constants
        ("aten::mm", step((2, 8), written=(2, 8), tensors=2, at=1), OPAQUE),  # whose rows are mixed
        ("aten::mm", step((2, 8), (8, 5), written=(2, 5)), OPAQUE),
        ("aten::relu", step((2,) * 6, written=(2,) * 6), OPAQUE),
    ],
)  # fmt: skip
def test_kinds_by_shapes(name: str, given: OperatorCall, effect: Effect) -> None:
    assert effect_of(name, given) == effect


# --- what operators do, as a step is priced by it


class Block(nn.Module):
    """A convolution, and what networks of 2026 have behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.LayerNorm(16)
        self.wide, self.heads = nn.Linear(16, 48), 4

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        tokens = self.norm(x.flatten(2).transpose(1, 2))
        q, k, v = self.wide(tokens).reshape(2, 64, 3, self.heads, 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 64, 16)
        return F.gelu(tokens + y).mean(1) * 2.0


class OfItsType(nn.Module):
    """Takes the type of its input, which it has already unless it was `cast`."""

    def __init__(self, *, cast: bool) -> None:
        super().__init__()
        self.conv, self.cast = nn.Conv2d(3, 16, 3), cast

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return F.relu((y.double() if self.cast else y).type_as(x))


def test_a_tensor_of_the_type_asked_for_is_not_copied() -> None:
    kinds = [
        [one.work.kind for one in live(OfItsType(cast=cast), (2, 3, 8, 8)).operations if one.work is not None]
        for cast in (False, True)
    ]
    assert kinds == [["activation"], ["copy", "copy", "activation"]]


@pytest.mark.parametrize("exported", [False, True])
def test_each_operation_says_what_it_reads_writes_and_multiplies(exported: bool, tmp_path: Path) -> None:
    block, shape = Block(), (2, 3, 8, 8)
    network = stored(tmp_path, block, shape) if exported else live(block, shape)
    assert network.whole
    works = {one.work.kind: one.work for one in network.operations if one.work is not None}
    tokens = 2 * 64 * 16
    norm, linear, attention = works["layer norm"], works["linear"], works["attention"]
    assert (norm.reads, norm.writes, norm.weights, norm.in_32_bits) == ((tokens,), tokens, 32, True)
    assert (linear.reads, linear.writes) == ((tokens,), 3 * tokens)
    assert linear.weights in (16 * 48, 16 * 48 + 48)  # with its bias, where that is told
    assert linear.product == (1, 128, 48, 16)
    assert attention.product == (2 * 4, 64, 64, 4)
    assert works["add"].reads == (tokens, tokens)
    assert (works["reduce"].reads, works["reduce"].writes) == ((tokens,), 2 * 16)
    assert works["activation"].weights == 0
    assert {one.work for one in network.operations if one.name in ("transpose", "permute", "unbind")} <= {None}


class Odd(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.fft2(F.conv2d(x, torch.ones(4, 3, 1, 1, device=x.device)).float()).real


def test_what_nobody_knows_is_counted_as_unknown() -> None:
    works = [one.work.kind for one in live(Odd(), (2, 3, 8, 8)).operations if one.work is not None]
    assert "unknown" in works


@pytest.mark.parametrize(
    ("name", "reads", "written", "constants", "kind", "product"),
    [("aten::addmm", [(4, 8)], [(4, 6)], [(6,), (8, 6)], "linear", (1, 4, 6, 8)),
     ("aten::bmm", [(3, 4, 8), (3, 8, 6)], [(3, 4, 6)], [], "product", (3, 4, 6, 8)),
     ("aten::matmul", [(3, 4, 8)], [(3, 4, 6)], [(8, 6)], "linear", (1, 12, 6, 8)),
     ("aten::matmul", [(8, 5)], [(6, 5)], [(6, 8)], "linear", (1, 6, 5, 8)),  # the weights at the left
     ("aten::baddbmm", [(3, 4, 6), (3, 4, 8), (3, 8, 6)], [(3, 4, 6)], [], "product", (3, 4, 6, 8)),
     ("aten::dot", [(8,)], [()], [(8,)], "unknown", ()), ("aten::matmul", [()], [()], [()], "unknown", ()),
     ("aten::scaled_dot_product_attention", [(2, 4, 9, 8)] * 2, [(2, 4, 1, 8)], [(2, 4, 1, 8)],  # a learned query
      "attention", (8, 1, 9, 8)),
     ("aten::mul", [(2, 8)], [(2, 8)], [], "activation", ()), ("aten::mul", [(2, 8)], [(2, 8)], [(8,)], "multiply", ()),
     ("aten::relu_", [(2, 8)], [(2, 8)], [], "activation", ())],
)  # fmt: skip
def test_products_have_their_sizes(
    name: str, reads: Any, written: Any, constants: Any, kind: str, product: tuple[int, ...]
) -> None:
    work = work_of(name, reads, written, constants)
    assert (work.kind, work.product) == (kind, product)


@pytest.mark.parametrize(
    ("equation", "reads", "written", "product"),
    [("bnd,bmd->bnm", [(2, 5, 8), (2, 7, 8)], (2, 5, 7), (2, 5, 7, 8)),
     ("bhwc, hkc -> bhwk", [(2, 5, 6, 8), (5, 7, 8)], (2, 5, 6, 7), (5, 12, 7, 8)),
     ("...d,de->...e", [(2, 5, 8), (8, 3)], (2, 5, 3), (1, 30, 1, 8))],
)  # fmt: skip
def test_an_einsum_multiplies_what_its_letters_say(
    equation: str, reads: Any, written: Any, product: tuple[int, ...]
) -> None:
    work = work_of("aten::einsum", reads, [written], [], {"equation": equation}.get)
    assert (work.kind, work.product) == ("product", product)


def test_the_statistics_of_a_batch_norm_are_no_weights_that_are_trained() -> None:
    work = work_of("aten::batch_norm", [(2, 8, 4, 4)], [(2, 8, 4, 4)], [(8,)] * 4)
    assert work.weights == 16


@pytest.mark.parametrize(
    ("constants", "promoted"), [([(96,)], True), ([(1, 96, 1, 1)], True), ([()], False), ([], False)]
)
def test_a_parameter_of_fp32_promotes_what_it_multiplies(constants: list[tuple[int, ...]], promoted: bool) -> None:
    reads = [(2, 96, 4, 4)] * (1 if constants else 2)
    for name in "aten::mul", "aten::add":
        work = work_of(name, reads, [(2, 96, 4, 4)], constants)
        assert work is not None
        assert work.in_32_bits is promoted
    with torch.autocast("cpu", torch.bfloat16):
        assert (torch.ones(2, 96, dtype=torch.bfloat16) * torch.ones(96)).dtype == torch.float32


@pytest.mark.parametrize("training", [False, True])
def test_dropout_runs_in_training_alone(training: bool) -> None:
    work = work_of("aten::dropout", [(2, 8)], [(2, 8)], [], {"train": training}.get)
    assert (work is not None) is training


def test_a_size_that_is_symbolic_makes_no_work() -> None:
    assert work_of("aten::relu", [(None, 8)], [(None, 8)], []) is None
    assert work_of("aten::detach", [(2, 8)], [(2, 8)], []) is None


def test_autocast_has_the_list_of_torch() -> None:
    header = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
    text = header.read_text(encoding="utf-8")
    lists = [text.partition(f"#define {name}(_)")[2].partition("\n\n")[0]
             for name in ("AT_FORALL_FP32", "AT_FORALL_FP32_SET_OPT_DTYPE")]  # fmt: skip
    theirs = {name for part in lists for name in re.findall(r"_\((\w+)", part)}
    losses = {name for name in theirs if "loss" in name or "dist" in name or "entropy" in name}
    others = {"nuclear_norm", "frobenius_norm", "renorm", "linalg_matrix_norm", "kl_div"}
    assert theirs - losses - others <= IN_32_BITS
    assert IN_32_BITS - theirs <= {"native_layer_norm", "norm"}
