"""Which YAML and JSON files are specs."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.readers.spec.sniff import is_spec, is_spec_text

SAMPLES = sorted((Path(__file__).parents[2] / "sample_configs").glob("*.yaml"))


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
    assert is_spec(str(path))


def test_what_cannot_be_read_is_for_the_reader_to_report(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff")
    assert is_spec(str(tmp_path / "a.yaml"))
    assert is_spec(str(tmp_path / "nowhere.yaml"))


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
