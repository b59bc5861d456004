"""The page of all GPUs: each has a section that the table leads to, and no figure is without its source."""

import re

from convlint.cli.commands.gpus import details
from convlint.gpus.gpu import gpu_names, load_gpu
from handbook.gpu_pages import page

PAGE = page()


def test_every_gpu_has_its_section_and_its_line() -> None:
    assert re.findall(r"^\| \[([\w-]+)\]\(#gpu-([\w-]+)\)", PAGE, re.MULTILINE) == [
        (name, name) for name in gpu_names()
    ]
    assert sorted(re.findall(r"^### .* \{#gpu-([\w-]+)\}$", PAGE, re.MULTILINE)) == list(gpu_names())
    assert f"knows {len(gpu_names())} GPUs" in PAGE


def test_figures_have_sources() -> None:
    own = {"architecture", "tensor_dtypes", "chip"}  # words; and what follows from the rest
    for name in gpu_names():
        for key, shown, source in details(load_gpu(name)):
            assert source or shown in ("unknown", "none") or key in own, (name, key)


def test_notes_are_shown() -> None:
    noted = next(load_gpu(name) for name in gpu_names() if load_gpu(name).notes)
    assert "Note: " in PAGE.partition(f"{{#gpu-{noted.id}}}")[2].partition("###")[0]
