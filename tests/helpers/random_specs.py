"""Random specs in every style of YAML and JSON, and random changes to their values."""

import json
import random
import re
from typing import Any

NAMES = ("C", "K", "N", "H", "W")
SPELLED = {
    "C": ("C", "in_channels"), "K": ("K", "out_channels", "filters"), "N": ("N", "batch_size"),
    "H": ("H", "height"), "W": ("W", "width"), "kernel_size": ("kernel_size", "kernel"),
    "stride": ("stride", "strides"), "padding": ("padding", "pad"), "dilation": ("dilation",),
    "dtype": ("dtype", "precision"), "layout": ("layout", "data_format", "memory_format"), "bias": ("bias",),
    "groups": ("groups",),
}  # fmt: skip
DTYPES = ("fp16", "float16", "torch.float32", "bf16", "half", "FP32", "tf32", "mixed_float16")
LAYOUTS = ("NCHW", "nhwc", "channels_last", "channels_first", "auto", "torch.contiguous_format")
CHANGES: dict[str, tuple[Any, ...]] = {
    "C": (8, 16, 64), "K": (8, 16, 64), "N": (4, 32), "R": (1, 3, 5), "S": (1, 3, 5), "U": (1, 2), "V": (1, 2),
    "DilH": (1, 2), "DilW": (1, 2), "PadH": (0, 1, 3), "PadW": (0, 1, 3), "PadH_end": (1, 2), "groups": (1, 2),
    "dtype": ("fp16", "fp32", "bf16", "tf32", "int8"), "layout": ("NCHW", "NHWC", "auto"), "bias": (True, False),
    "H": (16, 33), "T": (1, 3),
}  # fmt: skip
SETTINGS: dict[str, tuple[Any, ...]] = {
    "runtime.tf32": (True, False), "runtime.cudnn_benchmark": (True, False), "runtime.cudnn": ("8.9.2", "9.1"),
    "runtime.cudnn_conv_algo_search": ("HEURISTIC", "EXHAUSTIVE"),
}  # fmt: skip


class Writer:
    """Writes one document; anchors that it has given can be used again."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.json = rng.random() < 0.15
        self.dims = 2
        self.mappings: list[str] = []
        self.unnamed: list[str] = []  # layers that can stand in two places
        self.anchors = 0

    def one(self, *options: Any) -> Any:
        return self.rng.choice(options)

    def anchor(self) -> str:
        self.anchors += 1
        return f"a{self.anchors}"

    def number(self, value: int) -> str:
        """A number, of which `anchored` makes an anchor or an alias once all stands in its place."""
        return str(value) if self.json or self.rng.random() > 0.25 else f"\0{value}\0"

    def anchored(self, text: str) -> str:
        given: dict[str, str] = {}

        def written(found: re.Match[str]) -> str:
            value = found[1]
            if value in given and self.rng.random() < 0.8:
                return f"*{given[value]}"
            name = f"n{len(given)}" if self.rng.random() < 0.9 else "again"
            for other in [number for number, anchor in given.items() if anchor == name]:
                del given[other]
            given[value] = name
            return f"&{name} {value}"

        return re.sub("\0([0-9]+)\0", written, text)

    def word(self, word: str) -> str:
        return json.dumps(word) if self.json else self.one(word, word, f"'{word}'", f'"{word}"')

    def numbers_of(self, values: list[Any]) -> str:
        return "[" + self.one(", ", ",", " , ").join(
            self.numbers_of(value) if isinstance(value, list) else self.number(value) for value in values
        ) + self.one("]", " ]")  # fmt: skip

    def axes(self, values: tuple[int, ...]) -> str:
        first = self.rng.choice(values)
        return self.one(
            self.number(first), self.numbers_of([first]), self.numbers_of(self.rng.choices(values, k=self.dims))
        )

    def padding(self) -> str:
        rng = self.rng
        sides = [rng.choice((0, 1, 2)) for _ in range(6)]
        named = dict(zip(("left", "right", "top", "bottom", "front", "back"), sides[: 2 * self.dims], strict=False))
        mapping = ", ".join(
            f"{json.dumps(side) if self.json else side}: {pad}" for side, pad in named.items() if rng.random() < 0.6
        )
        return self.one(
            self.axes((0, 1, 2)), self.axes((0, 1)), self.numbers_of(sides[: 2 * self.dims]),
            self.numbers_of([sides[:2], sides[2:4], sides[4:]][: self.dims]),
            f"{{{mapping}}}", self.word(self.one("same", "valid")),
        )  # fmt: skip

    def field(self, name: str) -> str:
        if name in NAMES:
            return self.number(self.one(*{"N": (4, 8), "H": (14, 28), "W": (14, 28)}.get(name, (8, 12, 64))))
        if name == "kernel_size":
            return self.axes((1, 3, 5))
        if name in ("stride", "dilation"):
            return self.axes((1, 2))
        if name == "padding":
            return self.padding()
        if name == "dtype":
            return self.word(self.rng.choice(DTYPES))
        if name == "layout":
            return self.word(self.rng.choice(LAYOUTS))
        if name == "bias":
            return self.one("true", "false") if self.json else self.one("true", "no", "On", "FALSE")
        return self.number(1)

    def fields(self, names: list[str]) -> list[tuple[str, str]]:
        return [(self.rng.choice(SPELLED[name]), self.field(name)) for name in names]

    def mapping(self, pairs: list[tuple[str, str]], indent: str, style: str) -> str:
        """The mapping as it stands behind what is `indent` wide."""
        rng = self.rng
        if self.json:
            gap = rng.choice((" ", "\n" + indent, ""))
            return "{" + gap + f",{gap}".join(f"{json.dumps(key)}: {value}" for key, value in pairs) + gap + "}"
        if style == "block" and pairs:
            lines = []
            for key, value in pairs:
                lines.append(f"{key}: {value}{self.tail()}")
                if rng.random() < 0.1:
                    lines.append(rng.choice(("# between: {", "", "    # - deep")))
            while not lines[-1].strip() or lines[-1].strip().startswith("#"):
                lines.pop()
            return f"\n{indent}".join(lines)
        if rng.random() < 0.25 and pairs:
            inner = "\n" + indent + self.one("  ", "\t", "")
            end = self.one("", ",", " ,")
            body = "".join(
                f"{inner}{key}: {value}{'' if place == len(pairs) - 1 else ','}{self.tail()}"
                for place, (key, value) in enumerate(pairs)
            )
            if end and "#" not in body.rpartition("\n")[2]:
                body += end
            return "{" + body + "\n" + indent + "}"
        return (
            "{" + self.one(" ", "") + ", ".join(f"{key}: {value}" for key, value in pairs) + self.one(" }", "}", ",}")
        )

    def tail(self) -> str:
        return "" if self.rng.random() < 0.8 else self.one("  # c: {d}", " ", "\t# tab", "   # ü, 🙂")

    def merged(self) -> list[tuple[str, str]]:
        if self.json or not self.mappings or self.rng.random() > 0.3:
            return []
        if self.rng.random() < 0.2:
            return [("<<", "[" + ", ".join("*" + self.rng.choice(self.mappings) for _ in range(2)) + "]")]
        return [("<<", "*" + self.rng.choice(self.mappings))]

    def layer(self, number: int) -> str:
        rng = self.rng
        pairs: list[tuple[str, str]] = [("name", self.word(f"l{number}"))] if rng.random() < 0.8 else []
        kind = rng.random()
        if kind < 0.05 and not self.json and self.unnamed:
            return "*" + rng.choice(self.unnamed)
        if kind < 0.12 and number:
            pairs += [("op", self.one("pool", "avg_pool")), ("kernel_size", "1"), *self.merged()]
            pairs = [(key, json.dumps(value) if self.json and key == "op" else value) for key, value in pairs]
        elif kind < 0.26 or (number == 0 and kind < 0.4):
            pairs += [("op", json.dumps("input") if self.json else "input"), *self.fields(["C", "H", "W"])]
            pairs += self.fields(["N"]) if rng.random() < 0.7 else []
        else:
            op = self.one("conv_transpose", "depthwise", "conv2d", "conv3d", "conv1d") if rng.random() < 0.25 else ""
            if op:
                pairs.append(("op", self.word(op)))
            self.dims = {"conv1d": 1, "conv3d": 3}.get(op, 2)
            wanted = [name for name in ("C", "H", "W") if number == 0 or rng.random() < 0.75]
            wanted += [name for name in SPELLED if name not in "CHW" and rng.random() < (0.85 if name in "K" else 0.35)]
            merged = self.merged()
            if "kernel_size" not in wanted and not merged and rng.random() < 0.9:
                if rng.random() < 0.6:
                    wanted.append("kernel_size")
                else:
                    pairs += [("R", self.number(3)), ("S", self.number(self.one(3, 5)))]
            if "padding" not in wanted and rng.random() < 0.2:
                pairs.append(("PadH", self.number(1)))
            if self.dims == 3 and rng.random() < 0.7:
                pairs.append(("D", "9"))
            elif self.dims == 1:
                wanted = [name for name in wanted if name != "H"]
            pairs += self.fields(wanted) + merged
            self.dims = 2
            rng.shuffle(pairs)
        name = ""
        if not self.json and rng.random() < 0.2:
            name = self.anchor()
        style = self.one("flow", "block", "flow")
        text = self.mapping(pairs or [("kernel_size", "3")], "    ", style)
        if name:
            self.mappings.append(name)
            if not any(key == "name" for key, _ in pairs):
                self.unnamed.append(name)
            text = f"&{name}" + ("\n    " if style == "block" and text[0] != "{" else " ") + text
        return text

    def block(self, pairs: list[tuple[str, str]]) -> str:
        style = self.one("flow", "block")
        text = self.mapping(pairs, "  ", style)
        return ("\n  " + text) if style == "block" and not text.startswith("{") else " " + text

    def document(self) -> str:
        rng = self.rng
        top: list[tuple[str, str]] = [("version", " 1" + ("" if self.json else self.tail()))]
        if rng.random() < 0.3:
            top.append(("mode", " " + self.word("training")))
        if rng.random() < 0.3 and not self.json:
            name = self.anchor()
            top.append(("x-common", f" &{name} " + self.mapping(self.fields(["kernel_size", "K"]), "  ", "flow")))
            self.mappings.append(name)
        if rng.random() < 0.3:
            settings = rng.sample([("tf32", "true"), ("benchmark", "false"), ("cudnn", '"8.1"')], k=2)
            top.append(("runtime", self.block(settings)))
        elif rng.random() < 0.1:
            top.append(("runtime", " null" if self.json else self.one("", " ~")))
        if rng.random() < 0.6:
            wanted = [name for name in SPELLED if name not in "CHW" and rng.random() < 0.3]
            top.append(("defaults", self.block(self.merged() + self.fields(wanted or ["dtype"]))))
        layers = [self.layer(number) for number in range(rng.randrange(1, 6))]
        if self.json:
            body = ",\n".join(f"{json.dumps(key)}:{value}" for key, value in top)
            return "{" + body + ',\n"layers": [' + self.one(", ", ",\n  ").join(layers) + "]}"
        lines = [f"{key}:{value}" for key, value in top]
        text = "\n".join([*lines, self.one("layers:", "layers: # all")])
        for layer in layers:
            text += self.one(
                "\n  - ", "\n  - ", "\n\n  # on its own\n  - ", "\n  -   " if layer[0] in "{*" else "\n  - "
            )
            text += layer + ("" if rng.random() < 0.8 or "\n" in layer else "  # convlint: ignore")
        text += self.one("\n", "", "\n\n# end", "\n...\n")
        return self.one("", "", "%YAML 1.1\n---\n", "# head\n--- # one\n") + text


def random_changes(rng: random.Random, convolutions: list[int], items: int) -> dict[tuple[int | None, str], Any]:
    """Random values by item and field: for all convolutions, for some, or for one item of any kind."""
    changes: dict[tuple[int | None, str], Any] = {}
    for _ in range(rng.randrange(1, 5)):
        name = rng.choice(list(CHANGES))
        value = rng.choice(CHANGES[name])
        some = rng.sample(convolutions, rng.randrange(len(convolutions) + 1))
        names = [name, {"R": "S", "DilH": "DilW", "U": "V"}.get(name, name)] if rng.random() < 0.5 else [name]
        for item in rng.choice((convolutions, convolutions, some, [rng.randrange(items)])):
            changes.update(dict.fromkeys(((item, each) for each in names), value))
    if rng.random() < 0.2:
        name = rng.choice(list(SETTINGS))
        changes[None, name] = rng.choice(SETTINGS[name])
    return changes


def random_spec(rng: random.Random) -> str:
    """A spec, which the reader may refuse."""
    writer = Writer(rng)
    text = writer.anchored(writer.document())
    if rng.random() < 0.2:
        text = text.replace("\n", rng.choice(("\r\n", "\r\n", "\r")))
    return ("\ufeff" if rng.random() < 0.1 else "") + text
