"""Every stream of every command goes through one gate: no name, path or value from outside is obeyed by a log."""

import io
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from command_line import convlint
from hypothesis import given
from hypothesis import strategies as st
from parsed import workflow_commands

from convlint.cli.streams.gate import Gate, follows_links, harmless, style_of, write
from convlint.reporters import REPORTERS, Style
from convlint.reporters.ink import INK_CODES, painter

NAMES = [
    "::error::pwn", "::stop-commands::x", " ::add-mask::x", "##vso[task.setvariable variable=x]y", "##[error]x",
    "a\n::error::pwn", "a\r::error::pwn", "a\r\n##vso[x]", "\x1b[31mred", "\x1b]0;title\x07", "a\x85::error::x",
    "a\u2028::error::x", "a\u202eb", "##teamcity[x]", "\x7f", "a\x9b2J", '"', "'", "\\", "${{ x }}", "a # b", "a: b",
    "=cmd|' /C calc'!A0", "- x", "\t::error::x", "a" * 300,
]  # fmt: skip
LAYER = "N: 32, C: 60, H: 28, W: 28, K: 100, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a spec whose names are hostile."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    layers = "".join(f"  - {{ name: {json.dumps(name)}, {LAYER} }}\n" for name in NAMES)
    Path("net.yaml").write_text(f"version: 1\nlayers:\n{layers}")
    return tmp_path


def obeyed(text: str) -> list[str]:
    """What a log or a terminal would obey in `text`."""
    found = [name for name, _, _ in workflow_commands(text)]
    return found + [
        repr(char)
        for char in text
        if char not in "\n\t" and (unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in "\u202e\ufeff")
    ]


# --- the stream


def through(chunks: Sequence[str], **allowed: bool) -> str:
    text = io.StringIO()
    gate = Gate(text)
    for chunk in chunks:
        gate.send(chunk, **allowed)
    return text.getvalue()


@pytest.mark.parametrize(
    ("chunks", "shown"),
    [
        (["a", "b\n", "c"], "ab\nc"),
        (["a", "::b\n", "c::d"], "a::b\nc::d"),
        (["a\n", "::b"], "a\n:_b"),
        ([" ", "", "\t", "::b"], " \t:_b"),
        ([":", ":error::x"], ": :error::x"),
        (["a:", ":b"], "a::b"),
        (["#", "#[error]"], "# #[error]"),
        (["##", "[error]"], "## [error]"),
        (["#", "#", "[error]"], "## [error]"),
        (["##v", "s", "o[x]"], "##vs o[x]"),
        (["##v\n", "so[x]"], "##v\nso[x]"),
        (["#", "1 [x]"], "#1 [x]"),
    ],
)
def test_a_command_in_pieces(chunks: list[str], shown: str) -> None:
    assert through(chunks) == shown


pieces = st.sampled_from(["::", ":", "#", "##", "[", "vso", "error", "\n", "\r", " ", "\t", "\x1b[31m", "\x00", "x"])


@pytest.mark.slow
@given(st.lists(st.lists(pieces | st.text(max_size=2), max_size=4).map("".join), max_size=8))
def test_no_pieces_make_a_command(chunks: list[str]) -> None:
    assert obeyed(through(chunks)) == []


def test_bytes_pass_the_gate_too() -> None:
    text = io.StringIO()
    raw = "é\n::error::x".encode()
    buffer = Gate(text).buffer
    buffer.write(raw[:1])
    buffer.write(raw[1:])
    assert text.getvalue() == "é\n:_error::x"


def test_what_an_encoding_lacks_is_a_question_mark() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write(stream, "größe")
    assert raw.getvalue() == b"gr??e\n"


def test_only_a_report_in_colours_has_colours() -> None:
    for style, shown in ((None, "[1mx[0m\n"), (Style(), "[1mx[0m\n"), (Style(color=True), "\x1b[1mx\x1b[0m\n")):
        text = io.StringIO()
        write(text, "\x1b[1mx\x1b[0m", style)
        assert text.getvalue() == shown


# --- the commands


@pytest.mark.parametrize("form", [form for form in REPORTERS if form != "github"])
@pytest.mark.parametrize(
    "path", ["net.yaml", "::error ::x.yaml", "a\n::error ::x.yaml", "##vso[x].yaml", "\x1b[2J.yaml"]
)
def test_reports_hold_nothing_that_is_obeyed(form: str, path: str) -> None:
    if path != "net.yaml":
        Path(path).write_bytes(Path("net.yaml").read_bytes())
    ran = convlint("check", path, "missing\n::error::x.yaml", "-o", form, "-o", f"{form}=written")
    assert ran.code == 3
    assert [obeyed(text) for text in (ran.out, ran.err, Path("written").read_text())] == [[], [], []]
    if form in ("json", "sarif", "gitlab", "rdjson"):
        assert json.loads(ran.out) == json.loads(Path("written").read_text())


def test_the_github_format_gives_annotations_and_no_other_command() -> None:
    Path("a,b:c\n::error ::x.yaml").write_bytes(Path("net.yaml").read_bytes())
    ran = convlint("check", ".", "-o", "github", "-o", "github=written")
    for text in (ran.out, Path("written").read_text()):
        commands = workflow_commands(text)
        assert {name for name, _, _ in commands} <= {"error", "warning", "notice"}
        assert {properties["file"] for _, properties, _ in commands} <= {"net.yaml", "a,b:c ::error ::x.yaml"}
        assert len(commands) == text.count("\n") - text.count("not annotated") - 1
    assert obeyed(ran.err) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("estimate", "net.yaml"),
        ("estimate", "net.yaml", "--color", "never", "--gpu", "a100", "--gpu", "t4"),
        ("estimate", "net.yaml", "-o", "csv"),
        ("estimate", "net.yaml", "-o", "json"),
        ("estimate", "::error ::x\n::error::x.yaml"),
        *(("sweep", "net.yaml", "--layer", name, "-N", "1,2") for name in NAMES),
        ("sweep", "net.yaml", "--layer", "\n::error::x", "-N", "1,2"),
        ("sweep", "net.yaml", "-N", "1,2"),
        ("sweep", "\n::error::x", "--layer", "x", "-N", "1,2"),
        ("export", "net.yaml"),
        ("export", "\n::error::x"),
        ("export", "\n::error::x:y"),
        ("config", "net.yaml", "--select", "\n::error::x", "--gpu", "##vso[x]"),
        ("rule", "\n::error::x"),
        ("rule", "--rules", "\n::error::x"),
        ("rule", "--test", "\n::error::x"),
        ("gpus", "\n::error::x"),
        ("schema", "\n::error::x"),
        ("schema",),
        ("gpus",),
        ("rule",),
        ("\n::error::x",),
        ("check", "--\n::error::x"),
        ("check", "--jobs", "\n::error::x"),
        ("check", "-o", "\n::error::x"),
        ("check", "-o", "json=\n::error::x/y"),
        ("check", "--color", "\n::error::x"),
        ("check", "--config", "\n::error::x"),
        ("check", "--baseline", "\n::error::x"),
        ("check", "--min-loss", "\n##vso[x]"),
        ("layer", "-C", "\n::error::x"),
        ("layer", "--runtime", "\n::error::x"),
        ("layer", "\n::error::x"),
        ("check", "--help"),
        ("--help",),
    ],
)
def test_no_command_prints_what_is_obeyed(arguments: tuple[str, ...]) -> None:
    ran = convlint(*arguments)
    assert ran.code in (0, 1, 2, 3)
    assert (obeyed(ran.out), obeyed(ran.err)) == ([], [])


@pytest.mark.parametrize("value", NAMES)
def test_settings_from_a_config_are_not_obeyed(value: str) -> None:
    quoted = json.dumps(value).replace("\x7f", "\\u007F")
    Path("convlint.toml").write_text(
        f'exclude = [{quoted}]\n[per-file-ignores]\n{quoted} = ["CL102"]\n'
        f'[[per-layer-ignores]]\nlayers = {quoted}\nrules = ["CL102"]\nreason = {quoted}\n'
    )
    ran = convlint("config", "net.yaml")
    assert (ran.code, ran.err) == (0, "")
    assert obeyed(ran.out) == []
    Path("convlint.toml").write_text(f"{quoted} = 1\n")
    ran = convlint("config", "net.yaml")
    assert (ran.code, obeyed(ran.err)) == (2, [])


RULE = """\
code: XY100
name: odd-channels
title: {text}
severity: warning
check: C % 8 == 0
message: "C={{C}} is odd"
rationale: {text}
source: {{ document: {text}, section: {text} }}
examples: {{ pass: [ {{ C: 8 }} ], fail: [ {{ given: {{ C: 3 }}, message: "C=3 is odd" }} ] }}
"""


@pytest.mark.parametrize("title", [name for name in NAMES if len(name) < 50])
def test_rules_of_ones_own_are_not_obeyed(title: str) -> None:
    Path("own").mkdir()
    written = json.dumps(f"x {title} {title}" + "\n" + title)
    Path("own/rule.yaml").write_text(RULE.format(text=written))
    for arguments in (
        ("rule", "--rules", "own"), ("rule", "XY100", "--rules", "own"), ("rule", "--test", "own"),
        ("check", "net.yaml", "--rules", "own"), ("check", "net.yaml", "--rules", "own", "-o", "concise"),
    ):  # fmt: skip
        ran = convlint(*arguments)
        assert "XY100" in ran.out or "--test" in arguments
        assert (ran.code in (0, 1), obeyed(ran.out), ran.err) == (True, [], "")


def test_an_export_keeps_every_name_and_leaves_nothing_to_the_gate() -> None:
    ran = convlint("export", "net.yaml", "-o", "written.yaml")
    assert (ran.code, ran.err) == (0, "")
    text = Path("written.yaml").read_text()
    assert text == convlint("export", "net.yaml").out
    assert obeyed(text) == []
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        assert [layer["name"] for layer in yaml.load(text, loader)["layers"]] == NAMES
    assert json.loads(convlint("estimate", "written.yaml", "-o", "json").out)["complete"]


@pytest.mark.parametrize("variable", ["COLUMNS", "TERM", "NO_COLOR", "FORCE_COLOR", "LINES"])
@pytest.mark.parametrize("value", ["\n::error::x", "999999999999", "-5", "", "9" * 5000, "\x1b[2J"])
def test_the_environment_is_not_obeyed(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (("check", "net.yaml"), ("estimate", "net.yaml"), ("gpus",), ("check", "--help")):
        with monkeypatch.context() as patch:  # pytest itself would take a terminal to be so wide
            patch.setenv(variable, value)
            ran = convlint(*arguments, *(() if arguments[-1] == "--help" else ("--color", "never")))
        assert ran.code in (0, 1)
        assert (obeyed(ran.out), obeyed(ran.err)) == ([], [])
        assert len(ran.out) < 1_000_000


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "followed"),
    [
        ({}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "alacritty"}, True),
        ({"VTE_VERSION": "4999"}, False),
        ({"VTE_VERSION": "5000"}, True),
        ({"VTE_VERSION": "7603"}, True),
        ({"VTE_VERSION": "0.50"}, False),
        ({"VTE_VERSION": "²"}, False),
        ({"VTE_VERSION": "9" * 5000}, True),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"COLORTERM": "truecolor"}, False),
        ({"COLORTERM": "xfce4-terminal"}, True),
        ({"WT_SESSION": "1"}, True),
        ({"KONSOLE_VERSION": "220401"}, True),
        ({"FORCE_HYPERLINK": "1"}, True),
        ({"FORCE_HYPERLINK": "0", "TERM": "xterm-kitty"}, False),
        ({"FORCE_HYPERLINK": "", "TERM": "xterm-kitty"}, True),
    ],
)
def test_a_terminal(environment: dict[str, str], followed: bool) -> None:
    assert follows_links(environment, terminal=True) is followed


def test_what_is_no_terminal_gets_them_only_where_that_is_forced() -> None:
    assert not follows_links({"TERM": "xterm-kitty", "WT_SESSION": "1"}, terminal=False)
    assert follows_links({"FORCE_HYPERLINK": "1"}, terminal=False)


@pytest.mark.parametrize(
    ("environment", "color", "linked"),
    [
        ({}, "auto", True),
        ({"NO_COLOR": "1"}, "auto", False),
        ({"NO_COLOR": "1"}, "always", True),
        ({}, "never", False),
        ({"TERM": "dumb", "WT_SESSION": "1"}, "auto", False),
        ({"FORCE_HYPERLINK": "0"}, "always", False),
    ],
)
def test_what_has_no_colours_has_no_links(
    environment: dict[str, str], color: str, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "NO_COLOR",
        "FORCE_COLOR",
        "FORCE_HYPERLINK",
        "VTE_VERSION",
        "TERM_PROGRAM",
        "COLORTERM",
        "WT_SESSION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-kitty")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert style_of(Terminal(), color).links is linked
    assert not style_of(io.TextIOWrapper(io.BytesIO(), "utf-8"), color).links


ANNOTATION = "::error file=a.yaml,line=3,title=CL102 x::C is 60%0AFix: use C=64"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("53 layers in 1 file", "53 layers in 1 file"),
        ("a::b\n  c ::d::e\n", "a::b\n  c ::d::e\n"),
        ("größe 中文 🙂 ─ can ×\tx", "größe 中文 🙂 ─ can ×\tx"),
        ("::error::pwn", ":_error::pwn"),
        ("ok\n::stop-commands::x\n", "ok\n:_stop-commands::x\n"),
        ("ok\n  \t ::set-env name=a::b", "ok\n  \t :_set-env name=a::b"),
        ("::::", ":_::"),
        ("\u3000\u2003::error::x", "  :_error::x"),
        ("ok\r::error::x", "ok ::error::x"),
        ("ok\r\n::error::x\r\n", "ok \n:_error::x \n"),
        ("ok\x85::error::x", "ok ::error::x"),
        ("ok\u2028::error::x", "ok ::error::x"),
        ("\x00::error::x", ":_error::x"),
        ("\u200b::error::x", ":_error::x"),
        ("\ufeff::error::x", ":_error::x"),
        ("\x1b[31m::error::x", "[31m::error::x"),
        ("a ##[error]x", "a #_[error]x"),
        ("a ##vso[task.setvariable]x", "a #_vso[task.setvariable]x"),
        ("a ##teamcity[x]", "a #_teamcity[x]"),
        ("####[error]", "#___[error]"),
        ("#\x00#[error]", "#_[error]"),
        ("## heading [x]", "## heading [x]"),
        ("\x1b[2J\x1b]0;title\x07", "[2J]0;title"),
        ("\u202egnp.exe\x7f\x9b2J", "gnp.exe2J"),
        ("\ud800", "\ufffd"),
        (ANNOTATION, ":_" + ANNOTATION[2:]),
    ],
)
def test_what_becomes_of_it(raw: str, shown: str) -> None:
    assert harmless(raw) == shown


def test_colours_are_those_of_the_reports_alone() -> None:
    paint = painter(True)
    report = "".join(f"{paint(ink, 'word')}\n" for ink in ("error", "strong", "frame", "faint", "lost", "fix", "label"))
    assert harmless(report, inks=True) == report
    assert "\x1b" not in harmless(report)
    assert harmless("\x1b[1m::error::x\x1b[0m", inks=True) == "\x1b[1m:_error::x\x1b[0m"
    for other in ("\x1b[8mhidden", "\x1b[2J", "\x1b]8;;http://x\x07", "\x1b[1", "\x1b[\x1b[0m1m", "\x1b[38;5;1m"):
        assert "\x1b" not in harmless(other, inks=True).replace("\x1b[0m", "")


def test_annotations_pass_where_they_are_asked_for() -> None:
    text = f"{ANNOTATION}\n::notice title=a::b\n12 layers: 1 error\n"
    assert harmless(text, annotations=True) == text


@pytest.mark.parametrize(
    "line",
    [
        "::stop-commands::x", "::error::x", "::add-mask::x", "::set-output name=a::b", "::error line=3::x",
        "  ::error file=a::b", "::ERROR file=a::b", "::error file=a", "::debug file=a::b", "::error  file=a::b",
    ],
)  # fmt: skip
def test_no_other_command_passes_with_the_annotations(line: str) -> None:
    assert workflow_commands(harmless(f"{ANNOTATION}\n{line}\n", annotations=True)) == workflow_commands(ANNOTATION)


def test_text_that_goes_on_with_a_line_is_told_from_one_that_starts_it() -> None:
    assert harmless("::a\n::b", starts_line=False) == "::a\n:_b"


hostile_pieces = st.sampled_from(
    ["::", ":", "#", "##", "[", "vso", "error", "\n", "\r", " ", "\t", "\x1b[31m", "\x1b[0m", "\x00", "\u2028", "x"]
)
texts = st.lists(hostile_pieces | st.text(max_size=3), max_size=12).map("".join)


@given(texts, st.booleans(), st.booleans())
def test_nothing_is_left_to_obey(text: str, inks: bool, starts_line: bool) -> None:
    shown = harmless(text, inks=inks, starts_line=starts_line)
    assert workflow_commands(shown if starts_line else "x" + shown) == []
    for code in INK_CODES if inks else ():
        shown = shown.replace(f"\x1b[{code}m", "")
    assert [c for c in shown if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")] == []
    assert [c for c in shown if unicodedata.category(c) == "Cf" and c not in "\u200c\u200d"] == []


@given(texts, st.booleans())
def test_what_is_harmless_stays_as_it_is(text: str, inks: bool) -> None:
    shown = harmless(text, inks=inks)
    assert harmless(shown, inks=inks) == shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("+a: 1\r\n b: 2\r\n", "+a: 1\r\n b: 2\r\n"),
        (" a\rb\r\n", " a b\r\n"),
        ("a\r\n::error::x\r\n", "a\r\n:_error::x\r\n"),
        ("a\r\r\n\x1b[2Jb\r\n", "a \r\n[2Jb\r\n"),
    ],
)
def test_line_breaks_of_two_characters_may_pass(raw: str, shown: str) -> None:
    assert harmless(raw, returns=True) == shown
    assert "\r" not in harmless(raw)
