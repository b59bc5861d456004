"""`convlint init` adds entries to a config and changes nothing else of it."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from command_line import convlint

NET = """\
from torch import nn

{ran}
class Net(nn.Module):
    def __init__(self{parameters}):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)

    def forward(self, {inputs}):
        return self.stem(x)
"""
PLAIN = '[project]\nname = "lab"   # kept\n'
TABLE = "[[tool.convlint.models]]\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "lab")


def repository(path: str = "lab/nets.py", parameters: str = "", inputs: str = "x", ran: str = "") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(NET.format(parameters=parameters, inputs=inputs, ran=ran))


def models(path: str = "pyproject.toml") -> list[dict[str, object]]:
    values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    return values["tool"]["convlint"]["models"]


def test_a_package_gets_a_new_config() -> None:
    repository()
    ran = convlint("init")
    assert (ran.code, ran.err) == (0, "")
    assert models() == [{"name": "net", "model": "lab.nets:Net()", "inputs": ["64x3x224x224"]}]
    assert ran.out == (
        "added 1 model to pyproject.toml\n  lab.nets:Net()  64x3x224x224, guessed: N, size\n"
        "next: convlint check --models\n"
    )
    assert "# C = 3 from its first convolution; guessed: N, size\n" in Path("pyproject.toml").read_text()


@pytest.mark.parametrize(("dims", "shape"), [(1, "64x3x1024"), (3, "2x3x32x128x128")])
def test_a_guessed_input_has_the_axes_of_its_network(dims: int, shape: str) -> None:
    """Volumes are large: more than a few of them fit on no GPU."""
    Path("nets.py").write_text(NET.format(parameters="", inputs="x", ran="").replace("Conv2d", f"Conv{dims}d"))
    assert convlint("init").code == 0
    assert models()[0]["inputs"] == [shape]


@pytest.mark.slow
@pytest.mark.contract
def test_its_entries_can_be_checked() -> None:
    repository("src/lab/nets.py")
    repository("train.py", parameters=", width")
    assert convlint("init").code == 0
    ran = convlint("check", "--models", "--output", "concise", "--fail-on", "never")
    assert ran.code == 0, ran.out
    assert "1 layer in 1 file" in ran.out


def test_code_is_not_run() -> None:
    repository(ran="open('ran', 'w')\n")
    assert convlint("init").code == 0
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("net.py", "net"),
        ("src/lab/net.py", "lab.net"),
        ("lab/__init__.py", "lab"),
        ("tools/net.py", "tools.net"),
        ("my-tools/net.py", None),
        ("lab/class.py", None),
    ],
)
def test_modules_are_named_from_the_configs_folder(path: str, module: str | None) -> None:
    repository(path)
    ran = convlint("init")
    if module is None:
        assert (ran.code, f"no module name leads from the config's folder to Net of {path}" in ran.err) == (3, True)
    else:
        assert models()[0]["model"] == f"{module}:Net()"


def test_a_src_folder_that_is_a_package_is_named() -> None:
    repository("src/net.py")
    Path("src/__init__.py").touch()
    convlint("init")
    assert models()[0]["model"] == "src.net:Net()"


def test_what_needs_arguments_is_commented_out() -> None:
    repository(parameters=", config", inputs="x, mask")
    ran = convlint("init")
    text = Path("pyproject.toml").read_text()
    assert tomllib.loads(text) == {}
    assert "# To be completed: Net takes config; its forward method also takes mask.\n" in text
    assert 'inputs = { x = "64x3x224x224", mask = "" }' in text
    assert "commented out: Net takes config; its forward method also takes mask\n" in ran.out
    assert ran.out.endswith("complete those that are commented out, then: convlint check --models\n")
    assert "nothing is written" in convlint("init").out
    completed = text.replace("Net()", "Net(3)").replace('mask = ""', 'mask = "64x1"')
    Path("pyproject.toml").write_text(completed.partition("lines:\n")[2].replace("# ", "", 4))
    assert models()[0]["model"] == "lab.nets:Net(3)"


def test_a_second_run_changes_nothing() -> None:
    repository()
    convlint("init")
    before = Path("pyproject.toml").stat()
    ran = convlint("init")
    assert (ran.code, ran.out) == (0, "pyproject.toml names 1 network already; nothing is written\n")
    assert Path("pyproject.toml").stat() == before


@pytest.mark.parametrize("reference", ["lab.nets:Net", "lab.nets:Net(3)", "lab:Net()"])
def test_what_an_entry_names_is_left_out(reference: str) -> None:
    repository()
    Path("pyproject.toml").write_text(f'{TABLE}name = "mine"\nmodel = "{reference}"\n')
    assert "nothing is written" in convlint("init").out


def test_a_name_that_is_taken_gets_its_module() -> None:
    repository()
    Path("pyproject.toml").write_text(f'{TABLE}name = "net"\nmodel = "other:Net"\n')
    convlint("init")
    assert [each["name"] for each in models()] == ["net", "lab.nets.net"]


@pytest.mark.parametrize(
    "before",
    [
        PLAIN,
        PLAIN.rstrip(),
        PLAIN.replace("\n", "\r\n"),
        f"\ufeff{PLAIN}",
        "[tool.convlint]\nstrict = true\n[tool.a]\n",
    ],
)
def test_the_rest_stays_byte_for_byte(before: str) -> None:
    repository()
    Path("pyproject.toml").write_bytes(before.encode())
    assert convlint("init").code == 0
    after = Path("pyproject.toml").read_bytes()
    assert after.startswith(before.encode())
    added = after[len(before.encode()) :]
    assert added.count(b"\r\n") == (added.count(b"\n") if "\r" in before else 0)
    assert "nothing is written" in convlint("init").out


def test_an_own_config_gets_its_own_tables() -> None:
    repository()
    Path("convlint.toml").write_text('[source]\ninput = "16x3x96x96"\n')
    Path("pyproject.toml").write_text(PLAIN)
    assert "added 1 model to convlint.toml" in convlint("init").out
    assert tomllib.loads(Path("convlint.toml").read_text())["models"][0]["inputs"] == ["16x3x96x96"]
    assert Path("pyproject.toml").read_text() == PLAIN


def test_another_folders_config_is_named_in_the_next_command() -> None:
    repository("sub/net.py")
    ran = convlint("init", "sub")
    assert models("sub/pyproject.toml")[0]["model"] == "net:Net()"
    assert ran.out.endswith("next: convlint check --models --config sub/pyproject.toml\n")


def test_a_config_outside_of_the_repository_is_left_alone() -> None:
    repository()
    Path("../convlint.toml").write_text("strict = true\n")
    assert convlint("init").code == 0
    assert Path("../convlint.toml").read_text() == "strict = true\n"
    assert len(models()) == 1


def test_a_package_gets_its_config_beside_it() -> None:
    repository()
    Path("lab/__init__.py").touch()
    assert convlint("init", "lab").code == 0
    assert models()[0]["model"] == "lab.nets:Net()"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project\n", "pyproject.toml:1:9: is not valid TOML"),
        ("[tool.convlint]\nstrikt = true\n", "pyproject.toml:2:1: unknown key 'strikt'"),
        ("[tool.convlint]\nmodels = []\n", "takes no more tables [[tool.convlint.models]] at its end"),
        ("tool = { a = 1 }\n", "takes no more tables [[tool.convlint.models]] at its end"),
        ('[tool.convlint]\nextend = "base.toml"\n', "pyproject.toml extends base.toml"),
    ],
)
def test_a_config_that_cannot_be_added_to_stays(text: str, message: str) -> None:
    repository()
    Path("base.toml").write_text('[[models]]\nname = "a"\nmodel = "a:A"\n')
    Path("pyproject.toml").write_text(text)
    ran = convlint("init")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert Path("pyproject.toml").read_text() == text


def test_a_read_only_config_stays() -> None:
    repository()
    Path("pyproject.toml").write_text(PLAIN)
    Path("pyproject.toml").chmod(0o444)
    ran = convlint("init")
    assert (ran.code, ran.err) == (2, "convlint: error: pyproject.toml cannot be written: it is read-only\n")
    assert Path("pyproject.toml").read_text() == PLAIN


def test_a_link_out_of_the_repository_is_not_followed() -> None:
    repository()
    Path("../shared.toml").write_text(PLAIN)
    Path("pyproject.toml").symlink_to("../shared.toml")
    ran = convlint("init")
    assert (ran.code, "leads out of" in ran.err) == (2, True)
    assert Path("../shared.toml").read_text() == PLAIN


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no PyTorch network found in 0 Python files of .; name one with `convlint check package.module:Net"),
        ({"a.py": "import torch\n", "b.py": "1\n"}, "no PyTorch network found in 2 Python files of ."),
        ({"a.py": "import torch\ndef (\n"}, "1 Python file not read: a.py:2:5 (syntax error: invalid syntax)"),
    ],
)
def test_without_networks_it_says_what_to_type(files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        Path(name).write_text(text)
    ran = convlint("init")
    assert (ran.code, ran.out) == (3, "")
    assert message in ran.err
    assert not Path("pyproject.toml").exists()


@pytest.mark.parametrize("folder", ["missing", "file", "a\0b"])
def test_what_is_no_folder(folder: str) -> None:
    Path("file").touch()
    ran = convlint("init", folder)
    assert (ran.code, "is no folder" in ran.err) == (3, True)


def test_a_diff_writes_nothing() -> None:
    repository()
    Path("pyproject.toml").write_text(PLAIN)
    ran = convlint("init", "--diff")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("would add 1 model to pyproject.toml\n  lab.nets:Net()  64x3x224x224, guessed: N, size\n")
    assert Path("pyproject.toml").read_text() == PLAIN
    Path("change.diff").write_text(ran.out.partition("would add")[0])
    subprocess.run(["git", "apply", "--unsafe-paths", "change.diff"], check=True, env={**os.environ, "GIT_DIR": "none"})
    assert len(models()) == 1


def test_of_very_many_the_first_are_written() -> None:
    for number in range(25):
        repository(f"lab/nets_{number:02}.py", parameters=", n" if number < 3 else "")
    ran = convlint("init")
    assert [each["model"] for each in models()] == [f"lab.nets_{number:02}:Net()" for number in range(3, 23)]
    assert len({str(each["name"]) for each in models()}) == 20
    assert ran.out.endswith("5 networks more left out; name a part of the repository: convlint init FOLDER\n")
    assert "names 20 networks already; nothing is written" in convlint("init").out


def test_excluded_files_and_hostile_names() -> None:
    repository("skip/nets.py")
    repository("lab/a\x1b[2J.py")
    Path("pyproject.toml").write_text('[tool.convlint]\nexclude = ["skip"]\n')
    ran = convlint("init")
    assert (ran.code, "\x1b" in ran.err) == (3, False)
    assert "no module name leads" in ran.err
