"""Versions that lock files, requirements and conda environments pin; what is no version, and what disagrees."""

import time
from pathlib import Path

import pytest

from convlint.config.environment import (
    MOST_LOCK_BYTES,
    environment_in,
    environment_installed,
    environment_near,
    installed_beside,
    refuse_unknown,
    settings_from,
)
from convlint.model.errors import InputFault, UsageError
from convlint.model.runtime import Runtime

TORCH = Runtime(framework="pytorch")
UV = """version = 1
requires-python = ">=3.11"

[[package]]
name = "torch"
version = "{torch}"
source = {{ registry = "https://pypi.org/simple" }}
dependencies = [
    {{ name = "nvidia-cudnn-cu12", marker = "sys_platform == 'linux'" }},
]

[[package]]
name = "numpy"
version = "2.3.0"
"""
CUDNN = """
[[package]]
name = "nvidia-cudnn-cu12"
version = "9.15.1.9"
"""


def settings(folder: Path, runtime: Runtime = TORCH, top: str | None = None) -> dict[str, str]:
    found, _ = settings_from(environment_near(str(folder), top), runtime)
    return {name: str(version) for name, version in found.items()}


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("uv.lock", UV.format(torch="2.9.0"), 5),
        ("pylock.toml", 'lock-version = "1.0"\n[[packages]]\nname = "torch"\nversion = "2.9.0"\n', 3),
        ("poetry.lock", '[[package]]\nname = "torch"\nversion = "2.9.0"\n[package.dependencies]\nx = "*"\n', 2),
        (
            "pdm.lock",
            '[metadata]\n[[package]]\nname = "torch"\nversion = "2.9.0"\nmarker = "os_name == \'posix\'"\n',
            3,
        ),
        ("requirements.txt", "# pinned\nnumpy==2\ntorch==2.9.0 \\\n    --hash=sha256:00\n", 3),
        ("requirements-gpu.txt", 'torch==2.9.0 ; sys_platform == "linux"\n', 1),
        ("environment.yml", "dependencies:\n  - python=3.12\n  - pytorch=2.9.0=py3.12_cuda12.6\n", 3),
        ("environment.yaml", "dependencies:\n  - pip:\n      - torch==2.9.0\n", 3),
    ],
)
def test_each_kind_of_file_is_read(tmp_path: Path, name: str, text: str, line: int) -> None:
    (tmp_path / name).write_text(text)
    found, origins = settings_from(environment_near(str(tmp_path), str(tmp_path)), TORCH)
    assert str(found["framework_version"]) == "2.9.0"
    assert origins["framework_version"].endswith(f"{name}:{line}")


def test_condas_pytorch_cuda_is_the_cuda(tmp_path: Path) -> None:
    (tmp_path / "environment.yml").write_text("dependencies:\n  - pytorch=2.5.1\n  - pytorch-cuda=12.4\n")
    assert settings(tmp_path) == {"framework_version": "2.5.1", "cuda": "12.4"}


def test_cudnns_own_package_beats_what_the_wheel_needs(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV.format(torch="2.9.0"))
    assert settings(tmp_path) == {"framework_version": "2.9.0", "cuda": "12.8", "cudnn": "9.10.2"}
    (tmp_path / "uv.lock").write_text(UV.format(torch="2.9.0") + CUDNN)
    assert settings(tmp_path)["cudnn"] == "9.15.1.9"


@pytest.mark.parametrize(
    ("version", "cuda", "cudnn"),
    [
        ("2.9.1", "12.8", "9.10.2"),
        ("2.9.0+cu130", "13.0", "9.13.0"),
        ("2.7.1+cu118", "11.8", "9.1.0"),
        ("2.13.0", "13.0", "9.20.0"),
        ("2.9.0+cu999", "99.9", None),  # a build that nobody lists
        ("2.9.0+mine", None, None),
        ("2.9.0+cpu", None, None),
        ("2.9.0+rocm6.4", None, None),
        ("1.12.0", None, None),
    ],
)
def test_what_a_wheel_of_pytorch_needs(tmp_path: Path, version: str, cuda: str | None, cudnn: str | None) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch=={version}\n")
    found = settings(tmp_path)
    assert found["framework_version"] == version
    assert (found.get("cuda"), found.get("cudnn")) == (cuda, cudnn)


@pytest.mark.parametrize(
    "line",
    ["torch>=2.9", "torch==2.9.*", "torch~=2.9.0", "torch", "torch==2.9.0,<3", "torchvision==0.24",
     "torch==2.9.0 ; sys_platform == 'darwin'", "torch @ git+https://github.com/pytorch/pytorch", "# torch==2.9.0"],
)  # fmt: skip
def test_what_is_no_pin_for_a_host_with_a_gpu(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(line + "\n")
    assert settings(tmp_path) == {}


def test_a_wheels_address_names_its_version(tmp_path: Path) -> None:
    wheel = "https://download.pytorch.org/whl/cu126/torch-2.9.0%2Bcu126-cp312-cp312-manylinux_2_28_x86_64.whl"
    (tmp_path / "requirements.txt").write_text(f"torch @ {wheel}\n")
    assert settings(tmp_path) == {"framework_version": "2.9.0+cu126", "cuda": "12.6", "cudnn": "9.10.2"}


@pytest.mark.parametrize("version", ["2.10.0.dev20251001+cu130", "2.9.0rc3", "not a version"])
def test_a_nightly_is_no_release(tmp_path: Path, version: str) -> None:
    (tmp_path / "uv.lock").write_text(UV.format(torch=version))
    environment = environment_near(str(tmp_path), str(tmp_path))
    assert "torch" not in environment.pins
    assert version in environment.notes[0]


def test_files_that_disagree_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV.format(torch="2.9.0"))
    (tmp_path / "requirements.txt").write_text("torch==2.8.0\n")
    environment = environment_near(str(tmp_path), str(tmp_path))
    assert environment.pins == {}
    (note,) = environment.notes
    assert "2.8.0 in" in note
    assert "neither is taken" in note


def test_a_lock_with_two_versions_of_a_package_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV.format(torch="2.9.0") + UV.format(torch="2.8.0"))
    assert "torch" not in environment_near(str(tmp_path), str(tmp_path)).pins
    mac = 'version = "2.8.0"\nresolution-markers = [\n    "sys_platform == \'darwin\'",\n]\n'
    (tmp_path / "uv.lock").write_text(UV.format(torch="2.9.0") + f'[[package]]\nname = "torch"\n{mac}')
    assert environment_near(str(tmp_path), str(tmp_path)).pins["torch"].version == "2.9.0"


def test_the_nearest_folder_counts_and_none_above_the_top_or_the_repository(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.7.0\n")
    inner = tmp_path / "repo" / "nets"
    inner.mkdir(parents=True)
    assert settings(inner)["framework_version"] == "2.7.0"
    assert settings(inner, top=str(inner.parent)) == {}
    (inner.parent / ".git").mkdir()
    assert settings(inner) == {}
    (inner.parent / "requirements.txt").write_text("torch==2.8.0\n")
    assert settings(inner)["framework_version"] == "2.8.0"


def test_what_is_given_by_hand_wins_and_a_lock_names_no_framework(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV.format(torch="2.9.0") + CUDNN)
    from convlint.model.runtime import Version

    assert settings(tmp_path, Runtime(framework="pytorch", framework_version=Version("2.8.0"))) == {"cudnn": "9.15.1.9"}
    assert settings(tmp_path, Runtime()) == {"cudnn": "9.15.1.9"}
    assert settings(tmp_path, Runtime(framework="tensorflow")) == {"cudnn": "9.15.1.9"}


def test_included_requirements_are_read_inside_their_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("torch==2.7.0\n")
    inner = tmp_path / "in"
    inner.mkdir()
    (inner / "requirements.txt").write_text("-r ../outside.txt\n-r requirements.txt\n-r more.txt\n")
    assert settings(inner, top=str(inner)) == {}
    (inner / "more.txt").write_text("\ntorch==2.9.0\n")
    found, origins = settings_from(environment_near(str(inner), str(inner)), TORCH)
    assert str(found["framework_version"]) == "2.9.0"
    assert origins["framework_version"].endswith("more.txt:2")


@pytest.mark.parametrize("block", ["version = 2.9.0\n", 'version = "2.9.0\n', "version\n", ""])
def test_a_broken_entry_is_said(tmp_path: Path, block: str) -> None:
    (tmp_path / "uv.lock").write_text(f'version = 1\n[[package]]\nname = "torch"\n{block}{CUDNN}')
    found = environment_near(str(tmp_path), None)
    assert "torch" not in found.pins
    assert found.pins["nvidia-cudnn-cu12"].version
    (note,) = found.notes
    assert note.endswith("uv.lock:3 has no version that can be read: none is taken")


def test_a_huge_lock_is_not_read_and_a_hostile_one_is_soon_done(tmp_path: Path) -> None:
    with (tmp_path / "uv.lock").open("wb") as file:
        file.truncate(MOST_LOCK_BYTES + 1)
    (note,) = environment_near(str(tmp_path), str(tmp_path)).notes
    assert "more than 32 MiB" in note
    hostile = UV.format(torch="2.9.0") * 20_000 + '[[package]]\nname = "torch"\nversion = ' + "[" * 100_000
    (tmp_path / "uv.lock").write_text(hostile)
    start = time.process_time()
    assert "torch" in environment_near(str(tmp_path), str(tmp_path)).pins
    assert time.process_time() - start < 5


def test_a_file_may_be_named_and_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV.format(torch="2.9.0"))
    assert environment_in(str(tmp_path / "uv.lock")).pins["torch"].version == "2.9.0"
    with pytest.raises(InputFault):
        environment_in(str(tmp_path / "none.lock"))


def test_a_module_has_what_is_installed_here() -> None:
    import torch

    assert environment_installed().pins["torch"].version == str(torch.__version__)


@pytest.mark.parametrize(
    ("index", "version", "cuda"),
    [
        ("--index-url https://download.pytorch.org/whl/cu126", "2.9.0+cu126", "12.6"),
        ("--extra-index-url=https://download.pytorch.org/whl/cu130", "2.9.0+cu130", "13.0"),
        ("-i https://download.pytorch.org/whl/cpu", "2.9.0+cpu", None),
        ("--index-url https://pypi.org/simple", "2.9.0", "12.8"),
    ],
)
def test_the_index_says_which_wheel_it_is(tmp_path: Path, index: str, version: str, cuda: str | None) -> None:
    (tmp_path / "requirements.txt").write_text(f"{index}\ntorch==2.9.0\nnumpy==2.0\n")
    found = settings(tmp_path)
    assert (found["framework_version"], found.get("cuda")) == (version, cuda)


def test_a_line_that_is_a_wheel_is_a_pin(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "https://download.pytorch.org/whl/cu126/torch-2.9.0%2Bcu126-cp312-cp312-manylinux_2_28_x86_64.whl\n"
    )
    assert settings(tmp_path)["framework_version"] == "2.9.0+cu126"


@pytest.mark.parametrize("line", ["torch>=2.9", "torch", "torch~=2.9.0", "torch[opt-einsum]>=2,<3", "torch==2.9.*"])
def test_a_range_is_said_and_hides_what_lies_farther_away(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.8.0\n")
    inner = tmp_path / "model"
    inner.mkdir()
    (inner / "requirements.txt").write_text(f"{line}\n")
    found = environment_near(str(inner), str(tmp_path))
    assert found.pins == {}
    assert [note.endswith("requirements.txt:1 is a range: no version is taken") for note in found.notes] == [True]
    (inner / "requirements.lock.txt").write_text("")
    (inner / "uv.lock").write_text(UV.format(torch="2.9.0"))
    assert settings(inner)["framework_version"] == "2.9.0"  # what pins it beside the range counts


def test_another_release_that_is_installed_counts_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.9.0\n")
    found = installed_beside(environment_near(str(tmp_path), str(tmp_path)))
    assert found.pins == environment_installed().pins
    (note,) = found.notes
    assert "pins torch 1.9.0, but" in note
    assert "--versions" in note


@pytest.mark.parametrize(
    ("release", "words"),
    [("2.99.0", "knows releases up to"), ("2.9.0+cu999", "no wheel for CUDA 99.9"), ("2.9.0+nv25", "no such wheel")],
)
def test_a_release_of_which_nothing_is_known(release: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        refuse_unknown(release, TORCH)
    refuse_unknown(release, Runtime(framework="tensorrt"))


@pytest.mark.parametrize("release", ["2.9.0", "2.9.1+cu126", "2.14.1+cu130", "1.13.1", "2.1.0+cu118"])
def test_a_release_that_is_known(release: str) -> None:
    refuse_unknown(release, TORCH)


@pytest.mark.parametrize("name", ["uv.lock", "pylock.toml", "requirements.txt", "environment.yml"])
@pytest.mark.parametrize("content", [b"", b"\0", b"\xff\xfe", b"[[package]]", b"[[package"])
def test_a_file_without_a_package_says_nothing(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert environment_in(str(tmp_path / name)).pins == {}
