"""Rule files: what is refused and where, how they become a rulebook, how that is kept, and what the wheel holds."""

from __future__ import annotations

import marshal
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convlint.errors import RuleError
from convlint.linting.rule_examples import run_examples
from convlint.rulebook import cache as rule_cache
from convlint.rulebook.book import Rulebook, linked, load_rulebook
from convlint.rulebook.file import read_rule
from convlint.rulebook.folders import builtin_folder, rule_files

RULE = """\
code: XY100
name: odd-channels
title: Channels are odd
severity: warning
when: groups == 1
let: { even: "ceil_to(C, 2)" }
check: C % 2 == 0
message: "C={C} should be {even}"
at: C
fix:
  describe: "use C={even}"
  safety: unsafe
  set: { C: even }
loss: none
rationale: Pairs of channels travel together.
source: { document: house-rules, section: "1" }
examples:
  pass: [ { C: 4 } ]
  fail:
    - given: { C: 3 }
      message: "C=3 should be 4"
      severity: warning
      fixed: { C: 4 }
"""


def written(folder: Path, text: str, name: str = "rule.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def edited(old: str, new: str) -> str:
    assert RULE.count(old) == 1
    return RULE.replace(old, new)


def test_the_rule_that_the_defects_start_from(tmp_path: Path) -> None:
    rule = read_rule(written(tmp_path, RULE))
    assert [outcome.problem for outcome in run_examples(rule)] == [None, None]


MESSAGE = 'message: "C={C} should be {even}"'

DEFECTS: list[tuple[str, str, int, int, str]] = [
    ("title:", "tilte:", 1, 1, "unknown key"),
    ("loss: none", "lose: none", 14, 1, "unknown key 'lose' in a rule; did you mean 'loss'?"),
    ("code: XY100\n", "", 1, 1, "code is missing"),
    ("code: XY100", "code: 100", 1, 7, "code: capital letters and three or four digits"),
    ("code: XY100", "code: [XY100]", 1, 7, "code: must be text, not a list"),
    ("name: odd-channels", "name: Odd Channels", 2, 7, "name: lower-case words joined by hyphens"),
    ("name: odd-channels", "name: all", 2, 7, "name: lower-case words"),
    ("title: Channels are odd", "title:", 3, 7, "title: must be text, not nothing"),
    ("title: Channels are odd", "title: ''", 3, 8, "title: must be text, not empty"),
    ("severity: warning\nwhen", "severity: waring\nwhen", 4, 11, "severity: 'waring' is not one of error, warning"),
    ("when: groups == 1", "when: groupss == 1", 5, 7, "when: unknown name 'groupss'; did you mean 'groups'?"),
    ("when: groups == 1", "when: groups", 5, 7, "when: groups is a number, a truth belongs here"),
    ("when: groups == 1", "when: {}", 5, 7, "when: must be text, not a mapping"),
    ("when: groups == 1", "when: even == 2", 5, 7, "when: unknown name 'even'"),
    ('let: { even: "ceil_to(C, 2)" }', "let: [even]", 6, 6, "let must map names to expressions"),
    ("{ even: ", "{ _even: ", 6, 15, "let: '_even' cannot be a name here"),
    ("{ even: ", "{ gpu: ", 6, 13, "let: 'gpu' cannot be a name here"),
    ("{ even: ", "{ min: ", 6, 13, "let: 'min' cannot be a name here"),
    ("{ even: ", "{ C: ", 6, 11, "let: 'C' cannot be a name here"),
    ("{ even: ", "{ if: ", 6, 12, "let: 'if' cannot be a name here"),
    ('"ceil_to(C, 2)"', '"ceil_to(C)"', 6, 14, "let: even: ceil_to takes 2 arguments"),
    ("check: C % 2 == 0", "check: C % 2", 7, 8, "check: C % 2 is a number, a truth belongs here"),
    ("check: C % 2 == 0", "check: C % 2 = 0", 7, 8, "check: not an expression"),
    ("check: C % 2 == 0", "check: C ** 2 == 4", 7, 8, "check: BinOp is not part of the language"),
    ("check: C % 2 == 0", "check: __import__('os')", 7, 8, "check: unknown function '__import__'"),
    ("C={C} should", "C={c} should", 8, 10, "message: unknown name 'c' in a message; did you mean 'C'?"),
    ("C={C} should", "C={C + 1} should", 8, 10, "message: a message holds {names} only"),
    ("C={C} should", "C={ should", 8, 10, "message: a message holds {names} only"),
    ("C={C} should", "C={C:d} should", 8, 10, "message: 'd' is no format for a number"),
    ("C={C} should", "C={C:..f} should", 8, 10, "message: '..f' is no format for a number"),
    ("C={C} should", "C={layout:.1f} should", 8, 10, "message: layout is no number and takes no format"),
    (MESSAGE, "message: []", 8, 10, "message: a list holds 1 to 12 fragments, not 0"),
    (MESSAGE, "message: [ C is odd ]", 8, 12, "message: each fragment is a mapping of when and text"),
    (MESSAGE, "message: [ [ { text: x } ] ]", 8, 12, "message: each fragment is a mapping of when and text"),
    (MESSAGE, "message: [ { when: first } ]", 8, 12, "message: a fragment needs text"),
    (MESSAGE, "message: [ { text: x }, {} ]", 8, 25, "message: a fragment needs text"),
    (MESSAGE, "message: [ { txt: x } ]", 8, 14, "unknown key 'txt' in a fragment of message; did you mean 'text'?"),
    (MESSAGE, "message: [ { text: [ x ] } ]", 8, 20, "message: text: must be text, not a list"),
    (MESSAGE, "message: [ { text: '' } ]", 8, 20, "message: text: must be text, not empty"),
    (MESSAGE, 'message: [ { text: "{c}" } ]', 8, 20, "message: text: unknown name 'c' in a message; did you mean 'C'?"),
    (MESSAGE, 'message: [ { text: "{C + 1}" } ]', 8, 20, "message: text: a message holds {names} only"),
    (MESSAGE, "message: [ { when: C, text: x } ]", 8, 20, "message: when: C is a number, a truth belongs here"),
    (MESSAGE, "message: [ { when: [], text: x } ]", 8, 20, "message: when: must be text, not a list"),
    (MESSAGE, "message: [ { when: evn > 1, text: x } ]", 8, 20, "unknown name 'evn'; did you mean 'even'?"),
    (MESSAGE, "message: [ { when: first or, text: x } ]", 8, 20, "message: when: not an expression"),
    (MESSAGE, "message: [ " + ", ".join(["{ text: x }"] * 13) + " ]", 8, 10, "fragments, not 13"),
    (MESSAGE, "message: { text: x }", 8, 10, "message: must be text, not a mapping"),
    ("loss: none", "variants: [ { when: first, message: [] } ]", 14, 37, "message: a list holds 1 to 12 fragments"),
    ("loss: none", "join: { message: [ { when: first } ] }", 14, 20, "join: message: a fragment needs text"),
    ("loss: none", "join: { message: [ { when: count > 1, text: x } ] }", 14, 28, "unknown name 'count'"),
    (MESSAGE, MESSAGE + "\nlet: { given: 1 }", 9, 1, "duplicate key 'let'"),
    ("{ even: ", "{ given: ", 6, 15, "let: 'given' cannot be a name here"),
    ("{ even: ", "{ gcd: ", 6, 13, "let: 'gcd' cannot be a name here"),
    ("at: C", "at: channels", 9, 5, "at: unknown place 'channels'"),
    ("at: C", "at: { C: 3 }", 9, 10, "at: 3 is a number, a truth belongs here"),
    ('fix:\n  describe: "use C={even}"', "fix:", 11, 3, "fix needs describe"),
    ("safety: unsafe", "safety: maybe", 12, 11, "safety: 'maybe' is not one of safe, unsafe"),
    ("set: { C: even }", "set: { channels: even }", 13, 20, "set: unknown field 'channels'"),
    ("set: { C: even }", "set: { C: layout }", 13, 13, "set: C: layout is a text, a number belongs here"),
    ("set: { C: even }", "set: C", 13, 8, "set must map fields to expressions"),
    ("loss: none", "loss: tiles", 14, 7, "loss: 'tiles' is not one of fix, tile, wave, none; did you mean 'tile'?"),
    ("loss: none", "loss: { kind: tile }", 14, 7, "loss needs passes"),
    ("loss: none", "loss: { kind: tile, passes: [fwd] }", 14, 29, "loss: passes are fprop, dgrad, wgrad"),
    ("loss: none", "loss: { kind: tile, passes: [] }", 14, 29, "loss: passes are fprop, dgrad, wgrad"),
    ("loss: none", "join: { share: all }", 14, 7, "join needs message"),
    ("loss: none", "join: { share: some, message: x }", 14, 16, "share: 'some' is not one of all, any"),
    ("loss: none", "join: all", 14, 7, "join is a mapping"),
    ("loss: none", "scope: world", 14, 8, "scope: 'world' is not one of layer, edge, network"),
    ("loss: none", "opt_in: 1", 14, 9, "opt_in: '1' is not one of true, false"),
    ("loss: none", "yields_to: { a: b }", 14, 12, "yields_to: must be text, not a mapping"),
    ("loss: none", "variants: [ x ]", 14, 13, "a variant is a mapping"),
    ("loss: none", "variants: [ { message: x } ]", 14, 13, "a variant needs when"),
    ("loss: none", "variants: [ { when: first, check: first } ]", 14, 28, "unknown key 'check' in a variant"),
    ("loss: none", "loss: none\nloss: fix", 15, 1, "duplicate key 'loss'; first given on line 14"),
    ("loss: none", "loss: !!str none", 14, 7, "tags such as"),
    ("source: { document: house-rules, section: \"1\" }", "source: house-rules", 16, 9, "source is a mapping"),
    (', section: "1"', "", 16, 9, "source needs section"),
    (', section: "1"', ', section: "1", page: 3', 16, 48, "unknown key 'page' in source"),
    ("  pass: [ { C: 4 } ]\n", "", 18, 3, "examples needs pass"),
    ("[ { C: 4 } ]", "[]", 18, 9, "examples: at least one that should pass"),
    ("[ { C: 4 } ]", "{ C: 4 }", 18, 9, "examples: at least one that should pass"),
    ("[ { C: 4 } ]", "[ 4 ]", 18, 11, "examples: each is a mapping"),
    ("given: { C: 3 }", "give: { C: 3 }", 20, 7, "unknown key 'give' in an example; did you mean 'given'?"),
    ("- given: { C: 3 }\n      message", "- message", 20, 7, "examples: one that should fail needs given"),
    ("given: { C: 3 }", "given: 3", 20, 7, "examples: one that should fail needs given, a mapping"),
    ("fixed: { C: 4 }", "fixed: { channels: 4 }", 23, 26, "fixed: unknown field 'channels'"),
    ("fixed: { C: 4 }", "fixed: 4", 23, 14, "fixed must map fields to their new values"),
    ("      severity: warning\n", "      severity: bad\n", 22, 17, "severity: 'bad' is not one of"),
    ("code: XY100", "code: 'XY100", 24, 1, "is not valid YAML"),
    ("code: XY100", "code: \x07", 1, 7, "character U+0007 is not allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "column", "message"), DEFECTS)
def test_a_defective_rule_is_refused_at_its_place(
    old: str, new: str, line: int, column: int, message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, edited(old, new))
    with pytest.raises(RuleError) as caught:
        load_rulebook([str(tmp_path)])
    assert message in caught.value.message
    assert caught.value.path == path
    if message != "unknown key":
        assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"{path}:{caught.value.line}:{caught.value.column}: ")


@pytest.mark.parametrize(("text", "message"), [("", "a rule is a mapping"), ("- x", "a rule is a mapping")])
def test_no_rule_at_all(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(RuleError, match=message) as caught:
        load_rulebook([str(tmp_path)])
    assert (caught.value.path, caught.value.line) == (path, 1)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="is not a folder of rules"):
        load_rulebook([str(tmp_path / "nowhere")])
    with pytest.raises(RuleError, match=r"holds no rule \(\*\.yaml\)"):
        load_rulebook([str(tmp_path)])
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(RuleError, match="not a regular file"):
        load_rulebook([str(tmp_path)])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (edited("name: odd-channels", "name: other"), "code XY100 is taken by"),
        (edited("code: XY100", "code: XY101"), "name odd-channels is taken by"),
        (edited("XY100", "CL102").replace("odd-channels", "other"), "code CL102 is taken by"),
        (edited("XY100", "XY101").replace("odd-channels", "channel-alignment"), "name channel-alignment is taken by"),
        (
            edited("XY100", "XY101").replace("odd-channels", "other") + "yields_to: [XY109]\n",
            "yields_to: no rule XY109",
        ),
    ],
)
def test_codes_and_names_are_used_once(other: str, message: str, tmp_path: Path) -> None:
    written(tmp_path, RULE, "a.yaml")
    path = written(tmp_path, other, "b.yaml")
    with pytest.raises(RuleError) as caught:
        load_rulebook([str(tmp_path)])
    assert message in caught.value.message
    assert caught.value.path == path
    assert caught.value.line is not None
    assert "yaml:" in caught.value.message or "did you mean" in caught.value.message


def test_a_rule_yields_to_a_code_or_a_name(tmp_path: Path) -> None:
    written(tmp_path, RULE + "yields_to: [CL102, first-layer-channels]\n")
    rule = load_rulebook([str(tmp_path)]).find("odd-channels")
    assert rule is not None
    assert rule.yields_to == {"CL102", "CL103"}


def test_adding_a_rule_touches_one_file(tmp_path: Path) -> None:
    """A copy of the built-in folder with one more file in it holds one more rule, and no code names any rule."""
    folder = tmp_path / "rules"
    shutil.copytree(ROOT / "rules", folder)
    before = Rulebook(linked(map(read_rule, rule_files(str(folder)))))
    written(folder / "channels", RULE)
    after = Rulebook(linked(map(read_rule, rule_files(str(folder)))))
    assert [rule.info.code for rule in after.rules] == [*(rule.info.code for rule in before.rules), "XY100"]
    codes = {rule.info.code for rule in before.rules}
    for path in (ROOT / "convlint").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        quoted = [code for code in codes if f'"{code}"' in text or f"'{code}'" in text]
        assert not quoted, f"{path} hard-codes {quoted}"


def test_rules_are_found_by_code_and_name() -> None:
    rulebook = load_rulebook()
    assert rulebook.find("CL102") is rulebook.find("cl102") is rulebook.find("channel-alignment")
    assert rulebook.find("channel-alignment") is rulebook.find("Channel-Alignment")
    assert rulebook.find("CL1") is None
    assert "did you mean 'channel-alignment'?" in rulebook.suggestion("chanel-alignment")


# --- the examples of a rule


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        ("[ { C: 4 } ]", "[ { C: 5 } ]", ["should pass, but: C=5 should be 6", None]),
        ("given: { C: 3 }", "given: { C: 2 }", [None, "should fail, but passes"]),
        ("given: { C: 3 }", "given: { K: 3 }", [None, "should fail, but was skipped for want of C"]),
        ('message: "C=3 should be 4"', "message: other", [None, "message is 'C=3 should be 4', not 'other'"]),
        ("      severity: warning\n", "      severity: info\n", [None, "severity is 'warning', not 'info'"]),
        ("fixed: { C: 4 }", "fixed: { C: 6 }", [None, "fixed has C = 4, not 6"]),
        ("set: { C: even }", 'set: { C: "C + 2" }', [None, "fixed has C = 5, not 4"]),
        ("set: { C: even }", "set: { K: 8 }", [None, "fixed has C = 3, not 4"]),
        # a size that no layer can have is no fix
        ("set: { C: even }", 'set: { C: "0 - C" }', [None, "fixed has C = 3, not 4"]),
        ("set: { C: even }", 'set: { C: "1e12" }', [None, "fixed has C = 3, not 4"]),
    ],
)
def test_examples_that_do_not_hold(old: str, new: str, problems: list[str | None], tmp_path: Path) -> None:
    rule = read_rule(written(tmp_path, edited(old, new)))
    assert [outcome.problem for outcome in run_examples(rule)] == problems


def test_a_fix_must_mend(tmp_path: Path) -> None:
    text = edited("set: { C: even }", 'set: { C: "C + 2" }').replace("fixed: { C: 4 }", "fixed: { C: 5 }")
    rule = read_rule(written(tmp_path, text))
    assert [outcome.problem for outcome in run_examples(rule)] == [None, "still fails once fixed: C=5 should be 6"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("[ { C: 4 } ]", "[ { C: 0 } ]", 18, "C: must be at least 1, not 0"),
        ("given: { C: 3 }", "given: { chanels: 3 }", 20, "unknown key 'chanels'"),
        ("given: { C: 3 }", "given: { C: 3, gpu: a1000 }", 20, "unknown GPU 'a1000'"),
        ("set: { C: even }", 'set: { C: "C / 2" }', None, "sets C to 1.5, which is no whole number"),
        ("set: { C: even }", 'set: { dtype: "\'half\'" }', None, "sets dtype to 'half', which is not one of fp64"),
        ("set: { C: even }", 'set: { layout: "\'NHCW\'" }', None, "sets layout to 'NHCW', which is not one of NCHW"),
        ("check: C % 2 == 0", "check: C % (C - 3) == 9", None, "divides by zero: C % (C - 3) == 9"),
    ],
)  # fmt: skip
def test_examples_that_cannot_be_run(old: str, new: str, line: int | None, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, edited(old, new))
    rule = read_rule(path)
    with pytest.raises(RuleError) as caught:
        list(run_examples(rule))
    assert message in caught.value.message
    assert (caught.value.path, caught.value.line) == (path, line)


# --- rules as untrusted input

keys = st.sampled_from([*RULE.replace(":", " ").split(), "variants", "join", "scope", "yields_to", "opt_in", "or"])
values = st.recursive(
    st.sampled_from([*RULE.split(), "C + 1", "first", "gpu.sms > 3", "{C}", "C / K", "a100"])
    | st.integers()
    | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(keys, values, max_size=3), cut=st.integers(0, len(RULE)))
def test_any_rule_text_is_read_or_refused(changes: dict[str, Any], cut: int, tmp_path: Path) -> None:
    rule = {**yaml.safe_load(RULE), **changes}
    for text in (yaml.safe_dump(rule), RULE[:cut]):
        path = written(tmp_path, text)
        refused = None
        try:
            made = linked([read_rule(path)], load_rulebook().rules)[0]
            list(run_examples(made))
        except RuleError as error:
            refused = error
        assert refused is None or refused.path == path


# --- the cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CONVLINT_NO_CACHE", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "cache" / "convlint"


def reads(monkeypatch: pytest.MonkeyPatch, paths: list[str]) -> int:
    """How many rule files loading them reads."""
    read = []

    def counted(path: str) -> Any:
        read.append(path)
        return read_rule(path)

    monkeypatch.setattr("convlint.rulebook.file.read_rule", counted)
    rules = rule_cache.cached_rules(paths)
    monkeypatch.undo()
    assert [rule.path for rule in rules] == paths
    return len(read)


def test_the_cache_is_used_and_follows_every_change(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, RULE)

    def count(paths: list[str]) -> int:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
        return reads(monkeypatch, paths)

    assert count([path]) == 1
    assert count([path]) == 0
    status = Path(path).stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert [count([path]), count([path])] == [1, 0]
    second = written(tmp_path, RULE.replace("XY100", "XY101"), "second.yaml")
    assert [count([path, second]), count([path, second])] == [2, 0]


def checked(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little") + data


@pytest.mark.parametrize(
    "garbage",
    [
        b"", b"x", b"\x00" * 100, bytes(range(256)) * 8, checked(marshal.dumps(3)),
        checked(marshal.dumps(("key", []))), checked(marshal.dumps(([], 3, 4))),
    ],
)  # fmt: skip
def test_garbage_in_the_cache_costs_only_time(garbage: bytes, cache: Path) -> None:
    expected = [rule.info for rule in load_rulebook().rules]
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    for content in (garbage, whole[: len(whole) // 2], whole[:-1] + b"\x00" + whole[-1:]):
        file.write_bytes(content)
        assert [rule.info for rule in load_rulebook().rules] == expected
        assert len(file.read_bytes()) == len(whole)


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.delenv("CONVLINT_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_rulebook().rules
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CONVLINT_NO_CACHE", "1")
    assert load_rulebook().rules
    assert not (tmp_path / "cache").exists()


# --- the package


def test_the_wheel_holds_exactly_the_rules_and_data_of_the_repository(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("convlint", "rules"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path / "dist"),
        str(copy),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    def files(folder: str, prefix: str) -> set[str]:
        base = copy / folder
        found = [path for path in base.rglob("*") if path.suffix in (".py", ".yaml") or path.name == "py.typed"]
        return {f"{prefix}/{path.relative_to(base).as_posix()}" for path in found}

    assert held == files("convlint", "convlint") | files("rules", "convlint_rules")
    assert len([name for name in held if name.startswith("convlint_rules/") and name.endswith(".yaml")]) == len(
        rule_files(builtin_folder())
    )
