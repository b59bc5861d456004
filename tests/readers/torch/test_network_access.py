"""Models get no network, and are told which argument asks for weights."""

from __future__ import annotations

import socket
import urllib.request

import pytest

from convlint.readers.torch.network_access import NoNetwork, no_network


def loads(pretrained: bool = False, weights: object = None, encoder_weights: str | None = None) -> None:
    """Retries on whatever the network may raise, as hubs do."""
    for _ in range(3):
        try:
            urllib.request.urlopen("https://weights.example/x.pth", timeout=60)
        except OSError:
            continue


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"pretrained": True}, "pass pretrained=False"),
        ({"weights": "DEFAULT"}, "pass weights=None"),
        ({"encoder_weights": "imagenet"}, "pass encoder_weights=None"),
        ({}, "build it without weights, as with pretrained=False or weights=None"),
    ],
)
def test_no_name_is_looked_up_and_the_argument_is_named(arguments: dict[str, object], advice: str) -> None:
    with pytest.raises(NoNetwork) as caught, no_network():
        loads(**arguments)  # type: ignore[arg-type]
    assert (caught.value.host, caught.value.advice) == ("weights.example", advice)


def test_no_connection_is_made_by_number_either() -> None:
    with no_network(), socket.socket() as one:
        for connect in (one.connect, one.connect_ex):
            with pytest.raises(NoNetwork) as caught:
                connect(("127.0.0.1", 9))
            assert caught.value.host == "127.0.0.1"
        with pytest.raises(NoNetwork):
            socket.create_connection(("localhost", 9))


def test_afterwards_all_is_as_before(tmp_path) -> None:
    before = socket.socket.connect, socket.getaddrinfo, socket.create_connection
    with no_network():
        assert socket.getaddrinfo is not before[1]
        left, right = socket.socketpair()
        left.close()
        right.close()
        with socket.socket(socket.AF_UNIX) as one, pytest.raises(FileNotFoundError):
            one.connect(str(tmp_path / "nobody"))
    assert (socket.socket.connect, socket.getaddrinfo, socket.create_connection) == before
