"""The edits that findings carry into SARIF and rdjson: applied one at a time, they are what --fix makes of each."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from command_line import convlint
from msgspec.structs import replace
from parsed import rdjson, sarif
from sarif_fixes import applied
from specs import HEAD

from convlint.fixes import verify
from convlint.fixes.spec_text import Edits, SpecText, ValueChange
from convlint.mend import proposing
from convlint.model.report import Finding
from convlint.run.plan import Options
from convlint.run.run import lint_paths

pytestmark = pytest.mark.usefixtures("here")

NET = """\
# a network   of three layers
version: 1
target: [a100]
runtime: { framework: pytorch, cudnn_benchmark: false, fixed_input_size: true }
defaults: { N: 256, dtype: fp16, layout: NHWC }   # as it runs
layers:
  - { name: image, op: input, C: 4, H: 224, W: 224 }
  - { name: stem, K: 60, kernel_size: 7, stride: 2, padding: 3 }   # first
  - name: conv2
    in_channels: 60
    out_channels: 124   # odd
    kernel_size: [3, 3]
    padding: 1
  - {name: conv3, "in_channels": 124, K: 64, kernel_size: 3, padding: 1, head: false}
  - { name: pool, op: global_pool }
"""
GROUP = (
    HEAD
    + """\
  - { name: a, C: 64, K: 60, R: 3, S: 3, padding: 1, first: false }
  - { name: b, K: 128, R: 1, S: 1 }
  - { name: "名 🙂", input: a, C: 60, K: 128, R: 1, S: 1 }
"""
)
ASTRAL = GROUP.replace("name: a,", "name: üben-🙂,").replace("input: a", "input: üben-🙂")
# a is all that has to change, and gets a line of its own
BLOCK = """\
version: 1
target: [a100]
defaults: { N: 256, H: 56, W: 56, C: 60, dtype: fp16, layout: NHWC }
layers:
- name: a
  first: false
  kernel_size: 3
  K: 64 # 🙂
- { name: b, C: 60, K: 64, kernel_size: 3, first: false, dtype: fp32 }
- { name: c, K: 64, kernel_size: 3, first: false, dtype: fp32 }
"""


def results(*arguments: str, stdin: str = "") -> list[dict[str, Any]]:
    """Of a check whose SARIF its schema accepts."""
    text = convlint("check", *arguments, "-o", "sarif", stdin=stdin).out
    sarif(text)
    return json.loads(text)["runs"][0]["results"]


def suggested(content: bytes, suggestion: dict[str, Any]) -> bytes:
    """A file with LF after a suggestion of whole lines."""
    lines = content.decode().split("\n")
    first, last = suggestion["range"]["start"], suggestion["range"]["end"]
    assert first.keys() == last.keys() == {"line"}
    lines[first["line"] - 1 : last["line"]] = suggestion["text"].split("\n")
    return "\n".join(lines).encode()


def mended(path: str, *options: str) -> bytes:
    """What --fix makes of a file, which is left as it was."""
    before = Path(path).read_bytes()
    convlint("check", path, "--fix", "--unsafe-fixes", *options)
    after = Path(path).read_bytes()
    Path(path).write_bytes(before)
    return after


# What is selected has one finding whose fix can be applied.
CASES = [
    (NET, "CL501"),
    (NET.replace("124", "128"), "CL102"),
    (NET.replace("60", "64"), "CL102"),
    (GROUP, "CL102"),
    (ASTRAL, "CL102"),
    (BLOCK, "CL102"),
    (NET.replace("layout: NHWC", "layout: NCHW").replace("60", "64").replace("124", "128"), "CL401"),
    ('{"version": 1, "target": ["a100"], "layers": [{"name": "名🙂", "N": 256, "C": 64, "H": 56, "W": 56,'
     ' "K": 60, "R": 3, "S": 3, "padding": 1, "dtype": "fp16", "layout": "NHWC", "head": false}]}', "CL102"),
]  # fmt: skip


@pytest.mark.parametrize("breaks", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize(("text", "code"), CASES)
def test_applied_they_are_what_fix_writes(text: str, code: str, mark: bytes, breaks: str) -> None:
    content = mark + text.replace("\n", breaks).encode()
    Path("net.yaml").write_bytes(content)
    found = results("net.yaml", "--select", code)
    fixes = [fix for result in found for fix in result.get("fixes", ())]
    expected = mended("net.yaml", "--select", code)
    assert expected != content
    assert {applied(content, fix) for fix in fixes} == {expected}
    (place,) = {change["artifactLocation"]["uri"] for fix in fixes for change in fix["artifactChanges"]}
    assert place == "net.yaml"


# Of the odd widths, that of c alone stands behind no anchor.
SHARED = """\
version: 1
target: [a100]
x-width: &width 60
x-base: &base { kernel_size: 3, padding: 1 }
defaults: { N: 32, dtype: fp16, layout: NHWC }
layers:
  - { name: a, C: 64, H: 56, W: 56, K: *width, <<: *base }
  - { name: b, K: *width, <<: *base }
  - { name: c, K: 124, <<: *base }
  - { name: d, K: 128, <<: *base }
"""
BY_HAND = "the value is shared through the YAML anchor &width in line 3; edit it by hand"


@pytest.mark.parametrize("path", ["net.yaml", "-"])
def test_what_an_anchor_shares_is_not_edited_nor_promised(path: str) -> None:
    Path("net.yaml").write_text(SHARED)
    ran = convlint("check", path, "-o", "json", "--select", "CL102", stdin=SHARED)
    report, alone = json.loads(ran.out), SHARED.replace("124", "128")
    fixes = {found["layer"]: found["fix"] for found in report["findings"]}
    assert {name: (fix["applicable"], fix["no_edit"]) for name, fix in fixes.items()} == {
        "a": (False, BY_HAND), "b": (False, BY_HAND), "c": (True, None),
    }  # fmt: skip
    Path("after.yaml").write_text(alone)
    after = json.loads(convlint("check", "after.yaml", "-o", "json", "--select", "CL102").out)
    assert report["summary"]["time_after_fix_us"] == after["summary"]["time_us"]
    assert ran.code == 1
    assert mended("net.yaml", "--select", "CL102").decode() == alone
    assert [len(result.get("fixes", ())) for result in results("net.yaml", "--select", "CL102")] == [1, 0, 0]


def test_a_spec_whose_fixes_are_all_behind_anchors_stays_as_it_is() -> None:
    content = SHARED.replace("124", "128")
    Path("net.yaml").write_text(content)
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "--select", "CL102")
    assert (ran.code, Path("net.yaml").read_text()) == (1, content)
    assert f"CL102 of a, b is not fixed: {BY_HAND}" in ran.err


def test_each_is_about_its_own_finding() -> None:
    Path("net.yaml").write_text(NET)
    by_layer = {
        result["locations"][0]["logicalLocations"][0]["name"]: result["fixes"][0]
        for result in results("net.yaml", "--select", "CL102")
    }
    assert applied(NET.encode(), by_layer["stem"]).decode() == NET.replace("60", "64")
    assert applied(NET.encode(), by_layer["conv2"]).decode() == NET.replace("124", "128")
    assert by_layer["stem"]["properties"] == {"safety": "unsafe"}
    assert by_layer["stem"]["description"]["text"].startswith("use K=64; C of conv2 with it (changes the network)")


def test_safe_ones_are_those_that_fix_makes_without_being_asked_for_more() -> None:
    Path("net.yaml").write_text(NET.replace("layout: NHWC", "layout: NCHW"))
    safety = {
        each["ruleId"]: each["fixes"][0]["properties"]["safety"] for each in results("net.yaml") if "fixes" in each
    }
    assert safety == {"CL401": "safe", "CL501": "safe", "CL102": "unsafe"}
    Path("net.yaml").write_text(NET.replace("C: 4", "C: 3"))
    (result,) = results("net.yaml", "--select", "CL103", "--fail-on", "info")
    assert result["fixes"][0]["properties"] == {"safety": "unsafe"}  # keeps the results, not the weights


def test_several_files_have_their_own() -> None:
    for name, width in (("a b.yaml", "60"), ("c.yaml", "62")):
        Path(name).write_text(GROUP.replace("60", width))
    places = set()
    for result in results("a b.yaml", "c.yaml", "--select", "CL102", "-j", "2"):
        (change,) = result["fixes"][0]["artifactChanges"]
        own = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert change["artifactLocation"] == own
        path = own["uri"].replace("%20", " ")
        assert applied(Path(path).read_bytes(), result["fixes"][0]).decode() == GROUP.replace("60", "64")
        places.add(path)
    assert places == {"a b.yaml", "c.yaml"}


def test_standard_input() -> None:
    found = results("-", "--select", "CL501", stdin=NET)
    assert applied(NET.encode(), found[0]["fixes"][0]).decode() == NET.replace("benchmark: false", "benchmark: true")


def test_rdjson_suggests_what_changes_no_other_lines() -> None:
    text = NET.replace("    in_channels: 60\n", "").replace("name: stem", "name: 🙂stem")
    Path("net.yaml").write_text(text)
    out = convlint("check", "net.yaml", "-o", "rdjson").out
    rdjson(out)
    diagnostics = {each["code"]["value"] + each["message"]: each for each in json.loads(out)["diagnostics"]}
    found = {message: each["suggestions"] for message, each in diagnostics.items() if "suggestions" in each}
    assert {suggested(text.encode(), one).decode() for (one,) in found.values()} == {
        text.replace("K: 60", "K: 64"),
        text.replace("benchmark: false", "benchmark: true"),
    }
    (silent,) = (message for message in diagnostics.keys() - found.keys() if "CL102" in message)
    assert "use K=128; C of conv3 with it" in silent


@pytest.mark.parametrize("breaks", ["\n", "\r\n"])
def test_rdjson_suggests_lines_without_their_breaks(breaks: str) -> None:
    Path("net.yaml").write_bytes(GROUP.replace(", C: 60", "").replace("\n", breaks).encode())
    (diagnostic,) = json.loads(convlint("check", "net.yaml", "-o", "rdjson", "--select", "CL102").out)["diagnostics"]
    (suggestion,) = diagnostic["suggestions"]
    assert suggestion["text"] == "  - { name: a, C: 64, K: 64, R: 3, S: 3, padding: 1, first: false }"
    assert suggestion["range"] == {"start": {"line": 5}, "end": {"line": 5}}


def test_what_is_silenced_has_none() -> None:
    silent = "first: false }  # convlint: ignore[CL102] -- as it is"
    Path("net.yaml").write_text(GROUP.replace("first: false }", silent))
    (result,) = results("net.yaml", "--select", "CL102")
    assert "suppressions" in result
    assert "fixes" not in result
    Path("net.yaml").write_text(GROUP)
    convlint("check", "net.yaml", "--write-baseline", "base.json")
    for options in (["--baseline", "base.json"], ["--write-baseline", "new.json"]):
        assert all("fixes" not in each and "suppressions" in each for each in results("net.yaml", *options))


def test_what_does_not_count_or_fix_refuses_has_none() -> None:
    Path("net.yaml").write_text(GROUP)
    assert "fixes" in results("net.yaml", "--select", "CL102", "--fail-on", "never")[0]
    for options in (["--min-loss", "99"], ["--fail-on", "error"]):  # what is advised is mended whatever counts
        assert "fixes" in results("net.yaml", "--select", "CL102", *options)[0]
    Path("net.yaml").write_text(NET.replace("124, K: 64", "124, K: 60").replace(", head: false", ""))
    places = [
        each["locations"][0]["logicalLocations"][0]["name"]
        for each in results("net.yaml", "--select", "CL102")
        if "fixes" in each
    ]
    assert places
    assert "conv3" not in places  # a head


def test_no_other_format_pays_for_them() -> None:
    Path("net.yaml").write_text(GROUP)
    with patch.object(proposing, "Proposing", side_effect=AssertionError):
        for name in ("text", "concise", "json", "github", "gitlab", "junit", "markdown"):
            assert convlint("check", "net.yaml", "-o", name).code == 1
        assert convlint("check", "net.yaml", "--diff", "--unsafe-fixes").code == 1


def test_files_that_are_mended_have_edits_of_what_they_are_then() -> None:
    Path("net.yaml").write_text(NET)
    found = results("net.yaml", "--fix")
    now = Path("net.yaml").read_text()
    assert now == NET.replace("benchmark: false", "benchmark: true")
    (one, other) = (each["fixes"][0] for each in found if each["ruleId"] == "CL102")
    assert applied(applied(now.encode(), one), other).decode() == now.replace("60", "64").replace("124", "128")


@pytest.mark.parametrize(
    "text", [GROUP.replace("\n", "\r"), GROUP + "# \x85", GROUP.replace("layers:", "# \u2028\nlayers:")]
)
def test_lines_that_others_count_otherwise(text: str) -> None:
    Path("net.yaml").write_bytes(text.encode())
    found = results("net.yaml", "--select", "CL102")
    assert found
    assert all("fixes" not in each for each in found)


def test_an_input_that_cannot_be_read_in_full_has_none() -> None:
    Path("net.yaml").write_text(GROUP + "  - { name: d, K: 1.5 }\n")
    found = results("net.yaml", "--select", "CL102")
    assert found
    assert all("fixes" not in each for each in found)
    assert results("absent.yaml") == []
    Path("broken.yaml").write_bytes(b"\xff\xfe")
    assert results("broken.yaml") == []


LAYERS = [f"  - {{ name: l{n}, C: 60, K: 64, R: 3, S: 3, padding: 1, first: false }}\n" for n in range(9)]


def with_fixes(select: str = "CL102") -> list[str]:
    """The layers of findings that carry edits."""
    options = Options(select=(select,), proposes=True)
    found = lint_paths(["net.yaml"], options).report.findings
    return sorted(each.layer or "" for each in found if each.fix is not None and each.fix.edits)


def spoiling(what: str, layers: Sequence[int]) -> Any:
    """Edits of some layers that do something else."""
    right = SpecText.edits

    def wrong(self: SpecText, changes: Sequence[ValueChange]) -> Edits:
        found = right(self, changes)
        if not {change.layer for change in changes} & set(layers):
            return found
        return replace(found, edits=tuple(replace(edit, new=what) for edit in found.edits))

    return patch.object(SpecText, "edits", wrong)


@pytest.mark.parametrize(
    ("what", "culprits"),
    [
        ("72, N: 3", [6]),  # read as another layer
        ("-64", [2, 3]),  # not read
        ("[", [4]),  # nothing can be read
        ("[", [0, 8]),
        ("61", [5]),  # the finding would stay
        ("64\x07", [1]),  # cannot be written as it is
        ("64 # ##[error]", [1]),
    ],
)
def test_what_fails_is_told_from_the_rest(what: str, culprits: list[int]) -> None:
    Path("net.yaml").write_text(HEAD + "".join(LAYERS))
    with spoiling(what, culprits):
        assert with_fixes() == [f"l{n}" for n in range(9) if n not in culprits]


def test_checks_are_few_and_bounded() -> None:
    Path("net.yaml").write_text(HEAD + "".join(LAYERS))
    with patch.object(proposing, "check_read", wraps=proposing.check_read) as checked:
        assert len(with_fixes()) == 9
        assert checked.call_count == 1
    with patch.object(proposing, "MOST_CHECKS", 2), spoiling("[", [0, 8]):
        assert with_fixes() == []
    with patch.object(verify, "staying", lambda plan, _: set(range(len(plan.granted)))):
        with patch.object(proposing, "check_read", wraps=proposing.check_read) as checked:
            assert with_fixes() == []
        assert checked.call_count <= proposing.MOST_CHECKS


def test_the_work_on_one_text_is_bounded() -> None:
    shared = HEAD.replace("H: 56", "C: 60, H: 56") + "".join(LAYERS).replace(" C: 60,", "")
    Path("net.yaml").write_text(shared)
    assert len(with_fixes()) == 9
    with patch.object(proposing, "MOST_LOOKS_ANYWAY", 0), patch.object(proposing, "LOOKS_PER_LAYER", 2):
        assert len(with_fixes()) == 2  # each looks at all nine layers
        Path("net.yaml").write_text(HEAD + "".join(LAYERS))
        assert len(with_fixes()) == 9


def test_what_loses_time_with_others_is_tried_alone() -> None:
    Path("net.yaml").write_text(HEAD + LAYERS[0].replace("padding: 1", "padding: 3"))

    def crowded(plan: Any, *_: Any) -> dict[int, tuple[str, float]]:
        return {0: ("a100", 1.0)} if len(plan.granted) > 1 else {}

    def carried() -> Iterator[Finding]:
        options = Options(select=("CL102", "CL006"), proposes=True)
        found = lint_paths(["net.yaml"], options).report.findings
        yield from (each for each in found if each.fix is not None and each.fix.edits)

    assert len(list(carried())) == 2
    with patch.object(proposing, "slower", crowded):
        assert len(list(carried())) == 2
    with patch.object(proposing, "slower", lambda plan, *_: dict.fromkeys(range(len(plan.granted)), ("a100", 1.0))):
        assert list(carried()) == []
