"""The check of a built site finds what is missing, what leads nowhere and what is loaded from elsewhere."""

from pathlib import Path

import pytest

from convlint.reporters.words import DOCS
from handbook.checks import problems

CLEAN = {
    "index.html": '<a href="rules/CL102.html#why">x</a> <a href="https://example.com/x">y</a> <a href="#top">z</a>'
    '<h1 id="top"></h1><link rel="stylesheet" href="site.css"><link rel="canonical" href="https://a.b/">',
    "rules/CL102.html": '<h2 id="why">Why</h2><a href="../index.html">x</a><a href="..">x</a>'
    '<script src="../a.js"></script>',
    "site.css": "",
    "a.js": "",
}


def site(folder: Path, **changes: str) -> Path:
    for name, text in {**CLEAN, **{key.replace("__", "/"): value for key, value in changes.items()}}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder.resolve()


def test_a_whole_site_has_no_problems(tmp_path: Path) -> None:
    assert list(problems(site(tmp_path), ["CL102"])) == []


def test_a_rule_without_a_page_is_found(tmp_path: Path) -> None:
    assert list(problems(site(tmp_path), ["CL102", "CL103"])) == ["CL103 has no page rules/CL103.html"]


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="gone.html">x</a>', "gone.html: no such file"),
        ('<a href="rules/CL102.html#gone">x</a>', "rules/CL102.html#gone: no such heading"),
        ('<a href="#gone">x</a>', "#gone: no such heading"),
        (f'<a href="{DOCS}rules/CL999.html">x</a>', f"{DOCS}rules/CL999.html: no such file"),
        ('<a href="/gone">x</a>', "/gone: no such file"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "loads //cdn.example/x.css"),
        ('<img src="gone.png">', "gone.png: no such file"),
    ],
)
def test_what_is_wrong_is_found(html: str, problem: str, tmp_path: Path) -> None:
    found = list(problems(site(tmp_path, **{"index.html": html}), ["CL102"]))
    assert found == [f"index.html: {problem}"]
