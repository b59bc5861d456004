"""The registry of readers: each line keeps its promises, and all that users see of the formats comes from it."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from checkout import ROOT

from convlint.readers import FORMATS, PYTHON, SPEC, Format, Reader, ReadOptions, find_format, format_of, known_suffixes
from convlint.readers.discovery import MOST_HELD, discover
from convlint.readers.inputs import file_input
from convlint.readers.reading import Reading

READS = re.compile(r"^def read\(", re.MULTILINE)
SPEC_TEXT = "version: 1\nlayers:\n  - {N: 8, C: 64, H: 8, W: 8, K: 64, R: 3, S: 3}\n"
COUNTS = """
import sys
from collections import Counter
opened = Counter()
sys.addaudithook(lambda event, args: opened.update([args[0]]) if event == "open" and isinstance(args[0], str) else None)
from convlint.run.run import lint_paths
from convlint.run.plan import Options
from convlint.readers import discovery
discovery.MOST_HELD = int(sys.argv[1])
verdict = lint_paths(sys.argv[3:], Options(isolated=True, specs_only=sys.argv[2] == "specs only"))
assert len(verdict.report.layers) == 2, verdict.report.errors
print(*(opened[name] for name in ("work/a.yaml", "work/b.json", "work/other.yaml")))
"""


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.module)
def test_each_format_has_a_reader(known: Format) -> None:
    reader = known.reader()
    assert isinstance(reader, Reader)
    assert known.shared == (reader.read_text is not None)
    assert format_of(known.module) is known
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in known.suffixes)


def test_each_reader_is_registered_once() -> None:
    folder = ROOT / "convlint" / "readers"
    offered = {
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in folder.rglob("*.py")
        if READS.search(path.read_text(encoding="utf-8"))
    }
    assert sorted(offered) == sorted(known.module for known in FORMATS)
    suffixes = [suffix for known in FORMATS for suffix in known.suffixes]
    assert len(suffixes) == len(set(suffixes))


def test_no_reader_is_loaded_before_it_is_needed() -> None:
    modules = [f"convlint.readers.{known.module}" for known in FORMATS]
    code = f"import sys, convlint.readers.discovery; print(*[name for name in {modules} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
    assert all(find_spec(name) for name in modules)


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.module)
def test_every_suffix_leads_to_its_format(known: Format, tmp_path: Path) -> None:
    for suffix in known.suffixes:
        assert find_format(f"a/b{suffix.upper()}") is known
        (tmp_path / f"net{suffix}").write_text(SPEC_TEXT if known.shared else "")
    found, _ = discover([str(tmp_path)])
    assert len(found) == (0 if known.refused or known.named else len(known.suffixes))


def test_what_no_reader_knows_names_all_that_are_known(tmp_path: Path) -> None:
    with Reading() as reading:
        _, (error,) = reading.read(file_input("a.txt"), ReadOptions())
    assert f"known are {', '.join(known_suffixes(refused=False))} and package.module:name" in error.message
    _, (error,) = discover([str(tmp_path)])
    assert f"({', '.join(sorted(known_suffixes(refused=False, named=False)))})" in error.message


def test_the_hook_takes_what_specs_are_written_in() -> None:
    hook, of_models = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    suffixes = {"yaml": ".yml", "json": ".json", "python": ".py", "jupyter": ".ipynb"}
    assert {suffixes[kind] for kind in hook["types_or"]} <= {*SPEC.suffixes, *PYTHON.suffixes}
    assert "--skip-foreign" in hook["entry"]
    assert "--models" in of_models["entry"]


@pytest.mark.parametrize(
    ("held", "mode", "arguments", "reads"),
    [
        (MOST_HELD, "all", ["work"], "1 1 1"),
        (MOST_HELD, "specs only", ["work/a.yaml", "work/b.json", "work/other.yaml"], "1 1 1"),
        # How a .json begins says whether it is a trace, unless its text is held.
        (MOST_HELD, "all", ["work/a.yaml", "work/b.json"], "1 2 0"),
        (len(SPEC_TEXT), "all", ["work"], "1 3 1"),  # no room for the second
        (0, "all", ["work"], "2 3 1"),
    ],
)
def test_a_file_is_opened_once(tmp_path: Path, held: int, mode: str, arguments: list[str], reads: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.yaml").write_text(SPEC_TEXT)
    (tmp_path / "work" / "b.json").write_text(
        '{"version": 1, "layers": [{"N": 8, "C": 64, "H": 8, "W": 8, "K": 64, "R": 3, "S": 3}]}'
    )
    (tmp_path / "work" / "other.yaml").write_text("name: ci\n")
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{COUNTS}", str(held), mode, *arguments],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (ran.stdout.strip(), ran.stderr) == (reads, "")
