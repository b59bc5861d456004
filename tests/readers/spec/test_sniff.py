"""Which YAML and JSON files are specs."""

from __future__ import annotations

import os
from pathlib import Path
from time import process_time

import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st

from convlint.readers.spec.sniff import Look, is_spec_text, look

SAMPLES = sorted((ROOT / "sample_configs").glob("*.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nlayers:\n  - C: 3\n",
        "layers:\n- C: 3\n",
        "layers:\n\n  # the first\n\n  - C: 3\n",
        "layers: [ {C: 3} ]",
        "layers: # all of them\n  - C: 3",
        "'layers': []\r\nversion: 1\r\n",
        '"layers" : *all\n',
        "version: 1\nlayers: { oops: 1 }\n",
        "version: 1\nlayers:\n  - {",
        '{"version": 1, "layers": [{"C": 3}]}',
        '{\n  "x-a": [{"layers": 1}],\n  "name": "layers",\n  "layers": []\n}',
        "{ [a, b]: 1, layers: [] }",
    ],
)
def test_specs(text: str) -> None:
    assert is_spec_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "on: push\n",
        "# layers:\n",
        "a:\n  layers:\n    - 1\n",
        "service: x\nlayers:\n  hello:\n    path: y\n",
        "layers:\n",
        "layers: 3\n",
        '{"config": {"layers": [1]}}',
        '{"layers": {"a": 1}}',
        '{"a": "layers", "b": [1]}',
        '{"a": [, "layers": []}',
        "- layers: []\n",
    ],
)
def test_others(text: str) -> None:
    assert not is_spec_text(text)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_is_one(path: Path) -> None:
    seen = look(str(path))
    assert (seen.verdict, seen.text) == ("spec", path.read_text(encoding="utf-8"))


def test_what_cannot_be_read_is_for_the_reader_to_report(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff")
    (tmp_path / "large.yaml").write_bytes(b"layers:\n" + b" " * (4 << 20))
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("a.yaml", "large.yaml", "nowhere.yaml", "pipe.yaml", "."):
        assert look(str(tmp_path / name), named=True) == Look(verdict="spec")


LATE = "#" * (1 << 16) + "\nlayers: []\n"


@pytest.mark.parametrize(
    ("text", "in_a_folder", "named"),
    [
        ("layers: []\n", "spec", "spec"),
        ("name: ci\n", "foreign", "no spec"),
        ("jobs:\n  layers: 3\n", "no spec", "no spec"),
        ("layers: many\n", "no spec", "no spec"),
        ('{"version": 1, "layers": []}', "spec", "spec"),
        ('{"inner": {"layers": []}}', "no spec", "no spec"),
        ('{"schema_version": 1, "layers": []}', "no spec", "no spec"),
        (LATE, "foreign", "spec"),
        ("", "foreign", "no spec"),
    ],
)
def test_one_look_tells_what_a_file_is(tmp_path: Path, text: str, in_a_folder: str, named: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    assert look(str(path)) == Look(verdict=in_a_folder, text=text if in_a_folder == "spec" else None)
    assert look(str(path), named=True) == Look(verdict=named, text=text if named == "spec" else None)


def test_what_is_not_wanted_is_not_read_beyond_its_head(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("layers: many\n")
    assert look(str(path), whole=False) == Look(verdict="spec")
    path.write_text("name: ci\n")
    assert look(str(path), whole=False) == Look(verdict="foreign")


@given(st.text(max_size=50), st.sampled_from(["", "{", "layers:", '{"layers": ']))
def test_no_text_is_too_odd(text: str, start: str) -> None:
    assert is_spec_text(start + text) in (True, False)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("layers:\n" + "\n" * 1_000_000 + "  - 1\n", True),
        ("layers:\n" + "#\n" * 1_000_000 + "  - 1\n", True),
        ("layers:\n" + " " * 1_000_000 + "\n  - 1\n", True),
        ("layers: # text\r\n\r\n# more\r\n- 1\r\n", True),
        ("layers:" + " " * 1_000_000 + "x\n", False),
        ("layers" + " " * 1_000_000 + "x\n", False),
        (" " * 1_000_000 + '{"a": 1, "layers": []}', True),
        ('{"a": [' + "1, " * 150_000 + '1], "layers": []}', True),
        ('{"a": [' + "1, " * 1_000_000 + '1], "layers": []}', False),  # has more values than a spec may have
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + ', "layers": []}', False),
    ],
)
def test_large_files_are_told_apart_soon(text: str, spec: bool) -> None:
    begin = process_time()
    assert is_spec_text(text) is spec
    assert process_time() - begin < 5
