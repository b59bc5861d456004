"""A setting of the runtime changes in its block, or is added to it, or brings it."""

from __future__ import annotations

import pytest
from fixed_specs import Asked, fixed, refused

LAYERS = "layers:\n  - {C: 8, H: 9, W: 9, K: 8, kernel_size: 3}\n"
NO_TF32: Asked = (None, "runtime.tf32", False)


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("runtime: {tf32: true}\n", [NO_TF32], "runtime: {tf32: false}\n"),
        ("runtime:\n  tf32: yes # c\n", [NO_TF32], "runtime:\n  tf32: no # c\n"),
        ("runtime: {allow_tf32: 1}\n", [NO_TF32], "runtime: {allow_tf32: 0}\n"),
        ("runtime: {TF32: '1'}\n", [NO_TF32], "runtime: {TF32: '0'}\n"),
        ("runtime: {tf32: false}\n", [NO_TF32], "runtime: {tf32: false}\n"),
        ('runtime: {cudnn: "8.1"}\n', [(None, "runtime.cudnn", "8.9.2")], 'runtime: {cudnn: "8.9.2"}\n'),
        ("runtime: {cudnn: 8.1}\n", [(None, "runtime.cudnn", "9")], "runtime: {cudnn: 9}\n"),
        ("runtime: {cuda: '12.1'}\n", [NO_TF32], "runtime: {cuda: '12.1', tf32: false}\n"),
        ("runtime:\n  cuda: '12.1'\n", [NO_TF32], "runtime:\n  cuda: '12.1'\n  tf32: false\n"),
        ("runtime: {}\n", [NO_TF32], "runtime: {tf32: false}\n"),
        ("runtime:\n", [NO_TF32], "runtime: {tf32: false}\n"),
        ("runtime: ~ # none\n", [NO_TF32], "runtime: {tf32: false} # none\n"),
        ("x-r: &r {tf32: true}\nruntime: *r\n", [NO_TF32], "x-r: &r {tf32: false}\nruntime: *r\n"),
        ("x-t: &t true\nruntime: {tf32: *t}\n", [NO_TF32], "x-t: &t false\nruntime: {tf32: *t}\n"),
        ("mode: inference # c\n", [NO_TF32], "mode: inference # c\nruntime: {tf32: false}\n"),
        ("", [NO_TF32], "runtime: {tf32: false}\n"),
        (
            "", [NO_TF32, (None, "runtime.cudnn_conv_algo_search", "HEURISTIC"), (None, "runtime.cudnn", "8.9")],
            'runtime: {tf32: false, cudnn_conv_algo_search: HEURISTIC, cudnn: "8.9"}\n',
        ),
    ],
)  # fmt: skip
def test_settings(before: str, changes: list[Asked], after: str) -> None:
    assert fixed(f"version: 1\n{before}{LAYERS}", *changes) == f"version: 1\n{after}{LAYERS}"


def test_a_new_block_stands_before_the_layers_and_their_comments() -> None:
    before = "# net\nversion: 1\ntarget: [a100,\n  v100] # both\n\n# the layers\n" + LAYERS
    after = before.replace("both\n", "both\nruntime: {tf32: false}\n")
    assert fixed(before, NO_TF32) == after


def test_json() -> None:
    layer = '{"C": 8, "K": 8, "kernel_size": 3}'
    before = f'{{\n  "version": 1,\n  "layers": [{layer}]\n}}\n'
    after = f'{{\n  "version": 1,\n  "runtime": {{"tf32": false}},\n  "layers": [{layer}]\n}}\n'
    assert fixed(before, NO_TF32) == after
    empty = before.replace('"version": 1,', '"version": 1, "runtime": null,')
    assert fixed(empty, NO_TF32) == empty.replace("null", '{"tf32": false}')


@pytest.mark.parametrize(
    ("block", "change", "reason"),
    [
        ("", (None, "runtime.speed", 1), "speed is no setting of the runtime"),
        ("", (None, "tf32", False), "tf32 is no setting of the whole network"),
        ("runtime: &r\nx-r: *r\n", NO_TF32, "an alias refers to the empty runtime"),
        ("runtime:\n  cudnn: >-\n    8.1\n", (None, "runtime.cudnn", "8.9"), "it is written as a block of text"),
    ],
)
def test_what_is_no_setting_or_has_no_place(block: str, change: Asked, reason: str) -> None:
    assert refused(f"version: 1\n{block}{LAYERS}", change) == [reason]
