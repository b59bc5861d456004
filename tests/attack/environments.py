"""Streams, variables, the current folder, signals and small limits, around a command that is itself innocent."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from .contract import Attack, Outcome, Signal
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
DEFINED = frozenset({0, 1, 2, 3})


def attacks() -> Iterator[Attack]:
    """All of them."""
    yield from _streams()
    for name, env in VARIABLES.items():
        yield Attack(name=f"env_{name}", env=env, argv=("check", "-o", "json", FIRST, LAST))
        yield Attack(name=f"env_text_{name}", env=env, argv=("check", FIRST, LAST))
    yield from _shadows()
    yield from _signals()
    for name, limits in {
        "files_12": {"NOFILE": 12}, "files_6": {"NOFILE": 6}, "no_output": {"FSIZE": 0}, "small_output": {"FSIZE": 300},
        "stack": {"STACK": 256 << 10}, "memory": {"AS": 150 << 20}, "no_core": {"CORE": 0},
    }.items():  # fmt: skip
        most = frozenset({0, 1, 2, 3, *((-25,) if "FSIZE" in limits else ())})  # -25: the kernel's signal for FSIZE
        argv = ("check", "-o", "json", FIRST, LAST)
        yield Attack(name=f"limit_{name}", limits=limits, argv=argv, exits=most)
        yield Attack(name=f"limit_jobs_{name}", limits=limits, argv=(*argv, "--jobs", "2"), exits=most)


def _streams() -> Iterator[Attack]:
    for command, argv in COMMANDS.items():
        stdin = INNOCENT[FIRST].encode() if command == "stdin" else b""
        for kind in ("closed", "full", "broken"):
            # what could not be written is a failed run; a reader that went away has its right to
            exits = DEFINED if kind != "full" else frozenset({2})
            yield Attack(name=f"stdout_{kind}_{command}", argv=argv, stdin=stdin, stdout=kind,
                         exits=DEFINED if command in ("wrong", "usage", "no_arguments") else exits)  # fmt: skip
            yield Attack(name=f"stderr_{kind}_{command}", argv=argv, stdin=stdin, stderr=kind, exits=DEFINED)
    for command in ("check", "stdin", "help", "estimate"):
        yield Attack(name=f"stdin_closed_{command}", argv=COMMANDS[command], stdin="closed", exits=DEFINED)
        yield Attack(
            name=f"all_closed_{command}", argv=COMMANDS[command], stdin="closed", stdout="closed", stderr="closed"
        )
        yield Attack(
            name=f"both_broken_{command}",
            argv=COMMANDS[command],
            stdin=INNOCENT[FIRST].encode(),
            stdout="broken",
            stderr="broken",
        )
    yield Attack(name="stdin_closed_jobs", argv=("check", "--jobs", "2", FIRST, LAST), stdin="closed", exits=DEFINED)
    yield Attack(name="stdout_closed_jobs", argv=("check", "--jobs", "2", FIRST, LAST), stdout="closed", exits=DEFINED)
    yield Attack(name="stdin_huge", argv=("check", "-"), stdin=b"a: " * 20_000_000, exits=frozenset({3}))
    yield Attack(name="stdin_binary", argv=("check", "-"), stdin=bytes(range(256)) * 100, exits=frozenset({3}))


def _shadows() -> Iterator[Attack]:
    """A current folder full of modules with the names of those that convlint uses."""
    for name, argv in {
        "check": ("check", "-o", "json", "."), "jobs": ("check", "--jobs", "2", "-o", "json", "."),
        "estimate": COMMANDS["estimate"], "help": ("--help",), "rule": ("rule",),
    }.items():  # fmt: skip
        yield Attack(name=f"shadowed_{name}", make=_shadow, argv=argv)
        yield Attack(name=f"shadowed_packages_{name}", make=partial(_shadow, packages=True), argv=argv)
    for kind in ("onnx", "pt2", "keras", "safetensors"):
        yield Attack(
            name=f"shadowed_{kind}", make=partial(_shadow, valid=kind), argv=("check", "-o", "json", "."), bare=kind
        )
        yield Attack(name=f"shadowed_jobs_{kind}", make=partial(_shadow, valid=kind), bare=kind,
                     argv=("check", "--jobs", "2", "-o", "json", "."))  # fmt: skip
        yield Attack(
            name=f"shadowed_export_{kind}",
            make=partial(_shadow, valid=kind, name="m"),
            argv=("export", f"valid.{kind}"),
            bare=kind,
        )


def _signals() -> Iterator[Attack]:
    """Ctrl-C and an ordered end, while it waits for input and while processes work for it."""
    for name, number, exits in (("int", signal.SIGINT, {130}), ("term", signal.SIGTERM, {143, -15, 130})):
        for delay in (0.0, 0.2):
            yield Attack(name=f"sig{name}_reading_{delay}", argv=("check", "-"), stdin="open", exits=frozenset(exits),
                         signal=Signal(number=number, when="reads", delay=delay), after=_was_sent)  # fmt: skip
        for delay in (0.0, 0.05, 0.15, 0.3, 0.6):
            # one that comes when all is done finds nothing left to end
            yield Attack(name=f"sig{name}_jobs_{delay}", make=_many,
                         argv=("check", "--jobs", "2", "-o", "json", "nets"),
                         exits=frozenset({*exits, *((1, 3) if delay > 0.1 else ())}), bare="onnx",
                         signal=Signal(number=number, when="child", delay=delay), after=_was_sent)  # fmt: skip


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
