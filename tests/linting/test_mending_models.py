"""Live models mended together, by a reader that takes a network from two calls in a file: what each has a say in."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from constructed import NN, chain, conv, norm
from msgspec.structs import replace

from convlint.linting.fixed import Fixing, Outcome
from convlint.linting.mending_models import mended_models
from convlint.linting.one_input import Job
from convlint.model.layer import Dtype, with_output
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.report import InputError
from convlint.rulebook.book import load_rulebook
from convlint.verdict.select import Policy, selected

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


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(TEXT)


def mended(models: dict[str, Read]) -> list[Outcome]:
    rulebook = load_rulebook()
    codes = frozenset(selected(Policy(), rulebook)) & {"CL102"}
    fixing = Fixing(policy=Policy(), codes=codes, severities={}, unsafe=True, mends=True)
    tasks = [(Input(kind="module", name=name), rulebook, Job(fixing=fixing)) for name in models]
    return mended_models(tasks, cast(Reading, Models(models)))


def after(outcome: Outcome) -> list[bytes]:
    assert outcome.fixed is not None
    return [file.after for file in outcome.fixed.files]


def notes(outcome: Outcome) -> str:
    assert outcome.fixed is not None
    return "\n".join(outcome.fixed.notes)


def test_a_width_changes_with_the_norm_and_all_layers() -> None:
    (outcome,) = mended({"net:Net": as_it_is})
    assert outcome.fixed is not None
    (file,) = outcome.fixed.files
    assert (file.path, file.before, file.after) == ("net.py", TEXT.encode(), MENDED.encode())
    assert (outcome.fixed.count, outcome.fixed.notes, outcome.errors) == (1, (), [])
    assert outcome.result is not None
    assert [entry.layer.K for entry in outcome.result.layers] == [64, 256]
    assert outcome.fixed.unmended is not None
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
