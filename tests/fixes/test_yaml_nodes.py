"""Each node knows its characters: without its anchor, with its quotes, whatever stands around it."""

import pytest

from convlint.files.located_yaml import LINE_BREAK, parse
from convlint.fixes.yaml_nodes import (
    Mapping,
    Node,
    Scalar,
    Sequence,
    behind,
    is_json,
    nodes_of,
    reached_through,
    shared_through,
)


def root_of(text: str) -> Mapping:
    found = nodes_of(text)
    assert found is not None
    return found


def at(text: str, *steps: str | int) -> str:
    """The characters of the node that these keys and positions lead to."""
    node: Node = root_of(text)
    for step in steps:
        target = behind(node)
        node = target.items[step] if isinstance(step, int) else target.merged[step].value
    return text[node.start : node.end]


@pytest.mark.parametrize(
    ("text", "steps", "characters"),
    [
        ("a: 64\nbc: [3,  5]\n", ["bc", 1], "5"),
        ("a: 64\nbc: [3,  5]\n", ["bc"], "[3,  5]"),
        ("a: 'x y' # c\n", ["a"], "'x y'"),
        ('a: "\\x41"\n', ["a"], '"\\x41"'),
        ("a: &k 60 # c\n", ["a"], "60"),
        ("a: &k   # c\n  60\n", ["a"], "60"),
        ("a: ! 'x'\n", ["a"], "'x'"),
        ("a: &k ! x\n", ["a"], "x"),
        ("a: &k\nb: 1\n", ["a"], ""),
        ("a: &m { b: 1 }\n", ["a"], "{ b: 1 }"),
        ("a: &m\n  - &n 1\n", ["a", 0], "1"),
        ("a: &m {b: 1}\nc: *m\n", ["c"], "*m"),
        ("a: &m {b: 1}\nc: *m\n", ["c", "b"], "1"),
        ("a: &m {b: 1}\nc: {<<: *m, d: 2}\n", ["c", "b"], "1"),
        ("é: 🙂\r\n🙂: 64\r\n", ["🙂"], "64"),
        ("\ufeffa: 64\n", ["a"], "64"),
        ("\ufeff\ufeffa: 64\n", ["a"], "64"),
        ("a: |\r\n  x\r\n\r\nb: 64\r\n", ["b"], "64"),
        ("a: >\r  x\rb: 64\r", ["b"], "64"),
        ("a: 1\x85b: 64\u2028c: 65", ["c"], "65"),
        ("%YAML 1.1\n---\na: 64\n...\n", ["a"], "64"),
    ],
)
def test_each_node_knows_its_characters(text: str, steps: list[str | int], characters: str) -> None:
    assert at(text, *steps) == characters


def test_offsets_are_where_the_reader_of_specs_sees_lines_and_columns() -> None:
    text = "\ufeffü:\r\n  - {🙂: 'a', b: [ 1 , 2 ]}\r\n  - 'x\r\n\r\n    y'\r\n  - z\r\n"
    root = parse(text)
    assert root is not None
    lines = LINE_BREAK.split(text.lstrip("\ufeff"))
    for number, place in ((1, "'x"), (2, "z")):
        line, column, *_ = root.data["ü"].data[number].span
        assert lines[line - 1][column - 1 :].startswith(place)
        assert at(text, "ü", number).startswith(place)


def test_a_mapping_says_what_is_its_own_and_what_it_merges() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], z: 5, << : {w: 6}}\n"
    root = root_of(text)
    c = behind(root.own["c"].value)
    assert list(c.own) == ["z"]
    assert {key: behind(item.value).text for key, item in c.merged.items()} == {"x": "1", "y": "2", "z": "5", "w": "6"}
    assert [entry is c.merged["y"] for entry in behind(root.own["a"].value).entries] == [False, True]
    assert c.sources[:2] == [behind(root.own["a"].value), behind(root.own["b"].value)]


def test_an_anchor_given_twice_is_the_last_before_its_alias() -> None:
    assert behind(root_of("a: &x 1\nb: *x\nc: &x 2\nd: *x\n").own["d"].value).text == "2"


@pytest.mark.parametrize(
    ("text", "reached", "shared"),
    [
        ("a: 1", "", ""),
        ("a: &x 1", "", ""),
        ("a: &x 1\nb: *x", "the YAML anchor &x in line 1", "the YAML anchor &x in line 1"),
        ("x: &x\n  1\na: *x", "the YAML anchor &x in line 1", "the YAML anchor &x in line 1"),
        ("x: &x\n\n  b: 1\na: *x", "the YAML anchor &x in line 1", "the YAML anchor &x in line 1"),
        ("x:\n- &x [1]\na: *x", "the YAML anchor &x in line 2", "the YAML anchor &x in line 2"),
        ("a: &x 1\nb: &x 2\nc: *x", "", ""),
        ("a: [1, &x 2]\nb: *x", "", "the YAML anchor &x in line 1"),
        ("x: &x 1\na: [[1, *x]]", "", "the YAML anchor &x in line 1"),
        ("a: {top: &x 1}\nb: *x", "", "the YAML anchor &x in line 1"),
        ("x: &x {top: 1}\na: {<<: *x, left: 1}", "", "the YAML anchor &x in line 1"),
        ("a: {<<: {top: 1}, left: 1}", "", "a merge key (<<)"),
        ("x: &x {a: 1}\n<<: *x", "the YAML anchor &x in line 1", "the YAML anchor &x in line 1"),
        ("x: &x {a: 1}\n<<: *x\na: 2", "", ""),
        ("<<: [{b: 1}, {a: 1}]", "a merge key (<<)", "a merge key (<<)"),
    ],
)
def test_what_shares_a_value(text: str, reached: str, shared: str) -> None:
    root = root_of(text)
    assert (reached_through(root, "a"), shared_through(root, "a")) == (reached, shared)


def test_block_and_flow_are_told_apart() -> None:
    root = root_of("a:\n  b: 1\nc: {d: 1}\ne:\n- 1\n")
    a, c, e = (behind(root.own[key].value) for key in "ace")
    assert isinstance(a, Mapping)
    assert (a.flow, a.column) == (False, 2)
    assert c.flow
    assert isinstance(e, Sequence)
    assert not e.flow


@pytest.mark.parametrize(("text", "expected"), [('{"a": 1}', True), ("{a: 1}", False), ('"a": 1\n', False)])
def test_json_is_recognised_by_its_keys(text: str, expected: bool) -> None:
    assert is_json(root_of(text)) is expected


@pytest.mark.parametrize("text", ["", "# nothing\n", "- 1\n", "word\n"])
def test_what_is_no_mapping_has_no_tree(text: str) -> None:
    assert nodes_of(text) is None


def test_scalars_know_their_quotes() -> None:
    root = root_of("a: 1\nb: '1'\nc: \"1\"\nd: |\n  1\n")
    values = [root.own[key].value for key in "abcd"]
    assert [value.style for value in values if isinstance(value, Scalar)] == ["", "'", '"', "|"]
