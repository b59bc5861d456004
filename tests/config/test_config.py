"""Configs: which one holds, what it says, who beats it, and how a wrong one is refused."""

from __future__ import annotations

import os
import re
import socket
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from command_line import convlint
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import BAD, GOOD, HEAD, ODD

from convlint.config.find import Configs, config_in, may_configure
from convlint.config.keys import KEYS
from convlint.config.path_patterns import PathPattern
from convlint.config.toml_source import TomlSource, key_offsets, position
from convlint.errors import UsageError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    Path("bad.yaml").write_text(BAD)


def codes(*arguments: str) -> list[str]:
    """Codes of the findings that these tests are about, in the order of the concise report."""
    ran = convlint("check", *arguments, "-o", "concise")
    return re.findall(r": (?:error|warning|info) (CL102|CL006|CL903|XX\d+) ", ran.out)


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


# --- which config holds


def test_the_closest_config_upward_holds_alone() -> None:
    write("convlint.toml", 'ignore = ["CL102"]\n')
    write("deep/er/bad.yaml", BAD)
    assert codes("deep/er/bad.yaml") == ["CL006"]
    write("deep/convlint.toml", 'ignore = ["CL006"]\n')
    assert codes("deep/er/bad.yaml") == ["CL102"]


def test_each_input_has_its_own_config() -> None:
    write("a/convlint.toml", 'ignore = ["CL102"]\n')
    write("b/convlint.toml", 'ignore = ["CL006"]\nfail-on = "never"\n')
    write("a/bad.yaml", BAD)
    write("b/bad.yaml", BAD)
    assert sorted(codes("a/bad.yaml", "b/bad.yaml")) == ["CL006", "CL102"]
    assert convlint("check", "b/bad.yaml").code == 0
    write("c/convlint.toml", 'fail-on = "info"\n')
    write("c/bad.yaml", BAD)
    assert convlint("check", "b/bad.yaml", "c/bad.yaml").code == 1


def test_pyproject_counts_only_with_its_table() -> None:
    write("pyproject.toml", '[tool.convlint]\nignore = ["CL102"]\n')
    write("sub/pyproject.toml", '[tool.other]\nx = 1\n[project]\ndependencies = ["convlint"]\n')
    write("sub/bad.yaml", BAD)
    assert codes("sub/bad.yaml") == ["CL006"]


@pytest.mark.parametrize(
    "text",
    [
        '[tool.convlint]\nignore = ["CL102"]\n',
        '[tool]\nconvlint = { ignore = ["CL102"] }\n',
        'tool.convlint.ignore = ["CL102"]\n',
        '[tool."convlint"]\nignore = "CL102"\n',
        '\ufeff[ tool . convlint ]\r\nignore = ["CL102"]\r\n',
    ],
)
def test_every_way_to_write_the_table_is_found(text: str) -> None:
    Path("pyproject.toml").write_text(text, newline="")
    assert codes("bad.yaml") == ["CL006"]


def test_a_broken_pyproject_without_the_table_is_none_of_our_business() -> None:
    write("pyproject.toml", "[project\nname =")
    assert codes("bad.yaml") == ["CL102", "CL006"]


def test_own_file_beats_pyproject_beside_it() -> None:
    write("convlint.toml", 'ignore = ["CL102"]\n')
    write("pyproject.toml", '[tool.convlint]\nignore = ["CL006"]\n')
    assert codes("bad.yaml") == ["CL006"]


def test_standard_input_starts_from_the_current_folder() -> None:
    write("convlint.toml", 'ignore = ["CL102", "CL006"]\n')
    assert convlint("check", "-", stdin=BAD).code == 0
    assert convlint("check", "-", "--isolated", stdin=BAD).code == 1


def test_one_config_for_all() -> None:
    write("convlint.toml", 'ignore = ["CL102"]\n')
    write("other.toml", 'ignore = ["CL006"]\n')
    assert codes("bad.yaml", "--config", "other.toml") == ["CL102"]
    assert codes("bad.yaml", "--no-config") == ["CL102", "CL006"]
    assert convlint("check", "bad.yaml", "--config", "other.toml", "--isolated").code == 2


def test_layer_reads_the_config_too() -> None:
    sizes = [f"-{letter}{size}" for letter, size in zip("NCKHWRS", (256, 62, 128, 56, 56, 3, 3), strict=True)]
    flags = ["layer", *sizes, "--pad", "1", "--dtype", "fp16", "--layout", "NHWC"]
    assert convlint(*flags).code == 1
    write("convlint.toml", 'fail-on = "error"\n')
    assert convlint(*flags).code == 0
    assert convlint(*flags, "--fail-on", "warning").code == 1


# --- extend


def test_extend_replaces_values_and_joins_exceptions() -> None:
    write("base/base.toml", 'ignore = ["CL102"]\nseverity = { CL006 = "error" }\nfail-on = "never"\nmin-loss = 5\n')
    write(
        "convlint.toml", 'extend = "base/base.toml"\nignore = ["CL506"]\nseverity = { CL102 = "info" }\nmin-loss = 0\n'
    )
    config = Configs().of("bad.yaml")
    assert [word.text for word in config.ignore] == ["CL506"]
    assert {word.text: severity for word, severity in config.severity} == {"CL006": "error", "CL102": "info"}
    assert (config.fail_on, config.min_loss) == ("never", 0)
    assert str(config.spots["fail-on"].place()).endswith("base/base.toml:3:1")


def test_extend_from_pyproject_and_paths_relative_to_the_parent() -> None:
    write("base/pyproject.toml", '[tool.convlint]\nexclude = ["old"]\n')
    write("project/convlint.toml", 'extend = "../base/pyproject.toml"\n')
    config = Configs().of("project/bad.yaml")
    assert config.exclude == (PathPattern(str(Path("base").absolute()), "old"),)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"convlint.toml": 'extend = "convlint.toml"'}, "convlint.toml:1:1: extend goes round in a circle"),
        ({"convlint.toml": 'extend = "b.toml"', "b.toml": 'extend = "./convlint.toml"'}, "b.toml:1:1: extend goes"),
        ({"convlint.toml": '\nextend = "bse.toml"', "base.toml": ""}, "2:1: extend: 'bse.toml' is no file; did you"),
        ({"convlint.toml": 'extend = "\\u0000"'}, "convlint.toml:1:1: extend: "),
        ({"convlint.toml": 'extend = "p/pyproject.toml"', "p/pyproject.toml": "[project]"}, "has no table [tool."),
    ],
)  # fmt: skip
def test_extends_that_lead_nowhere(files: dict[str, str], message: str) -> None:
    for path, text in files.items():
        write(path, text)
    ran = convlint("check", "bad.yaml")
    assert ran.code == 2
    assert message in ran.err


def test_a_chain_of_extends_has_an_end() -> None:
    for number in range(30):
        write(f"c{number}.toml", f'extend = "c{number + 1}.toml"\n')
    write("c30.toml", "")
    assert "extend goes on for more than 20 files" in convlint("check", "bad.yaml", "--config", "c0.toml").err


# --- what the keys do


def test_target_and_mode_are_defaults_that_an_input_may_overrule() -> None:
    write("convlint.toml", 'target = ["t4", "v100"]\nmode = "inference"\n')
    write("open.yaml", BAD.replace("target: [a100]\n", ""))
    assert " on t4, v100: " in convlint("check", "open.yaml").out
    assert " on a100: " in convlint("check", "bad.yaml").out
    assert " on h100: " in convlint("check", "open.yaml", "--gpu", "h100").out
    assert '"mode": "inference"' in convlint("check", "open.yaml", "-o", "json").out
    assert '"mode": "training"' in convlint("check", "open.yaml", "--mode", "training", "-o", "json").out


@pytest.mark.parametrize(
    ("config", "options", "expected"),
    [
        ('select = ["CL102"]', [], ["CL102"]),
        ('select = "channel-alignment"', [], ["CL102"]),
        ('select = ["CL1", "CL0"]\nignore = ["CL006"]', [], ["CL102"]),
        ('ignore = ["CL102"]', ["--select", "CL102"], ["CL102"]),
        ('ignore = ["CL102"]', ["--extend-select", "CL102"], ["CL102", "CL006"]),
        ('select = ["CL102", "CL101"]', ["--ignore", "CL102"], []),
        ('ignore = ["CL102"]', ["--ignore", "CL006"], []),
    ],
)
def test_selection(config: str, options: list[str], expected: list[str]) -> None:
    write("convlint.toml", config)
    assert codes("bad.yaml", *options) == expected


@pytest.mark.parametrize(
    ("config", "options"),
    [('ignore = ["ALL"]', []), ("select = []", []), ('select = ["CL102"]', ["--ignore", "CL102"])],
)
def test_a_selection_that_leaves_no_rule_is_refused(config: str, options: list[str]) -> None:
    write("convlint.toml", config)
    ran = convlint("check", "bad.yaml", *options)
    assert (ran.code, ran.out) == (2, "")
    assert "no rule is selected" in ran.err


def test_severity_fail_on_and_min_loss() -> None:
    write("convlint.toml", 'severity = { channel-alignment = "info", CL006 = "info" }\n')
    assert convlint("check", "bad.yaml").code == 0
    write("convlint.toml", 'min-loss = 100\nselect = ["CL102"]\n')
    assert convlint("check", "bad.yaml").code == 0
    assert convlint("check", "bad.yaml", "--min-loss", "0").code == 1


def test_rules_of_ones_own_are_found_relative_to_the_config() -> None:
    rule = ROOT / "rules" / "channels" / "channel-alignment.yaml"
    text = rule.read_text().replace("CL102", "XX102").replace("name: channel-alignment", "name: my-alignment")
    write("lint/rules/mine.yaml", text)
    write("convlint.toml", 'rules = ["lint/rules"]\nselect = ["XX102"]\n')
    write("sub/bad.yaml", BAD)
    assert codes("sub/bad.yaml") == ["XX102"]
    assert codes("sub/bad.yaml", "bad.yaml", "--jobs", "2") == ["XX102", "XX102"]


def test_ignores_per_file_and_per_layer_stay_visible() -> None:
    write(
        "convlint.toml",
        '[per-file-ignores]\n"sub/*.yaml" = ["CL102"]\n'
        '[[per-layer-ignores]]\nlayers = "od?"\nrules = "CL006"\nreason = "fixed by the task"\n',
    )
    write("sub/bad.yaml", BAD)
    assert codes("bad.yaml") == ["CL102"]
    assert codes("sub/bad.yaml") == []
    out = convlint("check", "sub/bad.yaml", "-o", "json").out
    assert '"reason": "fixed by the task"' in out
    assert '"reason": "per-file-ignores: sub/*.yaml"' in out
    assert '"kind": "external"' in convlint("check", "sub/bad.yaml", "-o", "sarif").out


def test_an_expired_ignore_counts_no_longer() -> None:
    entry = '[[per-layer-ignores]]\nlayers = "*"\nrules = ["CL102", "CL006"]\nreason = "later"\nexpires = '
    write("convlint.toml", entry + "2999-12-31\n")
    assert codes("bad.yaml") == []
    write("convlint.toml", entry + "2020-12-31\n")
    ran = convlint("check", "bad.yaml", "-o", "concise")
    assert sorted(codes("bad.yaml")) == ["CL006", "CL102", "CL903"]
    assert "convlint.toml:1:1: warning CL903" in ran.out
    assert "2020-12-31" in ran.out
    assert sorted(codes("bad.yaml", "--ignore", "CL903")) == ["CL006", "CL102"]


def test_include_and_exclude_hold_in_folders_only() -> None:
    write("convlint.toml", 'include = ["*.yaml"]\nexclude = ["old", "gen_*"]\n')
    for path in ("net/a.yaml", "net/b.yml", "net/old/c.yaml", "net/gen_d.yaml"):
        write(path, GOOD)
    assert " in 1 file on" in convlint("check", "net").out
    assert " in 2 files on" in convlint("check", "net", "net/old/c.yaml").out
    ran = convlint("check", "net/old")
    assert ran.code == 3
    assert "holds nothing to check" in ran.out
    assert convlint("check", "net/old", "--allow-empty").code == 0


def test_a_folder_holds_other_yaml_too() -> None:
    write("net/good.yaml", GOOD)
    write("net/.github.yaml", "on: push\n")
    write("net/compose.yaml", "services:\n  web:\n    layers:\n      - 1\n")
    write("net/serverless.yml", "service: x\nlayers:\n  hello:\n    path: y\n")
    write("net/keras.json", '{"config": {"layers": [1, 2]}, "a": [{"b": 1}]}')
    write(
        "net/spec.json",
        '{"version": 1, "x-a": {"layers": 1}, "layers": [{"name": "a", "C": 64, "K": 64, "R": 1, "S": 1}]}',
    )
    ran = convlint("check", "net", "-o", "concise")
    assert ran.code == 0
    assert "2 layers in 2 files" in ran.out
    named = convlint("check", "net/good.yaml", "net/compose.yaml")
    assert named.code == 3
    assert convlint("check", "net/good.yaml", "net/compose.yaml", "--specs-only").code == 0


def test_no_path_is_the_current_folder() -> None:
    assert "1 file on" in convlint("check").out


# --- wrong configs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = []", "1:1: unknown key 'selct'; did you mean 'select'?"),
        ("fail_on = 'error'", "1:1: unknown key 'fail_on'; did you mean 'fail-on'?"),
        ("\n  min-loss = 'x'", "2:3: must be a number, not text"),
        ("min-loss = nan", "1:1: must be from 0 to 100"),
        ("min-loss = true", "1:1: must be a number, not a boolean"),
        ("fail-on = 'warn'", "1:1: 'warn' is not one of error, warning, info, never; did you mean 'warning'?"),
        ("mode = 1", "1:1: must be text, not a number"),
        ("target = ['a100',\n 'h1000']", "2:2: unknown GPU 'h1000'; did you mean h100"),
        (
            "select = [ 'CL102', 'channel-alignmnt' ]",
            "1:21: unknown rule 'channel-alignmnt'; did you mean 'channel-alignment'?",
        ),
        ("ignore = [3]", "1:11: must be text, not a number"),
        ("ignore = ''", "1:1: must be 1 to 500 characters long"),
        ("[severity]\nCL999 = 'error'", "2:1: unknown rule 'CL999'"),
        ("[severity]\nCL102 = 'bad'", "2:1: 'bad' is not one of error, warning, info"),
        ("severity = 3", "1:1: must be a table, not a number"),
        ("[per-file-ignores]\n'*' = ['CL1O2']", "2:8: unknown rule 'CL1O2'; did you mean 'CL102'?"),
        ("per-layer-ignores = 3", "1:1: must be tables"),
        ("[[per-layer-ignores]]\nlayers = 'a'\nrules = 'CL102'", "1:1: reason is missing"),
        ("[[per-layer-ignores]]\nlayer = 'a'", "2:1: unknown key 'layer'; did you mean 'layers'?"),
        (
            "[[per-layer-ignores]]\nlayers = 'a'\nrules = 'CL102'\nreason = 'b'\nexpires = '2026-01-01'",
            "5:1: must be a date without quotes",
        ),
        ("a = [1,\n]]", "2:2: is not valid TOML"),
        ("a = 1\na = 2", "is not valid TOML"),
        ("a = " + "[" * 5000, "is nested too deep"),
        ("a = " + "9" * 5000, "is not valid TOML"),
        ("a = 'x", "is not valid TOML"),
        ("a = '\x00'", "is not valid TOML"),
        ("rules = ['nowhere']", "nowhere: is not a folder of rules"),
    ],
)
def test_wrong_configs_are_refused_with_their_place(text: str, message: str) -> None:
    write("convlint.toml", text)
    ran = convlint("check", "bad.yaml")
    assert ran.code == 2
    assert message in ran.err
    assert ran.out == ""
    assert ran.err.count("\n") == 1


def test_positions_count_in_pyproject_too() -> None:
    write("pyproject.toml", '[project]\nname = "x"\n\n[tool.convlint]\nselect = ["CL102"]\nselekt = 1\n')
    assert "pyproject.toml:6:1: unknown key 'selekt'" in convlint("check", "bad.yaml").err


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "convlint.toml").write_bytes(b"select = [\n '\xff' ]")
    assert "convlint.toml:2:3: is not UTF-8: byte 0xff" in convlint("check", "bad.yaml").err
    (tmp_path / "convlint.toml").write_bytes(b"#" * (2**20 + 1))
    assert "convlint.toml: is larger than 1 MiB" in convlint("check", "bad.yaml").err
    for path, problem in (("nowhere.toml", "does not exist"), (".", "is no file"), ("a\0b", "a")):
        ran = convlint("check", "bad.yaml", "--config", path)
        assert (ran.code, problem in ran.err) == (2, True)


def _socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)


def _sparse(path: str) -> None:
    Path(path).touch()
    os.truncate(path, 3 * 2**30)


ODD_FILES: dict[str, tuple[Callable[[str], object], str]] = {
    "folder": (os.mkdir, "is no file: it is a folder"),
    "pipe": (os.mkfifo, "is no file: it is a pipe"),
    "socket": (_socket, "is no file: it is a socket"),
    "device": (lambda path: os.symlink("/dev/zero", path), "is no file: it is a device"),
    "link to itself": (lambda path: os.symlink(os.path.basename(path), path), "cannot be read: Too many levels"),
    "link to nothing": (lambda path: os.symlink("nothing", path), "is a link to nothing"),
    "sparse": (_sparse, "is larger than"),
}


@pytest.mark.parametrize("kind", ODD_FILES)
@pytest.mark.parametrize("name", ["convlint.toml", "pyproject.toml", "sub/convlint.toml", "sub/pyproject.toml"])
def test_what_is_found_as_a_config_and_cannot_be_read_is_said(kind: str, name: str) -> None:
    write("sub/bad.yaml", BAD)
    make, message = ODD_FILES[kind]
    make(name)
    ran = convlint("check", "bad.yaml", "sub/bad.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert f"{name}: {message}" in ran.err
    assert convlint("check", "bad.yaml", "sub/bad.yaml", "--isolated").code == 1


@pytest.mark.parametrize("kind", ODD_FILES)
def test_a_named_config_or_an_extended_one_that_cannot_be_read(kind: str) -> None:
    make, message = ODD_FILES[kind]
    make("odd.toml")
    write("convlint.toml", 'extend = "odd.toml"')
    named, extended = convlint("check", "bad.yaml", "--config", "odd.toml"), convlint("check", "bad.yaml")
    assert (named.code, extended.code) == (2, 2)
    assert f"odd.toml: {message}" in named.err
    assert "is no file" in extended.err or message in extended.err


def test_a_config_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    write("pyproject.toml", "[project]")
    original = os.open

    def refusing(path: str, *arguments: Any, **options: Any) -> int:
        if str(path).endswith("pyproject.toml"):
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refusing)
    ran = convlint("check", "bad.yaml")
    assert ran.code == 2
    assert "pyproject.toml: cannot be read: Permission denied" in ran.err


def test_a_file_of_too_many_bytes_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    _sparse("pyproject.toml")

    def reading(*_: object) -> bytes:
        raise AssertionError("was read")

    monkeypatch.setattr(os, "read", reading)
    with pytest.raises(UsageError, match="is larger than 1 MiB"):
        Configs().of("bad.yaml")


def test_a_file_that_grows_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    write("convlint.toml", "# small")
    monkeypatch.setattr(os, "read", lambda _file, most: b"#" * min(most, 2**16))
    with pytest.raises(UsageError, match="is larger than 1 MiB"):
        Configs().of("bad.yaml")


MENTIONS = [
    "[tool.convlint]\nignore = 'CL102'",
    "[ tool\t. convlint ]\nignore = 'CL102'",
    "[\"tool\".'convlint']\nignore = 'CL102'",
    "['tool']\nconvlint.ignore = 'CL102'",
    "tool = { convlint = { ignore = 'CL102' } }",
    "tool = { x = [\n1,\n2], convlint.ignore = 'CL102' }",
    "tool.convlint.ignore = 'CL102'",
    "  'tool' . 'convlint' . 'ignore' = 'CL102'",
    '["\\u0074ool"."con\\u0076lint"]\nignore = "CL102"',
    '["t\\U0000006fol"."\\u0063\\u006f\\u006e\\u0076\\u006C\\u0069\\u006e\\u0074"]\nignore = "CL102"',
    "[tool]\n[tool.x]\na = 1\n[tool.convlint]\nignore = 'CL102'",
    "x = 'a' # [tool.\n[tool.\\\n'convlint']".replace("\\\n", "") + "\nignore = 'CL102'",
    "[project]\r\nname = 'x'\r\n[tool.convlint]\r\nignore = 'CL102'\r\n",
]


@pytest.mark.parametrize("text", MENTIONS)
def test_no_table_of_ours_is_missed(text: str) -> None:
    Path("pyproject.toml").write_text(text, newline="")
    assert tomllib.loads(text)["tool"]["convlint"] == {"ignore": "CL102"}
    assert codes("bad.yaml") == ["CL006"]


@given(st.lists(st.sampled_from(["plain", "u", "U"]), min_size=12, max_size=12), st.sampled_from(["'", '"', ""]))
def test_every_spelling_of_the_names_is_a_mention(ways: list[str], quote: str) -> None:
    names = "toolconvlint"
    letters = [
        letter if quote != '"' or way == "plain" else f"\\u{ord(letter):04x}" if way == "u" else f"\\U{ord(letter):08X}"
        for letter, way in zip(names, ways, strict=True)
    ]
    text = f"[{quote}{''.join(letters[:4])}{quote}.{quote}{''.join(letters[4:])}{quote}]\n"
    assert tomllib.loads(text) == {"tool": {"convlint": {}}}
    assert may_configure(text.encode())


@pytest.mark.parametrize("word", [b"tool ", b"[tool", b"tool\n", b"\\u0074", b"convlin", b"\\", b'"tool"', b"[", b" "])
def test_looking_for_the_table_takes_one_pass(word: bytes) -> None:
    start = time.process_time()
    assert not may_configure(word * (2**20 // len(word)))
    assert time.process_time() - start < 5


def test_extended_files_count_together() -> None:
    for number in range(3):
        write(f"c{number}.toml", f'extend = "c{number + 1}.toml"\n' + "#" * 300_000)
    write("c3.toml", "#" * 300_000)
    ran = convlint("check", "bad.yaml", "--config", "c0.toml")
    assert ran.code == 2
    assert "c3.toml: is larger than 1 MiB, counting the configs that extend it" in ran.err
    for number in range(3):
        write(f"c{number}.toml", f'extend = "c{number + 1}.toml"\nrules = [{"1," * 15_000}]')
    write("c3.toml", f"rules = [{'1,' * 15_000}]")
    ran = convlint("check", "bad.yaml", "--config", "c0.toml")
    assert ran.code == 2
    assert "c3.toml:1:" in ran.err
    assert "holds more than 50,000 keys and values, counting the configs that extend it" in ran.err


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (f"ignore = [{'`CL102`,' * 1_001}]", "1,000"),
        (f"target = [{'`a100`,' * 1_001}]", "1,000"),
        (f"exclude = [{'`a`,' * 201}]", "200"),
        (f"include = [{'`a`,' * 201}]", "200"),
        ("[per-file-ignores]\n" + "".join(f"`{number}` = `CL1`\n" for number in range(201)), "200"),
        ("[[per-layer-ignores]]\nlayers = `a`\nrules = `CL1`\nreason = `b`\n" * 201, "200"),
    ],
)
def test_lists_have_an_end(text: str, most: str) -> None:
    write("convlint.toml", text.replace("`", "'"))
    ran = convlint("check", "bad.yaml")
    assert ran.code == 2
    assert f"convlint.toml:1:1: must hold at most {most} entries" in ran.err


def test_inherited_entries_count_too() -> None:
    entry = "[[per-layer-ignores]]\nlayers = 'a'\nrules = 'CL1'\nreason = 'b'\n"
    write("base.toml", entry * 150)
    write("convlint.toml", "extend = 'base.toml'\n" + entry * 50)
    assert convlint("check", "bad.yaml").code == 1
    write("convlint.toml", "extend = 'base.toml'\n" + entry * 51)
    assert "convlint.toml:2:1: must hold at most 200 entries" in convlint("check", "bad.yaml").err


def test_a_folder_of_rules_is_not_the_whole_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convlint.rulebook.folders.MOST_SEEN", 200)
    for number in range(201):
        write(f"many/{number}.txt", "")
    write("convlint.toml", 'rules = ["many"]')
    ran = convlint("check", "bad.yaml")
    assert (ran.code, "holds more than 200 files and folders" in ran.err) == (2, True)


def test_many_files_beside_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr("convlint.config.find.suggestion", lambda _word, known: seen.append(len(list(known))) or "")
    for number in range(700):
        write(f"{number}.toml", "")
    write("convlint.toml", 'extend = "missing.toml"')
    assert convlint("check", "bad.yaml").code == 2
    assert seen
    assert max(seen) <= 500


def test_a_wrong_config_of_one_input_stops_before_anything_is_written() -> None:
    write("sub/convlint.toml", "selct = 1")
    write("sub/bad.yaml", BAD)
    assert convlint("check", "bad.yaml", "sub/bad.yaml", "-o", "json=out.json").code == 2
    assert not Path("out.json").exists()


# --- convlint config


def test_every_setting_and_where_it_comes_from() -> None:
    write("base.toml", "min-loss = 0.5\n")
    write(
        "convlint.toml",
        'extend = "base.toml"\nselect = ["CL1", "CL5"]\n\n[severity]\nCL102 = "error"\nCL006 = "info"\n'
        '[per-file-ignores]\n"a/*" = ["CL1"]\n[[per-layer-ignores]]\nlayers = "x"\nrules = "CL102"\nreason = "why"\n',
    )
    ran = convlint("config", "bad.yaml", "--gpu", "t4")
    assert ran.code == 0
    rows = {line.split("  ")[0]: [part.strip() for part in line.split("  ") if part] for line in ran.out.splitlines()}
    assert rows["target"] == ["target", "t4", "command line"]
    assert rows["mode"] == ["mode", "training", "default"]
    assert rows["select"] == ["select", "CL1, CL5", "convlint.toml:2"]
    assert rows["min-loss"] == ["min-loss", "0.5", "base.toml:1"]
    assert rows["severity"] == ["severity", "CL102: error", "convlint.toml:5"]
    assert rows["per-layer-ignores"] == ["per-layer-ignores", "x: CL102 -- why", "convlint.toml:9"]
    assert "CL006: info" in ran.out
    assert all(f"\n{key} " in ran.out for key in KEYS)


def test_without_a_config_the_defaults_are_shown() -> None:
    assert convlint("config", "--isolated").out.startswith("no config\n")


# --- places of keys


def _paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for key, item in items for p in [(*path, key), *_paths(item, (*path, key))]]


TOML = """
title = "a # b" # c
a.b."c.d" = 1
'quo"ted' = '''
x = 1
[no]
'''
"esc\\u0061ped" = \"\"\"one \\\"\"\" two\"\"\"
date = 1979-05-27 07:32:00
float = 1.5
list = [ 1, [2, "]"], { x = 1, y.z = [3] },
  # ]
  4 ]
[table."x.y"]
k = { a = {}, b = [] }
[[many]]
n = 1
[[many.more]]
[many.sub]
m = 2
[[many]]
n = 2
[[many.more]]
o = [ [], [[]] ]
"""


def test_every_key_of_a_toml_file_is_found() -> None:
    offsets = key_offsets(TOML)
    assert set(_paths(tomllib.loads(TOML))) <= set(offsets)
    assert position(TOML, offsets[("list", 2, "y", "z")])[0] == 11
    assert position(TOML, offsets[("many", 1, "more", 0, "o")]) == (24, 1)
    assert position(TOML, offsets[('quo"ted',)]) == (4, 1)
    assert position(TOML, offsets[("escaped",)]) == (8, 1)


_names = st.text(alphabet="abcd.\"'\\ \u00e9#[]=", min_size=1, max_size=5)
_values = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text(alphabet="ab\"'\\\n#[]{}=,", max_size=6)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=10,
)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else _quoted(value) if isinstance(value, str) else str(value)


@given(st.dictionaries(_names, _values, max_size=4))
def test_every_key_has_a_place_where_it_stands(values: dict[str, object]) -> None:
    text = "".join(f"{_quoted(key)} = {_toml(item)}\n" for key, item in values.items())
    assert tomllib.loads(text) == values
    offsets = key_offsets(text)
    assert set(_paths(values)) <= set(offsets)
    for path, offset in offsets.items():
        if isinstance(path[-1], str):
            assert text[offset:].startswith(_quoted(path[-1]))


@given(st.text(max_size=60))
def test_the_place_of_a_key_never_fails(text: str) -> None:
    assert isinstance(key_offsets(text), dict)


# --- fuzz

_key_texts = st.sampled_from([*KEYS, "tool", "x"])
_config_values = st.one_of(
    _values,
    st.sampled_from(["CL102", "ALL", "error", "a100", "**", ["CL1"]]),
    st.just([{"layers": "*", "rules": "CL1", "reason": "x"}]),
)  # fmt: skip


@settings(max_examples=150)
@given(st.dictionaries(_key_texts, _config_values, max_size=5))
def test_no_config_is_a_defect_of_ours(values: dict[str, object]) -> None:
    text = "".join(f"{key} = {_toml(item)}\n" for key, item in values.items())
    Path("fuzz.toml").write_text(text)
    for arguments in (["check", "bad.yaml", "--config", "fuzz.toml"], ["config", "--config", "fuzz.toml"]):
        ran = convlint(*arguments)
        assert ran.code in (0, 1, 2), ran.err
        assert "internal error" not in ran.err


@settings(max_examples=150)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80) | st.binary(max_size=80))
def test_no_text_is_a_defect_of_ours(content: str | bytes) -> None:
    Path("fuzz.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    ran = convlint("check", "bad.yaml", "--config", "fuzz.toml")
    assert ran.code in (0, 1, 2), ran.err
    assert "\x1b" not in ran.err


def test_no_config_costs_next_to_nothing() -> None:
    """What is loaded without a config: not the TOML reader."""
    import subprocess
    import sys

    code = "import sys\nfrom convlint.config.find import Configs\nassert Configs().of('bad.yaml').path is None\n"
    code += "assert not {'tomllib', 'convlint.config.keys', 'convlint.config.toml_source'} & set(sys.modules)\n"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert config_in(str(Path.cwd())) is None


def test_sources_keep_their_places_when_keys_are_missing() -> None:
    source = TomlSource("x.toml", "a = 1\n[b]\nc = 2\n")
    assert str(source.place(("b", "nothing"))) == "x.toml:2:1"
    assert str(source.place(())) == "x.toml:1:1"


def test_two_layers_and_a_pattern_for_one(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(
        HEAD + f"  - {{ name: a.odd, {ODD} }}\n  - {{ name: b.odd, C: 60, {ODD[7:]} }}\n"
    )
    write("convlint.toml", '[[per-layer-ignores]]\nlayers = "a.*"\nrules = "ALL"\nreason = "x"\n')
    out = convlint("check", "two.yaml", "-o", "concise", "--select", "CL102").out
    assert "C=60" in out
    assert "C=62" not in out
