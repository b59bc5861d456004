"""Counts how often convlint breaks its own promises, on random networks and on the sample configs.

    python benchmarks/laws.py [--networks 300] [--first 0] [--samples] [--formats 25] [--json FILE]
    python benchmarks/laws.py --seed 17 --keep DIR        # one network, and the files of it that show each break

Each network goes through `check`, `check --fix --unsafe-fixes`, `plan`, `estimate` and a baseline, as a user would type
them, in this process. What one command says is held against what the others say of the same network, and against what
`check` says of the changed one. A law is broken by a network at most once. `convlint` is the one that is installed
beside the Python that runs this.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

from law_networks import WIDTH_RULES, Net, random_net, spec_text, torch_source, write_onnx

from convlint.__main__ import _run

LAWS: Mapping[str, str] = {
    "works": "every command reads the network and ends with an exit code of 0 or 1",
    "fix-promise": "the time after --fix --unsafe-fixes is time_after_fix_us, ±1 %",
    "fix-report": "the report of --fix is that of the next check",
    "fix-again": "a second --fix changes nothing",
    "plan-start": "plan begins at check's time_us and grade",
    "plan-end": "plan ends at check's time_after_us (±1 %) and grade_after",
    "plan-check": "check of the planned network says the plan's last time (±1 %) and grade",
    "nothing-left": "after --fix nothing advised is left that can be written, after the plan nothing over 0.1 %",
    "not-slower": "following advice makes nothing slower and no grade worse",
    "no-less": "no fix lowers C, K or N, but corrections of errors",
    "not-negative": "no lost_us is negative",
    "adds-up": "lost_us adds up to time_us - time_after_us",
    "one-setting": "a setting (dtype, memory format) is one advised finding",
    "monotone": "no advised info loses more than an advised warning, and where 5 % can be saved something warns",
    "same-formats": "a spec, a PyTorch module and an ONNX file of one network have the same numbers",
    "no-way-back": "what was advised is not advised back",
    "baseline": "what a baseline holds is silent in the next check",
    "silence": "estimate says check's times and grade; a layer silenced for all rules of widths keeps its widths",
    "alternatives": "fixes and alternatives named are faster, or do more work in a unit of time",
    "texts": "no text contradicts itself",
}
GRADES = "ABCDF"
SAMPLES = Path(__file__).resolve().parent.parent / "sample_configs"
ROOM = 0.01  # of two times that are to be the same
_LEAST = 1e-3  # of the network's time: less is not searched for
_WIDTHS = ("C", "K", "N")


class Ran(NamedTuple):
    """What one command came to."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """Its JSON; empty where there is none."""
        try:
            found = json.loads(self.out)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def convlint(*arguments: str) -> Ran:
    """`convlint ARGUMENTS…`, in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    with patch.object(sys, "stdout", out), patch.object(sys, "stderr", err):
        code = _run(list(arguments))
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return Ran(code, *texts)


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """While this holds, `folder` is the current one."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@dataclass
class Case:
    """One network on its way through all commands, in a folder of its own, and the laws that it breaks."""

    name: str
    text: str
    config: str = ""
    net: Net | None = None
    breaks: dict[str, str] = field(default_factory=dict)

    def broken(self, law: str, why: str) -> None:
        """Notes the first break of a law."""
        assert law in LAWS, law
        self.breaks.setdefault(law, why)

    def same(self, law: str, what: str, one: float | None, other: float | None, room: float = ROOM) -> None:
        """Breaks the law where two times differ."""
        if one is None or other is None:
            if one is not other:
                self.broken(law, f"{what}: {one} and {other}")
        elif abs(one - other) > room * max(abs(one), abs(other)) + 2e-3:
            self.broken(law, f"{what}: {one:.6g} and {other:.6g} ({_percent(one, other)})")

    def judge(self) -> None:
        """Runs all commands in the current folder, which is empty."""
        Path("net.yaml").write_text(self.text)
        if self.config:
            Path("convlint.toml").write_text(self.config)
        first = self.checked("net.yaml")
        if not first:
            return
        self.prices(first)
        self.texts(first)
        fixed = self.fixed(first)
        if fixed:
            self.followed(first, fixed, "--fix")
        if first["summary"]["time_us"] is None:  # an error says why, and there is nothing to promise
            self.report_of("plan", "net.yaml", "-o", "json")
        else:
            self.planned(first)
            self.estimated(first)
        self.baseline()

    def checked(self, path: str, *more: str) -> dict[str, Any]:
        """The report of a check; empty where it failed."""
        return self.report_of("check", path, "-o", "json", *more)

    def report_of(self, *arguments: str) -> dict[str, Any]:
        """The JSON of a command that has to succeed; empty where it does not."""
        ran = convlint(*arguments)
        if ran.code not in (0, 1) or not ran.report:
            errors = "; ".join(error["message"] for error in ran.report.get("errors", ()))
            self.broken("works", f"{' '.join(arguments)}: exit code {ran.code}: {(errors or ran.err)[:200]}")
            return {}
        return ran.report

    def prices(self, report: Mapping[str, Any]) -> None:
        """The shares, the severities and the alternatives of one report."""
        total, findings = report["summary"], report["findings"]
        time = total["time_us"]
        if time is None:
            return
        priced = [finding for finding in findings if finding["lost_us"] is not None]
        for finding in priced:
            if finding["lost_us"] < -1e-6:
                self.broken("not-negative", f"{finding['code']} loses {finding['lost_us']}")
        lost, saved = sum(finding["lost_us"] for finding in priced), time - total["time_after_us"]
        if abs(lost - saved) > 0.002 * time + 0.01:
            self.broken("adds-up", f"{lost:.6g} lost, {saved:.6g} saved of {time:.6g} us")
        advised = [finding for finding in priced if finding["advised"] and finding["lost_us"] > 0]
        self.settings(advised)
        # What saves nothing of the whole step is an info, whatever it saves of the convolutions.
        sure = [item for item in advised if item.get("basis") != "assumed" and item.get("lost_step_us") != 0]
        infos = [finding for finding in sure if finding["severity"] == "info"]
        warnings = [finding for finding in advised if finding["severity"] == "warning"]
        most = max(infos, key=_lost, default=None)
        least = min(warnings, key=_lost, default=None)
        if most is not None and least is not None and _lost(most) > _lost(least) + 0.01:
            self.broken("monotone", f"info {_priced(most)}, warning {_priced(least)}")
        if sum(map(_lost, sure)) >= 0.05 * time and all(finding["severity"] == "info" for finding in advised):
            self.broken("monotone", f"nothing warns of {100 * sum(map(_lost, sure)) / time:.1f} %")
        for finding in findings:
            self.offers(finding, report)

    def settings(self, advised: Iterable[Mapping[str, Any]]) -> None:
        """Each setting is one finding."""
        seen: dict[tuple[str, str | None], str] = {}
        for finding in advised:
            for key in {_SETTING_OF[name] for sets in _sets(finding) for name in sets if name in _SETTING_OF}:
                other = seen.setdefault((key, finding["gpu"]), finding["code"])
                if other is not finding["code"]:
                    self.broken("one-setting", f"{key}: {other} and {finding['code']}")
        counts: dict[tuple[str, str], int] = {}
        for finding in advised:
            for key in {_SETTING_OF[name] for sets in _sets(finding) for name in sets if name in _SETTING_OF}:
                counts[finding["code"], key] = counts.get((finding["code"], key), 0) + 1
        for (code, key), count in counts.items():
            if count > 1:
                self.broken("one-setting", f"{key}: {count} findings of {code}")

    def offers(self, finding: Mapping[str, Any], report: Mapping[str, Any]) -> None:
        """What a finding names takes nothing away, and is no slower without doing more."""
        fix, code = finding["fix"], finding["code"]
        sizes = {layer["name"]: layer for layer in report["layers"]}
        if fix is not None and finding["severity"] != "error" and not code.startswith("CL0"):
            for name, sets in _by_layer(finding):
                for key in _WIDTHS:
                    now = sizes.get(name, {}).get(key)
                    if isinstance(sets.get(key), int) and isinstance(now, int) and sets[key] < now:
                        self.broken("no-less", f"{code} ({finding['severity']}): {name} {key}={now} -> {sets[key]}")
        if fix is not None and finding["severity"] != "error" and (fix["time_change_us"] or 0) > 1:
            grows = any(key in sets for _, sets in _by_layer(finding) for key in _WIDTHS)
            if not grows and not finding["advised"]:
                self.broken("alternatives", f"{code}: {fix['describe']} takes {fix['time_change_us']:.4g} us longer")
        time = report["summary"]["time_us"]
        for each in finding.get("alternatives", ()):
            change, work = each["time_change_us"], each.get("work_change")
            if change is not None and change > 0 and (work is None or change / time >= work):
                self.broken("alternatives", f"{code}: {each['describe']}: {change:+.4g} us for {work} more work")

    def fixed(self, first: Mapping[str, Any]) -> dict[str, Any]:
        """What `--fix --unsafe-fixes` makes of it, as the next check has it; empty where something failed."""
        shutil.copy("net.yaml", "fixed.yaml")
        ran = convlint("check", "fixed.yaml", "--fix", "--unsafe-fixes", "-o", "json")
        again = convlint("check", "fixed.yaml", "-o", "json")
        if ran.code not in (0, 1) or again.code not in (0, 1) or not again.report:
            self.broken("works", f"--fix: exit codes {ran.code}, {again.code}: {(ran.err or again.err)[:200]}")
            return {}
        if ran.out != again.out:
            self.broken("fix-report", _difference(ran.report, again.report))
        text = Path("fixed.yaml").read_text()
        convlint("check", "fixed.yaml", "--fix", "--unsafe-fixes", "-o", "json")
        if Path("fixed.yaml").read_text() != text:
            self.broken("fix-again", "the second --fix changes more")
            Path("fixed.yaml").write_text(text)
        total, after = first["summary"], again.report["summary"]
        promised = total.get("time_after_fix_us", total["time_after_us"])
        per_image = _at_batch_of(first, again.report, after["time_us"])
        if promised is not None and per_image != promised:  # without a time there is no promise
            self.same("fix-promise", "time_after_fix_us and the time after --fix", promised, after["time_us"])
        for finding in again.report["findings"]:
            can = (finding["fix"] or {}).get("applicable", bool(finding["fix"] and any(_sets(finding))))
            if finding["advised"] and can and (finding["lost_us"] or 0) > 0:
                self.broken("nothing-left", f"after --fix: {_priced(finding)}")
        self.kept(first, again.report)
        return again.report

    def kept(self, first: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Layers that a comment silences for all rules of widths keep theirs."""
        silenced = {node.name for node in self.net.convolutions if WIDTH_RULES[-1] in node.comment} if self.net else ()
        for old, new in zip(first["layers"], after["layers"], strict=True):
            if old["name"] in silenced and (old["C"], old["K"]) != (new["C"], new["K"]):
                self.broken("silence", f"{old['name']}: {old['C']}→{old['K']} became {new['C']}→{new['K']}")

    def followed(self, first: Mapping[str, Any], after: Mapping[str, Any], what: str) -> None:
        """The changed network is no slower, has lost nothing, and is not told to go back."""
        old, new = first["summary"], after["summary"]
        corrected = {
            key for each in first["findings"] if each["severity"] == "error" for sets in _sets(each) for key in sets
        }
        if old["time_us"] is not None and new["time_us"] is not None:
            now = _at_batch_of(first, after, new["time_us"])
            if now is not None and "N" not in corrected and now > old["time_us"] * (1 + 1e-6):
                self.broken("not-slower", f"{what}: {_percent(old['time_us'], now)}")
            if GRADES.index(new["grade"]) > GRADES.index(old["grade"]):
                self.broken("not-slower", f"{what}: {old['grade']} becomes {new['grade']}")
        wrong = {name for each in first["findings"] if each["severity"] == "error" for name in each["layers"]}
        wrong |= {each["layer"] for each in first["findings"] if each["severity"] == "error"}
        changed: dict[str, set[str]] = {}
        for before, now in zip(first["layers"], after["layers"], strict=True):
            for key in set(_WIDTHS) - corrected:
                if before["name"] not in wrong and (before[key] or 0) > (now[key] or 0):
                    self.broken("no-less", f"{what}: {now['name']} {key}={before[key]} -> {now[key]}")
            changed[now["name"]] = {key for key in ("layout", "dtype") if before[key] != now[key]}
        was = {layer["name"]: layer for layer in first["layers"]}
        for finding in after["findings"]:
            for name, sets in _by_layer(finding) if finding["advised"] else ():
                for key in changed.get(name, ()):
                    if key in sets and sets[key] == was[name][key]:
                        self.broken("no-way-back", f"{what}: {finding['code']} wants {key}={sets[key]} of {name} back")

    def planned(self, first: Mapping[str, Any]) -> None:
        """What `plan` says, and what the network becomes by it."""
        plan = self.report_of("plan", "net.yaml", "-o", "json", "--write", "planned.yaml")
        if not plan or not Path("planned.yaml").exists():
            return
        total = first["summary"]
        self.same("plan-start", "time_us of check and plan", total["time_us"], plan["time_us"])
        if total["grade"] != plan.get("grade"):
            self.broken("plan-start", f"grade {total['grade']} and {plan.get('grade')}")
        self.same("plan-end", "time_after_us of check and plan", total["time_after_us"], plan["time_after_us"])
        if "grade_after" in total and total["grade_after"] != plan.get("grade_after"):
            self.broken("plan-end", f"grade_after {total['grade_after']} and {plan.get('grade_after')}")
        for step in plan["steps"]:
            if step["time_after_us"] > step["time_before_us"] * (1 + 1e-6):
                self.broken("not-slower", f"a step of the plan: {step['describe']}")
        after = self.checked("planned.yaml")
        if not after:
            return
        found = _at_batch_of(first, after, after["summary"]["time_us"])
        self.same("plan-check", "the plan and its check", plan["time_after_us"], found)
        if plan.get("grade_after") != after["summary"]["grade"]:
            self.broken("plan-check", f"grade {plan.get('grade_after')}, then {after['summary']['grade']}")
        for finding in after["findings"]:
            if finding["advised"] and (finding["lost_us"] or 0) > _LEAST * (after["summary"]["time_us"] or 0):
                self.broken("nothing-left", f"after the plan: {_priced(finding)}")
        self.followed(first, after, "plan")

    def estimated(self, first: Mapping[str, Any]) -> None:
        """`estimate` honours comments and the config as `check` does."""
        found = self.report_of("estimate", "net.yaml", "-o", "json")
        if found:
            for key in ("time_us", "time_after_us"):
                self.same("silence", f"{key} of check and estimate", first["summary"][key], found["summary"][key])
            if found["summary"]["grade"] != first["summary"]["grade"]:
                self.broken("silence", f"check: {first['summary']['grade']}, estimate: {found['summary']['grade']}")

    def baseline(self) -> None:
        """What a baseline holds is silent."""
        convlint("check", "net.yaml", "--write-baseline", "baseline.json", "-q", "-o", "json")
        ran = convlint("check", "net.yaml", "--baseline", "baseline.json", "-o", "json", "--fail-on", "info")
        left = ran.report.get("findings", ())
        if ran.code != 0 or left:
            told = ", ".join(f"{finding['severity']} {finding['code']}" for finding in left[:3])
            self.broken("baseline", f"exit code {ran.code}: {told or ran.err[:100]}")
        elif "no longer occur" in ran.err:
            self.broken("baseline", ran.err[:150])

    def texts(self, report: Mapping[str, Any]) -> None:
        """Counts of layers are those of the layers listed; a fix does not name two values for one thing."""
        for finding in report["findings"]:
            count = re.search(r"\bin (\d+) layers\b", finding["message"])
            if count and finding["layers"] and int(count[1]) != len(finding["layers"]):
                self.broken("texts", f"{finding['code']}: {finding['message'][:80]}: {len(finding['layers'])} listed")
            fix = finding["fix"]
            if fix is None:
                continue
            named = re.match(r"use ([CKN])=(\d+)(?![\d ]*[,/]| or)", fix["describe"])
            values = {sets[named[1]] for sets in _sets(finding) if named[1] in sets} if named else set()
            if named and values and int(named[2]) not in values:
                self.broken("texts", f"{finding['code']}: {fix['describe'][:60]}, but it sets {sorted(values)}")
            if re.search(r"=(\d+): [CKN]=(?!\1\b)\d+", fix["describe"]):
                self.broken("texts", f"{finding['code']}: {fix['describe'][:80]}")


_SETTING_OF = {"dtype": "dtype", "runtime.tf32": "dtype", "layout": "layout", "copies_input": "layout"}


def _sets(finding: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    fix = finding["fix"] or {}
    return [sets for sets in (fix.get("set"), *fix.get("by_layer", ())) if sets]


def _by_layer(finding: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """What its fix sets in each layer."""
    fix = finding["fix"] or {}
    names = finding["layers"] or [finding["layer"]]
    each = fix.get("by_layer") or [fix.get("set", {})] * len(names)
    return [(name, sets) for name, sets in zip(names, each, strict=True) if name is not None]


def _at_batch_of(first: Mapping[str, Any], after: Mapping[str, Any], time: float | None) -> float | None:
    """A time of the changed network at the batch of the first one."""
    images = [sum(layer["N"] or 0 for layer in each["layers"]) or 1 for each in (first, after)]
    return None if time is None else time * images[0] / images[1]


def _lost(finding: Mapping[str, Any]) -> float:
    return float(finding["lost_us"])


def _priced(finding: Mapping[str, Any]) -> str:
    return f"{finding['code']} {finding['lost_us']:.4g} us ({(finding['fix'] or {}).get('describe', '')[:50]})"


def _percent(one: float, other: float) -> str:
    return f"{100 * (other / one - 1):+.2f} %" if one else "?"


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Where two reports begin to differ."""
    for key in one.keys() | other.keys():
        mine, theirs = one.get(key), other.get(key)
        if mine == theirs:
            continue
        if isinstance(mine, list) and isinstance(theirs, list):
            if len(mine) != len(theirs):
                return f"{key}: {len(mine)} and {len(theirs)}"
            number = next(i for i, pair in enumerate(zip(mine, theirs, strict=True)) if pair[0] != pair[1])
            mine, theirs = mine[number], theirs[number]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            name = next(name for name in mine if mine.get(name) != theirs.get(name))
            return f"{key}: {name}: {str(mine.get(name))[:80]} and {str(theirs.get(name))[:80]}"
        return f"{key}: {str(mine)[:80]} and {str(theirs)[:80]}"
    return "the order of its keys"


def in_three_formats(case: Case, net: Net) -> None:
    """Holds the numbers of a spec against those of a module and an ONNX file of the same network."""
    image = net.nodes[0]
    Path("net.yaml").write_text(spec_text(net, means=True))
    Path("module_of_net.py").write_text(torch_source(net))
    write_onnx(net, Path("net.onnx"))
    given = ["--gpu", net.gpu, "--mode", net.mode, "--dtype", net.dtype, "--layout", str(net.layout), "--no-config"]
    given += [word for key, value in net.runtime.items() for word in ("--runtime", f"{key}={value}")]
    shape = f"{net.N}x{image.C}x{image.size}x{image.size}"
    spec = case.checked("net.yaml", "--no-config")
    reports = {
        "module": case.checked("module_of_net:Net", *given, "--input", shape),
        "onnx": case.checked("net.onnx", *given),
    }
    for name, other in reports.items():
        if not spec or not other:
            continue
        for key in ("time_us", "time_after_us"):
            case.same("same-formats", f"{key} of spec and {name}", spec["summary"][key], other["summary"][key], 1e-3)
        if spec["summary"]["grade"] != other["summary"]["grade"]:
            case.broken("same-formats", f"grade {spec['summary']['grade']}, {name} {other['summary']['grade']}")
        mine, theirs = (_prices_by_code(report) for report in (spec, other))
        for code in mine.keys() | theirs.keys():
            case.same("same-formats", f"{code} of spec and {name}", mine.get(code, 0.0), theirs.get(code, 0.0), 1e-3)


def _prices_by_code(report: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for finding in report["findings"]:
        if finding["lost_us"]:
            found[finding["code"]] = found.get(finding["code"], 0.0) + finding["lost_us"]
    return found


def judged(case: Case, keep: Path | None = None, *, formats: Net | None = None) -> Case:
    """The case with what it breaks; its files are kept in `keep`."""
    folder = Path(tempfile.mkdtemp(prefix="laws-"))
    try:
        with inside(folder):
            if formats is None:
                case.judge()
            else:
                in_three_formats(case, formats)
        if keep is not None and case.breaks:
            shutil.copytree(folder, keep / case.name, dirs_exist_ok=True)
    finally:
        shutil.rmtree(folder)
    return case


def random_case(seed: int) -> Case:
    """The random network of a seed."""
    net = random_net(seed)
    return Case(f"seed-{seed}", spec_text(net), net.config, net)


def sample_cases() -> list[Case]:
    """The sample configs, but for those that are meant to be wrong."""
    paths = sorted(path for path in SAMPLES.glob("*.yaml") if path.stem != "bad")
    return [Case(path.stem, path.read_text()) for path in paths]


def of_seed(seed: int, keep: Path | None) -> Case:
    """The random network of a seed, judged."""
    return judged(random_case(seed), keep)


def in_formats(seed: int, keep: Path | None = None) -> Case:
    """The plain random network of a seed, in three formats."""
    net = random_net(seed, plain=True)
    return judged(Case(f"formats-{seed}", spec_text(net, means=True), net=net), keep, formats=net)


def main() -> None:
    """Judges what is asked for, and prints a table of laws."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--networks", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, action="append", help="this network alone; repeatable")
    parser.add_argument("--samples", action="store_true", help="the sample configs alone")
    parser.add_argument("--formats", type=int, default=25, help="each how many networks formats are compared; 0: never")
    parser.add_argument("--keep", type=Path, help="a folder for the files of networks that break a law")
    parser.add_argument("--verbose", action="store_true", help="say each break")
    parser.add_argument("--json", type=Path, help="writes all breaks to a file")
    options = parser.parse_args()
    keep = None if options.keep is None else options.keep.resolve()
    target = None if options.json is None else options.json.resolve()
    seeds = options.seed or range(options.first, options.first + options.networks)
    work: list[Callable[[], Case]] = []
    if not options.samples:
        work += [partial(of_seed, seed, keep) for seed in seeds]
        compared = [seed for seed in seeds if options.formats and (options.seed or seed % options.formats == 0)]
        work += [partial(in_formats, seed, keep) for seed in compared]
    if not options.seed:
        work += [partial(judged, case, keep) for case in sample_cases()]
    began, cases = perf_counter(), []
    for number, run in enumerate(work, start=1):
        case = run()
        cases.append(case)
        if options.verbose or options.seed:
            for law, why in case.breaks.items():
                print(f"{case.name}: {law}: {why}", flush=True)
        if number % 50 == 0:
            print(f"{number} of {len(work)} in {perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    if target is not None:
        target.write_text(json.dumps({case.name: case.breaks for case in cases}, indent=1) + "\n")
    print(table(cases))
    print(f"{len(cases)} networks in {perf_counter() - began:.0f} s; "
          f"{sum(not case.breaks for case in cases)} break no law")  # fmt: skip


def table(cases: Sequence[Case]) -> str:
    """How many networks break each law, and which."""
    lines = ["| law | networks that break it | such as |", "|---|--:|---|"]
    for law, what in LAWS.items():
        names = [case.name.removeprefix("seed-") for case in cases if law in case.breaks]
        more = " …" if len(names) > 6 else ""
        lines.append(f"| {law}: {what} | {len(names)} | {', '.join(names[:6])}{more} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
