"""What is put into written pages: tables of quantities, the steps of a tutorial."""

import pytest

from convlint.facts.layer import QUANTITIES
from convlint.reporters.words import DOCS
from handbook.fragments import UnknownFragmentError, filled, inside, quantities, steps


def test_a_part_that_nothing_makes_is_an_error() -> None:
    with pytest.raises(UnknownFragmentError, match="'specs'"):
        filled("# A\n\n<!-- made: specs -->\n")


def test_what_only_mentions_a_mark_stays() -> None:
    assert filled("so `<!-- made: spec -->` does") == "so `<!-- made: spec -->` does"


def test_all_quantities_are_listed() -> None:
    lines = quantities(QUANTITIES)
    assert [line.split("`")[1] for line in lines if line.startswith("| `")] == list(QUANTITIES)


def test_what_is_said_in_place_of_a_part_gives_way_to_it() -> None:
    page = filled("# A\n\nAll keys: [the site](https://a.b). <!-- made: spec -->\n\nMore.\n")
    assert "the site" not in page
    assert page.startswith("# A\n\n")
    assert page.endswith("\n\nMore.\n")


def test_public_addresses_of_the_site_are_links_inside_of_it() -> None:
    page = f"[a]({DOCS}rules/CL102.html#example), [b]({DOCS}schemas/spec.schema.json), [c](https://other.org/x.html)"
    assert inside(page, "guide/reports.md") == (
        "[a](../rules/CL102.md#example), [b](../schemas/spec.schema.json), [c](https://other.org/x.html)"
    )
    assert inside(page, "index.md").startswith("[a](rules/CL102.md#example)")


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
