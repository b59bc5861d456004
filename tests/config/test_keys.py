"""What the keys of a config mean, and how a wrong one is refused at its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import ROOT
from command_line import convlint
from configured import codes, prepared, write
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import BAD, GOOD, HEAD, ODD
from toml_values import toml
from toml_values import values as drawn_values

from convlint.config.keys import KEYS
from convlint.config.toml_source import TomlSource

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
    monkeypatch.setattr("convlint.rulebook.folders.MOST_SEEN", 200)
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
)  # fmt: skip


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


def test_two_layers_and_a_pattern_for_one(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(
        HEAD + f"  - {{ name: a.odd, {ODD} }}\n  - {{ name: b.odd, C: 60, {ODD[7:]} }}\n"
    )
    write("convlint.toml", '[[per-layer-ignores]]\nlayers = "a.*"\nrules = "ALL"\nreason = "x"\n')
    out = convlint("check", "two.yaml", "-o", "concise", "--select", "CL102").out
    assert "C=60" in out
    assert "C=62" not in out
