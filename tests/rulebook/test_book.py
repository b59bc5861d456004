"""All rules together: none shares a code or a name, and each is found by both."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from checkout import ROOT
from rule_texts import RULE, edited, written

from convlint.errors import RuleError
from convlint.rulebook.book import Rulebook, linked, load_rulebook
from convlint.rulebook.file import read_rule
from convlint.rulebook.folders import rule_files


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
