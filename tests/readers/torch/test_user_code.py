"""Models see a machine without a network; what would fetch weights is told which argument asks for them."""

import errno
import os
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
import requests

from convlint.model.errors import InputFault
from convlint.readers.torch.user_code import NoNetwork, fetch_refused, no_network, refusal_behind, run

GENERAL = "build it without weights, as with pretrained=False or weights=None"


def loads(pretrained: bool = False, weights: object = None, encoder_weights: str | None = None) -> str:
    """Retries on whatever the network may raise, as hubs do, and then does without."""
    for _ in range(3):
        try:
            urllib.request.urlopen("https://weights.example/x.pth", timeout=60)
        except OSError:
            time.sleep(60)
    return "built"


def is_online() -> bool:
    """As ultralytics, YOLOv5 and others ask."""
    for host in ("one.one.one.one", "1.1.1.1"):
        try:
            socket.create_connection((host, 80), timeout=2).close()
        except OSError:
            continue
        return True
    return False


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"pretrained": True}, "pass pretrained=False"),
        ({"weights": "DEFAULT"}, "pass weights=None"),
        ({"weights": "yolov8n.pt"}, "'yolov8n.pt' names weights; build it without them"),
        ({"encoder_weights": "imagenet"}, "pass encoder_weights=None"),
    ],
)
def test_no_name_is_looked_up_and_the_argument_is_named(arguments: dict[str, object], advice: str) -> None:
    with pytest.raises(NoNetwork) as caught, no_network():
        loads(**arguments)  # type: ignore[arg-type]
    assert (caught.value.host, caught.value.advice) == ("weights.example", advice)


def test_who_was_not_told_to_load_goes_on_as_offline_and_waits_for_nothing() -> None:
    begun = time.monotonic()
    with no_network():
        assert loads() == "built"
        refusal = fetch_refused()
    assert time.monotonic() - begun < 30
    assert (refusal.host, refusal.advice) == ("weights.example", GENERAL)


def test_others_sleep_as_long_as_they_want() -> None:
    slept = []

    def sleeps() -> None:
        begun = time.monotonic()
        time.sleep(0.05)
        slept.append(time.monotonic() - begun)

    with no_network():
        assert not is_online()
        other = threading.Thread(target=sleeps)
        other.start()
        other.join()
    assert slept[0] >= 0.05


def test_a_question_whether_anybody_answers_fails_as_it_does_offline() -> None:
    with no_network():
        assert not is_online()
        for ask in (
            lambda: socket.getaddrinfo("one.one.one.one", 0),
            lambda: socket.gethostbyname("dns.google"),
            lambda: socket.gethostbyname_ex("dns.google"),
            lambda: socket.gethostbyaddr("1.1.1.1"),
            lambda: socket.create_connection(("one.one.one.one", 80), 1),
        ):
            with pytest.raises(socket.gaierror) as unresolved:
                ask()
            assert unresolved.value.errno == socket.EAI_AGAIN
        with pytest.raises(OSError, match="unreachable") as unreachable:
            socket.create_connection(("1.1.1.1", 80))
        assert unreachable.value.errno == errno.ENETUNREACH
        assert fetch_refused() is None
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen("http://one.one.one.one")


def test_requests_sees_a_connection_error() -> None:
    with no_network():
        with pytest.raises(requests.exceptions.ConnectionError) as caught:
            requests.get("https://www.google.com", timeout=3)
        refusal = refusal_behind(caught.value)
    assert refusal.host == "www.google.com"


def test_no_connection_is_made_by_number_either() -> None:
    with no_network(), socket.socket() as one, socket.socket(type=socket.SOCK_DGRAM) as other:
        with pytest.raises(OSError, match="unreachable"):
            one.connect(("127.0.0.1", 9))
        assert one.connect_ex(("127.0.0.1", 9)) == errno.ENETUNREACH
        with pytest.raises(OSError, match="unreachable"):
            other.sendto(b"a question", ("1.1.1.1", 53))


def test_whoever_tries_without_end_is_ended() -> None:
    def waits() -> None:
        while not is_online():
            time.sleep(5)

    with pytest.raises(NoNetwork), no_network():
        waits()


@pytest.mark.parametrize(
    "command",
    [
        lambda: subprocess.run(["curl", "-L", "https://weights.example/x.pth", "-o", "x.pth"], check=False),
        lambda: subprocess.run("wget 'ftp://me:secret@weights.example/x.pth'", shell=True, check=False),
        lambda: subprocess.check_output(args=["git", "clone", "https://weights.example:8080/me/x"]),
        lambda: os.system("curl -sL https://weights.example/x.pth > x.pth"),
    ],
)
def test_no_command_fetches_anything(command) -> None:
    with pytest.raises(NoNetwork) as caught, no_network():
        command()
    assert caught.value.host == "weights.example"


def test_other_commands_run() -> None:
    with no_network():
        assert subprocess.run(["echo", "torch"], capture_output=True, text=True, check=True).stdout == "torch\n"


def fails_offline() -> None:
    try:
        socket.create_connection(("licences.example", 443))
    except OSError as error:
        raise RuntimeError("no licence") from error


def fetches_and_hides_it() -> None:
    loads()
    raise FileNotFoundError("x.pth")


def fails_for_itself() -> None:
    assert not is_online()
    raise ValueError("no such width")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: urllib.request.urlopen("https://weights.example/x.pth"),
            "building it wants to load something from weights.example; " + GENERAL,
        ),
        (
            fails_offline,
            "wants to reach licences.example, which models cannot here, and raises RuntimeError: no licence at",
        ),
        (
            fetches_and_hides_it,
            f"; before, it wanted to load something from weights.example: {GENERAL}",
        ),
        (fails_for_itself, "building it raises ValueError: no such width at"),
    ],
)
def test_only_what_ends_for_it_is_told_what_was_wanted(build, words: str) -> None:
    with no_network(), pytest.raises(InputFault) as caught:
        run("building it", build)
    assert words in caught.value.message
    assert "one.one.one.one" not in caught.value.message


def test_afterwards_all_is_as_before(tmp_path) -> None:
    def held() -> tuple[object, ...]:
        return (
            socket.socket.connect, socket.getaddrinfo, socket.create_connection, socket.gethostbyname, time.sleep,
            subprocess.Popen.__init__, os.system,
        )  # fmt: skip

    before = held()
    with no_network():
        assert all(now is not then for now, then in zip(held(), before, strict=True))
        left, right = socket.socketpair()
        left.close()
        right.close()
        with socket.socket(socket.AF_UNIX) as one, pytest.raises(FileNotFoundError):
            one.connect(str(tmp_path / "nobody"))
    assert held() == before


def test_a_machine_that_is_offline_knows_itself() -> None:
    with no_network():
        assert socket.gethostbyname("localhost") == "127.0.0.1"
        socket.getaddrinfo("127.0.0.1", 80)
    assert fetch_refused() is None


def test_a_command_that_only_speaks_of_an_address_runs() -> None:
    with no_network():
        said = subprocess.run(["echo", "see https://example.com/docs"], capture_output=True, text=True, check=True)
        with pytest.raises(NoNetwork):
            subprocess.run("true && curl -sO https://weights.example/x.pth", shell=True, check=False)
    assert said.stdout == "see https://example.com/docs\n"


def test_weights_of_classes_ask_for_nothing() -> None:
    with no_network():
        assert loads(weights=[0.2, 0.8]) == "built"


def test_what_is_sent_without_a_connection_is_refused() -> None:
    offline = os.strerror(errno.ENETUNREACH)
    with no_network(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, pytest.raises(OSError, match=offline):
        one.sendmsg([b"x"], [], 0, ("192.0.2.1", 9))
