"""The rounds on one spec: what does not go together is found and left out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from command_line import Ran, convlint
from msgspec.structs import replace
from specs import HEAD

from convlint.fixes.plan import Change
from convlint.fixes.spec_text import Edits, Refusal, spec_edits
from convlint.linting import attempt, mending
from convlint.model.network import Network

LAYERS = [f"  - {{ name: l{n}, C: 60, K: 64, R: 3, S: 3, padding: 1, first: false }}\n" for n in range(9)]
NET = HEAD + "".join(LAYERS)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.yaml").write_text(NET)


def fixed() -> tuple[Ran, str]:
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "--select", "CL102", "--fail-on", "info")
    return ran, Path("net.yaml").read_text()


def but(*numbers: int) -> str:
    return HEAD + "".join(layer if n in numbers else layer.replace("60", "64") for n, layer in enumerate(LAYERS))


def spoiled(text: str, network: Network, changes: Iterable[Change], with_what: Any) -> Edits:
    """The edits for `changes`, where some of them do something else as well."""
    edits = spec_edits(text, network, list(changes))
    return replace(edits, edits=tuple(replace(edit, new=with_what(text, edit)) for edit in edits.edits))


def test_all_at_once() -> None:
    ran, text = fixed()
    assert (ran.code, text) == (0, but())
    assert "fixed 9 findings" in ran.err


def test_what_cannot_be_edited_is_left_out() -> None:
    def partly(text: str, network: Network, changes: list[Change]) -> Edits:
        refused = tuple(Refusal(change, "it is carved in stone") for change in changes if change.layer == 4)
        kept = spec_edits(text, network, [change for change in changes if change.layer != 4])
        return replace(kept, refused=refused)

    with patch.object(attempt, "spec_edits", partly):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(4))
    assert "CL102 of l4 is not fixed: it is carved in stone" in ran.err


@pytest.mark.parametrize("new", ["-64", "72", "64, N: 3"])
def test_what_reads_as_something_else_is_left_out(new: str) -> None:
    def wrong(text: str, network: Network, changes: list[Change]) -> Edits:
        return spoiled(text, network, changes, lambda text, edit: new if "l6" in _line(text, edit.start) else edit.new)

    with patch.object(attempt, "spec_edits", wrong):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(6))
    assert "CL102 of l6 is not fixed: " in ran.err


@pytest.mark.parametrize("culprits", [{2}, {0, 7}])
def test_what_breaks_the_whole_file_is_searched_for(culprits: set[int]) -> None:
    def breaking(text: str, network: Network, changes: list[Change]) -> Edits:
        def new(text: str, edit: Any) -> str:
            return "[" if any(f"l{n}," in _line(text, edit.start) for n in culprits) else edit.new

        return spoiled(text, network, changes, new)

    with patch.object(attempt, "spec_edits", breaking):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(*culprits))


def test_two_that_do_not_go_together() -> None:
    def clashing(text: str, network: Network, changes: list[Change]) -> Edits:
        both = {1, 5} <= {change.layer for change in changes} | {
            n for n, layer in enumerate(network.layers) if layer.C == 64
        }
        return spoiled(text, network, changes, lambda _, edit: "[" if both else edit.new)

    with patch.object(attempt, "spec_edits", clashing):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(5))


def test_a_finding_that_stays_leaves_no_trace() -> None:
    with patch.object(mending, "staying", lambda plan, _: {n for n, w in enumerate(plan.granted) if w.layer == "l3"}):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(3))
    assert "CL102 of l3 is not fixed: the finding would stay" in ran.err


def test_of_several_on_one_layer_that_lose_time_each_is_tried_alone() -> None:
    Path("net.yaml").write_text(HEAD.replace("NHWC", "NCHW") + LAYERS[0])

    def slow_with_channels(plan: Any, *_: Any) -> dict[int, tuple[str, float]]:
        if any("C" in wish.sets for wish in plan.granted):
            return dict.fromkeys(range(len(plan.granted)), ("a100", 7.0))
        return {}

    with patch.object(mending, "slower", slow_with_channels):
        ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "--select", "CL102,CL401", "-o", "concise")
    assert Path("net.yaml").read_text() == HEAD + LAYERS[0]  # the layout alone is no slower
    assert "CL102 of l0 is not fixed: its layers would take 7 us longer on a100" in ran.err


def test_rounds_and_checks_are_bounded() -> None:
    checks = 0

    def endless(*_: Any) -> set[int]:
        nonlocal checks
        checks += 1
        return {0}

    with patch.object(mending, "staying", endless), patch.object(mending, "MOST_CHECKS", 4):
        ran, text = fixed()
    assert checks == 4
    assert (ran.code, text) == (1, NET)
    assert "too much was tried in vain" in ran.err


def _line(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 : text.find("\n", at)]
