"""Every test here runs in a real browser: `make test` leaves them to `make test-browser`, which installs one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsers import arguments, executable, missing
from report_pages import (
    HOSTILE_NAMES,
    MIXED,
    NO_LAYERS,
    RESNET50,
    TWO,
    UNREAD,
    Made,
    make_page,
    many_layers,
    named_layers,
)
from watched_pages import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HERE = Path(__file__).parent
NETWORKS: dict[str, tuple[str | Path, tuple[str, ...]]] = {
    "mixed": (MIXED, ()),
    "two targets": (MIXED, TWO),
    "resnet50": (RESNET50, ()),
    "no layers": (NO_LAYERS, ()),
    "unread": (UNREAD, ()),
    "chinese": (MIXED, (*TWO, "--lang", "zh")),
    "hostile": (named_layers(HOSTILE_NAMES), ()),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Items of other folders come here too."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Fails, and never skips, where there is no browser: who asks for these tests is told what to install."""
    if wanted := missing():
        pytest.fail(wanted, pytrace=False)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable(), args=arguments())
        yield started
        started.close()


@pytest.fixture
def watch(browser: Browser) -> Iterator[Watch]:
    """Opens pages; at the end none may have had an error, a dialog, a refusal by its policy or a request."""
    opened = Watch(browser)
    yield opened
    trouble = opened.trouble()
    opened.close()
    assert trouble == []


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Made]:
    """The page of a network of `NETWORKS`, or of "N layers" or "N layers, two targets", made once."""
    pages: dict[str, Made] = {}

    def make(name: str) -> Made:
        if name not in pages:
            spec, options = NETWORKS.get(name) or (
                many_layers(int(name.split()[0])),
                TWO if name.endswith("two targets") else (),
            )
            pages[name] = make_page(tmp_path_factory.mktemp("page"), spec, *options)
        return pages[name]

    return make
