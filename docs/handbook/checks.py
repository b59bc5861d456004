"""`python -m handbook.checks SITE`: whether the built site has a page for every rule, and whether its links hold.

MkDocs looks at the links that it knows; here the pages are read as a browser gets them, with what the theme adds.
Nothing may be loaded from elsewhere: who reads about their GPU tells nobody.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from convlint.reporters.words import DOCS, rule_page
from convlint.rulebook.book import load_rulebook

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
_ALSO_LOADED = ("stylesheet", "preload", "icon", "preconnect", "dns-prefetch")


class Page(HTMLParser):
    """The ids of a page, where it leads, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what an element refers to."""
        found = {name: value or "" for name, value in attrs}
        self.ids.update(value for name, value in found.items() if name == "id" or (tag == "a" and name == "name"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and not set(found.get("rel", "").split()).isdisjoint(_ALSO_LOADED):
            self.loaded.append(found.get("href", ""))
        if tag in _LOADED and _LOADED[tag] in found:
            self.loaded.append(found[_LOADED[tag]])


def problems(site: Path, codes: Iterable[str]) -> Iterator[str]:
    """What is wrong with a built site, one line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for code in codes:
        if site / rule_page(code) not in pages:
            yield f"{code} has no page {rule_page(code)}"
    for path, page in pages.items():
        here = path.relative_to(site).as_posix()
        for address in page.loaded:
            if urlsplit(address).netloc:
                yield f"{here}: loads {address}"
        for address in (*page.links, *page.loaded):
            if (problem := _problem(site, path, address, pages)) is not None:
                yield f"{here}: {address}: {problem}"


def _problem(site: Path, path: Path, address: str, pages: dict[Path, Page]) -> str | None:
    """Why a link of the page at `path` leads nowhere; links to other hosts are not followed."""
    if address.startswith(DOCS):
        address, path = address.removeprefix(DOCS), site / "index.html"
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or path.name == "404.html":  # that one is served at any address
        return None
    target, anchor = urldefrag(address)
    aim = path if not target else _aim(site, path, unquote(urlsplit(target).path))
    if not aim.exists():
        return "no such file"
    if anchor and aim in pages and unquote(anchor) not in pages[aim].ids:
        return "no such heading"
    return None


def _aim(site: Path, path: Path, target: str) -> Path:
    aim = (site / target.lstrip("/") if target.startswith("/") else path.parent / target).resolve()
    return aim / "index.html" if aim.is_dir() else aim


def main(site: Path) -> int:
    """Prints what is wrong and returns the exit code."""
    codes = [rule.info.code for rule in load_rulebook().rules]
    found = list(problems(site.resolve(), codes))
    for line in found:
        print(line)
    count = len(list(site.rglob("*.html")))
    print(f"{count} pages, {len(codes)} rules: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs/site")))
