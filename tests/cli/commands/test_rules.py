"""`convlint rule`: the list, the documentation of one, and rules of one's own."""

from pathlib import Path

import pytest
from checked_files import CLEAN, RULE, codes, prepared
from command_line import convlint

folder = pytest.fixture(autouse=True)(prepared)


def test_the_list_of_rules() -> None:
    ran = convlint("rule")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert any(line.split()[:3] == ["CL102", "channel-alignment", "warning"] for line in lines)
    assert sum("(opt-in)" in line for line in lines) == 1


@pytest.mark.parametrize("key", ["CL102", "channel-alignment", "cl102"])
def test_the_documentation_of_a_rule(key: str) -> None:
    ran = convlint("rule", key)
    assert ran.code == 0
    assert ran.out.startswith("CL102 channel-alignment (warning)\n")
    for part in ("Why", "Must hold", "Fix", "Fails", "Passes", "Source: "):
        assert f"\n{part}" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("CL102", "By price: of advised findings those that lose 1 % of the network's time are warnings"),
        ("CL203", "Info: what tiles and waves leave unused is evidence, and other sizes are alternatives."),
        ("CL204", "Info: what tiles and waves leave unused is evidence, and other sizes are alternatives."),
        ("CL501", "It has no price"),
        ("CL101", "An error stands"),
        ("CL105", "Info, whatever it costs"),
    ],
)
def test_the_documentation_says_what_decides_the_severity(key: str, words: str) -> None:
    assert words in " ".join(convlint("rule", key).out.split())


def test_rules_of_ones_own(folder: Path) -> None:
    rules = folder / "rules"
    rules.mkdir()
    (rules / "odd.yaml").write_text(RULE)
    (folder / "odd.yaml").write_text(CLEAN.replace("C: 256", "C: 63"))
    assert "XY100" in codes("odd.yaml", "--rules", "rules", "--select", "XY")
    assert convlint("rule", "XY100", "--rules", "rules").out.startswith("XY100 odd-channels")
    ran = convlint("rule", "--test", "rules")
    assert (ran.code, ran.out) == (0, "1 rule, 2 examples: 0 failed\n")
    (rules / "odd.yaml").write_text(RULE.replace("{ C: 4 }", "{ C: 5 }"))
    ran = convlint("rule", "--test", "rules")
    assert ran.code == 1
    assert ran.out.startswith("rules/odd.yaml:9: XY100 should pass, but: C=5 is odd\n")
    (rules / "odd.yaml").write_text(RULE.replace("check: C", "check: X"))
    for arguments in (
        ["check", "odd.yaml", "--rules", "rules"],
        ["rule", "--test", "rules"],
        ["rule", "--rules", "rules"],
    ):
        ran = convlint(*arguments)
        assert ran.code == 2
        assert ran.err == "convlint: error: rules/odd.yaml:5:8: check: unknown name 'X'\n"
