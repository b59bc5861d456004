"""Patterns for paths and names: what they match, that they match as fnmatch does, and that none takes long."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from command_line import convlint
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import BAD

from convlint.config.path_patterns import PathPattern
from convlint.files.globs import name_expression, path_expression


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("vendor", "vendor/a.yaml", True),
        ("vendor", "x/vendor/y/a.yaml", True),
        ("vendor", "vendored/a.yaml", False),
        ("*.gen.yaml", "x/a.gen.yaml", True),
        ("x/*.yaml", "x/a.yaml", True),
        ("x/*.yaml", "y/x/a.yaml", False),
        ("x/*.yaml", "x/y/a.yaml", False),
        ("./x/", "x/y/a.yaml", True),
        ("x/**/a.yaml", "x/a.yaml", True),
        ("x/**/a.yaml", "x/y/z/a.yaml", True),
        ("**/z/**", "x/y/z/a.yaml", True),
        ("x/**/b.yaml", "x/y/z/a.yaml", False),
        ("*", "../a.yaml", False),
        ("/", "a.yaml", False),
        ("[", "a.yaml", False),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert PathPattern(str(Path.cwd()), pattern).matches(path) is expected


def test_no_pattern_takes_long() -> None:
    hostile = PathPattern(str(Path.cwd()), "/".join(["**", "*a*a*a*a*a*b"] * 40))
    assert not hostile.matches("/".join(["a" * 60] * 60))


def _matches(parts: list[str], wanted: list[str], *, below: bool) -> bool:
    """What a pattern means, spelled out; takes any time."""
    if not wanted:
        return below or not parts
    if wanted[0] == "**":
        if len(wanted) == 1:
            return below or bool(parts)
        return any(_matches(parts[start:], wanted[1:], below=below) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:], below=below)


_part_globs = st.sampled_from(["**", "a", "*", "b*", "?", "[ab]", "*a", "a*b", "[!a]*"])
_parts = st.sampled_from(["a", "b", "ab", "ba", "aab"])


@settings(max_examples=500)
@given(st.lists(_part_globs, min_size=1, max_size=6), st.lists(_parts, min_size=1, max_size=8), st.booleans())
def test_paths_match_as_their_meaning_is_spelled_out(wanted: list[str], parts: list[str], below: bool) -> None:
    found = path_expression(tuple(wanted), below=below).match("/" + "/".join(parts))
    assert bool(found) is _matches(parts, wanted, below=below)


HOSTILE = {
    "stars": "*a" * 250, "stars and an end": "*a" * 249 + "b", "questions": "?*" * 250, "sets": "*[ab]" * 99 + "c",
    "brackets": "[" * 500, "open sets": "[!" * 250, "a long piece": "*" + "a" * 498 + "b",
    "a long piece of questions": "*" + "?" * 498 + "b", "parts": "**/" * 166, "parts with names": "**/a/" * 100,
    "parts and an end": "**/" + "a/" * 200 + "b", "stars in parts": "**/*a*a*b/" * 45,
    "mixed": "**/" + "*a/" * 160 + "b",
    "thirty stars": "*" * 30 + "x", "stars apart": "*a" * 30 + "x", "nested sets": "[[a]" * 120,
    "ranges": "[z-a]*" * 80,
}  # fmt: skip


@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE)
def test_no_hostile_pattern_takes_long(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    paths = ("/".join(["a" * 250] * 16), "/".join(["a"] * 2048), "a" * 4096, "/".join(["ab" * 20] * 99))
    start = time.process_time()
    for path in paths:
        PathPattern("/", pattern).matches(path)
        path_expression(tuple(part for part in pattern.split("/") if part), below=False).match(f"/{path}")
        name_expression(pattern).match(path)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("key", ["include", "exclude", "per-file-ignores", "layers", "command line"])
@pytest.mark.parametrize("pattern", ["*a" * 30 + "*x", "*[a-z]" * 30 + "0", "?*" * 60 + "1", "**/" * 60 + "x"])
def test_no_hostile_pattern_takes_long_wherever_it_stands(
    key: str, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a" * 200 + ".yaml").write_text(BAD.replace("name: odd", f"name: {'a' * 200}"))
    text = {
        "per-file-ignores": f'[per-file-ignores]\n"{pattern}" = "CL102"',
        "layers": f'[[per-layer-ignores]]\nlayers = "{pattern}"\nrules = "ALL"\nreason = "x"',
    }.get(key, f'{key} = ["{pattern}"]' if key != "command line" else "")
    Path("convlint.toml").write_text(text)
    start = time.process_time()
    ran = convlint("check", pattern if key == "command line" else ".")
    assert ran.code in (1, 3)
    assert time.process_time() - start < 10


def test_a_pattern_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = convlint("check", "*" * 501)
    assert (ran.code, "is longer than 500 characters" in ran.err) == (2, True)
    Path("convlint.toml").write_text(f"exclude = ['{'*' * 501}']")
    Path("bad.yaml").write_text(BAD)
    ran = convlint("check", "bad.yaml")
    assert (ran.code, "must be 1 to 500 characters long" in ran.err) == (2, True)
