"""`convlint check --fix` on layouts: what is connected moves together, for all targets, or stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Ran, convlint
from parsed import sarif_run
from sarif_fixes import applied

TOP = "version: 1\ntarget: [a100]\ndefaults: { N: 64, dtype: fp16, layout: NCHW }\nlayers:\n"
MOBILE = (
    TOP
    + """\
  - { name: image, op: input, C: 3, H: 224, W: 224 }
  - { name: stem, K: 64, kernel_size: 3, stride: 2, padding: 1 }
  - { name: dw1, K: 64, groups: 64, kernel_size: 3, padding: 1 }   # no rule minds its layout
  - { name: pw1, K: 128, kernel_size: 1 }
  - { name: dw2, K: 128, groups: 128, kernel_size: 3, padding: 1 }
  - { name: c3, K: 256, kernel_size: 3, padding: 1 }
  - { name: head, K: 21, kernel_size: 1 }
"""
)
ALONE = (
    TOP
    + """\
  - { name: a, C: 64, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1 }
  - { name: dw, C: 64, H: 56, W: 56, K: 64, groups: 64, kernel_size: 3, padding: 1 }
  - { name: b, C: 64, H: 56, W: 56, K: 256, kernel_size: 1 }
"""
)
GROUPED = (
    TOP
    + """\
  - { name: image, op: input, C: 64, H: 56, W: 56 }
  - { name: a, K: 384, kernel_size: 3, padding: 1 }
  - { name: g, K: 384, groups: 8, kernel_size: 3, padding: 1 }
  - { name: b, K: 256, kernel_size: 1 }
"""
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fixed(text: str, *options: str) -> tuple[Ran, str]:
    Path("net.yaml").write_text(text)
    ran = convlint("check", "net.yaml", "--fix", "-o", "concise", *options)
    return ran, Path("net.yaml").read_text()


@pytest.mark.parametrize("text", [MOBILE, ALONE], ids=["connected", "alone"])
@pytest.mark.parametrize("gpus", [(), ("-g", "v100"), ("-g", "v100", "-g", "a100")], ids=["a100", "v100", "both"])
def test_a_network_moves_as_a_whole(text: str, gpus: tuple[str, ...]) -> None:
    ran, after = fixed(text, *gpus)
    assert after == text.replace("layout: NCHW", "layout: NHWC")
    assert "CL402" not in ran.out
    assert "not fixed" not in ran.err


def test_what_says_its_layout_itself_moves_with_what_it_is_connected_to() -> None:
    text = MOBILE.replace("groups: 64,", "groups: 64, layout: NCHW,")
    assert fixed(text)[1] == text.replace("layout: NCHW", "layout: NHWC")
    text = ALONE.replace("groups: 64,", "groups: 64, layout: NCHW,")
    assert fixed(text)[1] == text.replace("layout: NCHW", "layout: NHWC")  # the setting is the network's


def test_layers_with_groups_that_are_better_off_stay() -> None:
    ran, after = fixed(GROUPED)
    assert after.count("layout: NHWC") == 2
    assert "groups: 8, kernel_size: 3, padding: 1 }" in after
    assert "CL40" not in ran.out
    assert "not fixed" not in ran.err


def test_a_layout_that_one_target_does_not_want_stays_for_all() -> None:
    text = MOBILE.replace("fp16", "fp32")
    ran, after = fixed(text, "-g", "a100", "-g", "v100")
    assert after == text
    assert "CL401" in ran.err
    assert "not fixed" in ran.err


def test_a_comment_at_one_layer_keeps_that_one() -> None:
    """Its neighbours pay the copies, and follow the advice as far as it pays nevertheless."""
    text = MOBILE.replace("1 }\n  - { name: head", "1 }  # convlint: ignore[CL401]\n  - { name: head")
    ran, after = fixed(text)
    assert after.count("NHWC") == 5
    assert "K: 256, kernel_size: 3, padding: 1 }  #" in after
    assert "not fixed" not in ran.err
    assert "CL901" not in ran.out
    text = ALONE.replace("K: 256, kernel_size: 1 }", "K: 256, kernel_size: 1 }  # convlint: ignore[CL401]")
    ran, after = fixed(text)
    assert after.count("NHWC") == 2
    assert "K: 256, kernel_size: 1 }  #" in after
    assert "CL901" not in ran.out


def test_layers_that_read_the_same_image_move_together() -> None:
    text = TOP.replace("[a100]", "[a100, t4]").replace("fp16", "fp32") + (
        "  - { name: image, op: input, C: 3, H: 56, W: 56 }\n"
        "  - { name: a, K: 24, kernel_size: 3, padding: 1 }\n"
        "  - { name: b, input: image, K: 16, kernel_size: 5, padding: 2 }\n"
        "  - { name: c, K: 124, kernel_size: 3, padding: 1 }\n"
    )
    assert fixed(text)[1] == text  # a alone would be no slower on t4


@pytest.mark.parametrize("text", [MOBILE, ALONE, GROUPED], ids=["connected", "alone", "grouped"])
def test_sarif_has_the_same_edits(text: str) -> None:
    Path("net.yaml").write_text(text)
    found = sarif_run(convlint("check", "net.yaml", "--select", "CL401,CL404", "-o", "sarif").out)["results"]
    edited = [applied(text.encode(), result["fixes"][0]).decode() for result in found if "fixes" in result]
    assert edited == [fixed(text, "--select", "CL401,CL404")[1]]
    assert edited != [text]
