"""Which files of a folder are rules, and how vast a folder of rules may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import ROOT

from convlint.errors import RuleError
from convlint.rulebook.folders import builtin_folder, rule_files


def fill(folder: Path, *names: str, size: int = 0) -> str:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"#" * size)
    return str(folder)


def test_rules_are_all_yaml_files_below_a_folder_in_order(tmp_path: Path) -> None:
    names = ("b/x.yaml", "a.yml", "z.yaml", "b/c/y.yaml", "no.txt", "yaml", ".git/h.yaml", "__pycache__/p.yaml")
    found = [str(Path(path).relative_to(tmp_path)) for path in rule_files(fill(tmp_path, *names))]
    assert found == ["a.yml", "z.yaml", "b/x.yaml", "b/c/y.yaml"]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    fill(tmp_path / "rules", "a.yaml")
    fill(tmp_path / "far", "b.yaml")
    (tmp_path / "rules" / "link").symlink_to(tmp_path / "far")
    (tmp_path / "rules" / "loop").symlink_to(tmp_path / "rules")
    assert [Path(path).name for path in rule_files(str(tmp_path / "rules"))] == ["a.yaml"]


@pytest.mark.parametrize(
    ("count", "name", "size", "message"),
    [
        (200, "{}.yaml", 0, None),
        (201, "{}.yaml", 0, "more than 200 rules"),
        pytest.param(5000, "{}.txt", 0, None, marks=pytest.mark.slow),
        pytest.param(5001, "{}.txt", 0, "more than 5,000 files and folders", marks=pytest.mark.slow),
        (4, "{}.yaml", 2**18, None),
        (4, "{}.yaml", 2**18 + 1, "more than 1 MiB"),
    ],
)
def test_a_folder_has_its_limits(count: int, name: str, size: int, message: str | None, tmp_path: Path) -> None:
    folder = fill(tmp_path, *(name.format(number) for number in range(count)), size=size)
    if message is None:
        assert len(rule_files(folder)) == (count if name.endswith("yaml") else 0)
        return
    with pytest.raises(RuleError, match=message):
        rule_files(folder)


def test_the_rules_that_ship_are_those_of_the_repository() -> None:
    held = {path.relative_to(ROOT / "rules") for path in (ROOT / "rules").rglob("*.yaml")}
    assert {Path(path).relative_to(builtin_folder()) for path in rule_files(builtin_folder())} == held
