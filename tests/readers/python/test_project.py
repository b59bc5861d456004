"""Which file of a repository an import means."""

from itertools import permutations
from pathlib import Path

import pytest

from convlint.readers.python.project import Project

FILES = ("lib/__init__.py", "lib/utils/__init__.py", "lib/utils/env.py", "lib/utils/other.py", "train.py", "src/net.py")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("module", "importer", "level", "found"),
    [
        ("lib.utils.env", "train.py", 0, "lib/utils/env.py"),
        ("lib", "lib/utils/env.py", 0, "lib/__init__.py"),
        ("env", "lib/utils/other.py", 0, "lib/utils/env.py"),
        ("env", "lib/utils/other.py", 1, "lib/utils/env.py"),
        ("utils.env", "lib/utils/other.py", 2, "lib/utils/env.py"),
        ("", "lib/utils/other.py", 1, "lib/utils/__init__.py"),
        ("net", "train.py", 0, "src/net.py"),
        ("torch.nn", "train.py", 0, None),
        ("numpy", "train.py", 0, None),
        ("lib.missing", "train.py", 0, None),
    ],
)
def test_resolved(repository: Path, module: str, importer: str, level: int, found: str | None) -> None:
    project = Project(str(repository), ())
    path = project.resolve(module, str(repository / importer), level)
    assert path == (None if found is None else str(repository / found))


def test_the_order_of_questions_changes_no_answer(repository: Path) -> None:
    """A file that imports itself by its full name is no answer to itself alone, and one to its neighbours."""
    asked = [("env", "lib/utils/env.py"), ("env", "lib/utils/other.py"), ("lib.utils.env", "lib/utils/env.py")]
    answers = set()
    for order in permutations(asked):
        project = Project(str(repository), ())
        given = {each: project.resolve(each[0], str(repository / each[1])) for each in order}
        answers.add(tuple(given[each] for each in asked))
    env = str(repository / "lib/utils/env.py")
    assert answers == {(None, env, env)}


@pytest.mark.parametrize(
    ("module", "importer", "found"),
    [
        ("raft", "tools/train.py", "core/raft.py"),
        ("models", "tools/train.py", "core/models/__init__.py"),
        ("models.net", "tools/train.py", "core/models/net.py"),
        ("twice", "tools/train.py", None),
        ("raft", "other/train.py", None),
    ],
)
def test_a_script_may_add_folders_to_the_path(tmp_path: Path, module: str, importer: str, found: str | None) -> None:
    files = ["core/raft.py", "core/models/__init__.py", "core/models/net.py", "core/twice.py", "more/twice.py"]
    for name in (*files, "tools/train.py", "tools/_init_paths.py", "other/train.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import sys\nsys.path.append('../core')\n" if name.endswith("_paths.py") else "")
    path = Project(str(tmp_path), ()).resolve(module, str(tmp_path / importer))
    assert path == (None if found is None else str(tmp_path / found))


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["lib/models/__init__.py", "lib/config/models.py"], "lib/models/__init__.py"),
        (["lib/models.py", "lib/config/models/__init__.py"], "lib/models.py"),
        (["lib/one/models/__init__.py", "lib/config/models.py"], "lib/config/models.py"),
        (["lib/models/__init__.py", "lib/one/models.py", "lib/config/models.py"], "lib/models/__init__.py"),
    ],
)
def test_of_a_package_and_a_module_the_one_that_is_higher_up_is_meant(
    tmp_path: Path, files: list[str], found: str
) -> None:
    for name in (*files, "tools/train.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import sys\nsys.path.append('../lib')\n")
    path = Project(str(tmp_path), ()).resolve("models", str(tmp_path / "tools/train.py"))
    assert path == str(tmp_path / found)
