"""Properties of `--fix` on random networks in many styles of YAML."""

import json
import random
import re
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest
from cases import sampled
from command_line import Ran, convlint
from sarif_fixes import applied

from convlint.fixes.plan import applicability
from convlint.run.plan import Options
from convlint.run.run import lint_paths

pytestmark = pytest.mark.slow
_TOKEN = re.compile(r"#[^\n]*|[\w.]+|[^\w.]")
_IGNORED = ("CL102", "CL401", "CL201", "CL203", "CL106", "CL301", "CL402", "channel-alignment")
_TARGETS = ("a100", "a100", "v100", "a100, t4", "h100", "v100, a100", "h100, t4, a100")
_WORDS = {"K": ("K", "out_channels", "filters"), "C": ("C", "in_channels"), "N": ("N", "batch_size")}


class Net:
    """A network with flaws: each branch reads something before it; widths seldom fit."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.default_layout = rng.choice(("NCHW", "NHWC", "channels_first", ""))
        self.width: dict[str, int] = {"image": 3}
        self.small: set[str] = set()  # of maps that begin anew
        self.anchors: dict[int, str] = {}  # width -> what refers to it
        self.base = rng.choice(("", "", "kernel_size: 3, padding: 1", "kernel_size: 3, padding: 1, layout: NCHW"))
        self.order = ["image"]

    def width_of(self) -> int:
        return self.rng.choice((16, 24, 30, 44, 60, 62, 64, 100, 124, 128, 130))

    def text(self) -> str:
        rng = self.rng
        benchmark = rng.choice(("true", "false"))
        top = f"version: 1  # spec\ntarget: [{rng.choice(_TARGETS)}]\n"
        if rng.random() < 0.6:
            top += f"runtime: {{ framework: pytorch, cudnn_benchmark: {benchmark}, fixed_input_size: true }}\n"
        defaults = [f"N: {rng.choice((8, 32, 50, 64))}", f"dtype: {rng.choice(('fp16', 'bf16', 'fp32', 'float16'))}"]
        if self.default_layout:
            defaults.append(f"layout: {self.default_layout}")
        if self.base:
            top += f"x-base: &base {{ {self.base} }}{self.tail()}\n"
        top += f"defaults: {{ {', '.join(defaults)} }}{self.tail()}\n\nlayers:\n"
        items = [self.item([("name", "image"), ("op", "input"), ("C", "3"), ("H", "56"), ("W", "56")])]
        items += [self.layer(number) for number in range(rng.randrange(2, 9))]
        if rng.random() < 0.3:
            items.append(self.item([("name", "fc"), ("op", "linear"), ("C", "10"), ("H", "1"), ("W", "1")]))
        return top + "".join(items)

    def layer(self, number: int) -> str:
        rng, name, source = self.rng, f"conv{number}", self.order[-1]
        C, kind = self.width[source], rng.random()
        pairs = [("name", name)]
        if kind < 0.1 and C > 3:
            return self.joined(number, pairs, source)
        if rng.random() < 0.3:
            source = rng.choice(self.order)
            C = self.width[source]
            pairs.append(("input", source))
        if kind < 0.2 and C > 3:
            pairs += [("K", str(C)), ("groups", str(C))]
            self.width[name] = C
        else:
            self.width[name] = width = rng.choice((self.width_of(), *self.anchors))
            pairs.append((rng.choice(_WORDS["K"]), self.referred(width, name)))
        if rng.random() < 0.3:
            pairs.append((rng.choice(_WORDS["C"]), str(C)))
        size = rng.choice(("1", "3", "3", "[3, 3]", "5"))
        is_based = self.base and size == "3"
        pairs += (
            [("<<", "*base")] if is_based else [("kernel_size", size), ("padding", str(int(size.strip("[")[0]) // 2))]
        )
        if kind > 0.9:
            pairs = [pair for pair in pairs if pair[0] not in ("input", *_WORDS["C"])]
            pairs += [("C", str(C)), ("H", "28"), ("W", "28")]
        if kind > 0.9 or source in self.small:
            self.small.add(name)
        if rng.random() < 0.1:
            pairs.append(("layout", rng.choice(("NCHW", "NHWC"))))
        self.order.append(name)
        return self.item(pairs)

    def referred(self, width: int, name: str) -> str:
        """The width, or an anchor or alias of it."""
        if width in self.anchors and self.rng.random() < 0.7:
            return f"*{self.anchors[width]}"
        if width not in self.anchors and self.rng.random() < 0.2:
            self.anchors[width] = f"w_{name}"
            return f"&w_{name} {width}"
        return str(width)

    def joined(self, number: int, pairs: list[tuple[str, str]], source: str) -> str:
        rng = self.rng
        same = [
            other
            for other in self.order[1:]
            if (self.width[other], other in self.small) == (self.width[source], source in self.small)
        ]
        op = rng.choice(("add", "concat", "relu", "batchnorm"))
        several = [source, rng.choice(same)] if op in ("add", "concat") else [source]
        pairs += [("op", op), ("inputs", f"[{', '.join(several)}]")]
        self.width[f"conv{number}"] = (
            sum(self.width[each] for each in several) if op == "concat" else self.width[source]
        )
        if source in self.small:
            self.small.add(f"conv{number}")
        self.order.append(f"conv{number}")
        return self.item(pairs)

    def item(self, pairs: list[tuple[str, str]]) -> str:
        rng, before = self.rng, self.rng.choice(("", "", "", "  # K: 60, not this one\n", "\n"))
        if rng.random() < 0.6:
            gap = rng.choice(("", " "))
            return f"{before}  - {{{gap}{', '.join(f'{key}: {value}' for key, value in pairs)}{gap}}}{self.tail()}\n"
        return before + "".join(
            f"  {'-' if place == 0 else ' '} {key}: {value}{self.tail()}\n" for place, (key, value) in enumerate(pairs)
        )

    def tail(self) -> str:
        ignored = f"  # convlint: ignore[{self.rng.choice(_IGNORED)}] -- so it is"
        return self.rng.choice(("", "", "", "", "", "", "   # why: { so }", "\t# ü", "  ", "\t", ignored))


@pytest.mark.parametrize("seed", sampled(range(60), 6))
def test_what_fix_promises(seed: int, here: Path) -> None:
    text = Net(seed).text()
    if seed % 5 == 0:
        text = text.replace("\n", "\r\n")
    path = here / "net.yaml"
    path.write_bytes(text.encode())
    before = report(convlint("check", "net.yaml", "-o", "json"))
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "-o", "json")
    after, mended = report(ran), path.read_bytes().decode()
    assert ran.code in (0, 1), ran
    only_values_differ(text, mended)
    for gpu in before["targets"]:
        known = of_known_time(before, gpu) & of_known_time(after, gpu)
        assert us_per_image(after, gpu, known) <= us_per_image(before, gpu, known) * (1 + 1e-6)
    # What is advised is written although a comment silences nothing then: CL901 says which one can go.
    if not re.search(
        r"ignore\[CL40[134]", text
    ):  # a silenced layer keeps its layout, and its neighbours pay for copies
        assert not found_by("CL402", after) - found_by("CL402", before)
    assert ran.out == convlint("check", "net.yaml", "-o", "json").out
    for finding in lint_paths(["net.yaml"], Options()).report.findings:
        if finding.severity != "info" and applicability(finding) is not None:
            assert f": {finding.rule.code} " in ran.err or "more are not fixed" in ran.err
    again = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "-o", "json")
    assert "fixed" not in again.err.replace("not fixed", "")
    assert path.read_bytes().decode() == mended
    safe_first(text, path)


def test_what_sarif_promises(here: Path) -> None:
    """Where --fix mends one finding alone, its fix in SARIF does the same; where there is none, nothing is mended."""
    assert sum(map(fixes_alike, range(40, 70))) > 30


def fixes_alike(seed: int) -> int:
    """How many fixes of SARIF do what --fix does, in the random network of this seed."""
    content = Net(seed).text().replace("\n", "\r\n" if seed % 5 == 0 else "\n").encode()
    path, alike = Path("net.yaml"), 0
    path.write_bytes(content)
    for code in {finding.rule.code for finding in lint_paths(["net.yaml"], Options()).report.findings}:
        path.write_bytes(content)
        found = json.loads(convlint("check", "net.yaml", "-o", "sarif", "--select", code).out)["runs"][0]["results"]
        fixes = [fix for result in found for fix in result.get("fixes", ())]
        ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "--select", code)
        if not fixes:
            assert path.read_bytes() == content
        elif "fixed 1 finding " in ran.err and len(fixes) == 1:
            assert applied(content, fixes[0]) == path.read_bytes()
            alike += 1
    return alike


def safe_first(text: str, path: Path) -> None:
    """Safe fixes leave what the weights depend on."""
    path.write_bytes(text.encode())
    before = report(convlint("check", "net.yaml", "-o", "json"))["layers"]
    after = report(convlint("check", "net.yaml", "--fix", "-o", "json"))["layers"]
    for old, new in zip(before, after, strict=True):
        assert {key: old[key] for key in "NCHWKPQRS"} == {key: new[key] for key in "NCHWKPQRS"}
        assert old["dtype"] == new["dtype"]


def report(ran: Ran) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran.out)
    assert found["complete"], ran
    return found


def us_per_image(found: dict[str, Any], gpu: str, known: set[str]) -> float:
    return sum(
        estimate["time_us"] / layer["N"]
        for layer in found["layers"]
        for estimate in layer["estimates"]
        if estimate["gpu"] == gpu and layer["name"] in known
    )


def found_by(code: str, found: dict[str, Any]) -> set[tuple[str, str]]:
    return {(each["layer"], each["message"]) for each in found["findings"] if each["code"] == code}


def of_known_time(found: dict[str, Any], gpu: str) -> set[str]:
    """The layers whose dtype this GPU has."""
    return {
        layer["name"]
        for layer in found["layers"]
        for estimate in layer["estimates"]
        if estimate["gpu"] == gpu and estimate["time_us"] is not None
    }


def only_values_differ(before: str, after: str) -> None:
    """Values are other ones, and keys were put in beside others; comments and all else are as they were."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    for kind, i, k, j, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, put = "".join(old[i:k]), "".join(new[j:m])
        if kind == "replace":
            assert re.fullmatch(r"\*?[\w.]+", gone), gone
        assert kind != "delete", gone
        assert kind == "equal" or re.fullmatch(r"[\w.]*(?:[\s,]*\w+: [\w.]+)*[\s,]*", put), put
