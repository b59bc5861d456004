"""Which config holds, what it extends, and how one that cannot be read is refused."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import convlint
from configured import codes, prepared, write
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import BAD

from convlint.config.find import Configs, config_in
from convlint.config.keys import PathPattern
from convlint.model.errors import UsageError

here = pytest.fixture(autouse=True)(prepared)


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
)
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


def test_no_path_is_the_current_folder() -> None:
    assert "1 file on" in convlint("check").out


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


def test_many_files_beside_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr("convlint.config.find.suggestion", lambda _word, known: seen.append(len(list(known))) or "")
    for number in range(700):
        write(f"far/{number}.toml", "")
    write("convlint.toml", 'extend = "far/missing.toml"')
    assert convlint("check", "bad.yaml").code == 2
    assert max(seen) == 500


def test_a_wrong_config_of_one_input_stops_before_anything_is_written() -> None:
    write("sub/convlint.toml", "selct = 1")
    write("sub/bad.yaml", BAD)
    assert convlint("check", "bad.yaml", "sub/bad.yaml", "-o", "json=out.json").code == 2
    assert not Path("out.json").exists()


@pytest.mark.slow
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
