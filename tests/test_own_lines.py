"""Findings in a library's layers point at the user's own line, and comments there silence them."""

import html
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cases import sampled
from command_line import convlint

pytestmark = pytest.mark.slow

LIBRARY = """\
from torch import nn


def stem(channels):
    return nn.Conv2d(
        channels, 62, 3, padding=1
    )


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.body = stem(62), nn.Conv2d(62, 62, 3, padding=1)

    def forward(self, x):
        return self.body(self.stem(x))


def broken():
    raise RuntimeError("no such weights")
"""
PROJECT = """\
from torch import nn

import somelib.backbones as b


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.größe, self.backbone = 3, b.Backbone()  {first}
        {above}
        self.neck = nn.Conv2d(
            62,
            62, 1
        )  {last}

    def forward(self, x):
        return self.neck(self.backbone(x))


def fails():
    return b.broken()
"""
ENTRY = '[[tool.convlint.models]]\nname = "{name}"\nmodel = "{model}"\ninputs = "32x62x28x28:fp16:channels_last"\n'
BODY, STEM = "somelib/backbones.py:13", "somelib/backbones.py:5"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that a library is installed for, not below it."""
    library = tmp_path / "elsewhere" / "site-packages" / "somelib"
    library.mkdir(parents=True)
    (library / "__init__.py").touch()
    (library / "backbones.py").write_text(LIBRARY)
    monkeypatch.setenv("PYTHONPATH", str(library.parent))
    monkeypatch.setattr(sys, "path", [str(library.parent), *sys.path])
    root = tmp_path / "project"
    (root / "mynet").mkdir(parents=True)
    (root / "mynet" / "__init__.py").touch()
    write(root)
    config(root, net="mynet.net:Net")
    monkeypatch.chdir(root)
    return root


def write(root: Path, **comments: str) -> None:
    """The project's network, with comments at three places."""
    text = PROJECT.format(**{"first": "", "above": "", "last": "", **comments})
    (root / "mynet" / "net.py").write_text(text, encoding="utf-8")


def config(root: Path, **models: str) -> None:
    """Entries for models by name."""
    (root / "pyproject.toml").write_text("\n".join(ENTRY.format(name=n, model=m) for n, m in models.items()))


def check(*options: str) -> dict[str, Any]:
    """The report on all models."""
    return json.loads(convlint("check", "--models", "--select", "CL102,CL103,CL9", "-o", "json", *options).out)


def places(document: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Of each layer with a finding: its path, line, columns, and the library's line."""
    keys = ("path", "line", "column", "end_line", "end_column", "library")
    return {finding["layer"]: tuple(finding[key] for key in keys) for finding in document["findings"]}


@pytest.mark.contract
def test_the_users_own_line_with_that_of_the_library_behind(project: Path) -> None:
    found = places(check())
    own = ("mynet/net.py", 9, 40, 9, 52)  # columns count characters, not bytes
    assert found["backbone.stem"] == (*own, STEM)
    assert found["backbone.body"] == (*own, BODY)
    assert found["neck"] == ("mynet/net.py", 11, 21, 14, 10, None)


def test_from_a_folder_below_paths_lead_to_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "docs").mkdir()
    monkeypatch.chdir(project / "docs")
    assert places(check())["neck"][:2] == ("../mynet/net.py", 11)


def test_what_no_line_of_the_project_builds_points_at_the_entry(project: Path) -> None:
    config(project, net="mynet.net:Net", theirs="somelib.backbones:Backbone")
    found = places(check())
    assert found["stem"][:2] == ("pyproject.toml", 8)
    assert found["stem"][-1] == STEM
    assert found["backbone.stem"][:2] == ("mynet/net.py", 9)


def test_on_the_command_line_there_is_no_entry_but_the_librarys_line(project: Path) -> None:
    ran = convlint("check", "somelib.backbones:Backbone", "--input", "32x62x28x28:fp16", "-o", "json")
    paths = {(layer["path"], layer["line"], layer["library"]) for layer in json.loads(ran.out)["layers"]}
    home = project.parent / "elsewhere/site-packages/somelib/backbones.py"
    assert paths == {(str(home), 5, None), (str(home), 13, None)}


@pytest.mark.parametrize(
    "output", ["concise", "github", "gitlab", "junit", "rdjson", "sarif", "markdown", "text", "json"]
)
def test_every_format_names_the_layer_and_the_librarys_line(output: str, project: Path) -> None:
    out = convlint("check", "--models", "--select", "CL102", "-o", output, "--verbose").out
    out = html.unescape(out) if output == "markdown" else out
    assert "backbone.body" in out
    assert BODY in out
    assert str(project.parent) not in out


@pytest.mark.parametrize(
    ("comments", "left", "silenced"),
    sampled(
        [
            # what neck reads is theirs: it is silenced where it is written; what it writes is a head's
            ({"first": "# convlint: ignore[CL102, CL103] -- theirs"}, {"neck"}, {"backbone.stem", "backbone.body"}),
            ({"above": "# convlint: ignore[CL102] -- ours"}, {"backbone.stem", "backbone.body"}, {"neck"}),
            ({"last": "# convlint: ignore[CL102] -- ours"}, {"backbone.stem", "backbone.body"}, {"neck"}),
            ({"above": "# convlint: file-ignore[CL102, CL103]"}, set(), {"backbone.stem", "backbone.body", "neck"}),
            ({"above": "x = '# convlint: file-ignore[CL102]'"}, {"backbone.stem", "backbone.body", "neck"}, set()),
        ],
        4,
    ),
)
def test_comments_of_python_silence(
    comments: dict[str, str], left: set[str], silenced: set[str], project: Path
) -> None:
    write(project, **comments)
    document = check()
    assert places(document).keys() == left
    assert {entry["layer"] for entry in document["suppressed"]} == silenced


def test_comments_that_are_wrong_are_said_where_they_stand_at_a_layer(project: Path) -> None:
    write(project, first="# convlint: ignore[CL1O2]", above="# convlint: ignore[CL401]")
    found = [finding for finding in check()["findings"] if finding["code"].startswith("CL9")]
    assert [(one["code"], one["path"], one["line"]) for one in found] == [("CL902", "mynet/net.py", 9)]


@pytest.mark.contract
def test_an_exception_is_said_with_the_projects_own_frame(project: Path) -> None:
    config(project, net="mynet.net:fails", other="mynet.net:Net")
    ran = convlint("check", "--models", "-o", "json")
    document = json.loads(ran.out)
    (error,) = document["errors"]
    assert error["message"].endswith(
        "raises RuntimeError: no such weights at mynet/net.py:21, in somelib/backbones.py:20"
    )
    assert ran.code == 3
    assert len(document["layers"]) == 3


def test_a_baseline_of_one_entry_hides_nothing_of_another(project: Path) -> None:
    config(project, one="mynet.net:Net", two="mynet.net:Net")
    select = ("--select", "CL102", "-o", "json")
    findings = json.loads(convlint("check", "--models", *select).out)["findings"]
    assert sorted((finding["model"], finding["layer"]) for finding in findings) == [
        (model, layer) for model in ("one", "two") for layer in ("backbone.body", "backbone.stem", "neck")
    ]
    assert len({finding["fingerprint"] for finding in findings}) == 6
    convlint("check", "--model", "one", *select, "--write-baseline", "b.json")
    left = json.loads(convlint("check", "--models", *select, "--baseline", "b.json").out)["findings"]
    assert {finding["model"] for finding in left} == {"two"}
    assert "(neck of two)" in convlint("check", "--models", "--select", "CL102", "-o", "concise").out


def test_pruning_a_baseline_without_the_models_keeps_what_it_holds_of_them(project: Path) -> None:
    """Their layers stand in files of Python, which are checked without them too."""
    config(project, one="mynet.net:Net", two="mynet.net:Net")
    convlint("check", ".", "--models", "--write-baseline", "b.json")
    before = Path("b.json").read_bytes()
    ran = convlint("check", ".", "--baseline", "b.json", "--prune-baseline")
    assert (ran.code, ran.err) == (0, "")
    assert Path("b.json").read_bytes() == before
    config(project, one="mynet.net:Net", two="mynet.net:Net(1, 2, 3, 4, 5)")
    assert convlint("check", "--models", "--baseline", "b.json", "--prune-baseline").code in (2, 3)
    now = json.loads(Path("b.json").read_text())["findings"]
    assert [entry for entry in json.loads(before)["findings"] if entry not in now] == []
    config(project, one="mynet.net:Net")
    ran = convlint("check", "--models", "--select", "CL102", "--baseline", "b.json", "--prune-baseline")
    left = {entry.get("model") for entry in json.loads(Path("b.json").read_text())["findings"]}
    assert {"one", "two"} <= left


def test_comments_in_the_encoding_that_the_module_declares(project: Path) -> None:
    net = project / "mynet" / "net.py"
    text = PROJECT.format(first="# convlint: ignore[CL102, CL103] -- größe", above="", last="")
    net.write_bytes(b"# -*- coding: latin-1 -*-\r\n" + text.replace("\n", "\r\n").encode("latin-1"))
    document = check()
    assert places(document).keys() == {"neck"}
    assert {entry["layer"] for entry in document["suppressed"]} == {"backbone.stem", "backbone.body"}


MADE_UP = """\
import ast
from torch import nn

tree = ast.parse("def build():\\n    return nn.Conv2d(62, 62, 3, padding=1)\\n")
for node in ast.walk(tree):
    if hasattr(node, "end_lineno"):
        node.lineno, node.end_lineno = {lines}
exec(compile(tree, __file__, "exec"))
{after}
# convlint: ignore[CL401] -- a comment, so that lines are looked at
"""
NO_LINES = "build.__code__ = build.__code__.replace(co_linetable=b'')"


@pytest.mark.parametrize(
    ("lines", "after"),
    [("2, 2**30", ""), ("3, 3", NO_LINES)],
)
def test_positions_that_code_makes_up_do_no_harm(project: Path, lines: str, after: str) -> None:
    (project / "mynet" / "made.py").write_text(MADE_UP.format(lines=lines, after=after))
    config(project, made="mynet.made:build")
    document = check("--module-timeout", "30")
    assert document["errors"] == []
    assert [layer["K"] for layer in document["layers"]] == [62]


def test_an_environment_around_or_inside_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from convlint.readers.torch import places as where

    own = str(project / "mynet" / "net.py")
    for prefix, inside, expected in ((project, own, True), (project / ".venv", str(project / ".venv" / "x.py"), False)):
        monkeypatch.setattr(sys, "prefix", str(prefix))
        where.remember_folders([])
        assert where.is_of_project(inside) is expected
        assert where.is_of_project(own)
    assert not where.is_of_project(str(project / "lib" / "site-packages" / "y.py"))
