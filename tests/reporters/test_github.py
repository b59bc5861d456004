"""Workflow commands of GitHub, and the job's summary."""

from msgspec.structs import replace
from parsed import READERS, workflow_commands
from reports import ALIGNMENT, finding, full_report, many, rendered

from convlint.model.location import Location
from convlint.model.report import InputError
from convlint.reporters import github


def test_github_annotation() -> None:
    commands = workflow_commands(rendered("github", full_report()))
    assert commands[0] == (
        "error", {"file": "nets/other.yaml", "line": "3", "col": "7", "title": "convlint: not read"},
        "H is not a whole number: 1.5",
    )  # fmt: skip
    assert commands[2][0] == "warning"
    assert commands[2][1] == {
        "file": "nets/spec.yaml", "line": "5", "endLine": "5", "col": "22", "endColumn": "23",
        "title": "CL103 first-layer-channels",
    }  # fmt: skip
    assert commands[2][2].split("\n")[1] == "Lost: 210 us, 6.5 % of the convolutions"
    assert commands[-1][0] == "notice"


def test_github_escapes() -> None:
    one = finding(ALIGNMENT, "100%\nnot::this", Location(path="a,b:c%.yaml"), "x")
    text = rendered("github", full_report(findings=(one,), errors=()))
    assert text.split("\n")[0] == (
        "::warning file=a%2Cb%3Ac%25.yaml,title=CL102 channel-alignment::x: 100%25 not::this"
    )


def test_github_leaves_what_exceeds_ten_of_a_type_to_the_summary() -> None:
    report = many(36)
    text = rendered("github", report)
    names = [name for name, _, _ in workflow_commands(text)]
    assert names == ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10
    assert "6 more not annotated" in text
    assert "more not annotated" not in rendered("github", many(30))
    assert READERS["markdown"](github.summary(report)) == (36, 0)


def test_github_unread_inputs_come_before_errors() -> None:
    errors = tuple(InputError(path="x", message=str(i)) for i in range(9))
    commands = workflow_commands(rendered("github", replace(many(9), errors=errors)))
    assert [properties["title"].startswith("convlint") for name, properties, _ in commands if name == "error"] == (
        [True] * 9 + [False]
    )


def test_the_job_summary_fits() -> None:
    text = github.summary(many(12_000))
    assert 900_000 < len(text.encode()) <= 1024 * 1024
    assert "rows left out" in text


def test_each_file_has_its_annotation() -> None:
    """A pull request shows those of its own files alone."""
    findings = [
        finding(ALIGNMENT, "K=60", Location(path=path), layer) for path, layer in (("a.yaml", "x"), ("b.yaml", "y"))
    ]
    text = rendered("github", full_report(findings=tuple(findings), errors=()))
    assert [properties["file"] for _, properties, _ in workflow_commands(text)] == ["a.yaml", "b.yaml"]
    assert "Also: " not in text
