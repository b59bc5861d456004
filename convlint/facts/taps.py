"""What a filter with dead taps, or a transposed one that its stride does not divide, can be changed to."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from convlint.facts.quantity import AXES, Axis, Quantity, Table, number, truth

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


def _live_pads(axis: Axis, facts: LayerFacts) -> tuple[int, int]:
    """The padding before and after once the dead taps are dropped."""
    _, out, taps, stride, dilation, begin, end = axis.values(facts)
    leading = -(-max(0, begin - (out - 1) * stride) // dilation)  # dead taps before the first live one
    trailing = taps - facts[f"live_{axis.taps}"] - leading
    return begin - leading * dilation, end - trailing * dilation


def _slack(axis: Axis, facts: LayerFacts) -> int:
    """Total padding less what the filter spans beyond one tap: fixes the output size, whatever the dilation."""
    _, _, taps, _, dilation, begin, end = axis.values(facts)
    slack: int = begin + end - dilation * (taps - 1)
    return slack


def _fitting_dilation(axis: Axis, facts: LayerFacts) -> int:
    """The largest dilation at which the outermost taps still reach the input, the output as it is."""
    size, out, taps, stride, dilation, _, _ = axis.values(facts)
    if facts[f"live_{axis.taps}"] == taps:
        return int(dilation)
    slack, beyond_one = _slack(axis, facts), max(1, taps - 1)
    return int(
        min(dilation, (2 * (out - 1) * stride + 1 - slack) // beyond_one, (2 * (size - 1) + slack) // beyond_one)
    )


def _fitting_pads(axis: Axis, facts: LayerFacts) -> tuple[int, int]:
    _, _, taps, _, dilation, begin, end = axis.values(facts)
    fitting = _fitting_dilation(axis, facts)
    if fitting == dilation:
        return begin, end
    total = _slack(axis, facts) + fitting * (taps - 1)
    return max(0, total // 2), max(0, (total + 1) // 2)


def _even_pads(axis: Axis, facts: LayerFacts) -> tuple[int, int, int]:
    """Padding before, after and of the output that keep the output size with the filter a multiple of the stride."""
    _, _, taps, stride, dilation, begin, end = axis.values(facts)
    extra = facts[f"OutPad{axis.size}"]
    added = dilation * (-taps % stride)  # how much larger the output grows
    if added == 0:
        return begin, end, extra
    total = begin + end - extra + added
    pad = max(0, (total + 1) // 2)
    return pad, pad, max(-total, total % 2)  # an odd rest is output padding


def _one(of: Any, axis: Axis, index: int, facts: LayerFacts) -> Any:
    return of(axis, facts)[index]


def _of_axis(axis: Axis) -> dict[str, Quantity]:
    size, taps, out = axis.size, axis.taps, axis.out
    needs = size, taps
    return {
        f"live_Pad{size}": number(
            f"Pad{size} without the dead taps, {out} as it is", partial(_one, _live_pads, axis, 0), needs
        ),
        f"live_Pad{size}_end": number(
            f"Pad{size}_end without the dead taps, {out} as it is", partial(_one, _live_pads, axis, 1), needs
        ),
        f"fitting_Dil{size}": number(
            f"largest Dil{size}, up to the present one, that leaves no tap of {taps} dead",
            partial(_fitting_dilation, axis),
            needs,
        ),
        f"fitting_Pad{size}": number(
            f"Pad{size} that keeps {out} at fitting_Dil{size}", partial(_one, _fitting_pads, axis, 0), needs
        ),
        f"fitting_Pad{size}_end": number(
            f"Pad{size}_end that keeps {out} at fitting_Dil{size}", partial(_one, _fitting_pads, axis, 1), needs
        ),
        f"even_Pad{size}": number(
            f"Pad{size} that keeps a transposed {out} with {taps} raised to its stride's multiple",
            partial(_one, _even_pads, axis, 0),
            needs,
        ),
        f"even_Pad{size}_end": number(f"Pad{size}_end that does so", partial(_one, _even_pads, axis, 1), needs),
        f"even_OutPad{size}": number(
            f"output padding in {axis.word} that does so", partial(_one, _even_pads, axis, 2), needs
        ),
    }


def _padded(facts: LayerFacts) -> bool:
    return any(facts[f"Pad{size}{end}"] > 0 for size in "HWD" for end in ("", "_end"))


TAPS: Table = {
    "spatial_filter": truth(
        "the filter has more than one tap",
        lambda facts: facts["T"] > 1 or facts["R"] > 1 or facts["S"] > 1,
        ("T", "R", "S"),
    ),
    "padded": truth("some side is padded", _padded, ("D", "H", "W")),
    "has_output": truth(
        "Z, P and Q are at least 1",
        lambda facts: facts["P"] >= 1 and facts["Q"] >= 1 and facts["Z"] >= 1,
        ("H", "W", "D", "R", "S", "T"),
    ),
    **{name: quantity for axis in AXES for name, quantity in _of_axis(axis).items()},
}
