"""Hostile input: each file is refused with one clear error at its place, soon, in little memory, and alone."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command_line import convlint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow

# What `_work` takes on the machine for which the bounds were chosen, with nothing beside it.
_USUAL_S = 0.025


def slowness() -> float:
    """How many times as long as usual Python takes here and now; never below 1.

    Processor time is no fixed measure: two threads that share a core, or a busy memory bus, double it.
    """
    return max(1.0, min(_work() for _ in range(2)) / _USUAL_S)


def _work() -> float:
    """Processor seconds of small objects made and looked up, as a parser does."""
    begin = time.process_time()
    kept: dict[str, tuple[int, str]] = {}
    for number in range(100_000):
        name = str(number)
        kept[name] = (number, name)
        if len(kept) > 5_000:
            kept.clear()
    return time.process_time() - begin


CORPUS = Path(__file__).parent / "corpus"
GOOD = (
    "version: 1\nlayers:\n  - { name: odd, N: 32, C: 62, H: 56, W: 56, K: 256, kernel_size: 3, padding: 1,"
    " dtype: fp16, layout: NHWC, first: false }\n"
)
SECONDS, MEGABYTES = 2, 200

# file -> line, column, what the message holds
WRITTEN: dict[str, tuple[int, int, str]] = {
    "alias_bomb.yaml": (12, 5, "layer 1 must be a mapping, not a list"),
    "alias_cycle.yaml": (3, 5, "alias *l refers to itself"),
    "alias_cycle_mapping.yaml": (3, 6, "alias *a refers to itself"),
    "alias_unknown.yaml": (2, 9, "alias *nowhere has no anchor"),
    "base_60.yaml": (3, 19, "C: must be a whole number of at least 1; YAML 1.1 reads 1:30 in"),
    "boolean_no.yaml": (3, 19, "C: must be a whole number of at least 1; YAML reads no as a boolean"),
    "boolean_true.yaml": (3, 19, "C: must be a whole number of at least 1; YAML reads true as a boolean"),
    "control.yaml": (3, 13, "is not valid YAML: character U+001B is not allowed"),
    "duplicate_key.yaml": (8, 5, "duplicate key 'C'; first given on line 4"),
    "duplicate_top.yaml": (3, 1, "duplicate key 'version'; first given on line 1"),
    "empty.yaml": (1, 1, "is empty: a spec needs version: 1 and layers:"),
    "exponent.yaml": (3, 19, "C: must be a whole number of at least 1, not 1e3; write it in"),
    "fraction.yaml": (3, 19, "C: must be a whole number of at least 1, not 8.5; write it in"),
    "garbage.yaml": (3, 115, "is not UTF-8: byte 0x80; save it as UTF-8"),
    "hexadecimal.yaml": (3, 19, "C: must be a whole number of at least 1, not '0x10'"),
    "huge_integer.yaml": (3, 19, "C: 99999999999999999999… (5000 characters) is larger than 2^31"),
    "infinity.yaml": (3, 19, "C: must be a whole number of at least 1, not '.inf'"),
    "layers_not_a_list.yaml": (2, 9, "layers must be a list, not a mapping"),
    "list_at_top.yaml": (1, 1, "a spec is a mapping with version: and layers:, not a list"),
    "list_for_size.yaml": (3, 19, "C: must be a whole number of at least 1, not a list"),
    "long_key.yaml": (3, 1, "unknown key 'kkkkkkkkkkkkkkkkkkkk… (900 characters)'"),
    "merge_cycle.yaml": (3, 7, "alias *a refers to itself"),
    "name_is_boolean.yaml": (3, 13, 'name: YAML reads no as a boolean; write "no"'),
    "negative.yaml": (3, 19, "C: must be a whole number of at least 1, not -8"),
    "no_layers.yaml": (1, 1, "layers is missing: nothing to check"),
    "no_text.yaml": (1, 1, "is not valid YAML: character U+007F is not allowed"),
    "not_a_spec.yaml": (1, 1, "a spec is a mapping with version: and layers:, not a value"),
    "not_utf8.yaml": (3, 16, "is not UTF-8: byte 0xe9; save it as UTF-8"),
    "nul.yaml": (3, 14, "is not valid YAML: character U+0000 is not allowed"),
    "null.yaml": (3, 19, "C: must be a whole number of at least 1, not nothing"),
    "octal.yaml": (3, 19, "C: must be a whole number of at least 1; YAML 1.1 reads 017 as"),
    "only_comment.yaml": (1, 1, "is empty: a spec needs version: 1 and layers:"),
    "quoted.yaml": (3, 19, "C: must be a whole number of at least 1, not quoted text; write 8"),
    "size_overflow.yaml": (3, 5, "a: the output's P would be 4611686016279904259, larger than 2^31"),
    "tab.yaml": (3, 1, "while scanning for the next token (a tab: YAML is indented with spaces)"),
    "tag.yaml": (2, 9, "tags such as tag:yaml.org,2002:python/object/apply:os.system are"),
    "too_large.yaml": (3, 19, "C: 2147483649 is larger than 2^31"),
    "truncated.json": (2, 1, "is not valid YAML: did not find expected ',' or '}' while parsing"),
    "two_documents.yaml": (3, 1, "a spec is one YAML document; this starts another"),
    "unclosed.yaml": (3, 1, "is not valid YAML: did not find expected ',' or ']' while parsing"),
    "utf16_be.yaml": (1, 1, "is UTF-16 or UTF-32; save it as UTF-8"),
    "utf16_le.yaml": (1, 1, "is UTF-16 or UTF-32; save it as UTF-8"),
    "utf32.yaml": (1, 1, "is UTF-16 or UTF-32; save it as UTF-8"),
    "version_2.yaml": (1, 10, "version must be 1, not 2"),
    "zero.yaml": (3, 19, "C: must be at least 1, not 0"),
}
HEAD = "version: 1\nlayers:\n"
LAYER = "C: 8, H: 8, W: 8, K: 8, kernel_size: 3"
DEEP, MANY = "nested deeper than 32 levels", "more than 400,000 values"


def spec(*layers: str) -> str:
    return HEAD + "".join(f"  - {{ {layer} }}\n" for layer in layers)


def of_C(C: str) -> str:
    return spec(LAYER.replace("C: 8", f"C: {C}"))


def of_aliases(count: int) -> str:
    return f"version: 1\nx-l: &l {{ {LAYER} }}\nlayers: [" + "*l, " * count + "]"


# name -> line, column, what the message holds, and what makes the text
GENERATED: dict[str, tuple[int, int, str, Callable[[], str]]] = {
    "nested_lists": (1, 33, DEEP, lambda: "[" * 100_000),
    "nested_mappings": (1, 129, DEEP, lambda: "{a: " * 100_000),
    "nested_items": (1, 65, DEEP, lambda: "- " * 100_000),
    "nested_lines": (33, 33, DEEP, lambda: "\n".join(" " * i + f"a{i}:" for i in range(2000))),
    "nested_quotes": (1, 212, DEEP, lambda: '{"version": 1, "layers": ' + '{"a": ' * 100_000),
    "nested_padding": (3, 85, DEEP, lambda: spec(f"{LAYER}, padding: " + "[" * 100_000 + "]" * 100_000)),
    "merge_bomb": (2, 5012, "<< merges more than 100,000 values in all", lambda: (
        "x-b: &b {" + ", ".join(f"k{i}: 0" for i in range(200)) + "}\nx-l: [" + "{<<: *b}, " * 100_000 + "]"
    )),
    "merge_of_merges": (202, 19, "<< merges more than 200 keys", lambda: (
        "x-0: &a0 {a: 1}\n" + "".join(f"x-{i}: &a{i} {{<<: *a{i - 1}, k{i}: 1}}\n" for i in range(1, 1000))
    )),
    "inputs_bomb": (5, 24, "inputs: names too many layers", lambda: (
        "version: 1\nx-i: &i [" + "a, " * 200_000 + f"]\nlayers:\n  - {{ name: a, {LAYER} }}\n"
        "  - { op: add, inputs: *i }\n"
    )),
    "too_many_layers": (3, 9, "layers: more than 30,000, the limit for a spec", lambda: of_aliases(100_001)),
    "a_list_of_ones": (2, 1200001, MANY, lambda: "version: 1\nlayers: [" + "1, " * 1_300_000 + "1]"),
    "ones_that_are_few_enough": (2, 9, "layers: more than 30,000, the limit for a spec", lambda: (
        "version: 1\nlayers: [" + "1, " * 390_000 + "1]"
    )),
    "too_many_convolutions": (3, 9, "layers: more than 10,000 convolutions, the limit for one input", lambda: (
        of_aliases(10_001)
    )),
    "more_layers_than_any_network_has": (36366, 19, MANY, lambda: spec(*[LAYER] * 60_000)),
    "block_list": (400_000, 3, MANY, lambda: HEAD + "- 1\n" * 1_000_000),
    "anchors": (400_001, 4, MANY, lambda: "x-a:\n" + " - &a 1\n" * 420_000),
    "directives": (21, 1, "has more than 20 lines that begin with %", lambda: (
        "".join(f"%TAG !a{i}! tag:x{i}\n" for i in range(150_000)) + "---\nlayers: []\n"
    )),
    "long_name": (3, 13, "name: must be 1 to 500 characters long", lambda: spec(f"name: {'n' * 1_000_000}, {LAYER}")),
    "long_number": (3, 10, "is larger than 2^31", lambda: of_C("9" * 1_000_000)),
    "long_zeros": (3, 10, "as octal", lambda: of_C("0" * 1_000_000)),
    "long_digits_and_colons": (3, 10, "in base 60", lambda: of_C("1:" * 100_000 + "1")),
    "long_version": (3, 61, "groups: must be", lambda: (
        "version: 1\nruntime: { cudnn: " + "9." * 200 + f" }}\nlayers: [ {{ {LAYER}, groups: x }} ]"
    )),
    "growing_sizes": (4, 5, "larger than 2^31", lambda: spec(LAYER, *["op: upsample, scale: 2147483648"] * 1000)),
    "growing_channels": (4, 5, "c1: C would be 4294967296, larger than 2^31", lambda: spec(
        "name: c0, C: 2147483648, H: 1, W: 1, K: 2147483648, kernel_size: 1",
        *(f"name: c{i}, op: concat, inputs: [c{i - 1}, c{i - 1}]" for i in range(1, 500)),
    )),
    "large_file": (0, 0, "is larger than 4 MiB", lambda: "#" * (4 * 2**20 + 1)),
    "one_long_line": (3, 23, "dtype: must be 1 to 500", lambda: (
        HEAD + "  - { name: a, dtype: '" + "x" * 4_000_000 + f"', {LAYER} }}"
    )),
}  # fmt: skip


def limited(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES * 2**20, MEGABYTES * 2**20))


def in_bounds(folder: Path, *paths: str) -> tuple[int, dict[str, Any]]:
    """(exit code, report) of a process that may use 2 s of processor time, or what is 2 s elsewhere, and 200 MB."""
    command = [sys.executable, "-m", "convlint", "check", *paths, "--output", "json"]
    done = subprocess.run(  # the child limits itself before it becomes convlint
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(limited, round(SECONDS * slowness())),
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    return tmp_path


def refused(folder: Path, path: str) -> dict[str, Any]:
    """The one error about `path`, once the file beside it was checked all the same."""
    code, found = in_bounds(folder, path, "good.yaml")
    assert code == 3
    assert [layer["name"] for layer in found["layers"] if layer["path"] == "good.yaml"] == ["odd"]
    assert "CL102" in {finding["code"] for finding in found["findings"] if finding["path"] == "good.yaml"}
    assert found["complete"] is False
    (error,) = found["errors"]
    assert error["path"] == path
    assert len(error["message"]) < 300
    assert error["message"].isprintable()
    assert isinstance(error, dict)
    return error


def test_every_file_of_the_corpus_is_in_the_table() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(WRITTEN)


@pytest.mark.contract
@pytest.mark.parametrize("name", WRITTEN)
def test_written_files(name: str, folder: Path) -> None:
    line, column, message = WRITTEN[name]
    (folder / name).write_bytes((CORPUS / name).read_bytes())
    error = refused(folder, name)
    assert (error["line"], error["column"]) == (line, column)
    assert message in error["message"]


@pytest.mark.contract
@pytest.mark.parametrize("name", GENERATED)
def test_generated_files(name: str, folder: Path) -> None:
    line, column, message, make = GENERATED[name]
    (folder / "bad.yaml").write_text(make())
    error = refused(folder, "bad.yaml")
    assert (error["line"] or 0, error["column"] or 0) == (line, column)
    assert message in error["message"]


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "fifo": (os.mkfifo, "is not a regular file (a pipe, socket or device)"),
    "loop": (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
    "dangling_link": (lambda path: path.symlink_to("nowhere.yaml"), "cannot be read: No such file or directory"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file (a pipe, socket or device)"),
    "nothing": (lambda path: None, "cannot be read: No such file or directory"),
    "folder": (Path.mkdir, "holds nothing that convlint reads"),
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file(kind: str, folder: Path) -> None:
    make, message = NO_FILES[kind]
    make(folder / "bad.yaml")
    error = refused(folder, "bad.yaml")
    assert message in error["message"]
    assert (error["line"], error["column"]) == (None, None)


@pytest.mark.parametrize("path", ["a\x00.yaml", "n" * 5000 + ".yaml", "\x1b[31m.yaml", "a/b/c.yaml", ""])
def test_paths_that_cannot_be(path: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    ran = convlint("check", path, "good.yaml", "--output", "json")
    assert ran.code == 3
    found = json.loads(ran.out)
    assert len(found["errors"]) == 1
    assert "CL102" in {finding["code"] for finding in found["findings"]}
    assert "\x1b" not in ran.out + ran.err


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "  - { bogus: 1 }\n" * 50_000,
        HEAD + "  - { " + ", ".join(f"k{i}: 1" for i in range(50_000)) + " }\n",
        HEAD + "".join(f"  - {{ input: m{i} }}\n" for i in range(50_000)),
        "version: 1\n" + "".join(f"k{i}: 1\n" for i in range(50_000)),
    ],
)
def test_a_flood_of_errors_is_bounded(text: str, folder: Path) -> None:
    (folder / "bad.yaml").write_text(text)
    code, found = in_bounds(folder, "bad.yaml", "good.yaml")
    assert code == 3
    assert 1 <= len(found["errors"]) <= 101
    assert "CL102" in {finding["code"] for finding in found["findings"]}


def test_standard_input_is_no_less_hostile() -> None:
    for raw in (b"\xff", b"[" * 100_000, b"", b"a: \x00"):
        done = subprocess.run(
            [sys.executable, "-m", "convlint", "check", "-", "-o", "concise"],
            input=raw, capture_output=True, check=False, timeout=60,
            preexec_fn=partial(limited, round(SECONDS * slowness())),
        )  # fmt: skip
        assert done.returncode == 3
        assert done.stdout.startswith(b"<stdin>:1:")


# --- whatever else

PIECES = [
    "version: 1\n", "layers:\n", "  - ", "{ ", " }", "[", "]", ", ", ": ", "\n", "name: ", "C: ", "H: 8", "W: 8, ",
    "K: 8", "kernel_size: 3", "op: ", "pool", "conv_transpose", "depthwise", "concat", "inputs: [a, b]", "input: a",
    "groups: ", "8", "0", "64", "-1", "2147483648", "fp16", "dtype: ", "&a ", "*a", "<<: ", "!!int ", "|", "'", '"',
    "#", "\t", "\x00", "\ufeff", "é", "🙂", "target: [a100, k80]\n", "runtime: { cudnn: 8 }\n", "mode: inference\n",
    "defaults: { N: 2 }\n", "padding: same", "stride: 2", "dilation: 9", "dims: ", "1", "3", "~", "?", "- ",
    "%YAML 1.1\n",
]  # fmt: skip
SIZES = {
    "N": [1, 3], "C": [1, 3, 8, 62], "H": [1, 2, 14], "W": [1, 7, 224], "K": [1, 5, 64], "kernel_size": [1, 2, 3],
    "stride": [1, 2], "padding": [0, 1, "same"], "dilation": [1, 6], "groups": [1, 2, 62], "calls": [1],
}  # fmt: skip
OTHERS = {
    "dtype": ["fp16", "fp32", "fp64", "int8", "fp8", "bf16", "tf32"], "layout": ["NCHW", "NHWC", "auto"],
    "op": ["conv", "conv_transpose", "depthwise", "conv1d", "conv3d", "pool"], "P": [1, 7], "bias": [True, False],
    "first": [True, False], "head": [True, False], "output_padding": [0, 1], "residual_inputs": [0, 2],
}  # fmt: skip
FIELDS = {name: [*values, 2**31] for name, values in SIZES.items()} | OTHERS
LAYERS = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in FIELDS.items()})
loosely = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@loosely
@given(text=st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_of_a_spec_is_checked_or_refused(text: str) -> None:
    ran = convlint("check", "-", "--output", "json", stdin=text)
    assert ran.code in (0, 1, 3), ran.out + ran.err
    json.loads(ran.out)


@loosely
@given(
    layers=st.lists(LAYERS, min_size=1, max_size=4),
    mode=st.sampled_from(["training", "inference"]),
    gpu=st.sampled_from(["a100", "h100", "k80", "t4", "v100", "p100", "b200", "jetson-orin-nano"]),
    runtime=st.sampled_from(
        ["{}", "{ framework: tensorrt }", "{ cudnn: 7.5, tf32: false }", "{ framework: pytorch, cuda: 13.0 }"]
    ),
)
def test_any_layers_are_checked_or_refused(layers: list[dict[str, Any]], mode: str, gpu: str, runtime: str) -> None:
    """No mix of sizes up to 2^31, dtypes, layouts and kinds ends in a defect of our own."""
    text = f"version: 1\nmode: {mode}\nruntime: {runtime}\nlayers: {json.dumps(layers)}\n"
    ran = convlint("check", "-", "--gpu", gpu, "--select", "ALL", "--output", "json", stdin=text)
    assert ran.code in (0, 1, 3), ran.out + ran.err
    json.loads(ran.out)
