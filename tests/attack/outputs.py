"""Outputs over what a run reads, over each other, and over files whose mode and links must stay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .contract import Attack, Outcome
from .filesystems import at
from .sandbox import FIRST, INNOCENT
from .seeds import MODULE, RULE

WRONG = frozenset({2})
CONFIG = "convlint.toml"


def attacks() -> Iterator[Attack]:
    """All of them."""
    yield from _outputs()
    yield from _kept()


def _outputs() -> Iterator[Attack]:
    """Commands whose output would replace what they read, by whatever name: nothing may be written, exit 2."""
    targets = {
        "input": FIRST, "spelled": f"./x/../{FIRST}", "symbolic": "symbolic", "hard": "hard", "chain": "chain",
        "config": CONFIG, "config_link": "config_link", "extended": "base.toml", "rule": "mine/acme.yaml",
        "below": "x/../hard",
    }  # fmt: skip
    for name, target in targets.items():
        common = ("--rules", "mine")
        for place, argv in {
            "check_folder": ("check", ".", *common, "-o", f"json={target}"),
            "check_pattern": ("check", "*.yaml", *common, "-o", f"json={target}"),
            "write_baseline": ("check", ".", *common, "--write-baseline", target),
        }.items():  # fmt: skip
            yield Attack(name=f"over_{name}_{place}", make=_project, argv=argv, exits=WRONG)
    for name in ("input", "spelled", "symbolic", "hard"):
        target = targets[name]
        for place, argv in {
            "estimate": ("estimate", FIRST, "-o", f"csv={target}"), "export": ("export", FIRST, "-o", target),
            "sweep": ("sweep", FIRST, "--layer", "first", "-N", "1,2", "-o", f"csv={target}"),
            "github_summary": ("check", FIRST, "-o", "github"),
        }.items():  # fmt: skip
            env = {"GITHUB_STEP_SUMMARY": target} if place == "github_summary" else {}
            yield Attack(name=f"over_{name}_{place}", make=_project, argv=argv, env=env, exits=WRONG)
    for name, argv in {
        "two_outputs": ("check", FIRST, "-o", "json=new", "-o", "sarif=./new"),
        "two_links": ("check", FIRST, "-o", "json=one", "-o", "sarif=two"),
        "two_hard_links": ("check", FIRST, "-o", "json=h1", "-o", "sarif=h2"),
        "two_dangling": ("check", FIRST, "-o", "json=d1", "-o", "sarif=d2"),
        "output_and_new_baseline": ("check", FIRST, "-o", "json=new", "--write-baseline", "x/../new"),
        "output_over_baseline": ("check", FIRST, "--baseline", "known.json", "-o", "json=./known.json"),
        "output_over_baseline_link": ("check", FIRST, "--baseline", "known_link", "-o", "json=known.json"),
        "named_config": ("check", FIRST, "--config", "other.toml", "-o", "json=other.toml"),
        "summary_and_output": ("check", FIRST, "-o", "github=new"),
        "estimate_two": ("estimate", FIRST, "-o", "csv=new", "-o", "json=./new"),
    }.items():  # fmt: skip
        env = {"GITHUB_STEP_SUMMARY": "./new"} if name == "summary_and_output" else {}
        yield Attack(name=name, make=_project, argv=argv, env=env, exits=WRONG)
    yield Attack(name="over_module", make=_module, argv=("check", "net:Net", "--input", "1x3x8x8", "-o", "json=net.py"),
                 exits=WRONG, bare="module")  # fmt: skip
    for case, make in {"fifo": os.mkfifo, "looping_link": lambda p: p.symlink_to(p.name), "folder": Path.mkdir}.items():
        line = ("check", FIRST, "-o", "json=out")
        yield Attack(name=f"output_to_{case}", make=partial(at, "out", make), argv=line)


def _kept() -> Iterator[Attack]:
    """An output that exists keeps its mode and stays a link; one beside it that is no output keeps all."""
    line = ("check", FIRST, "-o", "json=out.json")
    yield Attack(name="mode_kept", make=_private, argv=line, outputs=("out.json",), after=partial(_mode, "out.json"))
    yield Attack(name="mode_kept_baseline", make=_private, argv=("check", FIRST, "--write-baseline", "out.json"),
                 outputs=("out.json",), after=partial(_mode, "out.json"))  # fmt: skip
    yield Attack(name="mode_kept_pruned", make=_stale,
                 argv=("check", FIRST, "--baseline", "out.json", "--prune-baseline"),
                 outputs=("out.json",), after=partial(_mode, "out.json"))  # fmt: skip
    for command in ("estimate", "export"):
        target = "csv=out.json" if command == "estimate" else "out.json"
        yield Attack(name=f"mode_kept_{command}", make=_private, argv=(command, FIRST, "-o", target),
                     outputs=("out.json",), after=partial(_mode, "out.json"))  # fmt: skip
    yield Attack(
        name="link_kept", make=_linked, argv=line, outputs=("real/out.json",), after=partial(_mode, "real/out.json")
    )
    yield Attack(name="hard_link_kept", make=_twin, argv=line, outputs=("out.json", "twin"), after=_same_file)
    yield Attack(name="planted_temporary", make=_planted_temporary, argv=line, outputs=("out.json",))


def _project(folder: Path) -> None:
    """A project with all that a run reads, and links to it."""
    (folder / CONFIG).write_text('extend = "base.toml"\n', encoding="utf-8")
    (folder / "base.toml").write_text('mode = "training"\n', encoding="utf-8")
    (folder / "other.toml").write_text('mode = "training"\n', encoding="utf-8")
    (folder / "known.json").write_text('{"convlint_baseline": 1, "findings": []}\n', encoding="utf-8")
    for name in ("mine", "x"):
        (folder / name).mkdir()
    (folder / "mine" / "acme.yaml").write_text(RULE, encoding="utf-8")
    links = {"symbolic": FIRST, "chain": "symbolic", "config_link": CONFIG, "known_link": "known.json", "one": "same",
             "two": "same", "d1": "nowhere", "d2": "nowhere"}  # fmt: skip
    for name, target in links.items():
        (folder / name).symlink_to(target)
    (folder / "same").write_text("", encoding="utf-8")
    for name, target in {"hard": FIRST, "h1": "same", "h2": "same"}.items():
        os.link(folder / target, folder / name)


def _module(folder: Path) -> None:
    (folder / "net.py").write_text(MODULE, encoding="utf-8")


def _private(folder: Path) -> None:
    (folder / "out.json").write_text("old", encoding="utf-8")
    (folder / "out.json").chmod(0o600)


def _stale(folder: Path) -> None:
    entry = '{"fingerprint": "0000000000000000", "code": "CL102", "path": "gone.yaml"}'
    (folder / "out.json").write_text(f'{{"convlint_baseline": 1, "findings": [{entry}]}}', encoding="utf-8")
    (folder / "out.json").chmod(0o600)


def _linked(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "out.json").write_text("old", encoding="utf-8")
    (folder / "real" / "out.json").chmod(0o600)
    (folder / "out.json").symlink_to("real/out.json")


def _twin(folder: Path) -> None:
    (folder / "out.json").write_text("old", encoding="utf-8")
    os.link(folder / "out.json", folder / "twin")


def _planted_temporary(folder: Path) -> None:
    """Links under names that a careless writer would take for its temporary file, onto an input."""
    for number in range(1, 3000):
        (folder / f".out.json.{number}.tmp").symlink_to(FIRST)
    for name in (".out.json.tmp", "out.json.tmp", "out.json~"):
        (folder / name).symlink_to(FIRST)
    assert (folder / FIRST).read_text(encoding="utf-8") == INNOCENT[FIRST]


def _mode(name: str, folder: Path, _: Outcome) -> list[str]:
    path = folder / name
    found = (
        [] if path.stat().st_mode & 0o777 == 0o600 else [f"{name} has mode {path.stat().st_mode & 0o777:o}, not 600"]
    )
    return (
        found
        if len(path.read_bytes()) > 10 and b"0000000000000000" not in path.read_bytes()
        else [*found, f"{name} was not written"]
    )


def _same_file(folder: Path, _: Outcome) -> list[str]:
    return [] if (folder / "out.json").samefile(folder / "twin") else ["out.json is no longer the file that twin is"]
