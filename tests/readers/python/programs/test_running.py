"""Scripts as people write them, which say in comments what is read there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from training_scripts import program

from convlint.model.source import ProgramSetting, TrainingProgram

SCRIPTS = sorted((Path(__file__).parents[1] / "read" / "programs").glob("*.py"))
SIZES = {True: "one", False: "varying", None: "?"}


def shown(value: object) -> object:
    """What a comment says for it."""
    return "?" if value is None else value


def of_program(found: TrainingProgram) -> str:
    """The words behind `# !`: what holds for the whole run."""
    words = [f"benchmark={shown(found.cudnn_benchmark)}", f"deterministic={shown(found.deterministic)}",
             f"enabled={shown(found.cudnn_enabled)}", f"size={SIZES[found.fixed_input_size]}"]  # fmt: skip
    words += [f"tf32={found.tf32}"] if found.tf32 is not None else []
    return " ".join([*words, "conflict"] if found.conflict is not None else words)


def of_statement(setting: ProgramSetting) -> str:
    """The words behind `# ?`: what the statement sets, and when."""
    when = " surely" if setting.certain else f" if {setting.guard}" if setting.guard else ""
    return f"{setting.name}={shown(setting.value)}{when}"


def expected(text: str) -> Iterator[tuple[int, set[str]]]:
    """By line, what the comment above it says: several statements are divided by semicolons."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.fullmatch(r"\s*# ?\? (.*)", line):
            yield number + 1, set(found[1].split("; "))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_annotated_script(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = program(tmp_path, text)
    assert of_program(found) == re.findall(r"# ! (.*)", text)[0]
    said: dict[int, set[str]] = {}
    for setting in found.settings:
        said.setdefault(setting.at.line or 0, set()).add(of_statement(setting))
    assert said == dict(expected(text))
