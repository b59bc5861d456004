"""Hostile specs: many, large, deep and repeated values, and text that YAML interprets in its own way."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from .containers import sparse
from .seeds import SPEC_TEXT

HEAD = "version: 1\nlayers:\n"
LAYER = "N: 1, C: 8, H: 8, W: 8, K: 8, kernel_size: 3"
VALUES = (
    "0", "-1", "1.5", "1e3", "2147483649", "9" * 5000, ".inf", ".nan", "017", "0x10", "1:30", "no", "null", "~", '"8"',
    "[8]", "{a: 8}", "'::error::pwn'", '"\\e[31m"', '"\\0"', "*nowhere", "!!python/object:os.system x", "!!binary aGk=",
    "&a [*a]", "2001-01-01", "<<", "? x", "[" * 50 + "]" * 50, "|", "\u2028", "4611686018427387904",
)  # fmt: skip
KEYS = (
    "name", "C", "H", "K", "kernel_size", "stride", "padding", "dilation", "groups", "dtype", "layout", "input", "op",
)  # fmt: skip
Make = Callable[[], Any]


def cases() -> Iterator[tuple[str, Make, bool]]:
    """Name, what makes the text, and whether it may need much."""
    for key in KEYS:
        for number, value in enumerate(VALUES):
            yield f"{key}_{number:02}", partial(spec, f"{LAYER}, {key}: {value}"), False
    yield from ((name, make, False) for name, make in SMALL.items())
    for size, count in (("100_kb", 50_000), ("4_mb", 2_000_000)):
        yield from ((f"{name}_{size}", make, True) for name, make in _of_many(count).items())
    for name, opened in OPENED.items():
        yield f"deep_{name}", partial(str.__mul__, opened, 200_000), True
    yield from ((name, make, True) for name, make in LARGE.items())


def spec(*layers: str, head: str = HEAD) -> str:
    """A spec of these layers, each as the fields of a flow mapping."""
    return head + "".join(f"  - {{ {layer} }}\n" for layer in layers)


def _of_many(count: int) -> dict[str, Make]:
    """Lists, mappings and comments that are about two bytes times `count` long."""
    return {
        "layers_of_numbers": lambda: "version: 1\nlayers: [" + "1," * count + "1]\n",
        "layers_of_letters": lambda: "version: 1\nlayers: [" + "a," * count + "a]\n",
        "layers_empty": lambda: "version: 1\nlayers: [" + "{}," * (count // 2) + "{}]\n",
        "targets": lambda: spec(LAYER, head=_targets("a100," * (count // 3) + "a100")),
        "unknown_targets": lambda: spec(LAYER, head=_targets(",".join(f"g{i}" for i in range(count // 4)))),
        "unknown_keys": lambda: spec(f"{LAYER}, " + ", ".join(f"k{i}: 1" for i in range(count // 5))),
        "comments": lambda: "# convlint: ignore[CL102] x\n" * (count // 15) + SPEC_TEXT,
        "inputs": lambda: spec(f"name: a, {LAYER}", f"op: add, inputs: [{'a,' * count}a]"),
    }


def _targets(names: str) -> str:
    return f"version: 1\ntarget: [{names}]\nlayers:\n"


def _flawed(number: int) -> str:
    """A layer unlike all others, with sizes that rules find fault with."""
    sizes = f"N: {number + 1}, C: {number % 500 + 1}, H: {number % 200 + 9}, W: 9, K: {number % 77 + 1}"
    return f"name: l{number}, {sizes}, kernel_size: 3"


def _aliases(first: str, each: str, count: int, last: str) -> str:
    """Anchors of which each refers to the one before; `each` is formatted with both numbers."""
    return first + "".join(each.format(before=i - 1, i=i) for i in range(1, count)) + last


def _sparse(path: Path) -> None:
    sparse(3 << 30, HEAD.encode())(path)


SMALL: dict[str, Make] = {
    "inputs_forward": lambda: spec(f"name: a, input: b, {LAYER}", f"name: b, input: a, {LAYER}"),
    "growing_sizes": lambda: spec(LAYER, *["op: upsample, scale: 2147483648"] * 1000),
    "utf16": lambda: HEAD.encode("utf-16"),
    "byte_order_marks": lambda: b"\xef\xbb\xbf" * 1000 + HEAD.encode(),
    "broken_utf8_late": lambda: HEAD.encode() + b"#" * 1_000_000 + b"\xff",
    "nul": lambda: HEAD.encode() + b"\0" * 1_000_000,
}
OPENED = {"lists": "[", "mappings": "{a: ", "items": "- ", "questions": "? ", "anchors": "&a ", "tags": "!a "}
LARGE: dict[str, Make] = {
    "same_name_20000_times": lambda: spec(*[f"name: a, {LAYER}"] * 20_000),
    "distinct_flawed_20000": lambda: spec(*map(_flawed, range(20_000))),
    "aliases_of_one_layer": lambda: "version: 1\nx-a: &a { " + LAYER + " }\nlayers: [" + "*a, " * 20_000 + "*a]\n",
    "alias_bomb": lambda: _aliases(
        "a0: &a0 [1,1,1,1,1,1,1,1,1]\n",
        f"a{{i}}: &a{{i}} [{', '.join(['*a{before}'] * 9)}]\n", 12, "layers: *a11\n"),
    "merge_bomb": lambda: _aliases(
        "x-0: &a0 {a: 1}\n",
        "x-{i}: &a{i} {{<<: [*a{before}, *a{before}], k{i}: 1}}\n", 190, "layers: []\n"),
    "chain_of_20000": lambda: spec(
        f"name: l0, {LAYER}, padding: same",
        *(f"name: l{i}, input: l{i - 1}, K: 8, kernel_size: 1" for i in range(1, 20_000))),
    "long_scalar": lambda: spec("name: " + "n" * 8_000_000),
    "long_line_of_colons": lambda: "a:" * 1_000_000,
    "long_line_of_quotes": lambda: "version: 1\nlayers: ['" + "''" * 1_000_000,
    "long_line_of_spaces": lambda: "version: 1" + " " * 4_000_000 + "\nlayers: []\n",
    "many_documents": lambda: "---\n" * 500_000,
    "many_tabs": lambda: "layers:\n" + "\t" * 2_000_000,
    "sparse_3_gb": lambda: _sparse,
}  # fmt: skip
