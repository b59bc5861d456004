"""Each node knows its characters: without its anchor, with its quotes, whatever stands around it."""

from __future__ import annotations

import pytest

from convlint.files.located_yaml import LINE_BREAK, parse
from convlint.fixes.yaml_nodes import Mapping, Node, Scalar, Sequence, YamlTree, behind, nodes_of


def tree(text: str) -> YamlTree:
    found = nodes_of(text)
    assert found is not None
    return found


def at(text: str, *steps: str | int) -> str:
    """The characters of the node that these keys and positions lead to."""
    node: Node = tree(text).root
    for step in steps:
        target = behind(node)
        node = target.items[step] if isinstance(step, int) else target.found[step].value
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
    root = tree(text).root
    c = behind(root.own["c"].value)
    assert list(c.own) == ["z"]
    assert {key: behind(entry.value).text for key, entry in c.found.items()} == {"x": "1", "y": "2", "z": "5", "w": "6"}
    assert [entry is c.found["y"] for entry in behind(root.own["a"].value).entries] == [False, True]
    assert c.sources[:2] == [behind(root.own["a"].value), behind(root.own["b"].value)]


def test_an_anchor_given_twice_is_the_last_before_its_alias() -> None:
    assert behind(tree("a: &x 1\nb: *x\nc: &x 2\nd: *x\n").root.own["d"].value).text == "2"


def test_what_aliases_refer_to_is_marked() -> None:
    found = tree("a: &x 1\nb: &y 2\nc: *x\n")
    assert [behind(found.root.own[key].value).aliased for key in "ab"] == [True, False]
    assert found.aliases
    assert not tree("a: &x 1\n").aliases


def test_block_and_flow_are_told_apart() -> None:
    root = tree("a:\n  b: 1\nc: {d: 1}\ne:\n- 1\n").root
    a, c, e = (behind(root.own[key].value) for key in "ace")
    assert isinstance(a, Mapping)
    assert (a.flow, a.column) == (False, 2)
    assert c.flow
    assert isinstance(e, Sequence)
    assert not e.flow


def test_merged_mappings_end_before_those_that_merge_them() -> None:
    found = tree("a: &a {x: 1}\nb: {c: {<<: *a}}\n")
    assert [list(mapping.found) for mapping in found.mappings] == [["x"], ["x"], ["c"], ["a", "b"]]


@pytest.mark.parametrize(("text", "expected"), [('{"a": 1}', True), ("{a: 1}", False), ('"a": 1\n', False)])
def test_json_is_recognised_by_its_keys(text: str, expected: bool) -> None:
    assert tree(text).json is expected


@pytest.mark.parametrize("text", ["", "# nothing\n", "- 1\n", "word\n"])
def test_what_is_no_mapping_has_no_tree(text: str) -> None:
    assert nodes_of(text) is None


def test_scalars_know_their_quotes() -> None:
    root = tree("a: 1\nb: '1'\nc: \"1\"\nd: |\n  1\n").root
    values = [root.own[key].value for key in "abcd"]
    assert [value.style for value in values if isinstance(value, Scalar)] == ["", "'", '"', "|"]
