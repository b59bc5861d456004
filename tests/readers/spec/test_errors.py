"""Every error of a file, once, at its place."""

from __future__ import annotations

from cases import for_each
from read_specs import STEM, errors, spec


@for_each(
    "layer, column, message",
    [
        ("C: 0", 8, "C: must be at least 1, not 0"),
        ("C: -3", 8, "C: must be a whole number of at least 1, not -3"),
        ("C: 1.5", 8, "C: must be a whole number of at least 1, not 1.5; write it in plain digits"),
        ("C: 1e3", 8, "C: must be a whole number of at least 1, not 1e3; write it in plain digits"),
        ("C: +3", 8, "C: must be a whole number of at least 1, not +3; write it in plain digits"),
        ("C: 1_000", 8, "not 1_000; write it in plain digits"),
        ("C: 017", 8, "YAML 1.1 reads 017 as octal; write 17 without the leading zero"),
        ("C: 1:30", 8, "YAML 1.1 reads 1:30 in base 60"),
        ("C: no", 8, "YAML reads no as a boolean"),
        ("C: true", 8, "YAML reads true as a boolean"),
        ("C: '64'", 8, "not quoted text; write 64 without quotes"),
        ("C: x", 8, "not 'x'"),
        ("C: [64]", 8, "not a list"),
        ("C: {a: 1}", 8, "not a mapping"),
        ("C: ", 8, "not nothing"),
        ("C: " + "9" * 5000, 8, "99999999999999999999… (5000 characters) is larger than 2^31"),
        ("C: " + "0" * 5000, 8, "as octal"),
        ("C: 2147483649", 8, "C: 2147483649 is larger than 2^31"),
        ("C: ٣", 8, "not '٣'"),
        ("stride: [1, 2, 3, 4]", 13, "stride: must be one number or 2, not 4"),
        ("stride: 0", 13, "stride: must be at least 1, not 0"),
        ("padding: -1", 14, "padding: must be a whole number of at least 0, not -1"),
        ("padding: sane", 14, "padding: 'sane' is not one of same, valid; did you mean 'same'?"),
        ("padding: [1, 2, 3]", 14, "padding: must be one number, 2, or 4 sides, not 3"),
        ("padding: [[1, 2]]", 14, "padding: must be 2 pairs of (begin, end)"),
        ("padding: {topp: 1}", 15, "padding: unknown side 'topp'; did you mean 'top'?"),
        ("PadH: 1, padding: same", 11, "PadH is given, but line 3, column 23 says padding: same"),
        (
            "dtype: fp18",
            12,
            "dtype: 'fp18' is not one of fp64, fp32, tf32, fp16, bf16, fp8, int8; did you mean",
        ),
        ("dtype: 16", 12, "dtype: '16' is not one of"),
        ("layout: NCWH", 13, "layout: 'NCWH' is not one of NCHW, NHWC, auto; did you mean"),
        ("layout: NHCW", 13, "layout: 'NHCW' is not one of NCHW, NHWC, auto; did you mean"),
        ("bias: maybe", 11, "bias: must be true or false, not maybe"),
        ("name: no", 11, 'name: YAML reads no as a boolean; write "no"'),
        ("name: ''", 11, "name: must be 1 to 500 characters long"),
        ("in_chanels: 3", 5, "unknown key 'in_chanels' in a layer; did you mean 'in_channels'?"),
        ("op: convv", 9, "op: unknown operation 'convv'; did you mean 'conv'?"),
        ("op: [conv]", 9, "op: must be text, not a list"),
        ("op: conv, type: pool", 21, "type says again what op says"),
        ("input: nowhere", 12, "input: no layer before this one is named 'nowhere'"),
        ("input: a, from: a", 21, "from says again what input says"),
        ("inputs: []", 13, "inputs: names no layer"),
        ("inputs: [a, a]", 4, "layer2: a convolution reads one tensor"),
        ("dims: 4", 11, "dims: must be 1, 2 or 3, not 4"),
        ("op: conv1d, C: 3, H: 5, W: 9", 26, "layer2: a 1-D convolution has no H; its length is W"),
        ("op: conv, kernel_size: 3, R: 5", 34, "R says R = 5, but line 3, column 28 says R = 3"),
    ],
)
def test_an_error_says_where_and_what_would_be_right(layer: str, column: int, message: str) -> None:
    keys = [part.split(":")[0].strip() for part in layer.split(", ")]
    rest = "" if "kernel_size" in keys else ", kernel_size: 1"
    text = f"version: 1\nlayers: [{{name: a, {STEM}}},\n   {{{layer}, K: 8{rest}}}]\n"
    (error,) = errors(text)
    assert message in error.message
    assert (error.path, error.line, error.column) == ("net.yaml", 3, column)


def test_all_errors_of_a_file_are_told() -> None:
    text = """\
version: 2
mode: trainig
target: [a100, ~]
colour: red
runtime: { cudnn: new, benchmark: 3, framwork: x }
defaults: { dtype: fp17 }
layers:
  - { name: a, C: 0, H: x, W: 8, K: 8, kernel_size: 3 }
  - 5
  - { name: a, C: 4, H: 8, W: 8, K: 8, kernel_size: 3, bogus: 1 }
  - { input: b, K: -1, kernel_size: 3 }
"""
    assert sorted((error.line, error.column) for error in errors(text)) == [
        (1, 10), (2, 7), (3, 16), (4, 1), (5, 19), (5, 35), (5, 38), (6, 20), (8, 19), (8, 25), (9, 5), (10, 13),
        (10, 56), (11, 14), (11, 20),
    ]  # fmt: skip


def test_an_error_is_told_once_however_many_layers_follow() -> None:
    (error,) = errors(
        spec("name: a, C: x, H: 8, W: 8, K: 8, kernel_size: 1", "name: b, input: a, K: 8, kernel_size: 3",
             "name: c, op: add, inputs: [a, b]", "name: d, op: pool, kernel_size: 2", "K: 4, kernel_size: 1")
    )  # fmt: skip
    assert error.message.startswith("C: ")


def test_errors_are_bounded() -> None:
    found = errors(spec(*["C: x"] * 2000))
    assert len(found) == 101
    assert found[-1].message == "more than 100 errors; not read further"
