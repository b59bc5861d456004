"""A size that falls by one never costs ten times the time without a finding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.estimate import time_us
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
GPUS = [load_gpu(name) for name in ("k80", "v100", "t4", "a100", "rtx-4090", "h100")]


@pytest.mark.slow
@given(
    layer=st.builds(
        ConvLayer, name=st.just("a"), N=st.sampled_from([2, 8, 32, 256]), C=st.sampled_from([4, 8, 16, 64, 256, 1024]),
        K=st.sampled_from([8, 16, 64, 256, 512]), H=st.sampled_from([7, 14, 28, 56]), W=st.sampled_from([7, 14, 56]),
        R=st.sampled_from([1, 3]), S=st.sampled_from([1, 3]), dtype=st.sampled_from(Dtype),
        layout=st.sampled_from(["NCHW", "NHWC"]),
    ),
    gpu=st.sampled_from(GPUS), size=st.sampled_from(["N", "C", "K", "H", "W"]),
)  # fmt: skip
def test_no_cliff_is_silent(layer: ConvLayer, gpu: object, size: str) -> None:
    before = with_output(layer)
    after = with_output(replace(layer, **{size: getattr(layer, size) - 1}))
    now, then = (time_us(one, gpu, Runtime(), "training") for one in (before, after))  # type: ignore[arg-type]
    if now and then and then > 10 * now:
        target = Target(label="gpu", gpu=gpu)  # type: ignore[arg-type]
        found = check_network(Network(path="x", layers=(after,)), BUILTIN, [target], "training").findings
        assert [finding for finding in found if finding.severity != "info"]
