"""What rules may ask of a layer by itself: fields, sizes, shapes of its GEMMs, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.facts.quantity import AXES, UNKNOWN, Axis, Quantity, Table, Type, View, known, number, text, truth
from convlint.gpus.support import Lack, is_settled, lack_of
from convlint.model.layer import ConvLayer, Dtype, is_patches
from convlint.model.network import Edge

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


def _field(kind: Type, name: str, meaning: str, *needs: str) -> Quantity:
    return Quantity(kind, meaning, lambda facts: known(getattr(facts.layer, name)), needs)


_SIZE_MEANINGS = (
    ("N", "batch size"),
    ("C", "input channels"),
    ("D", "input depth (3-D; else 1)"),
    ("H", "input height"),
    ("W", "input width"),
    ("K", "output channels"),
    ("Z", "output depth (3-D; else 1)", "D", "T"),
    ("P", "output height", "H", "R"),
    ("Q", "output width", "W", "S"),
    ("T", "filter depth (3-D; else 1)"),
    ("R", "filter height"),
    ("S", "filter width"),
    ("StrideD", "stride in depth"),
    ("U", "vertical stride"),
    ("V", "horizontal stride"),
    ("PadD", "padding in front", "D"),
    ("PadH", "padding above", "H"),
    ("PadW", "padding on the left", "W"),
    ("PadD_end", "padding behind", "D"),
    ("PadH_end", "padding below", "H"),
    ("PadW_end", "padding on the right", "W"),
    ("OutPadD", "output padding in depth (transposed; else 0)"),
    ("OutPadH", "output padding below (transposed; else 0)"),
    ("OutPadW", "output padding on the right (transposed; else 0)"),
    ("DilD", "dilation in depth"),
    ("DilH", "vertical dilation"),
    ("DilW", "horizontal dilation"),
    ("groups", "groups"),
)
# what a rule may point at and its fix may set
SIZES: Table = {name: _field("number", name, *rest) for name, *rest in _SIZE_MEANINGS}
FIELDS: Table = {
    **SIZES,
    "dims": _field("number", "dims", "1, 2 or 3 dimensions"),
    "calls": _field("number", "calls", "how often one step runs the layer"),
    "declared_P": _field("number", "declared_P", "output height as the spec states it", "H"),
    "declared_Q": _field("number", "declared_Q", "output width as the spec states it", "W"),
    "declared_Z": _field("number", "declared_Z", "output depth as the spec states it", "D"),
    "name": replace(_field("text", "name", "the layer's name"), own=True),
    "op": _field("text", "op", "conv or conv_transpose"),
    "dtype": _field("text", "dtype", "what is stored"),
    "layout": _field("text", "layout", "NCHW, NHWC or auto"),
    "bias": _field("truth", "bias", "has a bias"),
    "norm_follows": _field("truth", "norm_follows", "batch normalisation alone reads the output"),
    "first": _field("truth", "first", "its input is the network's"),
    "frozen": _field("truth", "frozen", "its weights learn nothing: no wgrad"),
    "no_dgrad": _field("truth", "no_dgrad", "all that stands before it is frozen"),
    "unfolded": _field("truth", "unfolded", "its patches are laid side by side and multiplied as by Linear"),
    "residual_inputs": _field("number", "residual_inputs", "tensors that are added to its output"),
    "norm_copies": _field("number", "norm_copies", "norms that want NCHW and copy its output, which is NHWC"),
    "copies_input": _field("truth", "copies_input", "runs NHWC, but copies its input, which arrives NCHW, first"),
    "head": _field("truth", "head", "no convolution after it, so that the task fixes K"),
}
NAMES = tuple(FIELDS)
values_of = attrgetter(*NAMES)  # of a layer, all at once: a tenth of the time that one after the other takes
# of an element type, which is its own view
DTYPE: Table = {"bytes": Quantity("number", "bytes per stored element", attrgetter("bytes"), ("dtype",))}


def _dead(axis: Axis, facts: LayerFacts) -> int:
    """Taps along one axis that lie in the padding for every output (the condition of CL005)."""
    size, out, taps, stride, dilation, pad, _ = axis.values(facts)
    before = min(taps, max(0, -((pad - (out - 1) * stride) // -dilation)))
    after = min(taps, max(0, taps - -((size + pad) // -dilation)))
    return int(min(taps, before + after))


def _live(axis: Axis, facts: LayerFacts) -> Any:
    # every tap of a transposed convolution reads input
    return facts[axis.taps] if facts["transposed"] else facts[axis.taps] - _dead(axis, facts)


def _dead_taps(facts: LayerFacts) -> Any:
    live = facts["live_T"] * facts["live_R"] * facts["live_S"]
    return facts["T"] * facts["R"] * facts["S"] - live


def _pointwise_map(facts: LayerFacts) -> Any:
    layer = facts.layer
    # A 1x1 filter on a map of unknown size may be squeeze-and-excite's; a larger one is not.
    unsure = layer.R == layer.S == 1 and (layer.H is None or layer.W is None)
    return UNKNOWN if unsure else layer.pointwise_map


_DEPTH, _HEIGHT, _WIDTH = AXES
SHAPES: Table = {
    "C_group": number("input channels of one group", lambda facts: facts["C"] // facts["groups"], ("C",)),
    "K_group": number("output channels of one group", lambda facts: facts["K"] // facts["groups"], ("K",)),
    "extent_T": number(
        "effective filter depth, DilD·(T-1)+1", lambda facts: facts["DilD"] * (facts["T"] - 1) + 1, ("T",)
    ),
    "extent_R": number(
        "effective filter height, DilH·(R-1)+1", lambda facts: facts["DilH"] * (facts["R"] - 1) + 1, ("R",)
    ),
    "extent_S": number(
        "effective filter width, DilW·(S-1)+1", lambda facts: facts["DilW"] * (facts["S"] - 1) + 1, ("S",)
    ),
    "live_T": number(
        "filter slices in depth that read input for some output", lambda facts: _live(_DEPTH, facts), ("D", "T")
    ),
    "live_R": number("filter rows that read input for some output", lambda facts: _live(_HEIGHT, facts), ("H", "R")),
    "live_S": number("filter columns that read input for some output", lambda facts: _live(_WIDTH, facts), ("W", "S")),
    "dead_taps": number(
        "filter taps that read only padding for every output", _dead_taps, ("D", "H", "W", "R", "S", "T")
    ),
    "NPQ": number(
        "N·Z·P·Q, the rows of fprop's GEMM",
        lambda facts: facts["N"] * facts["Z"] * facts["P"] * facts["Q"],
        ("N", "H", "W", "R", "S"),
    ),
    "patches": truth(
        "its filter steps by its own size over whole patches that do not overlap",
        lambda facts: known(is_patches(facts.layer)),
        ("H", "W", "R", "S"),
    ),
    "depthwise": truth("groups = C", lambda facts: facts.layer.depthwise, ("C",)),
    "pointwise_map": truth("works on 1x1 maps (squeeze-and-excite)", _pointwise_map, ("H", "W")),
    "transposed": truth("a transposed convolution", lambda facts: facts.layer.op == "conv_transpose"),
    "connected": truth("reads another layer or operation", lambda facts: facts.edge is not None),
}


def _shown(value: Any) -> str:
    return "?" if value is UNKNOWN else str(value)


def _by(*names: str) -> Callable[[LayerFacts], str]:
    """`3x3`, of three names the last two where there is no depth."""
    return lambda facts: "x".join(_shown(facts[name]) for name in names[0 if facts["dims"] == 3 else 1 :])


def _axes(facts: LayerFacts) -> tuple[str, ...]:
    """The sizes of its map that a layer of these dimensions has."""
    return ("D", "H", "W")[3 - facts["dims"] :]


def _paddings(facts: LayerFacts) -> str:
    axes = ("D", "H", "W") if facts["dims"] == 3 else ("H", "W")
    return ", ".join(f"Pad{axis}={_shown(facts[f'Pad{axis}'])}" for axis in axes)


def _input_shape(facts: LayerFacts) -> str:
    return ", ".join(f"{name}={_shown(facts[name])}" for name in ("C", *_axes(facts)))


def _arriving_shape(facts: LayerFacts) -> str:
    return ", ".join(f"{name}={_shown(getattr(facts['arriving'], name))}" for name in ("C", *_axes(facts)))


def _groups_divide(facts: LayerFacts) -> Any:
    groups = facts["groups"]
    return groups == 1 or (facts["C"] % groups == 0 and facts["K"] % groups == 0)


def _matches_arriving(facts: LayerFacts) -> Any:
    names = ("C", *reversed(_axes(facts)))
    return not facts["connected"] or all(facts[name] == getattr(facts["arriving"], name) for name in names)


PRINTED: Table = {
    "filter_size": text("the filter, such as 3x3, or 3x3x3 in 3-D", _by("T", "R", "S")),
    "stride_size": text("the stride, such as 2x2, or 1x2x2 in 3-D", _by("StrideD", "U", "V")),
    "dilation_size": text("the dilation, such as 2x2, or 1x2x2 in 3-D", _by("DilD", "DilH", "DilW")),
    "input_size": text("the map it reads, such as 56x56, or 8x56x56 in 3-D", _by("D", "H", "W")),
    "padding_sizes": text("the padding, such as PadH=1, PadW=1", _paddings),
    "input_shape": text("what it takes, such as C=64, H=56, W=56", _input_shape),
    "arriving_shape": text("what arrives, such as C=64, H=56, W=56", _arriving_shape),
    "groups_divide": truth("groups divides C and K", _groups_divide, ("C", "K")),
    "matches_arriving": truth(
        "C and the sizes are those that arrive; nothing arrives, so be it", _matches_arriving, ("C", "D", "H", "W")
    ),
}


def _live_pads(axis: Axis, facts: LayerFacts) -> tuple[int, int]:
    """The padding before and after once the dead taps are dropped; the same on both sides where P allows it."""
    size, out, taps, stride, dilation, begin, end = axis.values(facts)
    live = facts[f"live_{axis.taps}"]
    leading = -(-max(0, begin - (out - 1) * stride) // dilation)  # dead taps before the first live one
    before, after = begin - leading * dilation, end - (taps - live - leading) * dilation
    if live < taps:
        even_out = (size + 2 * before - dilation * (live - 1) - 1) // stride + 1
        after = before if even_out == out else after  # strides step over rows at the end, padding among them
    return before, after


def _slack(axis: Axis, facts: LayerFacts) -> int:
    """Total padding less what the filter spans beyond one tap: fixes the output size, whatever the dilation."""
    _, _, taps, _, dilation, begin, end = axis.values(facts)
    slack: int = begin + end - dilation * (taps - 1)
    return slack


def _fitting_dilation(axis: Axis, facts: LayerFacts) -> int:
    """The largest dilation at which the outermost taps read input for half of the outputs, whose number stays."""
    size, out, taps, stride, dilation, _, _ = axis.values(facts)
    if facts[f"live_{axis.taps}"] == taps:
        return int(dilation)
    slack, beyond_one, half = _slack(axis, facts), max(1, taps - 1), max(0, out - 2) * stride
    return int(
        min(
            dilation,
            (2 * (out - 1) * stride + 1 - half - slack) // beyond_one,
            (2 * (size - 1) + slack - half) // beyond_one,
        )
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


def _part(of: Any, axis: Axis, index: int, facts: LayerFacts) -> Any:
    return of(axis, facts)[index]


def _of_axis(axis: Axis) -> dict[str, Quantity]:
    size, taps, out = axis.size, axis.taps, axis.out
    needs = size, taps
    return {
        f"live_Pad{size}": number(
            f"Pad{size} without the dead taps, {out} as it is", partial(_part, _live_pads, axis, 0), needs
        ),
        f"live_Pad{size}_end": number(
            f"Pad{size}_end without the dead taps, {out} as it is", partial(_part, _live_pads, axis, 1), needs
        ),
        f"fitting_Dil{size}": number(
            f"largest Dil{size}, up to the present one, that leaves no tap of {taps} dead",
            partial(_fitting_dilation, axis),
            needs,
        ),
        f"fitting_Pad{size}": number(
            f"Pad{size} that keeps {out} at fitting_Dil{size}", partial(_part, _fitting_pads, axis, 0), needs
        ),
        f"fitting_Pad{size}_end": number(
            f"Pad{size}_end that keeps {out} at fitting_Dil{size}", partial(_part, _fitting_pads, axis, 1), needs
        ),
        f"even_Pad{size}": number(
            f"Pad{size} that keeps a transposed {out} with {taps} raised to its stride's multiple",
            partial(_part, _even_pads, axis, 0),
            needs,
        ),
        f"even_Pad{size}_end": number(f"Pad{size}_end that does so", partial(_part, _even_pads, axis, 1), needs),
        f"even_OutPad{size}": number(
            f"output padding in {axis.word} that does so", partial(_part, _even_pads, axis, 2), needs
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


class Arrival(Struct, frozen=True):
    """An edge, the layer that it leads to, and the producer whose layout differs, if one does."""

    edge: Edge
    layer: ConvLayer
    other: ConvLayer | None


def _size(name: str, meaning: str) -> Quantity:
    return number(meaning, lambda arrival: known(getattr(arrival.edge, name)))


ARRIVING: Table = {
    "C": _size("C", "channels that the connected layers deliver"),
    "D": _size("D", "depth that the connected layers deliver"),
    "H": _size("H", "height that the connected layers deliver"),
    "W": _size("W", "width that the connected layers deliver"),
    "source": text("the layer or operation that this one reads", attrgetter("edge.source")),
    "layout": text(
        "layout of the connected layer that differs, or this layer's own",
        lambda arrival: (arrival.other or arrival.layer).layout,
    ),
    "layout_of": text(
        "the connected layer whose layout differs",
        lambda arrival: arrival.other.name if arrival.other else arrival.edge.source,
    ),
    "copied": truth(
        "the tensor is written once more in another layout on its way",
        lambda arrival: (
            arrival.edge.copied is not False
            and (arrival.other is not None or (arrival.layer.copies_input and arrival.edge.changed_at != ""))
        ),
    ),
    "changed_at": text(
        "the operation that changes the layout and its line, empty where unknown", attrgetter("edge.changed_at")
    ),
    "inherent": truth(
        "what changes the layout is an operator that writes NCHW whatever it reads", attrgetter("edge.inherent")
    ),
    "grouped": truth(
        "the connected layer whose layout differs has 1 < groups < C",
        lambda arrival: arrival.other is not None and _grouped(arrival.other),
    ),
}


def arriving(facts: LayerFacts) -> Any:
    """What arrives, UNKNOWN where the layer stands alone; of producers that differ, a grouped one only if no other."""
    layer, edge = facts.layer, facts.edge
    if edge is None:
        return UNKNOWN
    differing = [p for p in facts.producers if p.layout not in (layer.layout, "auto")] if layer.layout != "auto" else []
    return View(ARRIVING, Arrival(edge, layer, min(differing, key=_grouped, default=None)))


def _grouped(layer: ConvLayer) -> bool:
    return layer.groups > 1 and not layer.depthwise


def _lack(facts: LayerFacts) -> Lack | None:
    context, dtype, operator = facts.context, facts.layer.dtype, facts.layer.operator
    return lack_of(context.runtime, dtype, context.mode, context.gpu, operator)


def _is_lacking(facts: LayerFacts) -> Any:
    context, dtype = facts.context, facts.layer.dtype
    if _lack(facts) is not None:
        return True
    if dtype is None or not is_settled(context.runtime, dtype, context.mode):
        return UNKNOWN
    return False


def _lacks_now(facts: LayerFacts) -> bool:
    lack = _lack(facts)
    return lack is not None and (lack.mode != "training" or facts.context.mode_stated)


def _eight_bits(facts: LayerFacts) -> Any:
    context, operator = facts.context, facts.layer.operator
    for dtype in (Dtype.int8, Dtype.fp8):
        runs = dtype.value in context.allow and dtype.value in context.gpu.tensor_dtypes and context.mode == "inference"
        pays = dtype != Dtype.int8 or context.gpu.fast_int8
        if runs and pays and lack_of(context.runtime, dtype, context.mode, context.gpu, operator) is None:
            return dtype
    return UNKNOWN


def _nothing(_: LayerFacts) -> tuple[str, ...]:
    return ()


def _of_lack(meaning: str, of: Callable[[Lack], str | None]) -> Quantity:
    def known(facts: LayerFacts) -> Any:
        lack = _lack(facts)
        return UNKNOWN if lack is None else of(lack) or UNKNOWN

    return Quantity("text", meaning, known, _nothing, gpu=True)


LACKING: Table = {
    "lacking": truth(
        "the framework has no convolution of this dtype in this mode",
        _is_lacking,
        ("dtype", "runtime.framework"),
        gpu=True,
    ),
    "lacking_now": truth("it lacks it in both modes, or in the one that the user asked for", _lacks_now, (), gpu=True),
    "lacking_mode": _of_lack("the one mode in which the framework lacks it", lambda lack: lack.mode),
    "lacking_says": _of_lack("what the framework lacks", lambda lack: lack.says),
    "lacking_fix": _of_lack("what to do without it", lambda lack: lack.fix),
    "eight_bits": Quantity(
        "text",
        "the type of eight bits that --allow names and that GPU and framework run, no slower than 16, in this mode",
        _eight_bits,
        _nothing,
        gpu=True,
    ),
    "lacking_instead": _of_lack("a dtype that the framework has in this mode", lambda lack: lack.instead),
}
