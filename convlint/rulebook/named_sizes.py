"""Names of the sizes that rules on taps, tiles and what arrives compare, print and set, each with its meaning."""

from __future__ import annotations

from collections.abc import Mapping

_AXES = (("D", "T", "Z", "depth"), ("H", "R", "P", "height"), ("W", "S", "Q", "width"))

# of the pass in tiles_worst, whose output matrix has channels along its columns
OF_TILES_NUMBER: Mapping[str, str] = {
    "tile_column_fill": "useful share of the width of tiles_worst's tiles",
    "tile_row_fill": "useful share of the height of tiles_worst's tiles",
    "tile_C": "side of tiles_worst's tiles along C (0: they do not cover C)",
    "tile_K": "side of tiles_worst's tiles along K (0: they do not cover K)",
    "tile_batch_above": "smallest N that fills the rows of tiles that tiles_worst has (0: its rows are channels)",
    "tile_batch_below": "largest N that leaves tiles_worst no partly filled row of tiles (0: none)",
}
OF_TILES_TEXT: Mapping[str, str] = {
    "tile_columns": "what lies along the columns of tiles_worst's output: C or K",
    "tile_rows": "what lies along its rows: N with the positions, or C or K in wgrad",
}
NUMBER: Mapping[str, str] = {
    "live_T": "filter slices in depth that read input for some output",
    **{
        name: text
        for axis, taps, out, word in _AXES
        for name, text in (
            (f"live_Pad{axis}", f"Pad{axis} without the dead taps, {out} as it is"),
            (f"live_Pad{axis}_end", f"Pad{axis}_end without the dead taps, {out} as it is"),
            (f"fitting_Dil{axis}", f"largest Dil{axis}, up to the present one, that leaves no tap of {taps} dead"),
            (f"fitting_Pad{axis}", f"Pad{axis} that keeps {out} at fitting_Dil{axis}"),
            (f"fitting_Pad{axis}_end", f"Pad{axis}_end that keeps {out} at fitting_Dil{axis}"),
            (f"even_Pad{axis}", f"Pad{axis} that keeps a transposed {out} with {taps} raised to its stride's multiple"),
            (f"even_Pad{axis}_end", f"Pad{axis}_end that does so"),
            (f"even_OutPad{axis}", f"output padding in {word} that does so"),
        )
    },
    **OF_TILES_NUMBER,
}
TEXT: Mapping[str, str] = {
    "filter_size": "the filter, such as 3x3, or 3x3x3 in 3-D",
    "stride_size": "the stride, such as 2x2, or 1x2x2 in 3-D",
    "dilation_size": "the dilation, such as 2x2, or 1x2x2 in 3-D",
    "input_size": "the map it reads, such as 56x56, or 8x56x56 in 3-D",
    "padding_sizes": "the padding, such as PadH=1, PadW=1",
    "input_shape": "what it takes, such as C=64, H=56, W=56",
    "arriving_shape": "what arrives, such as C=64, H=56, W=56",
    **OF_TILES_TEXT,
}
TRUTH: Mapping[str, str] = {
    "spatial_filter": "the filter has more than one tap",
    "padded": "some side is padded",
    "has_output": "Z, P and Q are at least 1",
    "groups_divide": "groups divides C and K",
    "matches_arriving": "C and the sizes are those that arrive; nothing arrives, so be it",
}
# what a user gives so that the name is known; tiles need all that a predicted time needs
ROOTS: Mapping[str, tuple[str, ...]] = {
    "live_T": ("D", "T"),
    "spatial_filter": ("T", "R", "S"),
    "padded": ("D", "H", "W"),
    "has_output": ("H", "W", "D"),
    "groups_divide": ("C", "K"),
    "matches_arriving": ("C", "D", "H", "W"),
    **{
        f"{kind}_{name}{axis}{end}": (axis, taps)
        for axis, taps, _, _ in _AXES
        for kind, name, ends in (
            ("live", "Pad", ("", "_end")), ("fitting", "Dil", ("",)), ("fitting", "Pad", ("", "_end")),
            ("even", "Pad", ("", "_end")), ("even", "OutPad", ("",)),
        )
        for end in ends
    },
}  # fmt: skip
