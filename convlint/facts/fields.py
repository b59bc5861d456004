"""A layer's own fields, under the guide's letters."""

from __future__ import annotations

from operator import attrgetter

from convlint.facts.quantity import Quantity, Table, Type, known


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
    "name": _field("text", "name", "the layer's name")._replace(own=True),
    "op": _field("text", "op", "conv or conv_transpose"),
    "dtype": _field("text", "dtype", "what is stored"),
    "layout": _field("text", "layout", "NCHW, NHWC or auto"),
    "bias": _field("truth", "bias", "has a bias"),
    "norm_follows": _field("truth", "norm_follows", "batch normalisation alone reads the output"),
    "first": _field("truth", "first", "its input is the network's"),
    "copies_input": _field("truth", "copies_input", "runs NHWC, but copies its input, which arrives NCHW, first"),
    "head": _field("truth", "head", "no convolution after it, so that the task fixes K"),
}
NAMES = tuple(FIELDS)
values_of = attrgetter(*NAMES)  # of a layer, all at once: a tenth of the time that one after the other takes
# of an element type, which is its own view
DTYPE: Table = {"bytes": Quantity("number", "bytes per stored element", attrgetter("bytes"), ("dtype",))}
