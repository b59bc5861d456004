"""What a rule costs on three GPUs: its example, estimated and checked by the engine itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from convlint.engine.check import Target, check_network
from convlint.files.located_yaml import Value
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.mend.examples import allowed, example_network
from convlint.model.layer import OF_STEPS
from convlint.model.runtime import default_mode
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule
from handbook.examples import failing

# One old, one middle, one new. Where a rule has no price on any of the first three, the next ones are tried.
GENERATIONS: Sequence[tuple[str, str, str]] = (("v100", "a100", "h100"), ("k80", "p40", "t4"), ("k10", "k40", "m40"))
# What an example of one layer leaves open is filled in: an alignment has no price without a size.
OPEN: Mapping[str, str] = {"N": "64", "C": "64", "H": "28", "W": "28", "K": "64", "dtype": "fp16", "layout": "NHWC"}
_LEAST_US = 0.005


class Price(Struct, frozen=True, kw_only=True):
    """One GPU: the time of the layers, and what the finding loses of it; times in us, None where there is none.

    `message` is empty where the rule says nothing on this GPU.
    """

    gpu: Gpu
    time_us: float | None
    message: str
    lost_us: float | None
    capacity_us: float | None


class Prices(Struct, frozen=True, kw_only=True):
    """The example that was priced, the fields of it that were filled in, and its price on each GPU."""

    given: Value
    filled: tuple[str, ...]
    rows: tuple[Price, ...]


def prices(rule: Rule) -> Prices | None:
    """The prices of the first example that has any; None where the rule has none."""
    if rule.loss == "none" or rule.loss in OF_STEPS:
        return None
    for names in GENERATIONS:
        for example in failing(rule):
            if not example.of_source:
                given, filled = completed(example.given)
                rows = tuple(_price(rule, given, name) for name in names)
                if any(is_something(row.lost_us) or is_something(row.capacity_us) for row in rows):
                    return Prices(given=given, filled=filled, rows=rows)
    return None


def completed(given: Value) -> tuple[Value, tuple[str, ...]]:
    """The example with what it leaves open, and the names of that; of several layers, which are wired, N alone."""
    if "layers" in given.data:
        if "defaults" in given.data or any("N" in item.data for item in given.data["layers"].data):
            return given, ()
        defaults = Value({"N": Value(OPEN["N"], given.span, plain=True)}, given.span)
        return Value({**given.data, "defaults": defaults}, given.span), ("N",)
    wanted = dict(OPEN)
    if not any(key in given.data for key in ("R", "S", "kernel_size")):
        wanted |= {"kernel_size": "3", "padding": "1"}
    stated = {*given.data, *(given.data["defaults"].data if "defaults" in given.data else ())}
    filled = {key: Value(value, given.span, plain=True) for key, value in wanted.items() if key not in stated}
    return Value({**given.data, **filled}, given.span), tuple(filled)


def is_something(time_us: float | None) -> bool:
    """Whether a time is known and does not round to nothing."""
    return time_us is not None and time_us >= _LEAST_US


def _price(rule: Rule, given: Value, name: str) -> Price:
    network = example_network(rule, given)
    target = Target(label=name, gpu=load_gpu(name))
    mode = network.mode or default_mode(network.runtime)
    found = check_network(network, Rulebook([rule]), [target], mode, allow=allowed(given))
    times = [entry.times.get(name) for entry in found.layers]
    known = [each.time_us for each in times if each is not None]
    first = found.findings[0] if found.findings else None
    return Price(
        gpu=target.gpu,
        time_us=sum(known) if len(known) == len(times) else None,
        message="" if first is None else first.message,
        lost_us=None if first is None else first.lost_us,
        capacity_us=None if first is None else first.lost_capacity_us,
    )
