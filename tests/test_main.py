"""What ends a run: exit codes, defects, interrupts and closed pipes."""

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest
from checked_files import check, prepared
from command_line import convlint, default_interrupt

from convlint.readers import Reader
from convlint.reporters import Reporter

folder = pytest.fixture(autouse=True)(prepared)


def process(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "convlint", *arguments], **options)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("clean.yaml", 0),
        ("warns.yaml", 1),
        ("errs.yaml", 1),
        ("clean.yaml warns.yaml", 1),
        ("broken.yaml", 3),
        ("empty.yaml", 3),
        ("empty.yaml --allow-empty", 0),
        ("missing.yaml", 3),
        ("missing.yaml --allow-empty", 3),
        ("broken.yaml --allow-empty", 3),
        ("warns.yaml broken.yaml", 3),  # 3 beats 1
        ("warns.yaml missing.yaml", 3),
        ("clean.yaml empty.yaml", 3),
        ("clean.yaml empty.yaml --allow-empty", 0),
        ("broken.yaml --gpu a1000", 2),  # 2 beats 3
        ("missing.yaml --select CL999", 2),
        ("warns.yaml --fail-on error", 0),
        ("warns.yaml --fail-on never", 0),
        ("errs.yaml --fail-on never", 0),
        ("broken.yaml --fail-on never", 3),
        ("infos.yaml", 0),
        ("infos.yaml --fail-on info", 1),
        ("errs.yaml --fail-on error", 1),
        ("warns.yaml --ignore CL1", 0),
        ("warns.yaml --ignore CL", 2),
        ("warns.yaml --min-loss 100", 0),
        ("errs.yaml --min-loss 100", 1),  # an error counts whatever it costs
        ("--nonsense", 2),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_exit_codes(arguments: str, code: int, form: str) -> None:
    ran = check(*arguments.split(), "--output", form)
    assert ran.code == code, ran.err


def test_a_defect_of_our_own_is_4_and_the_other_inputs_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from convlint.readers.spec import reader as yaml_spec

    original = yaml_spec.read

    def breaks(path: str, options: Any) -> Any:
        if path.startswith("clean"):
            raise RuntimeError("lost \x1b[31mmy way")
        return original(path, options)

    monkeypatch.setattr(yaml_spec, "READER", Reader(read=breaks))
    ran = check("clean.yaml", "warns.yaml", "broken.yaml", "-o", "json")
    found = json.loads(ran.out)
    assert ran.code == 4
    assert found["errors"][0]["path"] == "clean.yaml"
    assert "internal error: RuntimeError: lost my way" in found["errors"][0]["message"]
    assert "CL102" in {finding["code"] for finding in found["findings"]}
    assert (
        convlint("check", "clean.yaml", "--gpu", "a1000").code == 4 or check("--gpu", "a1000", "clean.yaml").code == 2
    )


def test_a_defect_outside_of_any_input_is_4(monkeypatch: pytest.MonkeyPatch) -> None:
    from convlint.reporters import concise

    def breaks(*_: object) -> str:
        raise RuntimeError("lost\nmy way")

    monkeypatch.setattr(concise, "REPORTER", Reporter(render=breaks))
    ran = check("clean.yaml", "-o", "concise")
    assert ran.code == 4
    assert ran.err.startswith("convlint: internal error: RuntimeError: lost my way")
    assert "Traceback" not in ran.err


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    from convlint.readers.spec import reader as yaml_spec

    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(yaml_spec, "READER", Reader(read=interrupted))
    ran = check("clean.yaml")
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


def test_interrupted_by_a_signal() -> None:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with process("check", "-", **pipes, preexec_fn=default_interrupt) as running:
        pipe = running.stdin.fileno()
        os.set_blocking(pipe, False)
        with suppress(BlockingIOError):
            while os.write(pipe, b"#" * 4096):  # until the pipe is full
                pass
        select.select([], [pipe], [])  # it has begun to read
        running.send_signal(signal.SIGINT)
        os.set_blocking(pipe, True)
        out, err = running.communicate()
    assert running.returncode == 130
    assert b"Traceback" not in out + err


def test_a_closed_pipe_ends_quietly_with_the_verdict() -> None:
    for path, code in (("warns.yaml", 1), ("clean.yaml", 0)):
        read, write = os.pipe()
        os.close(read)
        with process("check", path, stdout=write, stderr=subprocess.PIPE) as running:
            os.close(write)
            _, err = running.communicate()
        assert (running.returncode, err) == (code, b"")


def test_a_run_that_infos_fail_names_them() -> None:
    """A report in short may list none of them."""
    for more in ((), ("--quiet",), ("--output", "github")):
        ran = convlint("check", "infos.yaml", "--fail-on", "info", *more)
        assert ran.code == 1
        assert "with --fail-on info: CL" in ran.err
        assert "infos.yaml:" in ran.err
    assert "--fail-on info" not in convlint("check", "infos.yaml", "warns.yaml", "--fail-on", "info").err
    ran = convlint("check", "infos.yaml", "warns.yaml", "--fail-on", "info", "--min-loss", "100")
    assert (ran.code, "with --fail-on info: CL" in ran.err) == (1, True)  # warnings lose too little to count
