"""A project whose files outputs may not replace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from checked_files import RULE

SPEC = "version: 1\nlayers:\n  - { name: a, N: 8, C: 60, H: 8, W: 8, K: 64, kernel_size: 1, dtype: fp16 }\n"
BASELINE = '{"convlint_baseline": 1, "findings": []}'


def content() -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_ino, path.read_bytes() if path.is_file() else b"")
        for path in sorted(Path().rglob("*"))
    }


def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an input, a config that extends another, a baseline, rules, models, and links to them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    for name, text in {
        "ok.yaml": SPEC, "nets/deep.yaml": SPEC, "convlint.toml": 'extend = "parent.conf"\n',
        "parent.conf": 'extend = "grandparent.conf"\n', "grandparent.conf": "min-loss = 1\n", "other.conf": "",
        "base.json": BASELINE, "own/rule.yaml": RULE, "pkg/net.txt": "", "there.json": "", "kept.md": "",
        "m.onnx": "", "weights.H5": "", "m.onnx.data": "", "code.py": "", "pkg/__init__.py": "",
        "pkg/sub.py": "", "shards/m.safetensors.index.json": "{}", "shards/part-1.safetensors": "",
        "nets/x/y.txt": "",
    }.items():  # fmt: skip
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    os.link("ok.yaml", "hard.txt")
    os.link("shards/part-1.safetensors", "shard.txt")
    os.link("pkg/sub.py", "sub.txt")
    os.link("pkg/__init__.py", "init.txt")
    os.link("grandparent.conf", "grand.txt")
    os.link("own/rule.yaml", "rule.txt")
    os.link("there.json", "again.json")
    for link, target in {
        "soft.txt": "ok.yaml", "chain.txt": "soft.txt", "here": ".", "model.txt": "m.onnx", "new1.json": "new.json",
        "base.txt": "base.json", "there.txt": "there.json",
    }.items():  # fmt: skip
        os.symlink(target, link)
    return tmp_path
