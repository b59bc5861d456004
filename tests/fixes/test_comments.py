"""Whether comments that silence rules still do so after an edit."""

from __future__ import annotations

from mended_specs import network_of, planned, wish
from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.fixes.comments import UNUSED, unused
from convlint.gpus.gpu import load_gpu
from convlint.report import Suppressed
from convlint.rulebook.book import Rulebook

NET = network_of(
    "  - { name: image, op: input, C: 3, H: 32, W: 32 }\n  - { name: a, K: 60 }\n  - { name: b, K: 16 }\n",
    defaults="N: 8, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC",
)


def test_comments_that_lose_their_use_are_blamed_on_what_changed_their_layers() -> None:
    plan = planned(NET, wish("a", K=64), wish("image", "XY002", gpu="t4", layout="NCHW"), wish("b", dtype="bf16"))
    clean, finding = (
        check_network(NET, Rulebook([]), [Target(label="a100", gpu=load_gpu("a100"))], "training"),
        wish("a", "XY003").finding,
    )
    before = replace(clean, suppressed=(Suppressed(finding=finding, reason="", by="comment"),))
    after = replace(clean, findings=(wish("a", "XY901").finding,))
    assert unused(plan, before, after, {"XY901"}) == {0: UNUSED}
    assert unused(plan, before, after, {"XY902"}) == unused(plan, after, after, {"XY901"}) == {}
    assert unused(plan, clean, after, {"XY901"}) == dict.fromkeys((0, 1), UNUSED)
