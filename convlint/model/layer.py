"""A convolution layer in the guide's letters, the geometry of its output, and the implicit GEMM of each pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.model.location import Location, Span, WireRecord

_T = TypeVar("_T", bound=Struct)


def equal_without(*names: str) -> Callable[[type[_T]], type[_T]]:
    """A class decorator: `==`, hash() and repr() of the record leave out its fields `names`.

    Positions in files are left out so that equal layers can share what was computed for one of them.
    """

    def decorated(kind: type[_T]) -> type[_T]:
        shown = [name for name in kind.__struct_fields__ if name not in names]
        key_of = attrgetter(*shown)

        def written(self: object) -> str:
            return f"{kind.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

        namespace = {
            "__eq__": lambda self, other: key_of(self) == key_of(other) if type(other) is kind else NotImplemented,
            "__hash__": lambda self: hash(key_of(self)),
            "__repr__": written,
        }
        for name, method in namespace.items():
            setattr(kind, name, method)
        return kind

    return decorated


def output_size(size: int, *, stride: int, pad: int, dilation: int, taps: int) -> int:
    """Output size of a convolution along one axis; `pad` is both sides added up. May be < 1: invalid (CG 5.1)."""
    return (size + pad - dilation * (taps - 1) - 1) // stride + 1


def transposed_output_size(size: int, *, stride: int, pad: int, dilation: int, taps: int, output_padding: int) -> int:
    """Output size of a transposed convolution along one axis; `pad` is both sides added up."""
    return (size - 1) * stride - pad + dilation * (taps - 1) + output_padding + 1


def same_padding(size: int | None, *, stride: int, dilation: int, taps: int) -> tuple[int, int] | None:
    """Begin and end padding of "same": output = ceil(size / stride), the odd element at the end.

    None where the size is unknown and the stride makes the padding depend on it.
    """
    extent = dilation * (taps - 1)
    if stride == 1:
        total = extent
    elif size is None:
        return None
    else:
        total = max((-(-size // stride) - 1) * stride + extent + 1 - size, 0)
    return total // 2, total - total // 2


Pass = Literal["fprop", "dgrad", "wgrad"]
PASSES: tuple[Pass, ...] = ("fprop", "dgrad", "wgrad")
# Where time is lost: to what a fix would change, to empty tiles or waves; of the whole step, to the host, or to what
# torch.compile would fuse.
Loss = Literal["fix", "tile", "wave", "host", "compile", "none"]
OF_STEPS: tuple[Loss, ...] = ("host", "compile")

Op = Literal["conv", "conv_transpose"]
Layout = Literal["NCHW", "NHWC", "auto"]
Mode = Literal["training", "inference"]
MODES: tuple[Mode, ...] = ("training", "inference")
Allowance = Literal["narrower", "batch", "int8", "fp8"]
ALLOWANCES: tuple[Allowance, ...] = ("narrower", "batch", "int8", "fp8")  # changes that are advised on request only
Following = Literal["eval", "train"]  # torch's mode in which a module's forward pass is traced
AUTOCAST = ("fp16", "bf16")  # the dtypes that torch.autocast casts to
TRACES: tuple[Following, ...] = ("eval", "train")
DtypeSource = Literal["stated", "module", "storage"]


class Dtype(StrEnum):
    """Element type. `tf32` is stored as fp32 (4 bytes) and multiplied with 10 mantissa bits."""

    fp64 = "fp64"
    fp32 = "fp32"
    tf32 = "tf32"
    fp16 = "fp16"
    bf16 = "bf16"
    fp8 = "fp8"
    int8 = "int8"

    @property
    def bytes(self) -> int:
        """Bytes per stored element."""
        return _BYTES[self]


_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}


class MeasuredPass(WireRecord, frozen=True, kw_only=True):
    """What one call of a pass took on a device, in us: the median of all calls, and its parts.

    `spread` is the width of their middle half over it, `times` how often the pass runs for each call of fprop.
    """

    us: float
    convolution: float = 0.0
    transpose: float = 0.0
    bias: float = 0.0
    other: float = 0.0
    spread: float = 0.0
    calls: int = 1
    times: float = 1.0
    tensor_cores: bool | None = None  # None where no kernel's name says whether they multiply


class MeasuredScale(WireRecord, frozen=True, kw_only=True):
    """What predicted times are multiplied by: those of transposes, and all others.

    `unpredicted` are transposes that ran and were not predicted, relative to all others: there are some while the layer
    keeps its `layout`. `changed` is there where another unit multiplied than is predicted: what all times of another
    layout or dtype are multiplied by.
    """

    transposes: float
    others: float
    unpredicted: float
    layout: Layout
    dtype: Dtype | None
    changed: float | None = None


class Measured(WireRecord, frozen=True, kw_only=True):
    """What a trace recorded of a layer: the GPU's id, empty where it is unknown, and each pass that ran.

    `trained`: the trace has gradients, so that a pass which is not there did not run.

    `scales` are measured over predicted times of the layer as it ran: its times on that GPU are multiplied by them,
    whatever is changed in it. Where its calls are `alike`, nothing tells whether they are of one layer or of several.
    """

    gpu: str
    passes: tuple[tuple[Pass, MeasuredPass], ...]
    trained: bool = False
    alike: bool = False
    scales: tuple[tuple[Pass, MeasuredScale], ...] = ()

    def of(self, which: Pass) -> MeasuredPass | None:
        """What one pass took; None where it was not measured."""
        return next((measured for name, measured in self.passes if name == which), None)


@equal_without("spans")
class ConvLayer(WireRecord, frozen=True, kw_only=True):
    """One convolution, in the letters of the guide's section 2.

    A 1-D convolution has H = R = P = 1 and `dims` 1. A 3-D one adds D (input depth), T (filter depth),
    Z (output depth), StrideD, PadD and DilD; for fewer dimensions those are 1, 1, 1, 1, 0 and 1.
    `PadH` pads above, `PadH_end` below (equal unless the padding is asymmetric); W and D likewise.
    For `conv_transpose`, C H W are the layer's input and K P Q its output, as the framework's user sees them.
    """

    name: str
    path: str = ""
    op: Op = "conv"
    dims: int = 2
    N: int | None = None
    C: int | None = None
    D: int | None = 1
    H: int | None = None
    W: int | None = None
    K: int | None = None
    Z: int | None = 1
    P: int | None = None
    Q: int | None = None
    T: int | None = 1
    R: int | None = None
    S: int | None = None
    StrideD: int = 1
    U: int = 1
    V: int = 1
    PadD: int | None = 0
    PadH: int | None = 0
    PadW: int | None = 0
    PadD_end: int | None = 0
    PadH_end: int | None = 0
    PadW_end: int | None = 0
    DilD: int = 1
    DilH: int = 1
    DilW: int = 1
    groups: int = 1
    OutPadD: int = 0
    OutPadH: int = 0
    OutPadW: int = 0
    dtype: Dtype | None = None
    layout: Layout = "auto"
    bias: bool | None = None
    norm_follows: bool | None = None  # batch normalisation reads this layer's output and nothing else does
    first: bool = False  # its input is the network's: no dgrad
    frozen: bool = False  # its weights learn nothing: no wgrad
    no_dgrad: bool = False  # all that stands before it is frozen
    head: bool = False  # no convolution after it: the task fixes K
    dtype_source: DtypeSource = "stated"  # fp32 of a "module" may run under autocast, that of a file as anything
    calls: int = 1  # how often one step runs it (shared modules)
    copies_input: bool = False  # its input, written in another layout, is copied first; readers say so of NHWC alone
    norm_copies: int = 0  # group norms that want NCHW, and copy its output, which is NHWC
    unfolded: bool = False  # its patches, which do not overlap, are laid side by side and multiplied as by Linear
    measured: Measured | None = None  # by a profiler
    residual_inputs: int = 0  # tensors of the output's shape fused into the epilogue
    declared_P: int | None = None
    declared_Q: int | None = None
    declared_Z: int | None = None
    spans: Mapping[str, Span] = field(default_factory=dict)
    model: str = ""  # the entry of the config that the layer belongs to
    library: str = ""  # the line of a library that builds it, where `spans` point at the user's code
    operator: str = ""  # the ONNX operator, where that is not one that every runtime has (QLinearConv)
    node: str | None = None  # the format's own name of what has the weights (an ONNX tensor, a module path)

    def locate(self, *names: str) -> Location:
        """The location of the first of `names` that was written in the file; else that of the layer."""
        for name in (*names, "layer"):
            span = self.spans.get(name)
            if span is not None:
                line, column, end_line, end_column = span
                return Location(path=self.path, line=line, column=column, end_line=end_line, end_column=end_column,
                                library=self.library, model=self.model)  # fmt: skip
        return Location(path=self.path, library=self.library, model=self.model)

    @property
    def depthwise(self) -> bool:
        """Whether groups = C, also with a channel multiplier (K = m·C)."""
        return self.groups > 1 and self.groups == self.C

    @property
    def pointwise_map(self) -> bool:
        """Whether it works on 1x1 maps (squeeze-and-excite), whose sizes are not worth a finding."""
        return self.H == self.W == self.P == self.Q == 1 and self.D == self.Z == 1


class AxisFields(NamedTuple):
    """The names of a layer's fields that belong to one axis of space."""

    size: str
    output: str
    taps: str
    stride: str
    pad: str
    pad_end: str
    dilation: str
    output_padding: str


AXES = (
    AxisFields("D", "Z", "T", "StrideD", "PadD", "PadD_end", "DilD", "OutPadD"),
    AxisFields("H", "P", "R", "U", "PadH", "PadH_end", "DilH", "OutPadH"),
    AxisFields("W", "Q", "S", "V", "PadW", "PadW_end", "DilW", "OutPadW"),
)
# For each axis, what its output is computed from, and the size that is declared. Fetched together, because this runs
# for every layer of a spec.
_AXES = tuple(
    (
        attrgetter(axis.size, axis.taps, axis.pad, axis.pad_end),
        attrgetter(axis.stride, axis.dilation, axis.output_padding),
        attrgetter(f"declared_{axis.output}"),
    )
    for axis in AXES
)


def with_output(layer: ConvLayer) -> ConvLayer:
    """The layer with Z, P and Q computed; an axis of which a part is unknown keeps its declared size."""
    Z, P, Q = [_axis_out(layer, *axis) for axis in _AXES]
    return replace(layer, Z=Z, P=P, Q=Q)


_Values = Callable[[ConvLayer], Any]


def _axis_out(layer: ConvLayer, sizes: _Values, steps: _Values, declared: _Values) -> int | None:
    known = sizes(layer)
    if None in known:
        result: int | None = declared(layer)
        return result
    length, count, begin, end = known
    step, spread, extra = steps(layer)
    if layer.op == "conv_transpose":
        return transposed_output_size(
            length, stride=step, pad=begin + end, dilation=spread, taps=count, output_padding=extra
        )
    return output_size(length, stride=step, pad=begin + end, dilation=spread, taps=count)


# All fields of a layer that rules and its time depend on; not its names and places.
layer_identity = attrgetter(
    *(name for name in ConvLayer.__struct_fields__ if name not in ("name", "path", "spans", "model", "library", "node"))
)


def mostly_nhwc(layers: Sequence[ConvLayer]) -> bool:
    """Whether more than half of them are in NHWC."""
    return 2 * sum(layer.layout == "NHWC" for layer in layers) > len(layers)


def is_patches(layer: ConvLayer) -> bool | None:
    """Whether its filter steps by its own size over whole patches that do not overlap; None where sizes are unknown."""
    sizes = (layer.D, layer.H, layer.W, layer.T, layer.R, layer.S)
    if layer.op != "conv" or layer.groups != 1 or (layer.DilD, layer.DilH, layer.DilW) != (1, 1, 1):
        return False
    if any((layer.PadD, layer.PadH, layer.PadW, layer.PadD_end, layer.PadH_end, layer.PadW_end)):
        return False
    if None in sizes:
        return None
    D, H, W, T, R, S = [size or 0 for size in sizes]
    steps = (layer.StrideD, layer.U, layer.V) == (T, R, S) and T * R * S > 1
    return steps and D % T == H % R == W % S == 0


def as_product(layer: ConvLayer) -> ConvLayer:
    """A layer of `unfolded` patches as what then runs: a 1x1 convolution of C·T·R·S channels at Z x P x Q."""
    if not layer.unfolded or None in (layer.C, layer.T, layer.R, layer.S):
        return layer
    return replace(
        layer, C=(layer.C or 0) * (layer.T or 0) * (layer.R or 0) * (layer.S or 0), D=layer.Z, H=layer.P, W=layer.Q,
        T=1, R=1, S=1, StrideD=1, U=1, V=1, PadD=0, PadH=0, PadW=0, PadD_end=0, PadH_end=0, PadW_end=0,
        layout="auto", copies_input=False,
    )  # fmt: skip


class Gemm(Struct, frozen=True, kw_only=True):
    """A batched matrix multiply `batch x (M x N x K)`; never to be mixed with the convolution's N and K."""

    M: int
    N: int
    K: int
    batch: int = 1


_sizes = attrgetter(*"NCDHWKZPQTRS")


def gemm(layer: ConvLayer, which: Pass) -> Gemm | None:
    """The implicit GEMM of one pass (CG 4.2, Table 2), per group; None where a size is unknown, or none.

    A transposed convolution is the dgrad of the convolution that maps its output to its input, so that its wgrad
    reduces over its input positions, N·H·W.
    """
    sizes = _sizes(layer)
    if None in sizes or min(sizes) < 1:  # as an output of less than one point is none
        return None
    N, C, D, H, W, K, Z, P, Q, T, R, S = sizes
    groups = layer.groups
    taps = T * R * S
    c, k = C // groups, K // groups  # of one group
    if which == "fprop":
        return Gemm(M=N * Z * P * Q, N=k, K=c * taps, batch=groups)
    if which == "dgrad":
        return Gemm(M=N * D * H * W, N=c, K=k * taps, batch=groups)
    if layer.op == "conv_transpose":
        return Gemm(M=k * taps, N=c, K=N * D * H * W, batch=groups)
    return Gemm(M=c * taps, N=k, K=N * Z * P * Q, batch=groups)


def flops(layer: ConvLayer) -> int | None:
    """Useful FLOPs of one pass, 2 x multiply-accumulates: the same for fprop, dgrad and wgrad; None if unknown."""
    # A transposed one multiplies each input position with each tap; its fprop would count outputs.
    product = gemm(layer, "dgrad" if layer.op == "conv_transpose" else "fprop")
    return None if product is None else 2 * product.batch * product.M * product.N * product.K


def tensor_elements(layer: ConvLayer) -> tuple[int, int, int] | None:
    """Elements of the input, the weights and the output (x, w, y); None if a size is unknown, or none."""
    sizes = _sizes(layer)
    if None in sizes or min(sizes) < 1:  # as an output of less than one point is none
        return None
    N, C, D, H, W, K, Z, P, Q, T, R, S = sizes
    return N * C * D * H * W, K * (C // layer.groups) * T * R * S, N * K * Z * P * Q
