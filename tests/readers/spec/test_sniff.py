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
        "version: 1\nlayers:\n  - K: 3\n",
        "layers:\n- out_channels: 3\nversion: 1\n",
        "version: 1\nlayers:\n\n  # the first\n\n  - C: 3\n    kernel: 3\n",
        "layers: [ {C: 3, R: 1} ]\nversion: '1'",
        "version: 1 # ours\nlayers: # all of them\n  - op: relu\n  - filters: 3",
        "'layers': [{kernel_size: 3}]\r\n\"version\": 1\r\n",
        "version: 1\nx-all: &all [{K: 1}]\nlayers: *all\n",
        "version: 1\nx-one: &one {K: 1}\nlayers: [ *one ]\n",
        "version: 1\nx-one: &one {K: 1}\nlayers: [ {<<: *one} ]\n",
        "version: 1\ndefaults: { K: 64 }\nlayers: [ {name: a} ]\n",
        "version: 1\nlayers:\n  - {K: 3}\n  - {",
        "version: 1\nlayers:\n- {",
        "layers:\n  - {K: 3}\nmore: [\nversion: 1\n",
        '{"version": 1, "layers": [{"K": 3}]}',
        '{\n  "x-a": [{"layers": 1}],\n  "name": "layers",\n  "layers": [{"K": 1}], "version": 1\n}',
        "{ [a, b]: 1, {c: 1}: [2], version: 1, layers: [ {? [x] : 1, K: 3} ] }",
    ],
)
def test_specs(text: str) -> None:
    assert is_spec_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "on: push\n",
        "# layers:\n# version: 1\n",
        "layers: [ {K: 3} ]\n",  # no version
        "version: 2\nlayers: [ {K: 3} ]\n",
        "version: 2\nlayers:\n- {",
        "version: 1\nlayers: []\n",
        "version: 1\nlayers:\n",
        "version: 1\nlayers: 3\n",
        "version: 1\nlayers: { K: 1 }\n",
        "version: 1\nlayers: [64, 128, 256]\n",  # widths, as a Hydra config has them
        "version: 1\nlayers: [K, R]\n",
        "version: 1\nlayers:\n  - { units: 64, activation: relu }\n",
        "version: 1\nlayers:\n  - { name: a, inner: { K: 1 } }\n",
        "version: 1\nmodel: { layers: [ {K: 1} ] }\n",
        "inner: { version: 1 }\nlayers: [ {K: 1} ]\n",
        "version: 1\nservice: x\nlayers:\n  hello:\n    path: y\n",  # a function's layers
        '{"version": 8, "name": "map", "layers": [{"id": "water", "type": "fill", "filter": ["==", 1]}]}',
        '{"class_name": "Sequential", "config": {"layers": [{"config": {"kernel_size": [3, 3]}}]}}',
        '{"schema_version": 2, "layers": [{"name": "a", "K": 64}]}',  # a report of convlint's own
        '{"a": [, "version": 1, "layers": [{"K": 1}]}',
        "- version: 1\n- layers: [ {K: 1} ]\n",
        "version: 1\n--- \nlayers: [ {K: 1} ]\n",
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


def test_what_cannot_be_read_in_a_folder_is_reported_where_it_looks_like_a_spec(tmp_path: Path) -> None:
    for name, text, verdict in (
        ("a.yaml", b"version: 1\nlayers: \xff", "spec"),
        ("b.yaml", b"layers: \xff", "foreign"),
    ):
        (tmp_path / name).write_bytes(text)
        assert look(str(tmp_path / name)).verdict == verdict


LAYERS = "layers: [ {K: 1} ]\n"
LATE = "#" * (1 << 16) + f"\nversion: 1\n{LAYERS}"


@pytest.mark.parametrize(
    ("text", "in_a_folder", "named"),
    [
        (f"version: 1\n{LAYERS}", "spec", "spec"),
        (LAYERS, "no spec", "no spec"),
        ("name: ci\n", "foreign", "no spec"),
        ("jobs:\n  layers: 3\n", "no spec", "no spec"),
        ("layers: many\n", "no spec", "no spec"),
        ('{"version": 1, "layers": [{"K": 1}]}', "spec", "spec"),
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
        ("version: 1\nlayers:\n" + "\n" * 1_000_000 + "  - K: 1\n", True),
        ("version: 1\nlayers:\n" + "#\n" * 1_000_000 + "  - K: 1\n", True),
        ("version: 1\nlayers:" + " " * 1_000_000 + "x\n", False),
        ("layers" + " " * 1_000_000 + "version: x\n", False),
        (" " * 1_000_000 + '{"a": 1, "version": 1, "layers": [{"K": 1}]}', True),
        ('{"version": 1, "a": [' + "1, " * 150_000 + '1], "layers": [{"K": 1}]}', True),
        ('{"version": 1, "a": [' + "1, " * 1_000_000 + '1], "layers": [{"K": 1}]}', False),  # more than a spec may have
        ('{"version": 1, "a": ' + "[" * 100_000 + "]" * 100_000 + ', "layers": [{"K": 1}]}', False),
    ],
)
def test_large_files_are_told_apart_soon(text: str, spec: bool) -> None:
    begin = process_time()
    assert is_spec_text(text) is spec
    assert process_time() - begin < 5
