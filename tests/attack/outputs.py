"""Attacks by output paths: over inputs, over each other, and over files whose mode and links must be kept."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .contract import Attack, Outcome, command
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
        for place, inputs, option in (
            ("check_folder", ".", ("-o", f"json={target}")), ("check_pattern", "*.yaml", ("-o", f"json={target}")),
            ("write_baseline", ".", ("--write-baseline", target)),
        ):  # fmt: skip
            yield _refused(f"over_{name}_{place}", "check", inputs, "--rules", "mine", *option)
    for name in ("input", "spelled", "symbolic", "hard"):
        target = targets[name]
        yield _refused(f"over_{name}_estimate", "estimate", FIRST, "-o", f"csv={target}")
        yield _refused(f"over_{name}_export", "export", FIRST, "-o", target)
        swept = ("sweep", FIRST, "--layer", "first", "-N", "1,2")
        yield _refused(f"over_{name}_sweep", *swept, "-o", f"csv={target}")
        yield _refused(f"over_{name}_github_summary", "check", FIRST, "-o", "github", summary=target)
    for name, line in {
        "two_outputs": "-o json=new -o sarif=./new",
        "two_links": "-o json=one -o sarif=two",
        "two_hard_links": "-o json=h1 -o sarif=h2",
        "two_dangling": "-o json=d1 -o sarif=d2",
        "output_and_new_baseline": "-o json=new --write-baseline x/../new",
        "output_over_baseline": "--baseline known.json -o json=./known.json",
        "output_over_baseline_link": "--baseline known_link -o json=known.json",
        "named_config": "--config other.toml -o json=other.toml",
    }.items():
        yield _refused(name, "check", FIRST, *line.split())
    yield _refused("summary_and_output", "check", FIRST, "-o", "github=new", summary="./new")
    yield _refused("estimate_two", "estimate", FIRST, "-o", "csv=new", "-o", "json=./new")
    over_module = ("check", "net:Net", "--input", "1x3x8x8", "-o", "json=net.py")
    yield command("over_module", *over_module, make=_module, exits=WRONG, bare="module")
    for case, make in {"fifo": os.mkfifo, "looping_link": lambda p: p.symlink_to(p.name), "folder": Path.mkdir}.items():
        yield command(f"output_to_{case}", "check", FIRST, "-o", "json=out", make=partial(at, "out", make))


def _refused(name: str, *argv: str, summary: str = "") -> Attack:
    """A command in the project that may write nothing; `summary` is the file that a step of GitHub's names."""
    env = {"GITHUB_STEP_SUMMARY": summary} if summary else {}
    return command(name, *argv, make=_project, env=env, exits=WRONG)


def _kept() -> Iterator[Attack]:
    """An output that exists keeps its mode and stays a link; one beside it that is no output keeps all."""
    out = "out.json"
    line = ("check", FIRST, "-o", f"json={out}")
    for name, make, argv in (
        ("mode_kept", _private, line),
        ("mode_kept_baseline", _private, ("check", FIRST, "--write-baseline", out)),
        ("mode_kept_pruned", _stale, ("check", FIRST, "--baseline", out, "--prune-baseline")),
        ("mode_kept_estimate", _private, ("estimate", FIRST, "-o", f"csv={out}")),
        ("mode_kept_export", _private, ("export", FIRST, "-o", out)),
    ):
        yield command(name, *argv, make=make, outputs=(out,), after=partial(_mode, out))
    real = "real/out.json"
    yield command("link_kept", *line, make=_linked, outputs=(real,), after=partial(_mode, real))
    yield command("hard_link_kept", *line, make=_twin, outputs=(out, "twin"), after=_same_file)
    yield command("planted_temporary", *line, make=_planted_temporary, outputs=(out,))


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


def _private(folder: Path, content: str = "old", name: str = "out.json") -> None:
    (folder / name).write_text(content, encoding="utf-8")
    (folder / name).chmod(0o600)


def _stale(folder: Path) -> None:
    entry = '{"fingerprint": "0000000000000000", "code": "CL102", "path": "gone.yaml"}'
    _private(folder, f'{{"convlint_baseline": 1, "findings": [{entry}]}}')


def _linked(folder: Path) -> None:
    (folder / "real").mkdir()
    _private(folder, name="real/out.json")
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
    mode, content = (folder / name).stat().st_mode & 0o777, (folder / name).read_bytes()
    problems = [] if mode == 0o600 else [f"{name} has mode {mode:o}, not 600"]
    written = len(content) > 10 and b"0000000000000000" not in content
    return problems if written else [*problems, f"{name} was not written"]


def _same_file(folder: Path, _: Outcome) -> list[str]:
    return [] if (folder / "out.json").samefile(folder / "twin") else ["out.json is no longer the file that twin is"]
