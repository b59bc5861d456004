"""The rounds on one spec: what does not go together is found and left out."""

import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
from command_line import Ran, convlint
from constructed import NN, chain, conv, norm
from msgspec.structs import replace
from specs import HEAD

from convlint.fixes import verify
from convlint.fixes.plan import ValueChange
from convlint.fixes.spec_text import Edits, spec_edits
from convlint.mend import attempt, rounds
from convlint.mend.checking import Fixing, InputResult, Job
from convlint.mend.mending import mended_models
from convlint.model.layer import Dtype, with_output
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.readers import ReadOptions
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.rulebook.book import load_rulebook
from convlint.verdict.select import Policy, Selection, selected

LAYERS = [f"  - {{ name: l{n}, C: 60, K: 64, R: 3, S: 3, padding: 1, first: false }}\n" for n in range(9)]
NET = HEAD + "".join(LAYERS)


@pytest.fixture(autouse=True)
def _here(here: Path) -> None:
    Path("net.yaml").write_text(NET)
    Path("net.py").write_text(TEXT)


def fixed() -> tuple[Ran, str]:
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "--select", "CL102", "--fail-on", "info")
    return ran, Path("net.yaml").read_text()


def but(*numbers: int) -> str:
    return HEAD + "".join(layer if n in numbers else layer.replace("60", "64") for n, layer in enumerate(LAYERS))


def spoiled(text: str, network: Network, changes: Iterable[ValueChange], with_what: Any) -> Edits:
    """The edits for `changes`, where some of them do something else as well."""
    edits = spec_edits(text, network, list(changes))
    return replace(edits, edits=tuple(replace(edit, new=with_what(text, edit)) for edit in edits.edits))


def test_what_cannot_be_edited_is_left_out() -> None:
    def partly(text: str, network: Network, changes: list[ValueChange]) -> Edits:
        refused = {change: "it is carved in stone" for change in changes if change.layer == 4}
        kept = spec_edits(text, network, [change for change in changes if change.layer != 4])
        return replace(kept, refused=refused)

    with patch.object(attempt, "spec_edits", partly):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(4))
    assert "CL102 of l4 is not fixed: it is carved in stone" in ran.err


@pytest.mark.parametrize("new", ["-64", "72", "64, N: 3"])
def test_what_reads_as_something_else_is_left_out(new: str) -> None:
    def wrong(text: str, network: Network, changes: list[ValueChange]) -> Edits:
        return spoiled(text, network, changes, lambda text, edit: new if "l6" in _line(text, edit.start) else edit.new)

    with patch.object(attempt, "spec_edits", wrong):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(6))
    assert "CL102 of l6 is not fixed: " in ran.err


@pytest.mark.parametrize("culprits", [{2}, {0, 7}])
def test_what_breaks_the_whole_file_is_searched_for(culprits: set[int]) -> None:
    def breaking(text: str, network: Network, changes: list[ValueChange]) -> Edits:
        def new(text: str, edit: Any) -> str:
            return "[" if any(f"l{n}," in _line(text, edit.start) for n in culprits) else edit.new

        return spoiled(text, network, changes, new)

    with patch.object(attempt, "spec_edits", breaking):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(*culprits))


def test_two_that_do_not_go_together() -> None:
    def clashing(text: str, network: Network, changes: list[ValueChange]) -> Edits:
        both = {1, 5} <= {change.layer for change in changes} | {
            n for n, layer in enumerate(network.layers) if layer.C == 64
        }
        return spoiled(text, network, changes, lambda _, edit: "[" if both else edit.new)

    with patch.object(attempt, "spec_edits", clashing):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(5))


def test_a_finding_that_stays_leaves_no_trace() -> None:
    with patch.object(verify, "staying", lambda plan, _: {n for n, w in enumerate(plan.granted) if w.layer == "l3"}):
        ran, text = fixed()
    assert (ran.code, text) == (1, but(3))
    assert "CL102 of l3 is not fixed: the finding would stay" in ran.err


def test_autocast_that_shortens_the_step_is_written_although_its_convolution_takes_longer() -> None:
    Path("net.yaml").write_text(
        "version: 1\ntarget: a10\nruntime: { framework: pytorch, tf32: true }\n"
        "defaults: { N: 64, dtype: fp32, layout: NCHW }\nlayers:\n"
        "  - { name: patches, C: 3, H: 224, W: 224, K: 768, kernel_size: 16, stride: 16 }\n"
        "  - { name: norm, op: layernorm }\n  - { name: up, op: linear, C: 3072 }\n"
    )
    first = json.loads(convlint("check", "net.yaml", "-o", "json").out)["summary"]
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "-o", "json")
    after = json.loads(ran.out)["summary"]
    assert "not fixed" not in ran.err
    assert after["step_us"] < first["step_us"] / 2
    assert after["time_us"] == first["time_after_fix_us"] > first["time_us"]


def test_of_several_on_one_layer_that_lose_time_each_is_tried_alone() -> None:
    Path("net.yaml").write_text(HEAD.replace("NHWC", "NCHW") + LAYERS[0])

    def slow_with_channels(plan: Any, *_: Any) -> dict[int, tuple[str, float]]:
        if any("C" in wish.sets for wish in plan.granted):
            return dict.fromkeys(range(len(plan.granted)), ("a100", 7.0))
        return {}

    with patch.object(rounds, "slower", slow_with_channels):
        ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "--select", "CL102,CL401", "-o", "concise")
    assert Path("net.yaml").read_text() == HEAD + LAYERS[0]  # the layout alone is no slower
    assert "CL102 of l0 is not fixed: its layers would take 7 us longer on a100" in ran.err


def test_rounds_and_checks_are_bounded() -> None:
    checks = 0

    def endless(*_: Any) -> set[int]:
        nonlocal checks
        checks += 1
        return {0}

    with patch.object(verify, "staying", endless), patch.object(rounds, "MOST_CHECKS", 4):
        ran, text = fixed()
    assert checks == 4
    assert (ran.code, text) == (1, NET)
    assert "too much was tried in vain" in ran.err


def _line(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 : text.find("\n", at)]


TEXT = f"{NN}a = nn.Conv2d(64, 60, 3)\nn = nn.BatchNorm2d(60)\nb = nn.Conv2d(60, 256, 3)\n"
MENDED = TEXT.replace("60", "64")
Read = Callable[[str, ReadOptions], tuple[Network | None, tuple[InputError, ...]]]


def network(text: str, N: int = 64) -> Network:
    """What the calls in a text construct."""
    calls = re.findall(r"nn\..*\)", text)
    (C, K, _), (width,), (own, out, _) = (map(int, call.strip(")").partition("(")[2].split(",")) for call in calls)
    assert own == K == width
    shared = {
        "N": N,
        "H": 56,
        "W": 56,
        "PadH": 1,
        "PadW": 1,
        "PadH_end": 1,
        "PadW_end": 1,
        "dtype": Dtype.fp16,
        "layout": "NHWC",
    }
    first, last = (
        with_output(conv(text, calls[0], name="a", C=C, K=K, **shared)),
        with_output(conv(text, calls[2], name="b", C=own, K=out, **shared)),
    )
    return chain(first, norm(text, calls[1], K), last)


def as_it_is(text: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    return network(text), ()


def broken_beside(width: int, *, trains: bool | None = None) -> Read:
    """A model that runs with one width alone, in one mode or in both."""

    def read(text: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
        if trains in (None, options.trains) and f", {width}," not in text:
            return None, (InputError(path="net:Net", message="the forward pass raises"),)
        return network(text), ()

    return read


class Models:
    """Reads each model by its own function."""

    def __init__(self, models: dict[str, Read]) -> None:
        self.models = models

    def read(self, source: Input, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
        text = options.sources.get(os.path.realpath("net.py"), Path("net.py").read_bytes().decode("latin-1"))
        return self.models[source.name](text, options)


def mended(models: dict[str, Read]) -> list[InputResult]:
    rulebook = load_rulebook()
    codes = frozenset(selected(Policy(), rulebook)) & {"CL102"}
    fixing = Fixing(selection=Selection(policy=Policy(), codes=codes, severities={}), unsafe=True, mends=True)
    tasks = [(Input(kind="module", name=name), rulebook, Job(fixing=fixing)) for name in models]
    return mended_models(tasks, cast(Reading, Models(models)))


def after(outcome: InputResult) -> list[bytes]:
    return [file.after for file in outcome.fixed.files]


def notes(outcome: InputResult) -> str:
    return "\n".join(outcome.fixed.notes)


def test_a_width_changes_with_the_norm_and_all_layers() -> None:
    (outcome,) = mended({"net:Net": as_it_is})
    (file,) = outcome.fixed.files
    assert (file.path, file.before, file.after) == ("net.py", TEXT.encode(), MENDED.encode())
    assert (outcome.fixed.count, outcome.fixed.notes, outcome.errors) == (1, (), [])
    assert [entry.layer.K for entry in outcome.result.layers] == [64, 256]
    assert [entry.layer.K for entry in outcome.fixed.unmended.layers] == [60, 256]


def test_what_runs_no_more_is_left_out() -> None:
    (outcome,) = mended({"net:Net": broken_beside(60)})
    assert after(outcome) == []
    assert notes(outcome) == (
        "net:Net: CL102 of a is not fixed: net:Net would not run any more: the forward pass raises"
    )


def test_the_other_mode_has_a_say_where_it_runs_at_all() -> None:
    (outcome,) = mended({"net:Net": broken_beside(60, trains=True)})
    assert after(outcome) == []
    assert "net:Net would not run any more in train mode: the forward pass raises" in notes(outcome)
    (outcome,) = mended({"net:Net": broken_beside(61, trains=True)})
    assert after(outcome) == [MENDED.encode()]


def test_models_that_share_the_file_have_a_say_and_have_it_in_common() -> None:
    one, other = mended({"one": as_it_is, "other": as_it_is})
    assert after(one) == after(other) == [MENDED.encode()]
    assert [each.fixed.count for each in (one, other) if each.fixed] == [1, 1]
    one, other = mended({"one": as_it_is, "other": broken_beside(60)})
    assert after(one) == after(other) == []
    assert "one: CL102 of a is not fixed: other would not run any more" in notes(one)


def test_what_changes_in_another_way_elsewhere_is_left_out() -> None:
    def wider(text: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
        return network(text, N=64 if "60" in text else 32), ()

    one, _ = mended({"one": as_it_is, "other": wider})
    assert after(one) == []
    assert "of other, which runs the same code, a would be read with another N" in notes(one)


def test_what_could_not_be_read_before_has_no_say() -> None:
    one, other = mended({"one": as_it_is, "other": broken_beside(1)})
    assert (after(one), after(other)) == ([MENDED.encode()], [])
    assert [error.message for error in other.errors] == ["the forward pass raises"]


def test_without_dataflow_nothing_is_edited() -> None:
    (outcome,) = mended({"net:Net": lambda text, _: (replace(network(text), operations=()), ())})
    assert after(outcome) == []
    assert notes(outcome) == "net:Net is not edited: it is not known what its layers read"
