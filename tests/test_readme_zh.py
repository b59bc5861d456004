"""README.zh.md shows what convlint prints in Chinese, names what README.md names, and links to what exists."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from checkout import ROOT
from chinese_readme import CHINESE_README
from readme_examples import README, blocks, run

from convlint.reporters import REPORTERS

TEXT = CHINESE_README.read_text(encoding="utf-8")
ENGLISH = README.read_text(encoding="utf-8")
_TAG = re.compile(r"(?:convlint@|rev: )(v[\d.]+\d)")


@pytest.mark.slow
def test_console_blocks_show_what_is_printed(tmp_path: Path) -> None:
    printed = [run(block, tmp_path) for block in blocks(TEXT)]
    assert printed == ["\n".join(line.rstrip() for line in block.text.splitlines()) + "\n" for block in blocks(TEXT)]


def test_it_names_the_tag_that_the_english_one_names() -> None:
    assert set(_TAG.findall(TEXT)) == set(_TAG.findall(ENGLISH))


def test_links_lead_somewhere() -> None:
    assert [path for path in re.findall(r"\]\(([^)#]+)\)", TEXT) if not (ROOT / path).exists()] == []
    assert "README.zh.md" in ENGLISH


def test_each_format_is_said_to_be_for_people_or_for_machines() -> None:
    machines = re.search(r"其余的输出格式\s*（(.*?)）", TEXT)
    assert set(re.findall(r"`(\w+)`", machines[1])) == REPORTERS.keys() - {"text", "html"}


def test_configs_of_hook_and_action_are_sound() -> None:
    hooks, workflow = (
        yaml.safe_load(text) for text in re.findall(r"^```yaml\n(# \..*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    )
    assert {hook["id"] for repo in hooks["repos"] for hook in repo["hooks"]} <= {
        hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    }
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    steps = workflow["jobs"]["convlint"]["steps"]
    assert steps[-1]["with"].keys() <= inputs.keys()
    (config,) = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert tomllib.loads(config) == {"tool": {"convlint": {"lang": "zh"}}}


def test_commands_in_its_text_exist() -> None:
    from convlint.cli.arguments import COMMANDS

    named = [shlex.split(text)[1] for text in re.findall(r"`(convlint \w[^`…]*)`", TEXT)]
    assert set(named) <= set(COMMANDS)
    assert len(named) > 5


def test_its_figures_are_those_of_the_english_one() -> None:
    rows = re.findall(r"^\| (?:convlint|roofline|flops/peak) \|.*$", TEXT, re.MULTILINE)
    assert len(rows) == 3
    assert set(rows) <= set(ENGLISH.splitlines())


def test_it_is_as_long_as_a_newcomer_needs() -> None:
    assert len(TEXT) < 12_000
