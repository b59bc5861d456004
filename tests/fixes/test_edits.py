"""Edits are applied where they belong, and never two in one place."""

import random
import subprocess
from pathlib import Path

import pytest
from fixed_specs import fixed

from convlint.fixes.edits import Edit, Places, applied, unified
from convlint.model.location import TextEdit


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        ([], "0123456789"),
        ([Edit(2, 4, "ab")], "01ab456789"),
        ([Edit(8, 9, ""), Edit(0, 1, "xyz")], "xyz12345679"),
        ([Edit(3, 3, "+")], "012+3456789"),
        ([Edit(10, 10, "+"), Edit(0, 0, "-")], "-0123456789+"),
        ([Edit(2, 4, "a"), Edit(4, 4, "+"), Edit(4, 5, "b")], "01a+b56789"),
    ],
)
def test_each_edit_replaces_its_characters(edits: list[Edit], after: str) -> None:
    assert applied("0123456789", edits) == after


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(2, 4, "a"), Edit(3, 5, "b")],
        [Edit(2, 4, "a"), Edit(2, 4, "a")],
        [Edit(2, 5, "a"), Edit(3, 3, "b")],
        [Edit(3, 3, "a"), Edit(3, 3, "b")],
        [Edit(9, 11, "a")],
        [Edit(-1, 1, "a")],
        [Edit(4, 2, "a")],
    ],
)
def test_what_overlaps_or_leaves_the_text_is_refused(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match="edit"):
        applied("0123456789", edits)


def place(text: str, start: int, end: int) -> tuple[int, int, int, int]:
    edit = Places(text).text_edit(Edit(start, end, "new"), "net.yaml")
    assert (edit.path, edit.text) == ("net.yaml", "new")
    return edit.line, edit.column, edit.end_line, edit.end_column


@pytest.mark.parametrize(
    ("text", "start", "end", "expected"),
    [
        ("", 0, 0, (1, 1, 1, 1)),
        ("abc", 1, 2, (1, 2, 1, 3)),
        ("abc", 3, 3, (1, 4, 1, 4)),
        ("ab\ncd\n", 2, 2, (1, 3, 1, 3)),  # before the line break
        ("ab\ncd\n", 3, 3, (2, 1, 2, 1)),  # behind it
        ("ab\ncd\n", 1, 4, (1, 2, 2, 2)),
        ("ab\ncd\n", 6, 6, (3, 1, 3, 1)),
        ("ab\r\ncd", 2, 2, (1, 3, 1, 3)),
        ("ab\r\ncd", 4, 6, (2, 1, 2, 3)),
        ("ü🙂\tx", 3, 4, (1, 4, 1, 5)),  # a character is one column, beyond U+FFFF too
    ],
)
def test_places(text: str, start: int, end: int, expected: tuple[int, int, int, int]) -> None:
    assert place(text, start, end) == expected


@pytest.mark.parametrize("text", ["", "a", "a\nb\n", "a\r\nb", "a\x0bb\x0c"])
def test_lines_that_all_count_alike(text: str) -> None:
    assert Places(text).are_plain


@pytest.mark.parametrize("text", ["a\rb", "a\r", "a\r\r\nb", "a\x85b", "# \u2028", "\u2029"])
def test_lines_that_some_count_otherwise(text: str) -> None:
    assert not Places(text).are_plain


def test_edits_are_values() -> None:
    edit = Places("ab").text_edit(Edit(0, 2, ""), "p")
    assert edit == TextEdit(path="p", line=1, column=1, end_line=1, end_column=3, text="")


OLD = "".join(f"line {n}\n" for n in range(1, 21))


def test_no_change_no_diff() -> None:
    assert unified(OLD, OLD, "x") == []
    assert unified("", "", "x") == []


def test_hunks_have_context_and_join_where_it_meets() -> None:
    new = OLD.replace("line 3\n", "third\n").replace("line 10\n", "tenth\n").replace("line 18\n", "eighteenth\nmore\n")
    assert unified(OLD, new, "net.yaml") == [
        "--- net.yaml\n", "+++ net.yaml\n",
        "@@ -1,13 +1,13 @@\n", " line 1\n", " line 2\n", "-line 3\n", "+third\n",
        *(f" line {n}\n" for n in range(4, 10)), "-line 10\n", "+tenth\n", *(f" line {n}\n" for n in range(11, 14)),
        "@@ -15,6 +15,7 @@\n", *(f" line {n}\n" for n in range(15, 18)),
        "-line 18\n", "+eighteenth\n", "+more\n", " line 19\n", " line 20\n",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb", "a\nc"),
        ("a\nb\n", "a\nb"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("", "a\n"),
        ("a\n", ""),
        ("a\n\n\n", "b\n\n\n\n"),
    ],
)
def test_patch_reads_it(old: str, new: str, tmp_path: Path) -> None:
    assert patched(old, new, tmp_path) == new


def test_the_end_without_a_line_break_is_said() -> None:
    assert unified("a", "b\n", "x")[3:] == ["-a\n\\ No newline at end of file\n", "+b\n"]


@pytest.mark.slow
def test_patch_reads_any(tmp_path: Path) -> None:
    rng = random.Random(5)
    for _ in range(60):
        old = [f"{rng.choice('abcd')}\n" for _ in range(rng.randrange(40))]
        new = list(old)
        for _ in range(rng.randrange(6)):
            at = rng.randrange(len(new) + 1)
            new[at : at + rng.randrange(2)] = [f"{rng.choice('abcdef')}\n"] * rng.randrange(3)
        assert patched("".join(old), "".join(new), tmp_path) == "".join(new)


def test_long_files_may_change_everywhere() -> None:
    old = "".join(f"  - {{ name: l{n}, K: {60 + n % 7} }}\n" for n in range(20_000))
    lines = unified(old, old.replace("K: 6", "K: 16"), "x")
    assert sum(line.startswith("+  ") for line in lines) == 20_000


def patched(old: str, new: str, folder: Path) -> str:
    """What git makes of `old` by the diff."""
    (folder / "x").write_bytes(old.encode())
    diff = "".join(unified(old, new, "x"))
    if not diff:
        return old
    command = ["git", "-c", "core.autocrlf=false", "apply", "-p0", "--whitespace=nowarn", "-"]
    subprocess.run(command, input=diff.encode(), cwd=folder, check=True)
    done = folder / "x"
    return done.read_bytes().decode() if done.exists() else ""


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
