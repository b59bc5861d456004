"""What of a file is sent to a cluster that does not have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from convlint.errors import InputFault
from convlint.linting.audit.shipping import content_of
from convlint.readers.inputs import file_input

MIB = 1 << 20


def test_content_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"x" * MIB)
    source = file_input(str(path))
    assert content_of(source, MIB) == content_of(source, MIB, MIB) == b"x" * MIB
    assert content_of(source, MIB, MIB - 1) is None
    path.write_bytes(b"x" * (MIB + MIB // 2))
    with pytest.raises(InputFault) as fault:
        content_of(source, MIB, MIB)
    assert fault.value.message == "is not on the cluster's disks, and with 1.5 MiB larger than --ship-limit (1 MiB)"


def test_a_limit_that_no_memory_has(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"x")
    assert content_of(file_input(str(path)), 1 << 60) == b"x"


def test_models_of_several_files(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="cannot be sent there: its shards are files of their own"):
        content_of(file_input(str(tmp_path / "model.safetensors.index.json")), MIB)


@pytest.mark.parametrize(("name", "said"), [("gone", "No such file or directory"), (".", "not a regular file")])
def test_what_is_no_file_is_said_as_by_readers(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputFault, match=f"cannot read the file: .*{said}"):
        content_of(file_input(str(tmp_path / name)), MIB)
