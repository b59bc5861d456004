"""Specs by construction: many, large, deep and repeated values, and text that YAML reads in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .seeds import SPEC_TEXT

HEAD = "version: 1\nlayers:\n"
LAYER = "N: 1, C: 8, H: 8, W: 8, K: 8, kernel_size: 3"
VALUES = (
    "0", "-1", "1.5", "1e3", "2147483649", "9" * 5000, ".inf", ".nan", "017", "0x10", "1:30", "no", "null", "~", '"8"',
    "[8]", "{a: 8}", "'::error::pwn'", '"\\e[31m"', '"\\0"', "*nowhere", "!!python/object:os.system x", "!!binary aGk=",
    "&a [*a]", "2001-01-01", "<<", "? x", "[" * 50 + "]" * 50, "|", "\u2028", "4611686018427387904",
)  # fmt: skip
KEYS = (
    "name",
    "C",
    "H",
    "K",
    "kernel_size",
    "stride",
    "padding",
    "dilation",
    "groups",
    "dtype",
    "layout",
    "input",
    "op",
)


def cases() -> Iterator[tuple[str, Callable[[], Any], bool]]:
    """Name, what makes the text, and whether it may need much."""
    for key in KEYS:
        for number, value in enumerate(VALUES):
            yield (
                f"{key}_{number:02}",
                lambda key=key, value=value: HEAD + f"  - {{ {LAYER}, {key}: {value} }}\n",
                False,
            )
    for name, count in (("100_kb", 50_000), ("4_mb", 2_000_000)):
        yield f"layers_of_numbers_{name}", lambda count=count: "version: 1\nlayers: [" + "1," * count + "1]\n", True
        yield f"layers_of_letters_{name}", lambda count=count: "version: 1\nlayers: [" + "a," * count + "a]\n", True
        yield f"layers_empty_{name}", lambda count=count: "version: 1\nlayers: [" + "{}," * (count // 2) + "{}]\n", True
        yield (
            f"targets_{name}",
            lambda count=count: f"version: 1\ntarget: [{'a100,' * (count // 3)}a100]\n{HEAD[11:]}  - {{ {LAYER} }}\n",
            True,
        )
        yield (
            f"unknown_targets_{name}",
            lambda count=count: (
                "version: 1\ntarget: ["
                + ",".join(f"g{i}" for i in range(count // 4))
                + f"]\n{HEAD[11:]}  - {{ {LAYER} }}\n"
            ),
            True,
        )
        yield (
            f"unknown_keys_{name}",
            lambda count=count: HEAD + f"  - {{ {LAYER}, " + ", ".join(f"k{i}: 1" for i in range(count // 5)) + " }\n",
            True,
        )
        yield f"comments_{name}", lambda count=count: "# convlint: ignore[CL102] x\n" * (count // 15) + SPEC_TEXT, True
        yield (
            f"inputs_{name}",
            lambda count=count: HEAD + f"  - {{ name: a, {LAYER} }}\n  - {{ op: add, inputs: [{'a,' * count}a] }}\n",
            True,
        )
    yield "same_name_20000_times", lambda: HEAD + f"  - {{ name: a, {LAYER} }}\n" * 20_000, True
    yield (
        "distinct_flawed_20000",
        lambda: (
            HEAD
            + "".join(
                f"  - {{ name: l{i}, N: {i + 1}, C: {i % 500 + 1}, H: {i % 200 + 9}, "
                f"W: 9, K: {i % 77 + 1}, kernel_size: 3 }}\n"
                for i in range(20_000)
            )
        ),
        True,
    )
    yield (
        "aliases_of_one_layer",
        lambda: "version: 1\nx-a: &a { " + LAYER + " }\nlayers: [" + "*a, " * 20_000 + "*a]\n",
        True,
    )
    yield (
        "alias_bomb",
        lambda: (
            "a0: &a0 [1,1,1,1,1,1,1,1,1]\n"
            + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
            + "layers: *a11\n"
        ),
        True,
    )
    yield (
        "merge_bomb",
        lambda: (
            "x-0: &a0 {a: 1}\n"
            + "".join(f"x-{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}], k{i}: 1}}\n" for i in range(1, 190))
            + "layers: []\n"
        ),
        True,
    )
    yield (
        "chain_of_20000",
        lambda: (
            HEAD
            + f"  - {{ name: l0, {LAYER}, padding: same }}\n"
            + "".join(f"  - {{ name: l{i}, input: l{i - 1}, K: 8, kernel_size: 1 }}\n" for i in range(1, 20_000))
        ),
        True,
    )
    yield (
        "inputs_forward",
        lambda: HEAD + f"  - {{ name: a, input: b, {LAYER} }}\n  - {{ name: b, input: a, {LAYER} }}\n",
        False,
    )
    yield (
        "growing_sizes",
        lambda: HEAD + f"  - {{ {LAYER} }}\n" + "  - { op: upsample, scale: 2147483648 }\n" * 1000,
        False,
    )
    for name, opened in {
        "lists": "[",
        "mappings": "{a: ",
        "items": "- ",
        "questions": "? ",
        "anchors": "&a ",
        "tags": "!a ",
    }.items():
        yield f"deep_{name}", lambda opened=opened: opened * 200_000, True
    yield "long_scalar", lambda: HEAD + "  - { name: " + "n" * 8_000_000 + " }\n", True
    yield "long_line_of_colons", lambda: "a:" * 1_000_000, True
    yield "long_line_of_quotes", lambda: "version: 1\nlayers: ['" + "''" * 1_000_000, True
    yield "long_line_of_spaces", lambda: "version: 1" + " " * 4_000_000 + "\nlayers: []\n", True
    yield "many_documents", lambda: "---\n" * 500_000, True
    yield "many_tabs", lambda: "layers:\n" + "\t" * 2_000_000, True
    yield "utf16", lambda: HEAD.encode("utf-16"), False
    yield "byte_order_marks", lambda: b"\xef\xbb\xbf" * 1000 + HEAD.encode(), False
    yield "broken_utf8_late", lambda: HEAD.encode() + b"#" * 1_000_000 + b"\xff", False
    yield "nul", lambda: HEAD.encode() + b"\0" * 1_000_000, False
    yield "sparse_3_gb", lambda: _sparse, True


def _sparse(path: Path) -> None:
    path.write_text(HEAD, encoding="utf-8")
    with path.open("r+b") as stream:
        stream.truncate(3 << 30)
