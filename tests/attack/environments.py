"""Hostile environments of an innocent command: streams, variables, the current folder, signals and resource limits."""

import signal
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from .contract import DOCUMENTED, Attack, Outcome, Signal, command
from .sandbox import FIRST, INNOCENT, LAST

# a module of that name in the current folder would replace the real one, where Python were to look there first
SHADOWED = (
    "yaml", "onnx", "torch", "typer", "rich", "click", "json", "re", "site", "sitecustomize", "usercustomize",
    "tomllib", "dataclasses", "multiprocessing", "google", "numpy", "zipfile", "resource", "signal", "difflib",
    "convlint", "rules", "convlint_rules", "encodings", "select", "pickle", "marshal", "safetensors", "keras", "shutil",
    "subprocess", "msgspec",
)  # fmt: skip
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "check": ("check", FIRST), "check_json": ("check", "-o", "json", FIRST, LAST), "help": ("--help",),
    "version": ("--version",), "check_help": ("check", "--help"),
    "estimate": ("estimate", FIRST), "export": ("export", FIRST),
    "gpus": ("gpus",), "rule": ("rule",), "rule_one": ("rule", "CL102"), "config": ("config",), "schema": ("schema",),
    "layer": ("layer", "-C", "62", "-K", "64", "-R", "3", "-S", "3", "-H", "8", "-W", "8", "-N", "1"),
    "sweep": ("sweep", FIRST, "--layer", "first", "-N", "1,2"), "stdin": ("check", "-"), "wrong": ("chekc",),
    "usage": ("check", "--nothing"), "no_arguments": (),
}  # fmt: skip
VARIABLES: Mapping[str, Mapping[str, str | None]] = {
    "columns_zero": {"COLUMNS": "0"}, "columns_minus": {"COLUMNS": "-5"}, "columns_huge": {"COLUMNS": "9" * 30},
    "columns_large": {"COLUMNS": "100000000"}, "columns_word": {"COLUMNS": "::error::x", "LINES": "\x1b"},
    "columns_one": {"COLUMNS": "1"}, "term": {"TERM": "\x1b[31m", "COLORTERM": "::error::x"},
    "lang": {"LANG": "xx_XX.nothing", "LC_ALL": "zz"}, "lang_c": {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"},
    "latin": {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}, "ascii": {"PYTHONIOENCODING": "ascii"},
    "utf16": {"PYTHONIOENCODING": "utf-8:surrogateescape"}, "no_home": {"HOME": None, "XDG_CACHE_HOME": None},
    "home_nowhere": {"HOME": "/nowhere", "XDG_CACHE_HOME": None},
    "home_file": {"HOME": "/etc/passwd", "XDG_CACHE_HOME": None},
    "home_null": {"HOME": "/dev/null", "XDG_CACHE_HOME": ""}, "home_here": {"HOME": ".", "XDG_CACHE_HOME": "relative"},
    "home_long": {"HOME": "/a" * 10_000, "XDG_CACHE_HOME": None}, "cache_long": {"XDG_CACHE_HOME": "/" + "a" * 100_000},
    "no_path": {"PATH": None}, "tmp_nowhere": {"TMPDIR": "/nowhere"}, "dev_mode": {"PYTHONDEVMODE": "1"},
    "warnings": {"PYTHONWARNINGS": "error"}, "hash": {"PYTHONHASHSEED": "1"}, "optimized": {"PYTHONOPTIMIZE": "2"},
    "unbuffered": {"PYTHONUNBUFFERED": "1"}, "no_bytecode": {"PYTHONDONTWRITEBYTECODE": "1"},
    "int_digits": {"PYTHONINTMAXSTRDIGITS": "0"}, "safe_path": {"PYTHONSAFEPATH": "1"},
    "github_summary_nowhere": {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "/nowhere/x"},
    "ci": {"CI": "::error::x"},
    "no_color": {"NO_COLOR": "::error::x"}, "completion": {"_CONVLINT_COMPLETE": "source_bash"},
    "completing": {"_CONVLINT_COMPLETE": "complete_bash", "COMP_WORDS": "convlint check --gpu \x1b", "COMP_CWORD": "x"},
    "click": {"_TYPER_STANDARD_TRACEBACK": "1", "CONVLINT_NO_CACHE": "::error::x"},
    "source_date": {"SOURCE_DATE_EPOCH": "x"},
}  # fmt: skip


def attacks() -> Iterator[Attack]:
    """All of them."""
    yield from _streams()
    both = ("check", "-o", "json", FIRST, LAST)
    for name, env in VARIABLES.items():
        yield command(f"env_{name}", *both, env=env)
        yield command(f"env_text_{name}", "check", FIRST, LAST, env=env)
    yield from _shadows()
    yield from _signals()
    for name, limits in {
        "files_12": {"NOFILE": 12}, "files_6": {"NOFILE": 6}, "no_output": {"FSIZE": 0}, "small_output": {"FSIZE": 300},
        "stack": {"STACK": 256 << 10}, "memory": {"AS": 150 << 20}, "no_core": {"CORE": 0},
    }.items():  # fmt: skip
        most = {*DOCUMENTED, *((-25,) if "FSIZE" in limits else ())}  # -25: the kernel's signal for FSIZE
        yield command(f"limit_{name}", *both, limits=limits, exits=most)
        yield command(f"limit_jobs_{name}", *both, "--jobs", "2", limits=limits, exits=most)


def _streams() -> Iterator[Attack]:
    for verb, argv in COMMANDS.items():
        stdin = INNOCENT[FIRST].encode() if verb == "stdin" else b""
        for kind in ("closed", "full", "broken"):
            # what could not be written is a failed run; a reader that went away has its right to
            fails = kind == "full" and verb not in ("wrong", "usage", "no_arguments")
            yield command(f"stdout_{kind}_{verb}", *argv, stdin=stdin, stdout=kind, exits={2} if fails else DOCUMENTED)
            yield command(f"stderr_{kind}_{verb}", *argv, stdin=stdin, stderr=kind)
    spec = INNOCENT[FIRST].encode()
    for name in ("check", "stdin", "help", "estimate"):
        argv = COMMANDS[name]
        yield command(f"stdin_closed_{name}", *argv, stdin="closed")
        yield command(f"all_closed_{name}", *argv, stdin="closed", stdout="closed", stderr="closed")
        yield command(f"both_broken_{name}", *argv, stdin=spec, stdout="broken", stderr="broken")
    for stream in ("stdin", "stdout"):
        yield command(f"{stream}_closed_jobs", "check", "--jobs", "2", FIRST, LAST, **{stream: "closed"})
    yield command("stdin_huge", "check", "-", stdin=b"a: " * 20_000_000, exits={3})
    yield command("stdin_binary", "check", "-", stdin=bytes(range(256)) * 100, exits={3})


def _shadows() -> Iterator[Attack]:
    """A current folder full of modules with the names of those that convlint uses."""
    check, jobs = ("check", "-o", "json", "."), ("check", "--jobs", "2", "-o", "json", ".")
    for name, argv in {
        "check": check, "jobs": jobs, "estimate": COMMANDS["estimate"], "help": ("--help",), "rule": ("rule",),
    }.items():  # fmt: skip
        yield command(f"shadowed_{name}", *argv, make=_shadow)
        yield command(f"shadowed_packages_{name}", *argv, make=partial(_shadow, packages=True))
    for kind in ("onnx", "pt2", "keras", "safetensors"):
        make = partial(_shadow, valid=kind)
        yield command(f"shadowed_{kind}", *check, make=make, bare=kind)
        yield command(f"shadowed_jobs_{kind}", *jobs, make=make, bare=kind)
        named = partial(_shadow, valid=kind, name="m")
        yield command(f"shadowed_export_{kind}", "export", f"valid.{kind}", make=named, bare=kind)


def _signals() -> Iterator[Attack]:
    """Ctrl-C and an ordered end, while it waits for input and while processes work for it."""
    for name, number, exits in (("int", signal.SIGINT, {130}), ("term", signal.SIGTERM, {143, -15, 130})):
        for delay in (0.0, 0.2):
            sent = Signal(number=number, when="reads", delay=delay)
            yield command(
                f"sig{name}_reading_{delay}", "check", "-", stdin="open", exits=exits, signal=sent, after=_was_sent
            )
        for delay in (0.0, 0.05, 0.15, 0.3, 0.6):
            sent = Signal(number=number, when="child", delay=delay)
            # one that comes when all is done finds nothing left to end
            ends = exits | ({1, 3} if delay > 0.1 else set())
            argv = ("check", "--jobs", "2", "-o", "json", "nets")
            more = {"bare": "onnx", "signal": sent, "after": _was_sent}
            yield command(f"sig{name}_jobs_{delay}", *argv, make=_many, exits=ends, **more)


def _was_sent(_: Path, outcome: Outcome) -> list[str]:
    return [] if outcome.signalled else ["the signal was never sent"]


def _many(folder: Path) -> None:
    (folder / "nets").mkdir()
    layer = INNOCENT[FIRST].splitlines(keepends=True)[-1]
    for number in range(60):
        layers = "".join(layer.replace("first,", f"l{i},").replace("62", str(61 + i * number)) for i in range(30))
        (folder / "nets" / f"n{number}.yaml").write_text(INNOCENT[FIRST] + layers, encoding="utf-8")


def _shadow(folder: Path, *, packages: bool = False, valid: str = "", name: str = "") -> None:
    from .seeds import write_valid

    evil = f"import pathlib\npathlib.Path({str(folder / 'PWNED')!r}).write_text(__name__)\nraise SystemExit(0)\n"
    for shadowed in SHADOWED:
        path = folder / shadowed / "__init__.py" if packages else folder / f"{shadowed}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(evil, encoding="utf-8")
    if valid:
        write_valid(valid, folder)
    if name:
        (folder / name).mkdir()
