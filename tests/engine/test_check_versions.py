"""Versions that are only installed here: what they say of a GPU elsewhere is no error."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from wirings import Wiring

from convlint.engine.check import Target, check_network
from convlint.gpus.gpu import load_gpu
from convlint.model.runtime import Runtime, Version
from convlint.rulebook.book import load_rulebook


@pytest.mark.parametrize(
    ("origins", "severity"),
    [
        ({"cudnn": "installed", "framework_version": "installed"}, "info"),
        ({"cudnn": "what torch 2.13.0 needs, installed", "framework_version": "installed"}, "info"),
        ({"cudnn": "uv.lock:3", "framework_version": "installed"}, "error"),
        ({}, "error"),  # stated
    ],
)
def test_what_is_only_installed_makes_no_error(origins: dict[str, str], severity: str) -> None:
    net = Wiring(C=64, N=4, size=28)
    network = net.network(net.conv(net.image, 64, 3))
    runtime = Runtime(framework="pytorch", framework_version=Version("2.13.0"), cudnn=Version("9.20.0"))
    network = replace(network, runtime=runtime, origins=origins)
    result = check_network(network, load_rulebook(), [Target(label="v100", gpu=load_gpu("v100"))], "inference")
    assert [each.severity for each in result.findings if each.rule.code == "CL707"] == [severity]
