"""Hostile zip archives, and a reader in another process whose memory is measured."""

import subprocess
import sys
import zipfile
from pathlib import Path


def bomb(path: Path, member: str, size: int) -> None:
    """An archive with one member that unpacks to `size` zero bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(member, "w") as stream:
        for _ in range(size >> 20):
            stream.write(bytes(1 << 20))


def with_false_size(path: Path, member: str, size: int) -> None:
    """An archive whose table of contents says that a large member is small."""
    bomb(path, member, size)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (100).to_bytes(4, "little")
    path.write_bytes(content)


def read_apart(reader: str, path: Path | str, megabytes: int = 500) -> str:
    """Reads `path` in another process within that memory; its layers and errors as text."""
    code = (
        f"from convlint.readers import ReadOptions\nfrom convlint.readers.{reader} import read\n"
        f"network, errors = read({str(path)!r}, ReadOptions())\n"
        "print(len(network.layers) if network else 0, [error.message for error in errors])\n"
        "print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    result, used = done.stdout.splitlines()
    assert int(used) < megabytes, f"{used} MB"
    return result
