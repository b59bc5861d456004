"""Every error of a file, once, at its place."""

import pytest
from cases import for_each
from read_specs import STEM, errors, network, only, sizes, spec

from convlint.estimate.memory import parameters
from convlint.model.channels import channels_of
from convlint.model.network import Network
from convlint.readers.spec.reader import read_spec


@for_each(
    "layer, column, message",
    [
        ("C: -3", 8, "C: must be a whole number of at least 1, not -3"),
        ("C: 1.5", 8, "C: must be a whole number of at least 1, not 1.5; write it in plain digits"),
        ("C: +3", 8, "C: must be a whole number of at least 1, not +3; write it in plain digits"),
        ("C: 1_000", 8, "not 1_000; write it in plain digits"),
        ("C: 017", 8, "YAML 1.1 reads 017 as octal; write 17 without the leading zero"),
        ("C: '64'", 8, "not quoted text; write 64 without quotes"),
        ("C: x", 8, "not 'x'"),
        ("C: {a: 1}", 8, "not a mapping"),
        ("C: " + "0" * 5000, 8, "as octal"),
        ("C: ٣", 8, "not '٣'"),
        ("stride: [1, 2, 3, 4]", 13, "stride: must be one number or 2, not 4"),
        ("dims: 1, stride: [1, 2]", 22, "stride: must be one number, not 2"),
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
        ("dtype: pf16", 12, "fp8, int8; did you mean 'fp16'?"),
        ("dtype: flaot32", 12, "fp8, int8; did you mean 'float32'?"),
        ("dtype: 16", 12, "dtype: '16' is not one of"),
        ("layout: NCWH", 13, "layout: 'NCWH' is not one of NCHW, NHWC, auto; did you mean"),
        ("layout: NHCW", 13, "layout: 'NHCW' is not one of NCHW, NHWC, auto; did you mean"),
        ("bias: maybe", 11, "bias: must be true or false, not maybe"),
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


HEAD = "version: 1\ndefaults: {N: 32, dtype: fp16}\nlayers:\n"


def network_of(*items: str, errors: int = 0) -> Network:
    network, found = read_spec(HEAD + "".join(f"  - {{{item}}}\n" for item in items), "x.yaml")
    assert network is not None
    assert len(found) == errors, found
    return network


def groups(network: Network) -> list[tuple[int, list[str], list[str], bool]]:
    """Width, names of writers and readers, and whether it is fixed, of each group."""
    names = [layer.name for layer in network.layers]
    return [
        (group.width, [names[i] for i in group.writers], [names[reader.layer] for reader in group.readers],
         bool(group.fixed))
        for group in channels_of(network).groups
    ]  # fmt: skip


IMAGE = "name: image, op: input, C: 3, H: 64, W: 64"
A = "name: a, K: 60, kernel_size: 3, padding: 1"


@pytest.mark.parametrize(
    "between",
    [
        "op: relu", "op: batchnorm", "op: layernorm", "op: dropout", "op: pool, kernel_size: 2", "op: globalpool",
        "op: upsample, scale: 2", "op: pad, padding: 1", "op: add", "op: concat", "op: downsample, scale: 2",
        "op: groupnorm, groups: 20",
    ],
)  # fmt: skip
def test_what_hands_channels_on(between: str) -> None:
    network = network_of(IMAGE, A, between, "name: b, K: 21, kernel_size: 1")
    assert groups(network)[1] == (60, ["a"], ["b"], False)


@pytest.mark.parametrize(
    "between", ["op: reshape, C: 60, H: 64, W: 64", "op: split, C: 30, H: 64, W: 64", "op: groupnorm"]
)
def test_what_fixes_channels(between: str) -> None:
    network = network_of(IMAGE, A, between, "name: b, K: 21, kernel_size: 1, C: 60, H: 64, W: 64, input: layer3"
                         if "C:" not in between else "name: b, K: 21, kernel_size: 1")  # fmt: skip
    assert groups(network)[1] == (60, ["a"], [], True)
    assert between.split()[1].rstrip(",") in channels_of(network).groups[1].fixed[0]


@pytest.mark.parametrize("vector", ["op: view", "op: globalpool"])
def test_a_linear_layer_reads_whatever_arrives_and_writes_channels_of_its_own(vector: str) -> None:
    network = network_of(IMAGE, A, "name: gap, op: globalpool", vector, "name: fc, op: linear, C: 60, H: 1, W: 1",
                         "op: mul, inputs: [a, fc]", "name: b, K: 21, kernel_size: 1",
                         f"{vector}, name: flat", "name: out, op: linear, C: 10, H: 1, W: 1")  # fmt: skip
    assert groups(network)[1:] == [(60, ["a"], ["b"], False), (21, ["b"], [], False), (10, [], [], True)]
    found = channels_of(network)
    linear = [number for number, operation in enumerate(network.operations) if operation.kind == "linear"]
    assert [group.linear for group in found.groups[1:]] == [(linear[0],), (linear[1],), (linear[1],)]
    wide = found.widened(network, {1: 64, 2: 24}).operations
    works = [
        (before.work, after.work) for number in linear for before, after in [(network.operations[number], wide[number])]
    ]
    pixels = 64 * 64 if vector == "op: view" else 1
    assert [(now.product, then.product) for now, then in works if now and then] == [
        ((1, 32, 60, 60), (1, 32, 64, 64)), ((1, 32, 10, 21 * pixels), (1, 32, 10, 24 * pixels))
    ]  # fmt: skip
    assert [then.weights for _, then in works if then] == [65 * 64, 24 * pixels * 10 + 10]


def test_a_frozen_linear_layer_stays_as_wide_as_its_weights() -> None:
    network = network_of(IMAGE, A, "name: gap, op: globalpool", "name: fc, op: linear, C: 60, H: 1, W: 1, frozen: true",
                         "op: mul, inputs: [a, fc]", "name: b, K: 21, kernel_size: 1")  # fmt: skip
    assert channels_of(network).groups[1].fixed == ("linear fc is frozen, with weights of this width",)


def test_residuals_concatenations_and_shuffles() -> None:
    network = network_of(
        IMAGE, A, "name: b, K: 60, kernel_size: 3, padding: 1", "name: sum, op: add, inputs: [a, b]",
        "name: cat, op: concat, inputs: [sum, a]", "name: up, op: pixel_shuffle, scale: 2",
        "name: c, K: 8, kernel_size: 1",
    )  # fmt: skip
    found = channels_of(network)
    assert groups(network)[1] == (60, ["a", "b"], ["b", "c"], False)
    assert found.groups[1].multiple_of == 4
    assert found.changes(network.layers, {1: 64}) == {0: {"K": 64}, 1: {"K": 64, "C": 64}, 2: {"C": 32}}


def test_there_is_one_operation_for_each_item_in_order() -> None:
    network = network_of(IMAGE, A, "op: nonsense", "name: b, K: 8, kernel_size: 1", errors=1)
    assert [operation.kind for operation in network.operations] == ["input", "conv", "reshape", "conv"]
    assert [operation.layer for operation in network.operations] == [None, 0, None, 1]
    assert [operation.inputs for operation in network.operations] == [(), (0,), (), (2,)]


def test_what_nothing_reads_is_an_output_unless_nothing_is_wired_to_it() -> None:
    alone = "name: {}, C: 60, H: 8, W: 8, K: 124, kernel_size: 1"
    network = network_of(alone.format("x"), alone.format("y"))
    assert [operation.output for operation in network.operations] == [False, False]
    assert groups(network) == [
        (60, [], ["x"], False), (124, ["x"], [], False), (60, [], ["y"], False), (124, ["y"], [], False),
    ]  # fmt: skip
    network = network_of(IMAGE, A, "op: globalpool")
    assert [operation.output for operation in network.operations] == [False, False, True]


@for_each(
    "entries, outputs",
    [
        ("A, NORM, RELU, B, NORM", [False] * 5),  # each alone, with what follows it
        ("A, NORM, READS, RELU", [False, False, False, True]),
        ("A, B, JOIN", [False, False, True]),
        ("A, SHUFFLE", [False, True]),
        ("A, SOFTMAX", [False, True]),
        ("A, NORM, SIGMOID", [False, False, True]),
        ("A, NORM, RELU, DROP, POOL, B", [False] * 6),
        ("A, LAYERNORM", [False, False]),
        ("A, MEAN", [False, True]),
        ("A, NORM, GROUPS", [False, False, True]),
        ("A, NORM, RELU, READS, B, NORM", [False, False, False, True, False, False]),
    ],
)
def test_a_convolution_that_stands_alone_does_so_with_its_norm(entries: str, outputs: list[bool]) -> None:
    alone = "C: 61, H: 9, W: 9, K: 61, kernel_size: 3"
    of = {
        "A": f"{{name: a, {alone}}}", "B": f"{{name: b, {alone}}}", "NORM": "{op: norm}", "RELU": "{op: activation}",
        "READS": "{K: 8, kernel_size: 1}", "JOIN": "{op: add, inputs: [a, b]}", "SOFTMAX": "{op: softmax}",
        "DROP": "{op: dropout}", "POOL": "{op: maxpool, kernel_size: 2}", "LAYERNORM": "{op: layernorm}",
        "SIGMOID": "{op: sigmoid}", "MEAN": "{op: globalpool}",
        "SHUFFLE": "{op: pixel_shuffle, scale: 1}", "GROUPS": "{op: groupnorm, groups: 61}",
    }  # fmt: skip
    found = network(f"version: 1\nlayers: [{', '.join(of[entry] for entry in entries.split(', '))}]\n")
    assert [operation.output for operation in found.operations] == outputs


def test_names_given_twice_and_broken_items_do_not_confuse_the_wiring() -> None:
    network = network_of(IMAGE, A, A, "name: b, K: 8, kernel_size: 1", "3", errors=2)
    assert len(network.operations) == 5
    assert network.operations[3].inputs == (1,)


TWO_INPUTS = (
    "name: x, op: input, C: 3, H: 64, W: 64",
    "name: a, K: 60, kernel_size: 3, padding: 1",
    "name: y, op: input, C: 3, H: 64, W: 64",
    "name: b, K: 60, kernel_size: 3, padding: 1",
    "name: shared, input: a, K: 30, kernel_size: 3, padding: 1",
)


def test_it_reads_and_writes_the_same_channels() -> None:
    found = network(spec(*TWO_INPUTS, "name: once_more, op: again, weights: shared, input: b", "K: 8, kernel_size: 1"))
    assert [operation.layer for operation in found.operations] == [None, 0, None, 1, 2, 2, 3]
    assert found.operations[5].inputs == (3,)
    groups = {group.writers: [reader.layer for reader in group.readers] for group in channels_of(found).groups}
    assert (groups[0, 1], groups[2,]) == ([2], [3])
    assert found.edges[-1].producers == (2,)
    assert (found.layers[3].C, found.layers[3].H) == (30, 64)


def test_its_edge_has_the_producers_of_all_runs() -> None:
    found = network(spec(*TWO_INPUTS, "op: again, weights: shared, input: b", "op: again, weights: shared, input: a"))
    assert [(edge.consumer, edge.producers) for edge in found.edges] == [(0, ()), (1, ()), (2, (0, 1))]
    assert [layer.head for layer in found.layers] == [False, False, True]


@pytest.mark.parametrize(
    ("last", "is_head"),
    [("op: linear, C: 10", False), ("op: dense, C: 9, H: 1, W: 1", False),
     ("op: relu", True), ("op: global_pool", True)],
)  # fmt: skip
def test_what_a_linear_layer_reads_is_no_head(last: str, is_head: bool) -> None:
    """As in models: the task fixes what the linear layer writes."""
    found = network(spec(STEM, "K: 131, kernel_size: 3", "op: batchnorm", "op: relu", last))
    assert [layer.head for layer in found.layers] == [False, is_head]


def test_a_layer_that_reads_itself_does_not_produce_what_it_reads() -> None:
    found = network(spec("name: a, C: 8, H: 8, W: 8, K: 8, kernel_size: 1", "name: b, K: 8, kernel_size: 1",
                         "name: c, op: again, weights: b"))  # fmt: skip
    assert [edge.producers for edge in found.edges] == [(0,)]


def test_each_run_is_a_call_unless_calls_are_stated() -> None:
    again = "op: again, weights: shared, input: b"
    assert [network(spec(*TWO_INPUTS, *[again] * count)).layers[2].calls for count in range(3)] == [1, 2, 3]
    stated = [*TWO_INPUTS[:-1], f"{TWO_INPUTS[-1]}, calls: 7"]
    assert network(spec(*stated, again)).layers[2].calls == 7


@pytest.mark.parametrize(("first", "second", "norm"), [
    ("batchnorm", "batchnorm", True), ("batchnorm", "relu", False), ("relu", "batchnorm", False),
    ("batchnorm", None, False), (None, None, None),
])  # fmt: skip
def test_it_is_normalised_where_every_run_is(first: str | None, second: str | None, norm: bool | None) -> None:
    items = [*TWO_INPUTS]
    items += [] if first is None else [f"op: {first}, input: shared"]
    items += ["name: more, op: again, weights: shared, input: b"]
    items += [] if second is None else [f"op: {second}, input: more"]
    assert network(spec(*items)).layers[2].norm_follows is norm


def test_many_runs_keep_the_edge_short_and_no_producer_becomes_a_head() -> None:
    items = ["name: x, op: input, C: 8, H: 8, W: 8"]
    items += [f"name: c{number}, input: x, K: 8, kernel_size: 1" for number in range(200)]
    items += ["name: shared, input: c0, K: 8, kernel_size: 1"]
    items += [f"op: again, weights: shared, input: c{number}" for number in range(1, 200)]
    found = network(spec(*items))
    assert len(found.edges[-1].producers) == 64
    assert [layer.name for layer in found.layers if layer.head] == ["shared"]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("name: m, op: again, input: b", "m: op: again needs weights: the name of a convolution before it"),
        ("op: again, weights: x, input: b", "weights: no convolution before this one is named 'x'"),
        ("op: again, weights: nothing, input: b", "weights: no convolution before this one is named 'nothing'"),
        ("op: again, weights: [a], input: b", "weights: must be text, not a list"),
        ("name: m, op: again, weights: shared, inputs: [a, b]",
         "m: a convolution reads one tensor; join its inputs with op: concat or add"),
        ("name: m, op: again, weights: shared, input: y", "m: C=3 arrives, but shared reads C=60"),
        ("name: m, op: again, weights: a, input: b", "m: C=60 arrives, but a reads C=3"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(item: str, message: str) -> None:
    (error,) = errors(spec(*TWO_INPUTS, item))
    assert error.message == message
    assert error.line is not None


def test_another_size_is_no_other_run() -> None:
    layers = (
        "name: p3, op: input, C: 8, H: 40, W: 40",
        "name: head, K: 8, kernel_size: 1",
        "name: p4, op: input, C: 8, H: 20, W: 20",
    )
    (error,) = errors(spec(*layers, "name: m, op: again, weights: head"))
    assert error.message == "m: H=20 arrives, but head reads H=40; state the convolution again, with weights: head"


def test_shared_weights_are_counted_once_and_tie_channels() -> None:
    small = "name: small, input: b, K: 30, kernel_size: 3, padding: 1"
    apart, tied = (network(spec(*TWO_INPUTS, small + more)) for more in ("", ", weights: shared"))
    assert [operation.weights for operation in tied.operations] == [None] * 5 + [2]
    assert {group.writers for group in channels_of(tied).groups} == {(), (0, 1), (2, 3)}
    counted = parameters(apart.layers), parameters(tied.layers)
    assert None not in counted
    assert (counted[0] or 0) - (counted[1] or 0) == 60 * 30 * 9
    assert [operation.weights for operation in network(
        spec(*TWO_INPUTS, f"{small}, weights: shared", small.replace("small", "third") + ", weights: small")
    ).operations][-1] == 2  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("K: 31, kernel_size: 3, weights: shared", "m: K=31, but shared, whose weights it has, has K=30"),
        (
            "K: 30, kernel_size: 3, groups: 2, weights: shared",
            "m: groups=2, but shared, whose weights it has, has groups=1",
        ),
        ("K: 30, kernel_size: 3, weights: m", "weights: no convolution before this one is named 'm'"),
    ],
)
def test_weights_that_cannot_be_the_same_are_errors(fields: str, message: str) -> None:
    (error,) = errors(spec(*TWO_INPUTS, f"name: m, input: b, {fields}"))
    assert error.message == message


def test_it_is_no_default() -> None:
    (error,) = errors(spec(*TWO_INPUTS, defaults="{ weights: a }"))
    assert error.message == "weights cannot be a default"


def test_roles_in_a_connected_network() -> None:
    found = network(
        spec(
            "name: image, op: input, N: 8, C: 12, H: 32, W: 32",
            "name: a, K: 16, kernel_size: 3",
            "name: bn, op: batchnorm",
            "name: b, K: 16, kernel_size: 1, bias: true",
            "name: act, op: relu",
            "name: bn2, op: batchnorm",
            "name: c, K: 19, kernel_size: 1",
        )
    )
    assert [(layer.name, layer.first, layer.head, layer.norm_follows, layer.N) for layer in found.layers] == [
        ("a", True, False, True, 8),
        ("b", False, False, False, 8),
        ("c", False, True, None, 8),
    ]


def test_a_normalisation_beside_another_reader() -> None:
    found = network(spec(f"name: a, {STEM}", "name: n, op: bn", "op: add, inputs: [a, n]", "K: 8, kernel_size: 1"))
    assert found.layers[0].norm_follows is False


def test_roles_of_layers_that_stand_alone() -> None:
    rgb, wide = network(spec(STEM, "C: 64, H: 8, W: 8, K: 8, kernel_size: 1")).layers
    assert (rgb.first, rgb.head, wide.first, wide.head) == (True, False, False, False)
    fed, _ = network(spec("C: 64, H: 8, W: 8, K: 8, kernel_size: 1", "K: 8, kernel_size: 1")).layers
    assert fed.first


def test_stated_roles_win() -> None:
    first, last = network(spec(f"{STEM}, first: false", "K: 8, kernel_size: 1, head: false, first: true")).layers
    assert (first.first, last.head, last.first) == (False, False, True)


def test_defaults_fill_what_a_layer_leaves_out() -> None:
    text = spec(
        "C: 4, H: 8, W: 8, K: 8", "K: 16, R: 1, N: 2", defaults="{ N: 256, kernel_size: 3, padding: 1, dtype: fp16 }"
    )
    first, second = network(text).layers
    assert sizes(first, "N R S PadH PadW dtype") == [256, 3, 3, 1, 1, "fp16"]
    assert sizes(second, "N R S PadH PadW") == [2, 1, 3, 1, 1]


@pytest.mark.parametrize(
    ("default", "layer", "sides"),
    [
        ("1", "PadH: 0", (0, 0, 1, 1)),
        ("1", "padding: 0", (0, 0, 0, 0)),
        ("1", "padding: same", (2, 2, 2, 2)),
        ("same", "padding: 1", (1, 1, 1, 1)),
        ("same", "PadW: 1", (0, 0, 1, 1)),
        ("same", "bias: true", (2, 2, 2, 2)),
    ],
)
def test_default_padding(default: str, layer: str, sides: tuple[int, ...]) -> None:
    made = only(spec(f"C: 4, H: 8, W: 8, K: 8, kernel_size: 5, {layer}", defaults=f"{{ padding: {default} }}"))
    assert (made.PadH, made.PadH_end, made.PadW, made.PadW_end) == sides


def test_defaults_of_other_dimensions() -> None:
    volumes = network(spec("C: 4, H: 8, W: 8, D: 8, K: 8", defaults="{ kernel_size: [3, 1, 1], stride: [1, 2, 2] }"))
    assert sizes(volumes.layers[0], "dims T R StrideD U") == [3, 3, 1, 1, 2]
    sound = network(spec("C: 4, W: 100, K: 8", "K: 8", defaults="{ dims: 1, kernel_size: 5 }"))
    assert [layer.dims for layer in sound.layers] == [1, 1]
    assert sound.layers[1].Q == 92


def test_defaults_count_as_written() -> None:
    found = network(spec("K: 8, kernel_size: 1", "K: 8, kernel_size: 1", defaults="{ C: 64, H: 56, W: 56 }"))
    assert found.edges == ()


def test_a_default_is_located_where_it_stands() -> None:
    layer = only("version: 1\ndefaults:\n  dtype: fp16\nlayers:\n  - {C: 4, H: 8, W: 8, K: 8, kernel_size: 1}\n")
    assert layer.spans["dtype"] == (3, 10, 3, 14)


def test_a_frozen_default_holds_for_norms_and_not_for_the_head() -> None:
    entries = f"{STEM}, first: true", "op: batchnorm", "K: 8, kernel_size: 3, frozen: false"
    layers = network(spec(*entries, defaults="{ frozen: true }")).layers
    assert [(layer.frozen, layer.no_dgrad) for layer in layers] == [(True, False), (False, True)]
    assert [error.message for error in errors(spec(*entries, defaults="{ frozen: maybe }"))] == [
        "frozen: must be true or false, not maybe"
    ]


def test_errors_of_defaults_are_told_once() -> None:
    found = errors(spec(STEM, STEM, "op: conv1d, C: 3, W: 9, K: 1, kernel_size: 1", defaults="{ N: 0, nane: x }"))
    assert [error.message.split(":")[0] for error in found] == [
        "N",
        "unknown key 'nane' in defaults; did you mean 'name'?",
    ]
    assert [error.message for error in errors(spec(defaults="{ name: x }", layers="[]").replace("layers:\n", ""))] == [
        "name cannot be a default"
    ]


# --- the work of a step

STEP = """
version: 1
defaults: { N: 2, dtype: fp16 }
layers:
  - { name: a, C: 3, H: 8, W: 6, K: 12, kernel_size: 3, padding: 1 }
  - { name: n, op: norm }
  - { name: r, op: activation }
  - { name: t, op: attention }
  - { name: p, op: maxpool, kernel_size: 2 }
  - { name: fc, op: linear, C: 5, H: 1, W: 1 }
"""


def test_entries_say_what_they_read_write_and_multiply() -> None:
    found, wrong = read_spec(STEP, "net.yaml")
    assert wrong == ()
    assert found.whole
    full, half = 2 * 12 * 8 * 6, 2 * 12 * 4 * 3
    works = [(one.work.kind, one.work.reads, one.work.writes, one.work.weights, one.work.product)
             for one in found.operations if one.work is not None]  # fmt: skip
    assert works == [
        ("batch norm", (full,), full, 24, ()), ("activation", (full,), full, 0, ()),
        ("attention", (3 * full,), full, 0, (2, 48, 48, 12)), ("max pool", (full,), half, 0, ()),
        ("linear", (half,), 10, 145 * 5, (1, 2, 5, 144)),  # it has a bias
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "whole"),
    [("op: norm", "op: layernorm", True), ("  - { name: t, op: attention }\n", "", True),
     ("N: 2, ", "", False), ("op: norm", "op: groupnorm, groups: 4", True),
     ("  - { name: fc", "  - { name: flat, op: reshape }\n  - { name: fc", True)],
)  # fmt: skip
def test_a_step_is_known_where_its_operations_and_sizes_are(old: str, new: str, whole: bool) -> None:
    found, _ = read_spec(STEP.replace(old, new), "net.yaml")
    assert found.whole is whole


@pytest.mark.parametrize(("stated", "whole"), [("false", False), ("true", True)])
def test_a_spec_may_say_that_operations_are_left_out(stated: str, whole: bool) -> None:
    found, wrong = read_spec(STEP.replace("version: 1", f"version: 1\nwhole_step: {stated}"), "net.yaml")
    assert wrong == ()
    assert found.whole is whole
    assert next(one.work.kind for one in found.operations if one.work is not None) == "batch norm"


@pytest.mark.parametrize(
    ("stated", "whole"), [("", False), ("whole_step: false\n", False), ("whole_step: true\n", True)]
)
def test_a_spec_may_say_that_all_operations_are_there(stated: str, whole: bool) -> None:
    """Else a tanh is taken for one that a shape goes through."""
    found, wrong = read_spec(f"{stated}version: 1\nlayers:\n  - {{ {STEM}, N: 2 }}\n  - {{ op: tanh }}\n", "net.yaml")
    assert wrong == ()
    assert found.whole is whole


@pytest.mark.parametrize("op", ["norm", "batchnorm", "instance_norm"])
def test_a_norm_that_cancels_a_bias_follows_its_layer(op: str) -> None:
    (layer,) = network(spec(STEM, f"op: {op}", "op: relu")).layers
    assert layer.norm_follows


@pytest.mark.parametrize(
    ("stated", "reads", "product"),
    [
        ("op: attention", (3 * 1152,), (2, 48, 48, 12)),
        ("op: attention, heads: 3", (3 * 1152,), (6, 48, 48, 4)),
        ("op: attention, heads: 3, inputs: [r, half, half]", (1152, 288, 288), (6, 48, 12, 4)),
        ("op: matmul, inputs: [r, half], heads: 3, C: 36, H: 8, W: 6", (1152, 288), (6, 48, 12, 4)),
        ("op: copy", (1152,), ()),
    ],
)
def test_heads_queries_and_keys(stated: str, reads: tuple[int, ...], product: tuple[int, ...]) -> None:
    half = "  - { name: half, op: maxpool, kernel_size: 2, input: r }\n"
    own = stated if "input" in stated else f"{stated}, input: r"
    text = STEP.replace("  - { name: t, op: attention }\n", f"{half}  - {{ name: t, {own} }}\n")
    found, wrong = read_spec(text, "net.yaml")
    assert wrong == ()
    work = next(one.work for one in found.operations if one.name == "t")
    assert (work.reads, work.product) == (reads, product)


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ("op: attention, heads: 5", "heads = 5 does not divide C = 12"),
        ("op: relu, heads: 2", "heads: of attention and matmul alone"),
        ("op: groupnorm, groups: 5", "groups = 5 does not divide C = 12"),
        ("op: channel_shuffle, groups: 5", "groups = 5 does not divide C = 12"),
        ("op: glu, groups: 3", "groups: of convolutions, groupnorm, channel_shuffle and channel_split alone"),
        (
            "op: layernorm, groups: 2",
            "groups: of convolutions, groupnorm, channel_shuffle and channel_split alone",
        ),
        ("op: relu, K: 13", "K = 13, but t hands on C = 12"),
        ("op: relu, stride: 2", "stride: of convolutions, pools and padding alone"),
        ("op: norm, kernel_size: [3, 3]", "kernel_size: of convolutions, pools and padding alone"),
        ("op: add, pad: 1", "pad: of convolutions, pools and padding alone"),
        ("op: channel_pool, kernel_size: 2", "kernel_size: of convolutions, pools and padding alone"),
        ("op: channel_split, stride: 2", "stride: of convolutions, pools and padding alone"),
    ],
)
def test_keys_that_an_operation_does_not_heed_are_errors(stated: str, why: str) -> None:
    (error,) = errors(STEP.replace("op: attention", stated))
    assert (error.message, error.line) == (why, 8)


def test_keys_that_change_nothing_are_accepted() -> None:
    stated = "op: relu, K: 12, kernel_size: 1, stride: [1, 1], padding: same"
    assert errors(STEP.replace("op: attention", stated)) == ()


def test_a_crop_is_a_view() -> None:
    """Other resizing ops are kernels."""
    found, wrong = read_spec(STEP.replace("op: maxpool, kernel_size: 2", "op: crop, size: [7, 5]"), "net.yaml")
    assert wrong == ()
    crop = next(one for one in found.operations if one.name == "p")
    assert (crop.kind, crop.work, crop.C, crop.H, crop.W) == ("resize", None, 12, 7, 5)
    (error,) = errors(STEP.replace("op: maxpool, kernel_size: 2", "op: crop"))
    assert error.message == "p: needs size"
    (error,) = errors(STEP.replace("op: maxpool, kernel_size: 2", "op: crop, size: [8, 7]"))
    assert error.message == "p: a crop of W=7 out of 6"


def test_a_spec_with_an_error_has_no_step() -> None:
    found, wrong = read_spec(STEP.replace("op: norm", "op: normal"), "net.yaml")
    assert wrong
    assert found is None or not found.whole


@pytest.mark.parametrize(
    ("op", "whole"),
    [
        ("norm", True),
        ("layernorm", True),
        ("groupnorm, groups: 4", True),
        ("batchnorm", False),
    ],  # which carries sizes on
)
def test_any_norm_alone_tells_of_a_step(op: str, whole: bool) -> None:
    """In contrast to an op that is written for the sizes that it carries on."""
    text = STEP.replace("op: norm", f"op: {op}").replace("op: activation", "op: identity")
    found, _ = read_spec(text.replace("  - { name: t, op: attention }\n", ""), "net.yaml")
    assert found.whole is whole
