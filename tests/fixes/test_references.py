"""What else refers to a value keeps it: names, inputs, elements of lists, keys."""

from __future__ import annotations

import pytest
from fixed_specs import fixed, refused

from convlint.fixes.references import foreign_references
from convlint.fixes.yaml_nodes import behind, nodes_of

REST = "C: 8, H: 9, W: 9"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{K: &k 3, R: 3, S: 3, REST, padding: [*k, 0]}", "{K: &k 64, R: 3, S: 3, REST, padding: [3, 0]}"),
        ("{K: &k 3, R: 3, S: 3, REST, padding: {top: *k}}", "{K: &k 64, R: 3, S: 3, REST, padding: {top: 3}}"),
        ("{K: &k 3, R: 3, S: 3, REST, name: *k }", "{K: &k 64, R: 3, S: 3, REST, name: 3 }"),
        ("{R: 3, S: 3, REST, scale: &k 3, K: *k}", "{R: 3, S: 3, REST, scale: &k 3, K: 64}"),
        ("{R: 3, S: 3, REST, padding: [&k 3, 0], K: *k}", "{R: 3, S: 3, REST, padding: [&k 3, 0], K: 64}"),
    ],
)
def test_others_keep_what_they_say(before: str, after: str) -> None:
    before, after = (f"version: 1\nlayers:\n  - {text.replace('REST', REST)}\n" for text in (before, after))
    assert fixed(before, (0, "K", 64)) == after


def test_the_version_is_no_stride() -> None:
    before = f"version: &v 1\nlayers:\n  - {{K: 8, kernel_size: 3, stride: *v, {REST}}}\n"
    assert fixed(before, (0, "U", 2), (0, "V", 2)) == before.replace("*v", "2")


def test_a_part_of_a_list_that_others_refer_to_stays() -> None:
    text = f"version: 1\nlayers:\n  - {{K: *k, R: 3, S: 3, {REST}}}\n".replace("K: *k", "padding: [&k 3, 0], K: *k")
    assert refused(text, (0, "PadH", 2)) == ["an alias refers to a part of it"]


def test_what_lies_under_x_keys_counts_where_it_is_used() -> None:
    tree = nodes_of("x-a: &a 1\nx-b: {c: *a}\nd: {e: &e 2}\nf: [*e, *e]\n")
    assert tree is not None
    e = behind(tree.root.own["d"].value).own["e"].value
    foreign = foreign_references(tree, ())
    assert foreign.direct == {e}
    assert {target: len(aliases) for target, aliases in foreign.aliases.items()} == {e: 2}
    d = behind(tree.root.own["d"].value).own["e"]
    assert foreign_references(tree, {d}).direct == set()


def test_an_alias_of_an_alias_of_a_list_is_looked_into_once() -> None:
    text = "x0: &x0 [1]\n" + "".join(f"x{n}: &x{n} [*x{n - 1}, *x{n - 1}]\n" for n in range(1, 25))
    tree = nodes_of(text)
    assert tree is not None
    assert sum(map(len, foreign_references(tree, ()).aliases.values())) == 48
