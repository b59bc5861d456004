"""Several processes check what one would have checked; the death of one is an error of its input alone."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest
from checkout import ROOT
from command_line import convlint, default_interrupt

from convlint.engine.fixes import Batches
from convlint.mend.checking import Job
from convlint.readers.children.child import Child
from convlint.readers.inputs import Input, file_input
from convlint.rulebook.book import load_rulebook
from convlint.run import run
from convlint.run.plan import Options, RunPlanner
from convlint.run.run import check_tasks, find_inputs
from convlint.run.workers import check_in_workers

pytestmark = [pytest.mark.slow, pytest.mark.contract, pytest.mark.usefixtures("here")]

SPEC = "version: 1\nlayers:\n  - {name: a, N: 64, C: 62, H: 56, W: 56, K: 64, R: 3, S: 3, dtype: fp16, layout: NHWC}\n"


@pytest.fixture
def specs(here: Path) -> list[str]:
    names = [f"{number}.yaml" for number in range(6)]
    for name in names:
        Path(name).write_text(SPEC if name != "3.yaml" else "layers: [")
    return names


def test_outcomes_and_their_order_are_the_same(specs: list[str]) -> None:
    tasks = [(file_input(name), load_rulebook(), Job()) for name in specs]
    done: list[str] = []
    assert check_tasks(tasks, jobs=3, on_done=done.append) == check_tasks(tasks)
    assert sorted(done) == specs


def test_a_worker_that_dies_takes_one_input_with_it(specs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Child.ask

    def dying(self: Child, request: bytes, timeout_s: float | None = None) -> bytes:
        if b"2.yaml" in request:
            os.kill(self._process.pid, signal.SIGKILL)
        return ask(self, request, timeout_s)

    monkeypatch.setattr(Child, "ask", dying)
    tasks = [(file_input(name), load_rulebook(), Job()) for name in specs]
    outcomes = check_in_workers(tasks, 2, lambda _: None)
    assert [outcome.result is not None for outcome in outcomes] == [True, True, False, False, True, True]
    assert [error.message for error in outcomes[2].errors] == ["the process that checks it died (SIGKILL)"]


def test_wrong_rules_end_the_run_as_without_workers(specs: list[str]) -> None:
    Path("rules").mkdir()
    Path("rules/mine.yaml").write_text("code: X1\n")
    ran = [
        subprocess.run(
            [sys.executable, "-m", "convlint", "check", *specs, "--rules", "rules", "--jobs", jobs],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=100, check=False,
        )
        for jobs in ("1", "2")
    ]  # fmt: skip
    assert (ran[0].returncode, ran[0].stdout, ran[0].stderr) == (ran[1].returncode, ran[1].stdout, ran[1].stderr)
    assert ran[0].returncode == 2


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    layers = "\n".join(
        f"  - {{C: {60 + i % 7}, H: {8 + i % 50}, W: 9, K: {60 + i % 11}, kernel_size: 3}}" for i in range(4000)
    )
    for number in range(12):
        (tmp_path / f"{number}.yaml").write_text(f"version: 1\ndefaults: {{N: 8, dtype: fp16}}\nlayers:\n{layers}\n")
    run = subprocess.Popen(
        [sys.executable, "-m", "convlint", "check", ".", "--jobs", "2"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True, preexec_fn=default_interrupt,
    )  # fmt: skip
    time.sleep(2)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out, err) == (130, "", "")


def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    """In the middle of their work, and whatever ended it: nobody waits for what they find."""
    layers = "".join(
        f"  - {{C: {60 + i % 7}, H: {8 + i % 50}, W: 9, K: {60 + i % 11}, kernel_size: 3}}\n" for i in range(8000)
    )
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(f"version: 1\ndefaults: {{N: 8, dtype: fp16}}\nlayers:\n{layers}")
    run = subprocess.Popen(
        [sys.executable, "-m", "convlint", "check", ".", "--jobs", "2"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    workers: list[int] = []
    deadline = time.monotonic() + 30
    while len(workers) < 2 and time.monotonic() < deadline:
        tasks = Path(f"/proc/{run.pid}/task").iterdir()
        workers = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
        time.sleep(0.02)
    time.sleep(0.5)
    run.kill()
    run.communicate(timeout=30)
    deadline = time.monotonic() + 5
    while left := [pid for pid in workers if Path(f"/proc/{pid}").exists() and _state(pid) != "Z"]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert workers


def _state(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "Z"


def _files(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("" if name.endswith(".py") else "version: 1\nlayers:\n  - {C: 8}\n")


def _found(*paths: str, **options: object) -> list[Input]:
    found, errors = find_inputs(paths, RunPlanner(Options(**options), date.today()))  # type: ignore[arg-type]
    assert errors == []
    return found


def test_a_folder_is_one_input() -> None:
    _files("a.py", "pkg/b.py", "pkg/c.ipynb", "spec.yaml")
    source, spec = _found(".")
    assert (source.kind, source.name, source.root) == ("source", ".", ".")
    assert source.members == ("a.py", "pkg/b.py", "pkg/c.ipynb")
    assert source.named == frozenset()
    assert (spec.kind, spec.name) == ("file", "spec.yaml")


def test_named_files_are_known_as_such_however_they_are_found() -> None:
    _files("a.py", "b.py")
    (source,) = _found("b.py", ".", "./b.py")
    assert (source.members, source.named) == (("a.py", "b.py"), frozenset({"b.py"}))
    (source,) = _found(str(Path("b.py").absolute()))
    assert (source.name, source.members, source.root) == ("b.py", ("b.py",), ".")
    (source,) = _found("*.py")
    assert source.named == frozenset()


def test_each_config_and_each_repository_has_its_own() -> None:
    _files("a.py", "one/b.py", "two/c.py", "two/d.py")
    Path("one/convlint.toml").write_text("")
    Path("two/.git").mkdir()
    assert [(each.members, each.root) for each in _found(".")] == [
        (("a.py",), "."), (("one/b.py",), "."), (("two/c.py", "two/d.py"), "two"),
    ]  # fmt: skip


def test_a_package_inside_a_repository_belongs_to_it() -> None:
    _files("a.py", "pkg/setup.py", "pkg/b.py")
    Path(".git").mkdir()
    assert [each.root for each in _found("pkg/b.py")] == ["."]


def test_the_config_leaves_files_out_of_folders_only() -> None:
    _files("a.py", "old/b.py")
    Path("convlint.toml").write_text('exclude = ["old/**"]')
    assert [each.members for each in _found(".")] == [("a.py",)]
    assert [each.members for each in _found(".", "old/b.py")] == [("a.py", "old/b.py")]


def test_what_a_tool_names_is_left_out_too() -> None:
    _files("a.py", "old/b.py", "old/spec.yaml", "spec.yaml")
    Path("convlint.toml").write_text('exclude = ["old/**"]')
    named = ("a.py", "old/b.py", "old/spec.yaml", "spec.yaml")
    assert [each.name for each in _found(*named, skip_foreign=True)] == ["a.py", "spec.yaml"]
    assert [each.name for each in _found(*named, specs_only=True)] == ["spec.yaml"]
    assert "old/spec.yaml" in [each.name for each in _found(*named)]


def test_specs_alone_leave_python_out() -> None:
    _files("a.py", "spec.yaml")
    Path("other.yaml").write_text("a: 1")
    assert [each.name for each in _found("a.py", "other.yaml", ".", specs_only=True)] == ["spec.yaml"]
    assert [each.name for each in _found("a.py", "other.yaml", "spec.yaml", skip_foreign=True)] == ["a.py", "spec.yaml"]


def test_as_many_processes_as_are_worth_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(run, "_free_bytes", lambda: 64 << 30)
    small, large = tmp_path / "small.yaml", tmp_path / "large.yaml"
    small.write_text(SPEC)
    large.write_text(SPEC * 2000)
    assert run.worth([]) == run.worth([file_input(str(small))] * 20) == 1
    assert [run.worth([file_input(str(large))] * count) for count in (1, 4, 20)] == [1, 4, 8]
    assert run.worth([file_input(str(tmp_path / "gone.yaml"))] * 1000) == 1
    modules = [Input(kind="module", name=f"nets:net{number}") for number in range(11)]
    assert (run.worth(modules[:1]), run.worth(modules)) == (1, 5)
    source = Input(kind="source", name="src", members=tuple(f"{number}.py" for number in range(170)))
    assert run.worth([source]) == 4


@pytest.mark.parametrize(("free", "expected"), [(64 << 30, 5), (3 << 30, 3), (0, 1)])
def test_memory_says_how_many_processes_there_may_be(free: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(run, "_free_bytes", lambda: free)
    assert run.worth([Input(kind="module", name=f"nets:net{number}") for number in range(11)]) == expected


def test_a_folder_of_much_work_is_checked_by_several_processes_to_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    layer = "  - {{name: a{0}, N: 64, C: {0}, H: 56, W: 56, K: 64, R: 3, S: 3, dtype: fp16, layout: NHWC}}\n"
    for number in range(4):
        layers = "".join(layer.format(50 + number * 700 + each) for each in range(700))
        Path(f"{number}.yaml").write_text(f"version: 1\nlayers:\n{layers}")
    asked: list[int] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(
        "convlint.run.workers.check_in_workers",
        lambda tasks, jobs, *rest: asked.append(jobs) or check_in_workers(tasks, jobs, *rest),
    )
    many, one = (convlint("check", ".", *jobs, "-o", "json") for jobs in ((), ("--jobs", "1")))
    assert asked == [2]
    assert many == one


def test_the_short_report_counts_infos_on_the_batch_without_working_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    original = Batches.us_per_image
    monkeypatch.setattr(Batches, "us_per_image", lambda self, now, N: tried.append(N) or original(self, now, N))
    spec = str(ROOT / "sample_configs" / "bad.yaml")
    short = convlint("check", spec, "--fail-on", "never").out
    assert tried == []
    verbose = convlint("check", spec, "--fail-on", "never", "--verbose").out
    assert tried
    assert short.splitlines()[-1] == verbose.splitlines()[-1]
