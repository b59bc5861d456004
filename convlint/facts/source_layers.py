"""What rules may ask of constructions, their widths, and programs in Python source; the tables of it, and the facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.facts.layer import QUANTITIES, LayerFacts, dotted
from convlint.facts.quantity import UNKNOWN, Quantity, Table, View, known, number, text, truth
from convlint.facts.target import RUNTIME, TargetFacts
from convlint.files.patterns import pattern
from convlint.model.layer import ConvLayer
from convlint.model.location import Location, lies_in
from convlint.model.runtime import Runtime
from convlint.model.source import STACKED, ProgramSetting, SourceLayer, StatedLiteral, TrainingProgram
from convlint.model.text import Blank, Text, joined

_BACKENDS = "torch.backends."


def setting_of(name: str) -> str:
    """The setting of the runtime that a statement such as torch.backends.cudnn.benchmark = ... is about; or ''."""
    name = name.lower()
    if name.endswith("benchmark"):
        return "cudnn_benchmark"
    if name.endswith("cudnn.enabled"):
        return "cudnn_enabled"
    if "deterministic" in name:
        return "deterministic"
    if ("tf32" in name or name.endswith("fp32_precision")) and "matmul" not in name:
        return "tf32"
    return ""


def settings_of(program: TrainingProgram, setting: str) -> Iterator[ProgramSetting]:
    """The program's statements about one setting of the runtime, in order."""
    return (entry for entry in program.settings if setting_of(entry.name) == setting)


def _sets(setting: str, program: TrainingProgram) -> bool:
    return next(settings_of(program, setting), None) is not None


def in_order(program: TrainingProgram) -> tuple[ProgramSetting, ProgramSetting] | None:
    """The two statements that contradict each other, the earlier one first."""
    if program.conflict is None:
        return None
    first, second = program.conflict
    places = {entry.at: place for place, entry in enumerate(program.settings)}
    return (second, first) if places.get(first.at, -1) > places.get(second.at, -1) >= 0 else (first, second)


def _stated(setting: ProgramSetting) -> Text:
    shown = f"{setting.name.removeprefix(_BACKENDS)}={setting.value}"
    return Text("{what} at {place}", what=shown, place=place(setting.at))


def place(at: Location) -> str:
    """A location in words, such as train.py:12."""
    return at.path if at.line is None else f"{at.path}:{at.line}"


def _conflict(program: TrainingProgram) -> str:
    """Both contradicting statements in words, each with the test around it."""
    pair = in_order(program)
    if pair is None:
        return ""
    earlier, later = (
        _stated(entry) + (Text(" (if {condition})", condition=entry.guard) if entry.guard else "") for entry in pair
    )
    return Text("{later} follows {earlier}", later=later, earlier=earlier)


def _evidence(program: TrainingProgram) -> str:
    return joined(", ", [Text("{what} at {place}", what=words, place=place(at)) for words, at in program.evidence])


def _plain(quantity: Quantity, program: TrainingProgram) -> Any:
    """The framework's default of a setting that programs are not read for."""
    return quantity.of(Runtime(framework=program.framework))


PROGRAM: Table = {
    "path": text("the script that trains", attrgetter("path")),
    "trains_convolutions": truth("there are convolutions in what it imports", attrgetter("has_convolutions")),
    "complete": truth("all of it was read, and nothing else sets anything", attrgetter("complete")),
    "incomplete_for": text("what stands in the way of that (empty: nothing)", attrgetter("incomplete_for")),
    "trainer": text("what owns the settings, such as Lightning's Trainer (empty: nothing)", attrgetter("trainer")),
    "conflict": text(
        "the statements that ask for determinism and for tuning on one path (empty: there are none)", _conflict
    ),
    "evidence": text("what shows whether all inputs have one size, and where (empty: nothing)", _evidence),
    "sets_benchmark": truth("a statement sets cudnn.benchmark, to whatever", partial(_sets, "cudnn_benchmark")),
    "sets_cudnn": truth("a statement sets cudnn.enabled, to whatever", partial(_sets, "cudnn_enabled")),
    "sets_tf32": truth("a statement says whether convolutions may use TF32, whatever it is", partial(_sets, "tf32")),
    "without_cudnn": truth("cuDNN is off for its whole run", lambda program: program.cudnn_enabled is False),
    "surely_tunes": truth(
        "every run passes a statement that switches cudnn.benchmark on",
        lambda program: (
            program.cudnn_benchmark is True
            and any(entry.certain and entry.value is True for entry in settings_of(program, "cudnn_benchmark"))
        ),
    ),
    "autotune_disabled": text(
        "the variables that switch tuning off, such as MXNET_CUDNN_AUTOTUNE_DEFAULT=0 (empty: none)",
        lambda program: ", ".join(f"{entry.name}={_shown(entry)}" for entry in program.autotune_disabled),
    ),
    "in_autocast": truth(
        "the model that trains computes in 16 bits, or in fp64: by autocast, by its trainer, or as it is cast",
        attrgetter("in_autocast"),
    ),
    "backward_in_autocast": number(
        "calls of .backward() inside of an autocast block", lambda program: len(program.backward_in_autocast)
    ),
    "autocast_around_loss": number(
        "autocast blocks that hold the criterion alone, the model's call being just before",
        lambda program: len(program.autocast_around_loss),
    ),
}


def _shown(setting: ProgramSetting) -> object:
    """The value as an environment variable has it."""
    return int(setting.value) if isinstance(setting.value, bool) else setting.value


def _read(setting: str, program: TrainingProgram) -> Any:
    """What the program says, or leaves as PyTorch has it where nothing else can set it: that the reader knows."""
    return known(getattr(program, setting))


_READ = ("cudnn_benchmark", "cudnn_enabled", "deterministic", "tf32", "fixed_input_size")
RUNTIME_OF_PROGRAM: Table = {
    name: replace(row, of=partial(_read, name) if name in _READ else partial(_plain, row))
    for name, row in RUNTIME.items()
}


Side = Literal["C", "K"]
SIDES: tuple[Side, ...] = ("C", "K")
# what is only known once all were judged: the layers that get a number, under which provisos, on which map
GETTING, PROVISO, MAP = Blank("layers"), Blank("proviso"), Blank("map")
_MOST_DEFAULTS = 2  # that are named

# of names, in lower case and apart: what a task fixes, what an image has, and what weighs or makes other channels
_TASK = frozenset(
    ("class", "classes", "nclass", "nclasses", "ncls", "anchor", "anchors", "label", "labels", "category", "categories",
     "keypoint", "keypoints", "kp", "kps", "kpt", "kpts", "joint", "joints", "landmarks", "heat", "heatmap", "heatmaps",
     "paf", "pafs", "mel", "mels", "nmels", "outputs", "grids", "action", "actions")
)  # fmt: skip
# of a layer: what it predicts has as many channels as the task has answers, or as the filters that it generates
_PREDICTING = frozenset(
    ("cls", "logit", "logits", "bbox", "box", "boxes", "pred", "preds", "predict", "prediction", "score", "scores",
     "classifier", "reg", "regression", "objectness", "landmark", "offset", "offsets", "head", "controller",
     "kernel", "kernels")
) | _TASK  # fmt: skip
# three channels for each of several images, or those of an image that a list names: `3 * 7`, `len(bands)`
_STACKED = pattern(r"3 *\* *[\w.]+|[\w.]+ *\* *3|len\([\w.]+\)")
_WEIGHING = frozenset(("se", "squeeze", "excite", "excitation", "gate", "gates", "gating"))
_IMAGE = 4  # channels, at most
_WHOSE = pattern(r"\w*")  # of a layer's name: what constructs it
_WORD = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class Width(Struct, frozen=True, kw_only=True):
    """C or K of a construction; `inner`: convolutions read and write numbers of the same literals."""

    record: SourceLayer
    side: Side
    inner: bool = False

    @property
    def value(self) -> int | None:
        """The number, where it is known."""
        return self.record.layer.C if self.side == "C" else self.record.layer.K

    @property
    def literals(self) -> tuple[StatedLiteral, ...]:
        """The literals that it was computed from."""
        return self.record.stated.get(self.side, ())

    @property
    def brought(self) -> tuple[StatedLiteral, ...]:
        """Those that stand elsewhere than in the construction, where names are no more than the convolution's own."""
        return tuple(literal for literal in self.literals if not is_inside(literal.at, self.record))

    @property
    def is_end(self) -> bool:
        """Whether the network gets it, or gives it."""
        return bool(self.record.reads_input) if self.side == "C" else self.record.gives_output

    @property
    def outer(self) -> bool:
        """Whether it comes from elsewhere, and no layers read and write it: what the network gets, or what it gives.

        What other layers are seen to write is no input, as in `Conv2d(in_planes=1026, 2)` behind a concatenation.
        """
        stacked = self.side == "C" and self.value in STACKED
        if self.side == "C" and self.record.reads_input is False and not stacked:
            return False
        return (bool(self.brought) or self.is_end or stacked) and not self.inner


def is_inside(at: Location, record: SourceLayer) -> bool:
    """Whether a place lies within the call that constructs the layer."""
    span = record.layer.spans.get("layer")
    return span is not None and lies_in(at, record.layer.path, span)


def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))


def _of_image(width: Width) -> bool:
    """Whether it is made of nothing but an image's channels and factors: stacked, unfolded, or shuffled into pixels."""
    values = [literal.value for literal in width.literals]
    return bool(values) and all(isinstance(value, int) and value <= _IMAGE for value in values)


def _says_task(width: Width) -> bool:
    """By names: of what the layer is for, of its argument by the task itself, and of literals; or no layer reads it.

    The names of other parameters say nothing: other numbers may come through them.
    """
    if _of_image(width) or _words(width.record.written.get(width.side, "")) & _TASK:
        return True
    if width.side == "K" and (
        width.outer or not _PREDICTING.isdisjoint(_words(width.record.layer.name.rpartition(".")[2]))
    ):
        return True
    return any(_words(literal.name) & _TASK for literal in width.brought)


def _says_input(width: Width) -> bool:
    return _of_image(width) or bool(_STACKED.fullmatch(width.record.written.get(width.side, ""))) or width.outer


def _weighs(record: SourceLayer) -> bool:
    return not _WEIGHING.isdisjoint(_words(record.layer.name) | _words(record.root.rpartition(":")[2]))


def proviso(record: SourceLayer, literals: Iterable[StatedLiteral]) -> str:
    """With which defaults and under which test the numbers that `literals` make are so: the end of a message."""
    literals = list(literals)
    rests = any(literal.default for literal in literals) if record.by_options else record.certainty == "with defaults"
    text = Text(", with {defaults}", defaults=_defaults(record, literals)) if rests else ""
    return text + (Text(", only if {condition}", condition=record.only_if) if record.condition else "")


def _defaults(record: SourceLayer, literals: Iterable[StatedLiteral]) -> str:
    """Such as "width=60, the default at net.py:17"; without names, or of many, "the defaults of Net()"."""
    defaults = dict.fromkeys(literal for literal in literals if literal.default and literal.name)
    if not 1 <= len(defaults) <= _MOST_DEFAULTS:
        whose = record.root.rpartition(":")[2]
        return Text("the defaults of {whose}()", whose=whose) if whose.isidentifier() else Text("its defaults")
    texts = [
        Text("{name}={value}, the default at {place}", name=literal.name, value=literal.value, place=place(literal.at))
        for literal in defaults
    ]
    return joined(Text(" and "), texts)


def map_of(records: Iterable[SourceLayer]) -> tuple[int, ...]:
    """The height and width of what all of them read; empty where that is not known, or not one.

    A part of a network that was run alone, of arguments that nobody knows, says nothing of that.
    """
    sizes = {
        (record.layer.H, record.layer.W) if record.layer.C is not None else (None, None)
        for record in records
        if record.layer.C is not None or not _alone(record)
    }
    H, W = sizes.pop() if len(sizes) == 1 else (None, None)
    return () if H is None or W is None else (H, W)


def map_in_words(sizes: tuple[int, ...]) -> str:
    """Such as ", at 56x56", to end a message with."""
    return Text(", at {H}x{W}", H=sizes[0], W=sizes[1]) if sizes else ""


def _alone(record: SourceLayer) -> bool:
    """Whether what constructs it was run by itself, and not as a part of something."""
    return _WHOSE.match(record.layer.name)[0] == record.root.rpartition(":")[2]  # type: ignore[index]


CONSTRUCTION: Table = {
    "stated": truth("its values are the source's own, not defaults of parameters", lambda of: of.certainty == "stated"),
    "condition": text("the test that decides whether it is constructed (empty: none)", attrgetter("condition")),
    "proviso": text("with which defaults and under which test it is so, to end a message with", lambda _: PROVISO),
    "map": text("the map that it reads, such as ', at 56x56' (empty: not known), to end a message with", lambda _: MAP),
    "pointwise_map": truth("it works on 1x1 maps, as the code around it shows", lambda of: known(of.pointwise_map)),
    "weighs": truth("by its name it weighs channels, as squeeze-and-excite does, or is a gate", _weighs),
    "framework": text("pytorch, paddle, keras, ...", attrgetter("framework")),
}
WIDTH: Table = {
    "side": text("C or K", attrgetter("side")),
    "value": number("the channel count", lambda width: known(width.value)),
    "layers": text("the layers that get it, each with the letter", lambda _: GETTING),
    "of_task": truth("the task fixes it: by a name, or brought, and read by no layer", _says_task),
    "of_input": truth("it is the input's: of an image, or brought, and written by no layer", _says_input),
    "quiet": truth(
        "all its literals stand in tests or other people's code, or the module chooses it to try itself",
        lambda width: (
            (bool(width.literals) and all(literal.quiet for literal in width.literals))
            or any(literal.trial for literal in width.literals)
        ),
    ),
}
# what rules on source code read beside the quantities of layers
OF_SOURCE: Table = {**dotted("source", CONSTRUCTION), **dotted("width", WIDTH), **dotted("program", PROGRAM)}


class SourceFacts(LayerFacts):
    """The namespace of rules on source code; what belongs to another scope than theirs is unknown."""

    __slots__ = ()
    quantities: ClassVar[Table] = {**QUANTITIES, **OF_SOURCE}


def facts_of_construction(context: TargetFacts, record: SourceLayer) -> SourceFacts:
    """What rules can ask of a convolution where source constructs it."""
    facts = _facts(context, record.layer, source=View(CONSTRUCTION, record))
    facts.update(dict.fromkeys(record.unknown, UNKNOWN))
    return facts


def facts_of_width(context: TargetFacts, width: Width) -> SourceFacts:
    """What rules can ask of one of its channel counts."""
    facts = facts_of_construction(context, width.record)
    facts["width"] = View(WIDTH, width)
    return facts


def facts_of_program(context: TargetFacts, program: TrainingProgram, layer: ConvLayer) -> SourceFacts:
    """What rules can ask of a program; of its layers nothing is known but what `layer`, a stand-in, has."""
    return _facts(context, layer, program=View(PROGRAM, program), runtime=View(RUNTIME_OF_PROGRAM, program))


def _facts(context: TargetFacts, layer: ConvLayer, **views: View) -> SourceFacts:
    facts = SourceFacts(context, layer, None, (), None)
    facts.update({"source": UNKNOWN, "width": UNKNOWN, "program": UNKNOWN, "network": UNKNOWN, **views})
    return facts
