"""One line a finding."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import for_each
from reports import ALIGNMENT, finding, full_report

from convlint.model.errors import defect
from convlint.model.location import Location
from convlint.model.report import InputError
from convlint.reporters import Style, reporter

SNAPSHOTS = Path(__file__).parent / "snapshots"


@for_each("form", ["text", "concise", "github"])
def test_a_defect_is_named_once(form: str) -> None:
    try:
        raise RuntimeError("lost my way")
    except RuntimeError as error:
        errors = (InputError(path="net.py", message=defect(error), internal=True),)
    text = reporter(form)(full_report(findings=(), errors=errors), Style())
    assert (text.count("internal error"), "RuntimeError: lost my way" in text) == (1, True)


def test_concise_snapshot(same_as_before: Callable[[Path, str], None]) -> None:
    same_as_before(SNAPSHOTS / "concise.txt", reporter("concise")(full_report(), Style()))


@pytest.mark.parametrize(
    ("layer", "message", "end"),
    [
        ("conv2", "C=62 is odd", ": C=62 is odd (conv2)"),
        ("a", "C=62 should be a multiple of 8", ": C=62 should be a multiple of 8 (a)"),
        ("conv2", "conv2 is NHWC, but conv1 is NCHW", ": conv2 is NHWC, but conv1 is NCHW"),
        ("conv", "conv2 is NHWC", ": conv2 is NHWC (conv)"),
        ("b\x1b[31m\nd", "C=62 is odd", ": C=62 is odd (b d)"),
        ("", "C=62 is odd", ": C=62 is odd"),
        (None, "off in 4 layers", ": off in 4 layers"),
    ],
)
@pytest.mark.parametrize("place", [Location(path="p"), Location(path="p", line=3, column=2)])
def test_lines_name_the_layer(layer: str | None, message: str, end: str, place: Location) -> None:
    report = full_report(findings=(finding(ALIGNMENT, message, place, layer),), errors=())
    line, *_ = reporter("concise")(report, Style()).split("\n")
    assert line.endswith(f"warning CL102 channel-alignment{end}")
