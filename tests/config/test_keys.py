"""What the keys of a config mean, and how a wrong one is refused at its place."""

import time
from collections.abc import Callable
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from command_line import convlint
from configured import codes, prepared, write
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import BAD, GOOD
from toml_values import toml
from toml_values import values as drawn_values

from convlint.config.keys import (
    KEYS,
    MODEL_KEYS,
    SOURCE_KEYS,
    PathPattern,
    file_ignores,
    layer_ignores,
    models_of,
    source_of,
)
from convlint.config.toml_source import Spot, TomlSource
from convlint.files.globs import name_expression, path_expression
from convlint.model.errors import UsageError


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
def test_no_hostile_pattern_takes_long_wherever_it_stands(key: str, pattern: str, here: Path) -> None:
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


def test_a_pattern_that_is_too_long_is_refused(here: Path) -> None:
    ran = convlint("check", "*" * 501)
    assert (ran.code, "is longer than 500 characters" in ran.err) == (2, True)
    Path("convlint.toml").write_text(f"exclude = ['{'*' * 501}']")
    Path("bad.yaml").write_text(BAD)
    ran = convlint("check", "bad.yaml")
    assert (ran.code, "must be 1 to 500 characters long" in ran.err) == (2, True)


AT = Spot(TomlSource("c.toml", "ignores = []\n"), ("ignores",))
ENTRY: dict[str, Any] = {"layers": "stem", "rules": ["CL103"], "reason": " RGB "}


def test_rules_are_silenced_in_files() -> None:
    (one,) = file_ignores({"a/**": ["CL1", "CL2"]}, AT, "/project")
    assert (one.pattern.text, [word.text for word in one.rules]) == ("a/**", ["CL1", "CL2"])


def test_rules_are_silenced_in_layers_until_a_day() -> None:
    forever, until = layer_ignores([ENTRY, {**ENTRY, "expires": date(2026, 12, 31)}], AT)
    assert (forever.layers, forever.reason, forever.expires) == ("stem", "RGB", None)
    assert until.expires == date(2026, 12, 31)


TEXT = """\
[[models]]
name = "net"
model = "pkg:Net(3)"
inputs = ["16x3x64x64", "16:int64"]
runtime = { cudnn_benchmark = true, cuda = 12.4 }

[[models]]
name = "other"
model = "pkg:make"
"""
SOURCE = TomlSource("pyproject.toml", TEXT)
MODELS_AT = Spot(SOURCE, ("models",))


def test_models_are_read_with_their_places() -> None:
    net, other = models_of(SOURCE.values["models"], MODELS_AT, "/project")
    assert (net.name, net.model, dict(net.inputs)) == ("net", "pkg:Net(3)", {"": "16x3x64x64,\n16:int64"})
    assert {name: raw for name, (raw, _) in net.runtime.items()} == {"cudnn_benchmark": True, "cuda": 12.4}
    assert net.runtime["cuda"][1].place().line == 5
    assert (net.channels_last, net.autocast, net.mode, net.target) == (False, None, None, ())
    assert (other.inputs, other.folder, other.at.below("model").place().line) == ({}, "/project", 9)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"inputs": "1x3x8x8"}, {"": "1x3x8x8"}),
        ({"inputs": {"x": "1x3x8x8 ", "t": "1:int64"}}, {"x": "1x3x8x8", "t": "1:int64"}),
        ({"inputs": []}, {}),
    ],
)
def test_inputs_come_in_three_forms(given: dict[str, Any], expected: dict[str, str]) -> None:
    (model,) = models_of([{"name": "a", "model": "b:c", **given}], MODELS_AT, "")
    assert model.inputs == expected


@pytest.mark.parametrize("word", ["bf16", "bfloat16", "torch.bfloat16"])
def test_autocast_has_torchs_spellings_too(word: str) -> None:
    (model,) = models_of([{"name": "a", "model": "b:c", "autocast": word}], MODELS_AT, "")
    assert model.autocast == "bf16"


def test_a_models_optimizer_is_a_setting_of_its_runtime() -> None:
    given = {"name": "a", "model": "b:c", "optimizer": "momentum", "runtime": {"compile": True}}
    (model,) = models_of([given], MODELS_AT, "")
    assert {name: value for name, (value, _) in model.runtime.items()} == {"compile": True, "optimizer": "momentum"}


SOURCE_TEXT = '[source]\ninput = "3x224x224"\nentry = ["train.py", "tools/run.py"]\n'
SOURCE_TOML = TomlSource("convlint.toml", SOURCE_TEXT)
SOURCE_AT = Spot(SOURCE_TOML, ("source",))


def test_the_table_is_read_with_its_places() -> None:
    found = source_of(SOURCE_TOML.values["source"], SOURCE_AT, "/project")
    assert found.input == (3, 224, 224)
    assert [word.text for word in found.entry] == ["/project/train.py", "/project/tools/run.py"]
    assert [word.at.place().line for word in found.entry] == [3, 3]
    assert [(name, raw) for name, raw, _ in found.written] == list(SOURCE_TOML.values["source"].items())


@pytest.mark.parametrize(
    ("text", "shape"), [("16x3x224x224", (16, 3, 224, 224)), (" 1 × 64*65 ", (1, 64, 65)), ("3x8x8", (3, 8, 8))]
)
def test_shapes_with_and_without_a_batch(text: str, shape: tuple[int, ...]) -> None:
    assert source_of({"input": text}, SOURCE_AT, "").input == shape


def test_every_key_has_a_meaning() -> None:
    assert all((*MODEL_KEYS.values(), *SOURCE_KEYS.values()))


MODEL = {"name": "a", "model": "b:c"}


@pytest.mark.parametrize(
    ("read", "at", "value", "message"),
    [
        (layer_ignores, AT, 3, "must be tables, each under [[…ignores]], not a number"),
        (layer_ignores, AT, [{**ENTRY, "until": 3}], "unknown key 'until'"),
        (layer_ignores, AT, [{"layers": "stem", "rules": []}], "reason is missing"),
        (layer_ignores, AT, [{**ENTRY, "expires": "2026-12-31"}], "must be a date without quotes, such as 2026-12-31"),
        (layer_ignores, AT, [{**ENTRY, "expires": datetime(2026, 12, 31)}], "must be a date without quotes"),
        (models_of, MODELS_AT, [{**MODEL, "input": "1x3"}], "unknown key 'input'; did you mean 'inputs'?"),
        (models_of, MODELS_AT, [{"name": "a"}], "model is missing"),
        (models_of, MODELS_AT, [{**MODEL, "name": 3}], "must be text, not a number"),
        (models_of, MODELS_AT, [{**MODEL, "inputs": 3}], "must be a list of texts, not a number"),
        (models_of, MODELS_AT, [{**MODEL, "channels_last": "yes"}], "must be true or false, not text"),
        (models_of, MODELS_AT, [{**MODEL, "autocast": "fp32"}], "'fp32' is not one of fp16, bf16"),
        (models_of, MODELS_AT, [{**MODEL, "mode": "train"}], "'train' is not one of training, inference"),
        (
            models_of, MODELS_AT, [{**MODEL, "runtime": {"a": [1]}}],
            "must be text, a boolean or a number, not a list",
        ),
        (
            models_of, MODELS_AT, [{**MODEL, "optimizer": "sgd", "runtime": {"optimizer": "adam"}}],
            "says again what runtime says",
        ),
        (models_of, MODELS_AT, [{**MODEL, "optimizer": True}], "must be text, not a boolean"),
        (models_of, MODELS_AT, [{**MODEL, "runtime": []}], "must be a table, not a list"),
        (models_of, MODELS_AT, [MODEL] * 2, "there are two models 'a'"),
        (models_of, MODELS_AT, {}, "must be tables"),
        (models_of, MODELS_AT, [3], "must be a table"),
        (source_of, SOURCE_AT, {"inputs": "3x8x8"}, "convlint.toml:1:1: unknown key 'inputs'; did you mean 'input'?"),
        (source_of, SOURCE_AT, {"entries": []}, "did you mean 'entry'?"),
        (source_of, SOURCE_AT, {"input": "224"}, "convlint.toml:2:1: '224' is no shape of images"),
        (source_of, SOURCE_AT, {"input": "1x2x3x4x5"}, "is no shape of images"),
        (source_of, SOURCE_AT, {"input": "3x224xfoo"}, "is no shape of images"),
        (source_of, SOURCE_AT, {"input": "0x8x8"}, "sizes are from 1 to 2,147,483,647"),
        (source_of, SOURCE_AT, {"input": f"3x8x{'9' * 400}"}, "sizes are from 1"),
        (source_of, SOURCE_AT, {"input": [3, 8, 8]}, "must be text, not a list"),
        (source_of, SOURCE_AT, {"entry": 3}, "must be a list of texts"),
        (source_of, SOURCE_AT, {"entry": ["train.sh"]}, "'train.sh' is no Python script"),
        (source_of, SOURCE_AT, [], "must be a table, not a list"),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused(read: Callable[..., object], at: Spot, value: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(value, at, *(() if read is layer_ignores else ("/project",)))
    assert message in str(caught.value)


here = pytest.fixture(autouse=True)(prepared)


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
    [
        ('ignore = ["ALL"]', []),
        ("select = []", []),
        ('select = ["CL102"]', ["--ignore", "CL102"]),
        ("", ["--ignore", "ALL"]),
    ],
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


def test_what_else_may_be_advised() -> None:
    write("convlint.toml", 'allow = ["narrower"]\n')
    shown = convlint("config", "--allow", "batch").out
    assert "batch" in shown
    assert "narrower  convlint.toml:1" in " ".join(shown.split()).replace(" convlint.toml:1", "  convlint.toml:1")
    write("convlint.toml", 'allow = ["narower"]\n')
    ran = convlint("check", "bad.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "narrower" in ran.err
    write("convlint.toml", "")
    assert "did you mean 'batch'" in convlint("check", "bad.yaml", "--allow", "narrower,batches").err


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
        '{"version": 1, "x-a": {"layers": 1}, "layers": [{"name": "a", "N": 8, "C": 64, "H": 1, "W": 1,'
        ' "K": 64, "R": 1, "S": 1, "dtype": "fp16"}]}',
    )
    ran = convlint("check", "net", "-o", "concise")
    assert ran.code == 0
    assert "2 layers in 2 files" in ran.out
    named = convlint("check", "net/good.yaml", "net/compose.yaml")
    assert named.code == 3
    assert convlint("check", "net/good.yaml", "net/compose.yaml", "--specs-only").code == 0


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
    monkeypatch.setattr("convlint.rulebook.book.MOST_SEEN", 200)
    for number in range(201):
        write(f"many/{number}.txt", "")
    write("convlint.toml", 'rules = ["many"]')
    ran = convlint("check", "bad.yaml")
    assert (ran.code, "holds more than 200 files and folders" in ran.err) == (2, True)


_key_texts = st.sampled_from([*KEYS, "tool", "x"])
_config_values = st.one_of(
    drawn_values,
    st.sampled_from(["CL102", "ALL", "error", "a100", "**", ["CL1"]]),
    st.just([{"layers": "*", "rules": "CL1", "reason": "x"}]),
)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.dictionaries(_key_texts, _config_values, max_size=5))
def test_no_config_is_a_defect_of_ours(values: dict[str, object]) -> None:
    text = "".join(f"{key} = {toml(item)}\n" for key, item in values.items())
    Path("fuzz.toml").write_text(text)
    for arguments in (["check", "bad.yaml", "--config", "fuzz.toml"], ["config", "--config", "fuzz.toml"]):
        ran = convlint(*arguments)
        assert ran.code in (0, 1, 2), ran.err
        assert "internal error" not in ran.err


def test_sources_keep_their_places_when_keys_are_missing() -> None:
    source = TomlSource("x.toml", "a = 1\n[b]\nc = 2\n")
    assert str(source.place(("b", "nothing"))) == "x.toml:2:1"
    assert str(source.place(())) == "x.toml:1:1"
