"""What is put into written pages: tables of quantities, the benchmarks' page, the steps of a tutorial."""

from __future__ import annotations

import pytest
from checkout import ROOT

from convlint.facts.layer import QUANTITIES
from convlint.gpus.gpu import gpu_names
from convlint.rulebook.book import load_rulebook
from handbook.fragments import UnknownFragmentError, accuracy, filled, quantities, steps

README = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")


def test_counts_are_those_of_today() -> None:
    text = filled("<!-- count: rules --> rules, <!-- count: gpus --> GPUs", README)
    assert text == f"{len(load_rulebook().rules)} rules, {len(gpu_names())} GPUs"


def test_a_part_that_nothing_makes_is_an_error() -> None:
    with pytest.raises(UnknownFragmentError, match="'specs'"):
        filled("# A\n\n<!-- made: specs -->\n", README)


def test_what_only_mentions_a_mark_stays() -> None:
    assert filled("so `<!-- made: spec -->` does", README) == "so `<!-- made: spec -->` does"


def test_all_quantities_are_listed() -> None:
    lines = quantities(QUANTITIES)
    assert [line.split("`")[1] for line in lines if line.startswith("| `")] == list(QUANTITIES)


def test_the_benchmarks_own_page_is_there_as_it_is() -> None:
    (text,) = accuracy(README)
    assert text.splitlines()[-1] == README.splitlines()[-1]
    assert "\n# " not in f"\n{text}".partition("```")[0]
    assert accuracy("# T\n\nsee [data](data/x.md), [b](https://b), [c](#d)\n") == [
        "see [data](https://github.com/convlint/convlint/blob/main/benchmarks/data/x.md), [b](https://b), [c](#d)\n"
    ]


def test_steps_are_read_from_their_sections() -> None:
    page = (
        "# T\n\n## Step 0: as it is\n\n  2 s of convolutions per training step, grade F; 500 ms with all of it\n\n"
        "## Step 1: better\n\n  900 ms of convolutions per training step, grade C; 1 ms with all of it\n"
        "  500 ms of convolutions per training step, grade A; no fix of theirs is advised\n\n"
        "## A plan\n\n  2 s of convolutions per training step, grade F\n"
    )
    drawing = "\n".join(steps(page))
    assert drawing.count('<text class="name"') == 2
    assert "as it is: 2 s, grade F" in drawing
    assert "better: 500 ms, grade A" in drawing
