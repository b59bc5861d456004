"""What Python source says, read and not run: convolutions where they are constructed, and programs that train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from convlint.model.layer import ConvLayer
from convlint.model.location import Location

Certainty = Literal["stated", "with defaults"]  # by values that the source has; or of parameters that nobody gives


class StatedLiteral(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A literal that a number was computed from, where it stands, and the name that it is bound to there.

    `name` is that of the variable, keyword or parameter, as far as there is one: `NUM_CLASSES`, `out_channels`, `''`;
    of a parameter, the literal is its `default`.
    """

    at: Location
    value: int | float | str | bool | None
    name: str = ""
    default: bool = False
    quiet: bool = False  # stands in a test, in documentation or in other people's code


class SourceLayer(Struct, frozen=True, kw_only=True):
    """A convolution as the source constructs it: one record for each place and set of values.

    `layer` has what is known (None: unknown) and the spans of the construction; `stated` has, by the letter of the
    layer's field (C, K, groups, bias, ...), the literals that its value was computed from. `root` is the function or
    class whose evaluation led here, as path:name; `condition` the test that nobody could decide on the way, if any.
    """

    layer: ConvLayer
    framework: str
    stated: Mapping[str, tuple[StatedLiteral, ...]] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)  # C and K as the construction has them: `num_anchors * 4`
    certainty: Certainty = "stated"
    condition: str = ""
    root: str = ""
    pointwise_map: bool | None = None  # works on 1x1 maps: behind a pool to one, True; on a map, False
    replaced: bool = False  # taken out of its model again
    calls: int | None = None  # how often the forward pass runs it, where that was followed
    made_by: str = ""  # the class of the source that it is an instance of, where it is not the framework's own
    unknown: tuple[str, ...] = ()  # letters without which a layer cannot be, and that nobody knows: groups, U, ...
    context: int = -1  # how many convolutions ran in the largest network that says where this one stands in it
    silent: bool = False  # no root that led here says anything of a norm behind it


class Unread(Struct, frozen=True, kw_only=True):
    """A place at which a convolution is constructed whose C or K nobody could read, and why.

    `why` is one of: config, parameter, caller, branch, untaken, call, limit, weight.
    The last is that of a functional convolution whose weight has no shape that is known.
    """

    at: Location
    why: str
    otherwise: str = ""  # why, were the branch that it stands in taken


class UnreadFile(Struct, frozen=True, kw_only=True):
    """Why a file could not be read, and where in it that shows."""

    why: str
    line: int | None = None
    column: int | None = None


class UnreadCell(Struct, frozen=True, kw_only=True):
    """A code cell of a notebook that could not be read though others could, where that shows, and why."""

    at: Location  # with its `cell`
    why: str


class ProgramSetting(Struct, frozen=True, kw_only=True):
    """A statement that sets what runs a program: `cudnn.benchmark`, `cudnn.enabled` and their like.

    `value` is None where it is an expression that nobody can know. `guard` is the test around it, as written; `certain`
    whether every run of the program passes it.
    """

    name: str
    value: bool | int | str | None
    at: Location
    guard: str = ""
    certain: bool = False


class TrainingProgram(Struct, frozen=True, kw_only=True):
    """A script that trains: what it sets, and what it shows of its input. None means unknown.

    `closure` are the files that it imports, directly or not; `complete` whether all of them were read and nothing else
    (a trainer, setattr, exec) can set anything. `settings` are those that it reaches, in order of their execution as
    far as that is known.
    """

    path: str
    at: Location  # where the program begins: its guard, or the first statement that trains
    framework: str = "pytorch"
    closure: tuple[str, ...] = ()
    complete: bool = False
    incomplete_for: str = ""  # what stands in the way of `complete`, in words
    trainer: str = ""  # what owns the settings: Lightning's Trainer, ...
    settings: tuple[ProgramSetting, ...] = ()
    cudnn_benchmark: bool | None = None
    deterministic: bool | None = None
    cudnn_enabled: bool | None = None
    tf32: bool | None = None
    fixed_input_size: bool | None = None
    evidence: tuple[tuple[str, Location], ...] = ()  # for `fixed_input_size`: words, and where they stand
    conflict: tuple[ProgramSetting, ProgramSetting] | None = None  # deterministic and benchmark, both True on one path
    backward_in_autocast: tuple[Location, ...] = ()
    autocast_around_loss: tuple[Location, ...] = ()
    autotune_disabled: tuple[ProgramSetting, ...] = ()  # MXNET_CUDNN_AUTOTUNE_DEFAULT=0 and its like
    has_convolutions: bool = False
    insert_at: Location | None = None  # before this statement a setting of the whole run can be inserted
    torch_name: str = ""  # what `torch` is called there


class BiasUse(Struct, frozen=True, kw_only=True):
    """A place that fails for a convolution without a bias.

    `attribute` is what it is of, where only the same file constructs what that is; empty: of what nobody knows.
    """

    at: Location
    attribute: str = ""


class SourceReading(Struct, frozen=True, kw_only=True):
    """Everything that was read in the Python files of one repository.

    `constructions` counts the places at which convolutions are constructed in the files that were given, tests and
    their like left out; `known` those of which C and K are.
    """

    files: tuple[str, ...] = ()  # that were given, and read
    layers: tuple[SourceLayer, ...] = ()
    programs: tuple[TrainingProgram, ...] = ()
    constructions: int = 0
    known: int = 0
    unread: tuple[Unread, ...] = ()
    unread_files: Mapping[str, UnreadFile] = field(default_factory=dict)  # by path
    unread_cells: tuple[UnreadCell, ...] = ()
    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of files that something points into
    # of notebooks, whose cells are one module here: of each line of that the cell, the line there, and that of the file
    cells: Mapping[str, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)
    whole: bool = False  # no file of the repository was left out that could say more
    # by path, first and last line: sides of conditions that some run left out, and those that some took or may take
    left: frozenset[tuple[str, int, int]] = frozenset()
    taken: frozenset[tuple[str, int, int]] = frozenset()
    bias_uses: tuple[BiasUse, ...] = ()  # of the repository; looked for where a convolution has a bias for nothing


class PlacedLayer(Struct, frozen=True, kw_only=True):
    """A layer, and where its construction stands for people and forges."""

    at: Location
    record: SourceLayer


class SourceReport(Struct, frozen=True, kw_only=True):
    """How much of the Python that was given could be read: `known` of the places that construct convolutions.

    Tests, documentation and other people's code are not counted among these. `programs` train.
    """

    files: tuple[str, ...] = ()  # that were read
    layers: tuple[PlacedLayer, ...] = ()  # of which C and K are known, in these files
    given: int = 0  # files, those that could not be read included
    constructions: int = 0
    known: int = 0
    programs: int = 0
    unread: tuple[Unread, ...] = ()
    unread_files: Mapping[str, UnreadFile] = field(default_factory=dict)  # by path
    unread_cells: tuple[UnreadCell, ...] = ()
