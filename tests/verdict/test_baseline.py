"""Baselines: today's findings set aside, new ones shown, those that are gone told and pruned."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import convlint
from configured import prepared
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import BAD, GOOD, HEAD, ODD

from convlint.cli.streams import outputs
from convlint.model.errors import UsageError
from convlint.model.report import fingerprint
from convlint.verdict import baseline
from convlint.verdict.baseline import BaselineEntry, known_by_path, known_of, parse_baseline, render, rendered_for


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(tmp_path, monkeypatch)
    Path("convlint.toml").write_text('select = ["CL102", "CL006", "CL9"]\n')


def test_from_todays_findings_to_a_new_one() -> None:
    formats = ["--output", "sarif=a.sarif", "--output", "junit=b.xml", "--output", "text"]
    first = convlint("check", "bad.yaml", *formats)
    assert first.code == 1
    assert Path("a.sarif").exists()
    assert Path("b.xml").exists()
    written = convlint("check", "bad.yaml", "--write-baseline", "base.json", *formats)
    assert (written.code, written.err) == (0, "convlint: wrote 2 findings to base.json\n")
    same = convlint("check", "bad.yaml", "--baseline", "base.json", *formats)
    assert (same.code, same.err) == (0, "")
    assert "suppressed: 2 findings (2 by baseline)" in same.out
    states = [r["suppressions"] for r in json.loads(Path("a.sarif").read_text())["runs"][0]["results"]]
    assert [state[0]["kind"] for state in states] == ["external", "external"]
    Path("bad.yaml").write_text(BAD + f"  - {{ name: new, {ODD} }}\n")
    new = convlint("check", "bad.yaml", "--baseline", "base.json", "-o", "concise", "--ignore", "CL006")
    assert new.code == 1
    assert [line.split(": ")[0] for line in new.out.splitlines()[:-1]] == ["bad.yaml:6:21"]


def test_moved_lines_and_other_spellings_of_the_path_change_nothing(tmp_path: Path) -> None:
    convlint("check", "bad.yaml", "--write-baseline", "base.json")
    Path("bad.yaml").write_text("# one\n# two\n" + BAD.replace("{ name", "{   name"))
    for path in ("bad.yaml", "./bad.yaml", ".//bad.yaml", str(tmp_path / "bad.yaml"), "."):
        ran = convlint("check", path, "--baseline", "base.json")
        assert (ran.code, ran.err) == (0, ""), path


def test_a_baseline_is_sorted_and_reads_back() -> None:
    Path("a.yaml").write_text(BAD)
    convlint("check", ".", "--write-baseline", "base.json")
    text = Path("base.json").read_text()
    entries = list(parse_baseline(text.encode(), "base.json").values())
    assert [(entry.path, entry.code) for entry in entries] == [
        ("a.yaml", "CL006"), ("a.yaml", "CL102"), ("bad.yaml", "CL006"), ("bad.yaml", "CL102"),
    ]  # fmt: skip
    assert text.count("\n") == len(entries) + 5
    assert render(parse_baseline(text.encode(), "x")) == text
    convlint("check", "bad.yaml", "a.yaml", "--jobs", "2", "--write-baseline", "again.json")
    assert Path("again.json").read_text() == text


def test_what_no_longer_occurs_is_told_and_pruned() -> None:
    convlint("check", "bad.yaml", "--write-baseline", "base.json")
    Path("bad.yaml").write_text(BAD.replace("C: 62", "C: 64").replace("padding: 3", "padding: 1"))
    ran = convlint("check", "bad.yaml", "--baseline", "base.json")
    assert ran.code == 0
    assert ran.err == (
        "convlint: 2 findings of base.json no longer occur (CL006 bad.yaml odd, CL102 bad.yaml odd [a100]); "
        "--prune-baseline removes them\n"
    )
    pruned = convlint("check", "bad.yaml", "--baseline", "base.json", "--prune-baseline")
    assert pruned.err == "convlint: took 2 findings that no longer occur out of base.json\n"
    assert parse_baseline(Path("base.json").read_bytes(), "x") == {}
    assert convlint("check", "bad.yaml", "--baseline", "base.json", "--prune-baseline").err == ""


def test_what_was_not_checked_may_still_occur() -> None:
    Path("other.yaml").write_text(BAD)
    convlint("check", ".", "--write-baseline", "base.json")
    for arguments in (
        ["other.yaml"],
        ["bad.yaml", "--gpu", "t4"],
        ["bad.yaml", "--select", "CL5"],
        ["bad.yaml", "--ignore", "CL102"],
    ):
        ran = convlint("check", *arguments, "--baseline", "base.json", "--prune-baseline")
        assert ran.err == "", arguments
    Path("bad.yaml").write_text("version: 1\nlayers: [")
    assert convlint("check", "bad.yaml", "--baseline", "base.json").err == ""
    Path("bad.yaml").unlink()
    assert "2 findings of base.json no longer occur" in convlint("check", "other.yaml", "--baseline", "base.json").err


def test_a_baseline_of_another_folder_is_not_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("svc").mkdir()
    Path("svc/net.yaml").write_text(BAD)
    monkeypatch.chdir("svc")
    convlint("check", "net.yaml", "--write-baseline", "base.json")
    monkeypatch.chdir("..")
    before = Path("svc/base.json").read_text()
    ran = convlint("check", "svc", "--baseline", "svc/base.json", "--prune-baseline")
    said = "of svc/base.json are of files whose paths begin in svc: run convlint there\n"
    assert ran.err == f"convlint: 2 findings {said}"
    assert Path("svc/base.json").read_text() == before


def test_entries_of_rules_that_are_gone_are_told() -> None:
    Path("base.json").write_text(render({"f": BaselineEntry(fingerprint="f", code="CL999", path="bad.yaml")}))
    assert "1 finding of base.json no longer occurs (" in convlint("check", "bad.yaml", "--baseline", "base.json").err


def test_renewing_a_baseline_keeps_what_it_held() -> None:
    convlint("check", "bad.yaml", "--write-baseline", "base.json")
    before = Path("base.json").read_text()
    ran = convlint("check", "bad.yaml", "--baseline", "base.json", "--write-baseline", "base.json")
    assert (ran.code, Path("base.json").read_text()) == (0, before)


def test_an_incomplete_check_writes_no_baseline() -> None:
    Path("broken.yaml").write_text("layers: [")
    ran = convlint("check", "bad.yaml", "broken.yaml", "--write-baseline", "base.json")
    assert ran.code == 3
    assert ran.err == "convlint: base.json is not written: the check is incomplete\n"
    assert not Path("base.json").exists()


def test_an_expired_entry_of_the_config_can_be_an_old_finding() -> None:
    entry = '[[per-layer-ignores]]\nlayers = "odd"\nrules = ["CL102"]\nreason = "x"\nexpires = 2020-01-01\n'
    Path("convlint.toml").write_text('select = ["CL102", "CL9"]\n' + entry)
    written = convlint("check", "bad.yaml", "--write-baseline", "base.json")
    assert (written.code, written.err) == (0, "convlint: wrote 2 findings to base.json\n")
    ran = convlint("check", "bad.yaml", "--baseline", "base.json", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert {one["code"] for one in json.loads(ran.out)["suppressed"]} == {"CL102", "CL903"}
    Path("convlint.toml").write_text('select = ["CL102", "CL9"]\n' + entry + "\n" + entry.replace('"odd"', '"o*"'))
    assert [one[0] for one in reported("bad.yaml")] == ["CL903"]


def test_suppressed_findings_are_not_in_the_baseline() -> None:
    Path("bad.yaml").write_text(HEAD + f"  - {{ name: odd, {ODD} }} # convlint: ignore[CL102]\n")
    convlint("check", "bad.yaml", "--write-baseline", "base.json")
    assert [entry.code for entry in parse_baseline(Path("base.json").read_bytes(), "x").values()] == ["CL006"]


# --- findings that join layers, and the older form that had one entry for all of them

NET = """\
version: 1
target: [a100]
runtime: {{ framework: pytorch, cudnn_benchmark: false, fixed_input_size: true }}
defaults: {{ N: 128, C: 256, H: 28, W: 28, K: 256, R: 3, S: 3, padding: 1, first: false, dtype: fp16, layout: {} }}
layers:
"""
PAIR = "  - { name: a }\n  - { name: b }\n"
NCHW, NHWC = NET.format("NCHW"), NET.format("NHWC")


@pytest.fixture
def _layouts() -> None:
    Path("convlint.toml").write_text('select = ["CL401", "CL501", "CL9"]\n')
    Path("bad.yaml").write_text(NCHW + PAIR)


def reported(path: str, *options: str) -> list[tuple[str, str | None, list[str]]]:
    """(code, layer, layers) of what is new against base.json."""
    ran = convlint("check", path, "--baseline", "base.json", "-o", "json", *options)
    return [(one["code"], one["layer"], one["layers"]) for one in json.loads(ran.out)["findings"]]


def kept() -> list[tuple[str, str, str | None, str | None]]:
    """(code, path, layer, GPU) of the entries of base.json."""
    entries = parse_baseline(Path("base.json").read_bytes(), "x").values()
    return [(entry.code, entry.path, entry.layer, entry.gpu) for entry in entries]


CL501 = ("CL501", "bad.yaml", None, None)
CL401 = [("CL401", "bad.yaml", name, "a100") for name in ("a", "b")]


@pytest.mark.usefixtures("_layouts")
def test_a_new_layer_of_a_joined_finding_is_new_and_named() -> None:
    (joined,) = convlint("check", "bad.yaml", "--ignore", "CL501", "-o", "concise").out.splitlines()[:-1]
    assert "NCHW in 2 layers" in joined
    ran = convlint("check", "bad.yaml", "--write-baseline", "base.json")
    assert ran.err == "convlint: wrote 3 findings to base.json\n"
    assert kept() == [*CL401, CL501]
    assert reported("bad.yaml") == []
    Path("bad.yaml").write_text(NCHW + "  - { name: new }\n" + PAIR)
    assert reported("bad.yaml") == [("CL401", "new", [])]
    out = convlint("check", "bad.yaml", "--baseline", "base.json", "-o", "concise").out
    assert "CL401" in out
    assert "(new)" in out
    assert convlint("check", "bad.yaml", "--baseline", "base.json").code == 1
    Path("bad.yaml").write_text(NCHW + "  - { name: new }\n  - { name: newer }\n" + PAIR)
    assert reported("bad.yaml") == [("CL401", None, ["new", "newer"])]


@pytest.mark.usefixtures("_layouts")
def test_a_layer_that_left_a_joined_finding_is_gone() -> None:
    convlint("check", "bad.yaml", "--write-baseline", "base.json")
    Path("bad.yaml").write_text(NCHW + "  - { name: a }\n  - { name: b, layout: NHWC }\n")
    ran = convlint("check", "bad.yaml", "--baseline", "base.json", "--prune-baseline")
    assert (ran.code, ran.err) == (0, "convlint: took 1 finding that no longer occurs out of base.json\n")
    assert kept() == [CL401[0], CL501]


def older(*entries: dict[str, str]) -> str:
    """A baseline as version 1 had it: what joins layers had one entry, which names none."""
    lines = [json.dumps({"fingerprint": f"f1c1e{number}"} | entry) for number, entry in enumerate(entries)]
    return '{\n  "convlint_baseline": 1,\n  "findings": [\n    ' + ",\n    ".join(lines) + "\n  ]\n}\n"


JOINED = {"code": "CL401", "path": "bad.yaml", "gpu": "a100"}
NETWORK = {"code": "CL501", "path": "bad.yaml", "fingerprint": fingerprint(("CL501", "bad.yaml", "", "", 1))}
NOTE = "convlint: {} base.json with an entry for each layer: in its older form new layers pass as old ones\n"


@pytest.mark.usefixtures("_layouts")
def test_an_older_baseline_silences_a_rule_on_all_layers_until_it_is_rewritten() -> None:
    Path("base.json").write_text(older(JOINED, NETWORK))
    ran = convlint("check", "bad.yaml", "--baseline", "base.json", "-o", "json")
    assert (ran.code, ran.err) == (0, NOTE.format("--prune-baseline rewrites"))
    assert len(json.loads(ran.out)["suppressed"]) == 3
    Path("bad.yaml").write_text(NCHW + PAIR + "  - { name: new }\n")
    assert reported("bad.yaml") == []  # it cannot tell
    assert reported("bad.yaml", "--gpu", "t4") == [("CL401", None, ["a", "b", "new"])]
    Path("bad.yaml").write_text(NCHW + PAIR)

    ran = convlint("check", "bad.yaml", "--baseline", "base.json", "--prune-baseline")
    assert (ran.code, ran.err) == (0, NOTE.format("rewrote"))
    assert '"convlint_baseline": 2' in Path("base.json").read_text()
    assert kept() == [*CL401, CL501]
    again = convlint("check", "bad.yaml", "--baseline", "base.json", "--prune-baseline")
    assert (again.code, again.err) == (0, "")
    Path("bad.yaml").write_text(NCHW + PAIR + "  - { name: new }\n")
    assert reported("bad.yaml") == [("CL401", "new", [])]


@pytest.mark.usefixtures("_layouts")
def test_an_older_baseline_is_rewritten_by_writing_it_anew() -> None:
    Path("base.json").write_text(older(JOINED, NETWORK))
    ran = convlint("check", "bad.yaml", "--baseline", "base.json", "--write-baseline", "base.json")
    assert ran.code == 0
    assert "convlint: wrote 3 findings to base.json\n" in ran.err
    assert '"convlint_baseline": 2' in Path("base.json").read_text()
    assert kept() == [*CL401, CL501]


@pytest.mark.usefixtures("_layouts")
def test_entries_of_an_older_baseline_that_were_not_checked_keep_their_meaning() -> None:
    Path("good.yaml").write_text(NCHW + PAIR)
    Path("base.json").write_text(older(JOINED, NETWORK, JOINED | {"path": "good.yaml"}, JOINED | {"gpu": "t4"}))
    convlint("check", "bad.yaml", "--baseline", "base.json", "--prune-baseline")
    assert kept() == [("CL401", "bad.yaml", None, "t4"), *CL401, CL501, ("CL401", "good.yaml", None, "a100")]
    assert reported("good.yaml", "--ignore", "CL501") == []
    assert reported("bad.yaml", "--gpu", "t4", "--ignore", "CL501") == []
    convlint("check", ".", "--gpu", "a100", "--gpu", "t4", "--baseline", "base.json", "--prune-baseline")
    assert '"convlint_baseline": 2' in Path("base.json").read_text()
    assert [entry[1:] for entry in kept() if entry[0] == "CL401"] == [
        (path, layer, gpu)
        for path, gpus in (("bad.yaml", ["a100", "t4"]), ("good.yaml", ["a100"]))
        for layer in ("a", "b")
        for gpu in gpus
    ]


@pytest.mark.usefixtures("_layouts")
def test_an_older_entry_is_gone_once_no_layer_has_the_finding() -> None:
    Path("base.json").write_text(older(JOINED, NETWORK))
    Path("bad.yaml").write_text(NHWC + PAIR)
    ran = convlint("check", "bad.yaml", "--baseline", "base.json")
    assert "1 finding of base.json no longer occurs (CL401 bad.yaml [a100])" in ran.err
    convlint("check", "bad.yaml", "--baseline", "base.json", "--prune-baseline")
    assert kept() == [CL501]


def test_older_entries_of_one_layer_are_those_of_today() -> None:
    """As the last release that wrote version 1 has them: fingerprints of single layers have not changed."""
    Path("bad.yaml").write_text(
        "version: 1\ntarget: [a100]\ndefaults: { N: 128, dtype: fp16, layout: NHWC }\nlayers:\n"
        "  - { name: odd, C: 250, H: 28, W: 28, K: 256, R: 3, S: 3, padding: 1, first: false }\n"
    )
    odd = {"fingerprint": "e0f6b5cdb34ecdf2", "code": "CL102", "path": "bad.yaml", "layer": "odd", "gpu": "a100"}
    Path("base.json").write_text(older(odd))
    ran = convlint("check", "bad.yaml", "--baseline", "base.json")
    assert (ran.code, ran.err) == (0, "")


def test_entries_are_grouped_by_file() -> None:
    entries = {
        name: BaselineEntry(fingerprint=name, code="CL401", path=path, joined=name == "c")
        for name, path in (("a", "a.yaml"), ("b", "b.yaml"), ("c", "b.yaml"))
    }
    by_path = known_by_path(entries)
    assert {path: sorted(known.entries) for path, known in by_path.items()} == {"a.yaml": ["a"], "b.yaml": ["b", "c"]}
    assert by_path["a.yaml"].joined == frozenset()
    assert by_path["b.yaml"].joined == {("CL401", "b.yaml", None)}
    assert not known_of({})


START = b'{"convlint_baseline": 1, "findings": ['
ENTRY = '{"fingerprint": "a", "code": "b", "path": "c"}'
EMPTY = b'{"convlint_baseline": 1, "findings": []}'
WIDE = '{"convlint_baseline": 1, "findings": [], "x": "\u4e00"}'.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "base.json:1:1: is not valid JSON"),
        (b'{\n "a": ]', "base.json:2:7: is not valid JSON"),
        (b"[]", 'base.json:1:1: is no baseline: "convlint_baseline" is missing'),
        (
            b'{\n  "convlint_baseline": 3, "findings": []}',
            "base.json:2:3: is a baseline of version 3; this convlint reads 1 and 2",
        ),
        (b'{"convlint_baseline": 0, "findings": []}', "is a baseline of version 0"),
        (b'{"convlint_baseline": true, "findings": []}', "is a baseline of version True"),
        (b'{"convlint_baseline": "1"}', "is a baseline of version '1'"),
        (b'{"convlint_baseline": 1}', 'base.json:1:1: "findings" must be a list'),
        (b'{"convlint_baseline": 1, "findings": {}}', '"findings" must be a list'),
        (START + b"\n" + ENTRY.encode() + b",\n  {}]}", "base.json:3:3: must be an object with"),
        (START + b'{"fingerprint": 3, "code": "b", "path": "c"}]}', "base.json:1:39: must be an object"),
        (START + b'{"fingerprint": "3", "code": "b", "path": "c", "x": "y"}]}', "must be an object"),
        (b'{"convlint_baseline": 1, "find\\u0069ngs": [3]}', "base.json:1:1: must be an object"),
        (b'{"convlint_baseline": 1, "findings": [], "findings": [3]}', "base.json:1:1: must be an object"),
        (b"\xff\xfe", "base.json:1:1: is not UTF-8: byte 0xff"),
        (b'{"a":\n"\xff', "base.json:2:2: is not UTF-8"),
        (b"[" * 100_000, "nests too deep"),
        (b"[" * 1_000_001, "is larger than any baseline"),
        (b'{"convlint_baseline": ' + b"9" * 5000 + b"}", "holds a number that is too large"),
    ],
)
def test_wrong_baselines_are_refused_with_their_place(content: bytes, message: str) -> None:
    Path("base.json").write_bytes(content)
    ran = convlint("check", "bad.yaml", "--baseline", "base.json", "-o", "json=out.json")
    assert ran.code == 2
    assert message in ran.err
    assert not Path("out.json").exists()


def test_baselines_that_cannot_be_read_or_written() -> None:
    assert "baseline nowhere does not exist" in convlint("check", "bad.yaml", "--baseline", "nowhere").err
    assert "baseline . is no file" in convlint("check", "bad.yaml", "--baseline", ".").err
    ran = convlint("check", "bad.yaml", "--write-baseline", "no/where.json", "-o", "json=out.json")
    assert (ran.code, "there is no folder no" in ran.err) == (2, True)
    assert not Path("out.json").exists()
    assert convlint("check", "bad.yaml", "--prune-baseline").code == 2


def test_an_output_that_cannot_be_written_stops_before_anything_is_checked() -> None:
    Path("kept.json").write_text("as it was")
    ran = convlint("check", "bad.yaml", "-o", "json=kept.json", "-o", "sarif=no/where.sarif")
    assert (ran.code, ran.out) == (2, "")
    assert Path("kept.json").read_text() == "as it was"


def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("base.json").write_text("as it was")

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(outputs, "_fill", full)
        ran = convlint("check", "bad.yaml", "--write-baseline", "base.json")
    assert (ran.code, "base.json cannot be written: No space left on device" in ran.err) == (2, True)
    assert Path("base.json").read_text() == "as it was"
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []


def test_the_job_summary_gets_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    convlint("check", "bad.yaml")
    assert Path("summary.md").read_text() == "before\n"
    convlint("check", "bad.yaml", "-o", "github")
    assert Path("summary.md").read_text().startswith("before\n")
    assert "CL102" in Path("summary.md").read_text()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no/where.md")
    ran = convlint("check", "bad.yaml", "-o", "github")
    assert (ran.code, ran.out) == (2, "")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200)
@given(
    st.fixed_dictionaries(
        {
            "convlint_baseline": st.sampled_from((1, 2)),
            "findings": st.lists(_json | st.just(json.loads(ENTRY)), max_size=4),
        },
        optional={"x": _json},
    )
    | _json
)
def test_no_baseline_is_a_defect_of_ours(document: object) -> None:
    with suppress(UsageError):
        parse_baseline(json.dumps(document, indent=1).encode(), "x")


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_no_bytes_are_a_defect_of_ours(content: bytes) -> None:
    with pytest.raises(UsageError, match=r"^x:\d+:\d+: "):
        parse_baseline(content, "x")


def test_good_specs_need_no_baseline() -> None:
    Path("good.yaml").write_text(GOOD)
    ran = convlint("check", "good.yaml", "--write-baseline", "base.json")
    assert ran.err == "convlint: wrote 0 findings to base.json\n"
    assert json.loads(Path("base.json").read_text()) == {"convlint_baseline": 2, "findings": []}


def _sparse(path: str) -> None:
    Path(path).touch()
    os.truncate(path, 3 * 2**30)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "is no file: it is a pipe"),
        (lambda path: os.symlink("/dev/zero", path), "is no file: it is a device"),
        (lambda path: os.symlink(path, path), "cannot be read: Too many levels"),
        (lambda path: os.symlink("nothing", path), "is a link to nothing"),
        (_sparse, "is larger than 64 MiB"),
    ],
)
def test_odd_files_are_no_baselines(make: Callable[[str], object], message: str) -> None:
    make("odd.json")
    ran = convlint("check", "bad.yaml", "--baseline", "odd.json")
    assert (ran.code, f"baseline odd.json {message}" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        (EMPTY.ljust(64 * 2**20), False),
        (EMPTY.ljust(64 * 2**20 + 1), True),
        (WIDE.ljust(8 * 2**20), False),
        (WIDE.ljust(8 * 2**20 + 1), True),
        # signs are counted before anything is parsed, also those that stand in a text
        (START + b'{"fingerprint": "' + b"{" * 499_998 + b'", "code": "b", "path": "c"}]}', False),
        (START + b'{"fingerprint": "' + b"{" * 499_999 + b'", "code": "b", "path": "c"}]}', True),
        (START + b'{"fingerprint": "' + b"[" * 499_999 + b'", "code": "b", "path": "c"}]}', False),
        (START + b'{"fingerprint": "' + b"[" * 500_000 + b'", "code": "b", "path": "c"}]}', True),
        (START + b'{"fingerprint": "' + b"," * 4_999_997 + b'", "code": "b", "path": "c"}]}', False),
        (START + b'{"fingerprint": "' + b"," * 4_999_998 + b'", "code": "b", "path": "c"}]}', True),
    ],
    ids=[
        "64 MiB",
        "one byte more",
        "8 MiB beyond ASCII",
        "one byte more beyond ASCII",
        "500,000 objects",
        "one more",
        "500,000 lists",
        "one list more",
        "5,000,000 values",
        "one value more",
    ],
)
def test_a_baseline_has_its_limits(content: bytes, refused: bool) -> None:
    if not refused:
        parse_baseline(content, "base.json")
        return
    with pytest.raises(UsageError, match="is larger than any baseline"):
        parse_baseline(content, "base.json")


def _entries(count: int, name: str = "backbone.stage.block{}.conv") -> dict[str, BaselineEntry]:
    made = [
        BaselineEntry(fingerprint=f"{i:016x}", code="CL102", path="models/net.yaml", layer=name.format(i), gpu="a100")
        for i in range(count)
    ]
    return {entry.fingerprint: entry for entry in made}


def test_what_a_large_run_writes_is_read_again() -> None:
    """36,000 layers with three findings each: more than 8 MiB."""
    entries = _entries(108_000)
    text = rendered_for("base.json", entries)
    assert len(text) > 8 * 2**20
    assert parse_baseline(text.encode(), "base.json") == entries


@pytest.mark.parametrize(
    ("count", "name", "written"),
    [(499_999, "{}", True), (500_000, "{}", False), (20, "x" * 2**22, False), (99, "," * 2**17, False)],
    ids=["as many as are read", "one more", "larger", "with more commas"],
)
def test_nothing_is_written_that_would_not_be_read(count: int, name: str, written: bool) -> None:
    entries = _entries(count, name)
    if written:
        assert len(parse_baseline(rendered_for("base.json", entries).encode(), "base.json")) == count
        return
    message = f"baseline base.json is not written: {count:,} findings are more than one baseline holds"
    with pytest.raises(UsageError, match=message):
        rendered_for("base.json", entries)
    with pytest.raises(UsageError, match="is larger than any baseline"):
        parse_baseline(render(entries).encode(), "base.json")


def test_too_large_a_baseline_is_one_clear_error_and_leaves_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("base.json").write_text("as it was")
    monkeypatch.setattr(baseline, "MOST_ENTRIES", 2)
    ran = convlint("check", "bad.yaml", "--write-baseline", "base.json")
    assert (ran.code, Path("base.json").read_text()) == (2, "as it was")
    assert "base.json is not written: 2 findings are more than one baseline holds (1 findings, 64 MiB)" in ran.err


def test_an_object_of_millions_of_keys_is_refused_before_it_is_read() -> None:
    keys = ",".join(f'"{n}":0' for n in range(20_000))
    with pytest.raises(UsageError, match="larger than any baseline"):
        parse_baseline(f'{{"convlint_baseline": 2, "findings": [], "x": {{{keys}}}}}'.encode(), "b.json")
