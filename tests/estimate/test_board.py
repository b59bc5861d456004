"""A GPU as the search needs it: the kernels of its generation, and its clock under load."""

from __future__ import annotations

from dataclasses import replace

from convolutions import A100, conv, fprop


def test_a_changed_gpu_of_the_same_id_is_not_mistaken():
    layer = conv(C=512, K=512, H=28, W=28)
    before = fprop(layer)
    halved = replace(A100, sms=54)
    assert fprop(layer, halved) != before
    assert fprop(layer) == before
