"""What is read from Python source without running it: convolutions where they are constructed, training programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from convlint.model.layer import ConvLayer
from convlint.model.location import Location

Certainty = Literal["stated", "with defaults"]  # from values in the source; or also from defaults of parameters
STACKED = (6, 9, 12, 15)  # channels of two to five images as one


class StatedLiteral(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A literal that a number was computed from, its place, and the name that it is bound to there.

    `name` is that of the variable, keyword or parameter (`NUM_CLASSES`, `out_channels`), or empty; `default`: the
    literal is the default of a parameter.
    """

    at: Location
    value: int | float | str | bool | None
    name: str = ""
    default: bool = False
    quiet: bool = False  # in a test, in documentation or in vendored code
    trial: bool = False  # in the code by which a module tries itself: `net = Net(10); net(torch.rand(1, 3, 64, 64))`
    bound: bool = False  # the end of a range, which is part of none of its numbers


_MOST_WAYS = 3  # that are named


class SourceLayer(Struct, frozen=True, kw_only=True):
    """A convolution that the source constructs: one record for each place and set of values.

    `layer` has what is known (None: unknown) and the spans of the construction; `stated` has the literals that each
    field of the layer (C, K, groups, bias, ...) was computed from. `root` is the function or class whose evaluation led
    here, as path:name; `condition` has the tests on the ways here that could not be decided, a line for each way; it is
    empty where one of them needs none.
    """

    layer: ConvLayer
    framework: str
    stated: Mapping[str, tuple[StatedLiteral, ...]] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)  # C and K as written there: `num_anchors * 4`
    certainty: Certainty = "stated"
    by_options: bool = False  # "with defaults" of the command line alone: numbers that rest on none of them are stated
    condition: str = ""
    root: str = ""
    reads_input: bool | None = None  # whether it reads the input of the largest network in which its place is known
    gives_output: bool = False  # whether no layer of that network reads it
    pointwise_map: bool | None = None  # whether it works on 1x1 maps, as behind a global pool
    replaced: bool = False  # removed from its model again
    calls: int | None = None  # how often the forward pass runs it, where that was followed
    made_by: str = ""  # its class, where that is a subclass in the source
    unknown: tuple[str, ...] = ()  # fields that a layer must have, and whose values are unknown: groups, U, ...
    context: int = -1  # how many convolutions ran in the largest network in which its place is known
    silent: bool = False  # no root that led here shows whether a norm follows
    norm_by: tuple[StatedLiteral, ...] = ()  # defaults of parameters but for which no norm might follow
    loaded_at: Location | None = None  # the call that loads weights into what its place constructs, as made for it

    @property
    def part(self) -> str:
        """Which of the two convolutions of a separable one it is: `depthwise` or `pointwise`; else ''."""
        return self.layer.name.partition("/")[2]

    def rests_on(self, defaults: Collection[Location], fields: Iterable[str] = "CK") -> bool:
        """Whether one of the fields comes from one of these defaults of parameters."""
        literals = (literal for field in fields for literal in self.stated.get(field, ()))
        return self.certainty == "with defaults" and any(item.default and item.at in defaults for item in literals)

    @property
    def only_if(self) -> str:
        """Its conditions, as code would have them; of many, the first."""
        ways = self.condition.splitlines()
        return " or ".join(ways[:_MOST_WAYS]) + (" or ..." if len(ways) > _MOST_WAYS else "")


class Unread(Struct, frozen=True, kw_only=True):
    """A place that constructs a convolution whose C or K could not be read, and why.

    `why` is one of: config, parameter, caller, branch, untaken, call, limit, weight. The last is that of a functional
    convolution whose weight has an unknown shape.
    """

    at: Location
    why: str
    otherwise: str = ""  # why, if the branch around it were taken


class UnreadFile(Struct, frozen=True, kw_only=True):
    """Why a file could not be read, and the place of the error in it."""

    why: str
    line: int | None = None
    column: int | None = None


class UnreadCell(Struct, frozen=True, kw_only=True):
    """A code cell of a notebook that could not be read, although others could; the place of the error, and why."""

    at: Location  # with its `cell`
    why: str

    @property
    def message(self) -> str:
        """Why, behind the cell and the line in it, as the lines of a notebook's file are nobody's."""
        cell, line, _ = self.at.cell or (0, 0, None)
        return f"cell {cell}, line {line}: {self.why}"


class ProgramSetting(Struct, frozen=True, kw_only=True):
    """A statement with a setting of the whole program: `cudnn.benchmark`, `cudnn.enabled` and the like.

    `value` is None where it is an expression of unknown value. `guard` is the test around it, as written; `certain`:
    every run of the program executes it.
    """

    name: str
    value: bool | int | str | None
    at: Location
    guard: str = ""
    certain: bool = False


class TrainingProgram(Struct, frozen=True, kw_only=True):
    """A script that trains: its settings, and what is known of its input. None: unknown.

    `closure` are the files that it imports, directly or not; `complete`: all of them were read, and nothing else (a
    trainer, setattr, exec) can change a setting. `settings` are those that it executes, in order as far as known.
    """

    path: str
    at: Location  # of its guard, `if __name__ == "__main__"`, or of the first statement that trains
    framework: str = "pytorch"
    closure: tuple[str, ...] = ()
    complete: bool = False
    incomplete_for: str = ""  # why it is not `complete`, in words
    trainer: str = ""  # what makes the settings instead of the script: Lightning's Trainer, ...
    settings: tuple[ProgramSetting, ...] = ()
    cudnn_benchmark: bool | None = None
    deterministic: bool | None = None
    cudnn_enabled: bool | None = None
    tf32: bool | None = None
    fixed_input_size: bool | None = None
    evidence: tuple[tuple[str, Location], ...] = ()  # for `fixed_input_size`: code, and its places
    conflict: tuple[ProgramSetting, ProgramSetting] | None = None  # deterministic and benchmark, both set in one run
    backward_in_autocast: tuple[Location, ...] = ()
    autocast_around_loss: tuple[Location, ...] = ()
    in_autocast: bool = False  # what trains computes in 16 bits, or fp64: by autocast, its trainer or a cast
    autotune_disabled: tuple[ProgramSetting, ...] = ()  # MXNET_CUDNN_AUTOTUNE_DEFAULT=0 and its like
    has_convolutions: bool = False
    insert_at: Location | None = None  # before this statement a setting of the whole run can be inserted
    torch_name: str = ""  # what `torch` is called there


class BiasUse(Struct, frozen=True, kw_only=True):
    """A place that fails for a convolution without a bias.

    `attribute` is that of the convolution, if only the same file constructs it; the key of a state (`net.conv.bias`),
    if the place names one; empty where the convolution is unknown. `within` are the files of all programs that have the
    place, in none of which a convolution from elsewhere exists; None: any file.
    """

    at: Location
    attribute: str = ""
    within: frozenset[str] | None = None
    loads: bool = False  # published weights, which have the bias


class SourceReading(Struct, frozen=True, kw_only=True):
    """Everything that was read in the Python files of one repository.

    `constructions` is the number of places in the given files that construct convolutions, without those in tests and
    the like; `known` is how many of these have known C and K.
    """

    files: tuple[str, ...] = ()  # those that were given and could be read
    layers: tuple[SourceLayer, ...] = ()
    programs: tuple[TrainingProgram, ...] = ()
    constructions: int = 0
    known: int = 0
    unread: tuple[Unread, ...] = ()
    by_defaults: tuple[Unread, ...] = ()  # places that are known by defaults of parameters alone
    unread_files: Mapping[str, UnreadFile] = field(default_factory=dict)  # by path
    unread_cells: tuple[UnreadCell, ...] = ()
    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of files that a location points into
    # For notebooks, whose cells are read as one module: the cell of each line, the line in it, and that in the file.
    cells: Mapping[str, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)
    whole: bool = False  # all files of the repository that could matter were read
    # Branches, by path, first and last line: those that some evaluation left out, those of them that a call left out,
    # and those that some evaluation took or may take.
    left: frozenset[tuple[str, int, int]] = frozenset()
    refused: frozenset[tuple[str, int, int]] = frozenset()
    taken: frozenset[tuple[str, int, int]] = frozenset()
    # Literals in defaults of parameters: those that some call that was read overrides, and those that some call keeps.
    overridden: frozenset[Location] = frozenset()
    kept: frozenset[Location] = frozenset()
    bias_uses: tuple[BiasUse, ...] = ()  # of the repository; looked for only if a convolution has a useless bias
    loaded: Mapping[Location, Location] = {}  # where files called like tests load weights, by the construction

    @property
    def unheld(self) -> frozenset[Location]:
        """The defaults that no network has, as every known caller overrides them."""
        return self.overridden - self.kept


class PlacedLayer(Struct, frozen=True, kw_only=True):
    """A layer, and the place of its construction as reports show it."""

    at: Location
    record: SourceLayer


class SourceReport(Struct, frozen=True, kw_only=True):
    """How much of the given Python could be read: `known` of the `constructions` have known C and K.

    Places in tests, documentation and vendored code are not counted. `programs` is the number of training programs.
    """

    files: tuple[str, ...] = ()  # that were read
    layers: tuple[PlacedLayer, ...] = ()  # with known C and K, in these files
    given: int = 0  # number of files, with those that could not be read
    quiet: int = 0  # of `files`, in tests and their like
    constructions: int = 0
    known: int = 0
    programs: int = 0
    unread: tuple[Unread, ...] = ()
    unread_files: Mapping[str, UnreadFile] = field(default_factory=dict)  # by path
    unread_cells: tuple[UnreadCell, ...] = ()
