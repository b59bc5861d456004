"""A new key stands beside its neighbours, in their style, and takes no comment along."""

from __future__ import annotations

import pytest
from fixed_specs import fixed

HEAD = "version: 1\nlayers:\n  - "
REST = "C: 8, H: 9, W: 9, kernel_size: 3"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{C: 8, H: 9, W: 9, kernel_size: 3, K: 8}", "{C: 8, H: 9, W: 9, kernel_size: 3, K: 8, groups: 2}"),
        ("{ REST, K: 8 }  # c", "{ REST, K: 8, groups: 2 }  # c"),
        ("{REST,K: 8,}", "{REST,K: 8,groups: 2,}"),
        ("{REST , K: 8}", "{REST , K: 8 , groups: 2}"),
        ("{\n    REST,\n    K: 8\n  }", "{\n    REST,\n    K: 8,\n    groups: 2\n  }"),
        ("{\n    REST,\n    K: 8,\n  }", "{\n    REST,\n    K: 8,\n    groups: 2,\n  }"),
        ("{\n    REST,\n    K: 8 # c, }\n  }", "{\n    REST,\n    K: 8, groups: 2 # c, }\n  }"),
        ("{\n    REST, # a\n    K: 8\n  }", "{\n    REST, # a\n    K: 8, groups: 2\n  }"),
        ("{\n\tREST,\n\tK: 8\n  }", "{\n\tREST,\n\tK: 8,\n\tgroups: 2\n  }"),
        ("{REST, K: 8, scale: }", "{REST, K: 8, groups: 2, scale: }"),
        ("{REST, K: 8, padding: [1,\n 1]}", "{REST, K: 8, padding: [1,\n 1], groups: 2}"),
        ("&a {REST, K: 8}", "&a {REST, K: 8, groups: 2}"),
        ('{"C":8,"H":9,"W":9,"K":8,"kernel_size":3}', '{"C":8,"H":9,"W":9,"K":8,"kernel_size":3,"groups":2}'),
    ],
)
def test_flow(before: str, after: str) -> None:
    before, after = (HEAD + text.replace("REST", REST) + "\n" for text in (before, after))
    assert fixed(before, (0, "groups", 2)) == after


BLOCK = "K: 8\n    C: 8\n    H: 9\n    W: 9\n    kernel_size: 3"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("BLOCK\n", "BLOCK\n    groups: 2\n"),
        ("BLOCK", "BLOCK\n    groups: 2"),
        ("BLOCK # c\n", "BLOCK # c\n    groups: 2\n"),
        ("BLOCK\t# c\n    # d\n", "BLOCK\t# c\n    groups: 2\n    # d\n"),
        ("BLOCK\n    padding:\n      - 1\n      - 1\n", "BLOCK\n    groups: 2\n    padding:\n      - 1\n      - 1\n"),
        ("BLOCK\n    padding: [1,\n      1] # c\n", "BLOCK\n    padding: [1,\n      1] # c\n    groups: 2\n"),
        ("BLOCK\n    scale:\n", "BLOCK\n    groups: 2\n    scale:\n"),
        ("BLOCK\n    dtype: >-\n      fp16\n", "BLOCK\n    groups: 2\n    dtype: >-\n      fp16\n"),
        ("&a # anchored\n    BLOCK\n", "&a # anchored\n    BLOCK\n    groups: 2\n"),
        ("# above\n    BLOCK\n", "# above\n    BLOCK\n    groups: 2\n"),
        ("BLOCK\n    ? bias\n    : true # c\n", "BLOCK\n    ? bias\n    : true # c\n    groups: 2\n"),
        ("BLOCK\n...\n", "BLOCK\n    groups: 2\n...\n"),
        ("BLOCK\n\n  - {K: 1, kernel_size: 1}\n", "BLOCK\n    groups: 2\n\n  - {K: 1, kernel_size: 1}\n"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_block(before: str, after: str, newline: str) -> None:
    before, after = ((HEAD + text.replace("BLOCK", BLOCK)).replace("\n", newline) for text in (before, after))
    assert fixed(before, (0, "groups", 2)) == after


def test_a_first_line_is_made_where_no_value_stands_on_its_line() -> None:
    head = "version: 1\ndefaults: {C: 8, H: 9, W: 9, K: 8, kernel_size: 3}\nlayers:\n  - "
    before = head + "padding:\n      - 1\n      - 1\n"
    assert fixed(before, (0, "groups", 2)) == head + "groups: 2\n    padding:\n      - 1\n      - 1\n"
    before = head + "? padding\n    :\n      - 1\n      - 1\n"
    assert fixed(before, (0, "groups", 2)) == head + "groups: 2\n    ? padding\n    :\n      - 1\n      - 1\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", "{groups: 2}"), ("{ }", "{ groups: 2 }"), ("&a {}", "&a {groups: 2}"),
        ("{scale: }", "{groups: 2, scale: }"), ("{<<: {bias: true}}", "{<<: {bias: true}, groups: 2}"),
    ],
)  # fmt: skip
def test_a_layer_that_says_nothing(before: str, after: str) -> None:
    head = "version: 1\ndefaults: {C: 8, H: 9, W: 9, K: 8, kernel_size: 3}\nlayers:\n  - "
    assert fixed(head + before + "\n", (0, "groups", 2)) == head + after + "\n"
