"""Combine what all roots say of each convolution, and build the layers of the report, one for each set of values."""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer, with_output
from convlint.model.location import Location, Span, lies_in
from convlint.model.source import STACKED, Certainty, SourceLayer, StatedLiteral
from convlint.readers.python.evaluator.memory import Recorded
from convlint.readers.python.evaluator.paths import KindTest
from convlint.readers.python.evaluator.values import (
    NOTHING_STATED,
    Const,
    Instance,
    Items,
    Preset,
    Value,
    all_true,
    place_of,
    without_presets,
)
from convlint.readers.python.nn.layers import (
    Convolution,
    ConvRun,
    FrameworkLayer,
    Record,
    Recording,
    activated,
    argument,
    named_padding,
    numbers_of,
    per_axis,
    widths_of,
)
from convlint.readers.python.nn.modules import PUBLISHED, ModuleTree, children, is_line, meaning_of
from convlint.readers.python.nn.tensors import UP_TO_CALLERS, TensorPath, integer, unknown_sizes
from convlint.readers.python.source_file import last_name, unparsed

# Opinions of roots on a convolution


SILENT: Final = "silent"  # as nothing was seen: in contrast to None, it contradicts no other opinion
Opinion = bool | None | Literal["silent"]
Neighbours = dict[int, list[Opinion]]  # by the identity of the convolution: what stands behind it in each Sequential
_LEARNED = frozenset(("conv", "opaque", "unknown", *UP_TO_CALLERS))  # readers that have weights, or may have
_SIZES_KEPT = 8  # tensors that a convolution read, for their sizes


def joined(opinions: Iterable[Opinion]) -> Opinion:
    """Combine opinions: False wins over unknown, unknown over True."""
    distinct = {opinion for opinion in opinions if opinion != SILENT}
    return all_true(distinct) if distinct else SILENT


def _read_by_norm(use: ConvRun) -> Opinion:
    """Whether a norm reads the output of a run, and nothing else does; SILENT if that is up to callers."""
    readers = use.writes.readers
    kinds = {reader.kind for reader in readers}
    if not readers or "unknown" in kinds:
        return None
    if kinds & UP_TO_CALLERS:
        return SILENT
    if len(readers) == 1 and readers[0].kind == "norm":
        return True if readers[0].conditions == use.conditions else None
    return False


_RESULT = ["unknown", "returned"]


def _ends(flow: TensorPath, known: dict[int, bool]) -> bool:
    """Whether a tensor leaves the network without passing a layer with weights; `known` caches the answers."""
    waiting = [flow]
    while waiting:
        here = waiting[-1]
        kinds = [reader.kind for reader in here.readers]
        # What a function returns is read by code that nobody knows: of what it computes it is the last.
        learned = not _LEARNED.isdisjoint(kinds[:-2] if kinds[-2:] == _RESULT else kinds)
        missing = [output for reader in here.readers for output in reader.into if id(output) not in known]
        if id(here) not in known and missing and not learned:
            waiting += missing
            continue
        waiting.pop()
        known.setdefault(id(here), bool(here.readers) and not learned and all(
            reader.kind in ("returned", "kept") or any(known.get(id(output), False) for output in reader.into)
            for reader in (here.readers[-1:] if kinds[-2:] == _RESULT else here.readers)
        ))  # fmt: skip
    return known[id(flow)]


def _defaults_of_norms(uses: Iterable[ConvRun]) -> frozenset[StatedLiteral]:
    """Return the defaults of parameters without which the norms behind a convolution might be missing."""
    return NOTHING_STATED.union(*(reader.defaults - use.defaults for use in uses for reader in use.writes.readers))


def _in_lines(owners: Iterable[Instance]) -> Neighbours:
    """Return for convolutions in a Sequential whether a norm follows directly; SILENT for those in two places."""
    neighbours: Neighbours = {}
    holders = Counter(id(part) for owner in owners for part in owner.attributes.values())
    for owner in filter(is_line, owners):
        values = list(children(owner).values())
        for value, after in itertools.zip_longest(values, values[1:]):
            layer, behind = meaning_of(value), meaning_of(after)
            if isinstance(layer, Convolution):
                opinion: Opinion = SILENT
                if isinstance(behind, FrameworkLayer) and owner.complete and holders.get(id(value)) == 1:
                    within = activated(layer)  # then the norm comes behind that
                    opinion = behind.kind == "norm" if within is False else False if within else None
                neighbours.setdefault(id(layer), []).append(opinion)
    return neighbours


def _handed_out_with_norms(result: Iterable[Value]) -> set[int]:
    """Return the convolutions of a list in the result that have a norm behind them there: callers run them, or not."""
    pairs = (pair for value in result if isinstance(value, Items) for pair in itertools.pairwise(value.items))
    parts = ((meaning_of(first), meaning_of(after)) for first, after in pairs)
    return {
        id(layer)
        for layer, behind in parts
        if isinstance(layer, Convolution) and isinstance(behind, FrameworkLayer) and behind.kind == "norm"
    }


def _as_recorded(recorded: Iterable[Recorded], reached: set[int]) -> Neighbours:
    """Return whether a norm follows convolutions that are not `reached` from a result, by the records of Sequentials.

    Convolutions held in several places are left out; if a Sequential was made under other tests, it is unknown.
    """
    neighbours: Neighbours = {}
    alternatives: dict[int, set[tuple[str, ...]]] = {}
    holders: dict[int, set[int]] = {}
    for record in recorded:
        thing: Record = record.thing
        layer = id(thing.layer)
        if thing.what == "constructed":
            alternatives.setdefault(layer, set()).add(record.conditions)
        elif thing.what == "held":
            holders.setdefault(layer, set()).add(id(thing))
        elif thing.what == "lined" and layer not in reached and activated(thing.layer) is False:
            known = record.conditions in alternatives.get(layer, ())
            neighbours.setdefault(layer, []).append(thing.norm if known else None)
    return {layer: opinions for layer, opinions in neighbours.items() if len(holders.get(layer, ())) == 1}


_MOST_ALTERNATIVES = 64  # lists of tests under which one convolution is constructed, that are compared
_MOST_TESTS = 4096  # that are remembered as parsed
_LONGEST_SAID = 80  # characters of all tests that a report names


@lru_cache(_MOST_TESTS)
def _comparison(test: str) -> tuple[str, Any, bool] | None:
    """Return what a test, `name == 'b0'`, compares with which constant, and whether both are equal; None for others."""
    negated = test.startswith("not (")
    try:
        node = ast.parse(test[5:-1] if negated else test, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # one that was cut
        return None
    match node:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=value)]):
            return unparsed(left), value, not negated
    return None


@lru_cache(_MOST_TESTS)
def in_words(tests: tuple[str, ...]) -> str:
    """Return the tests that say when a place is reached, without those that follow from others of them.

    If the rest is longer than a line, tests are left out, first the negated ones, then the outer ones.
    """
    compared = {test: _comparison(test) for test in tests if not isinstance(test, KindTest)}
    equal = grouped((known[0], known[1]) for known in compared.values() if known is not None and known[2])

    def follows(name: str, value: Any, holds: bool) -> bool:
        return not holds and any(value != other for other in equal.get(name, ()))

    texts = [test for test, known in compared.items() if known is None or not follows(*known)]
    length = len(" and ".join(texts))
    left_out = set()
    for text in sorted(texts[:-1], key=lambda text: not text.startswith("not (")):
        if length > _LONGEST_SAID:
            left_out.add(text)
            length -= len(text) + len(" and ")
    texts = [text for text in texts if text not in left_out]
    return " and ".join(f"({text})" if len(texts) > 1 and _BINDS_LESS.search(text) else text for text in texts)


_BINDS_LESS = re.compile(r"^(?!not \().*(?: or | if )")  # than `and`


def _covered(alternatives: Iterable[tuple[str, ...]]) -> bool:
    """Whether lists of tests are those of all branches of chains of `if`: one of them holds in any case.

    A chain without `else` has all of them where each of its tests leads to one.
    """
    known = set(alternatives)
    waiting = list(known)
    while waiting and () not in known:
        *outer, last = waiting.pop()
        around = tuple(outer)
        other = last[5:-1] if last.startswith("not (") else f"not ({last})"
        ends = bool(outer) and getattr(outer[-1], "last", "") == last
        if around not in known and (ends or (*around, other) in known):
            known.add(around)
            waiting.append(around)
    return () in known


class Root(NamedTuple):
    """A root that was evaluated, to its end if `whole`; `lines` are those of its code."""

    path: str
    name: str
    certainty: Certainty
    whole: bool
    lines: range = range(0)

    def holds(self, test: str) -> bool:
        """Whether it is a test in its own code, which is up to its callers."""
        place = getattr(test, "place", None)
        return place is not None and place[0] == self.path and place[1] in self.lines


class Construction(Struct, eq=False):
    """A convolution that a root constructs: the condition, and the tests of each way that leads to it."""

    layer: Convolution
    condition: str
    ways: set[tuple[str, ...]] = set()
    one_of_kinds: bool = False  # which nothing runs, as nobody knows which of them it is


def _constructions(recorded: Iterable[Recorded]) -> list[Construction]:
    built: dict[int, Construction] = {}
    for record in recorded:
        condition = in_words(record.conditions)
        here = built.setdefault(id(record.thing.layer), Construction(record.thing.layer, condition))
        here.condition = _either((here.condition, condition))
        here.one_of_kinds = here.one_of_kinds or any(isinstance(test, KindTest) for test in record.conditions)
        if len(here.ways) < _MOST_ALTERNATIVES:
            here.ways.add(tuple(dict.fromkeys(record.conditions)))
    return list(built.values())


class Seen(Struct, eq=False):
    """What is known of a convolution from one file. `context` counts the convolutions that ran in the largest root."""

    layer: Convolution
    certainty: Certainty
    condition: str
    root: str
    from_image: bool  # whether the user gave the size of the network's input
    alternatives: set[tuple[str, ...]] = set()  # the tests of each way that leads to it in that root
    context: int = -1
    head: bool | None = None  # whether its output leaves the network without passing another layer
    reads_input: bool | None = None  # whether each of its runs reads the network's input
    reads_unknown: bool = False  # whether that may be so, as each reads it or what nobody knows
    points: list[bool | None] = []  # whether its input maps are 1x1, in each root
    calls: int | None = None  # runs in one forward pass
    replaced: bool = True  # until a root keeps it in its network
    resized: bool = False
    opinions: list[Opinion] = []
    norm_by: list[frozenset[StatedLiteral]] = []  # for each opinion that a norm follows, what it rests on
    reads: list[TensorPath] = []
    loaded_at: Location | None = None
    counts: bool = False  # whether some root constructs it in any case, or under tests that callers may pass
    declined: bool = False  # whether the defaults of a root decide against it in code that the root calls

    def take_condition(self, here: Construction, root: Root) -> None:
        """Take that under which a root constructs it, if no other root knows more."""
        certainty, condition = root.certainty, here.condition
        if (certainty != "stated", bool(condition)) < (self.certainty != "stated", bool(self.condition)):
            self.certainty, self.condition, self.root = certainty, condition, root.name
        elif certainty == self.certainty:
            self.condition = _either((condition, self.condition))
        if (self.certainty, self.root) == (certainty, root.name):
            self.alternatives = here.ways

    def ran(self, uses: list[ConvRun], *, whole: bool, ends: dict[int, bool], context: int, resized: bool) -> None:
        """Add its runs in one root, which was evaluated to its end if `whole`."""
        self.points.append(all_true([use.reads.space.points for use in uses]))
        self.resized = self.resized or resized
        if len(self.reads) < _SIZES_KEPT:
            self.reads += [use.reads for use in uses[:_SIZES_KEPT]]
        if context > self.context:  # the larger network knows better which of its layers is the first or last
            self.context = context
            last = all(_ends(use.writes, ends) for use in uses)
            self.head = last if last or whole else None
            self.reads_input = all(use.reads.raw for use in uses)
            self.reads_unknown = all(use.reads.raw or use.reads.shape is None for use in uses)
            runs = [use.run for use in uses]
            self.calls = max(map(runs.count, set(runs)))


class Gathering:
    """All convolutions seen, by their identity and the file of the root.

    The identity alone is not enough: an equal call answered from memory shares it among the roots of several files.
    """

    def __init__(self, *, from_image: bool) -> None:
        self.from_image = from_image
        self.seen: dict[tuple[int, str], Seen] = {}
        self._open: set[tuple[ast.Call, str]] = set()  # constructions whose reader is a parameter of that root
        self._up_to_defaults: list[Seen] = []  # of the root that runs, until its defaults have decided
        self._by_defaults: set[ast.Call] | None = None  # constructions of that root with its defaults, if all is known

    def add(self, recorded: Iterable[Recorded], recording: Recording, result: Iterable[Value], root: Root) -> bool:
        """Add the records of a root, the runs of its forward passes, and its result.

        Return whether it is known of each layer what holds or reads it: not of one in a list of unknown items.
        """
        records = defaultdict(list, grouped((record.thing.what, record) for record in recorded))
        built = _constructions(records["constructed"])
        superseded = {id(record.thing.before) for record in records["constructed"]}
        escaped = {id(record.thing.layer) for record in records["escaped"]}
        loads = {id(record.thing.layer): record.thing.at for record in records["loaded"] if _has_published(record)}
        lined = {id(record.thing.layer): record.thing.defaults for record in reversed(records["lined"])}
        tree = ModuleTree(result)
        listed = _handed_out_with_norms(result)
        near = {**_as_recorded(recorded, tree.layers), **_in_lines(tree.owners)}
        judges = bool(tree.owners) and tree.whole and root.whole
        ends: dict[int, bool] = {}
        followed = True
        for here in built:
            layer, key = here.layer, id(here.layer)
            uses, held = recording.uses.get(layer, []), key in tree.layers
            followed = followed and bool(uses or held or key in near or key in escaped)
            # Setting an attribute made another layer of it: only that one runs.
            if key in superseded and not uses and not held:
                continue
            first = Seen(layer, root.certainty, here.condition, root.name, self.from_image)
            seen = self.seen.setdefault((key, root.path), first)
            seen.take_condition(here, root)
            self._count(seen, here, root)
            seen.loaded_at = seen.loaded_at or loads.get(key)
            kept = uses or held or not judges or here.condition or key in escaped
            seen.replaced = seen.replaced and not kept
            opinions = [*map(_read_by_norm, uses)] if uses else near.get(key, [])
            opinion = SILENT if key in listed else self._opinion(here, uses, opinions, root, key in escaped)
            if opinion != SILENT:
                seen.opinions.append(opinion)
            if opinion is True:
                defaults = _defaults_of_norms(uses) if uses else lined.get(key, NOTHING_STATED)
                seen.norm_by.append(defaults - layer.defaults)
            if uses:
                context = len(recording.uses) if root.whole else 0
                seen.ran(uses, whole=root.whole, ends=ends, context=context, resized=layer in recording.resized)
        if root.certainty != "stated" and root.whole:
            self._by_defaults = {here.layer.place.node for here in built}
        return followed

    def _count(self, seen: Seen, here: Construction, root: Root) -> None:
        """Note whether a root constructs a convolution in any case, or under tests that its callers may pass."""
        if not here.condition:
            seen.counts = True
        elif not all(root.holds(test) for way in here.ways for test in way):
            if root.certainty != "stated":
                seen.counts = True
            else:
                self._up_to_defaults.append(seen)

    def _opinion(
        self, here: Construction, uses: list[ConvRun], opinions: list[Opinion], root: Root, escaped: bool
    ) -> Opinion:
        """Whether a norm follows a convolution of a root, where its runs or what is near it say `opinions`."""
        place, stated = here.layer.place, root.certainty == "stated"
        if stated and any(reader.kind == "parameter" for use in uses for reader in use.writes.readers):
            self._open.add((place.node, root.name))
        if here.one_of_kinds:
            return SILENT
        if escaped:
            # A root that is called with nothing known (`for width in widths:`) loses what its callers follow.
            own = place.file.path == root.path and place.node.lineno in root.lines
            return SILENT if (here.condition or own) and not uses else None
        opinion = joined(opinions)
        if opinion is True and uses and (SILENT in opinions or not root.whole):
            return SILENT
        if opinion is True and not stated and (place.node, root.name) in self._open:
            return SILENT  # only callers show whether the default is ever used
        return opinion

    def settle(self) -> None:
        """Decide, once a root has run, on what only its defaults keep it from constructing."""
        for seen in self._up_to_defaults:
            seen.declined = self._by_defaults is not None and seen.layer.place.node not in self._by_defaults
            seen.counts = seen.counts or not seen.declined
        self._up_to_defaults, self._by_defaults = [], None


# The layers of a report

# Names of widths that the task decides, such as the number of classes
_HEAD = re.compile(
    r"(?:^|_)(?:class(?:es)?|nclass(?:es)?|nclasses|anchors?|nc|outputs?|keypoints?|joints?|labels?|landmarks?|boxes|"
    r"coords?|categories|num_cls|ncls|attrs?|attributes|bins|vocab(?:ulary)?)(?:$|_|\d)|num_?class|n_?class",
    re.IGNORECASE,
)
# Names of widths of any block, among them the last one
_LAST = re.compile(r"(?:^|_)(?:out_?(?:channels?|chans?|ch|dim|nc|planes)|output_nc|c_?out)(?:$|_)", re.IGNORECASE)
_INPUT = re.compile(
    r"(?:^|_)(?:in_?(?:channels?|chans?|ch|nc|dim)|input_(?:nc|channels?|dim|depth)|num_input_channels|n_channels|"
    r"img_?(?:channels?|ch)|image_channels?|num_in_ch|nb_channels?|channels_img)(?:$|_)",
    re.IGNORECASE,
)


_MOST_TEXT = 200  # characters of an argument
_AXES = "DHW"
_LETTERS = {  # of each argument that has a value for each axis; those of one- and two-dimensional layers are the last
    "kernel_size": ("T", "R", "S"), "stride": ("StrideD", "U", "V"), "padding": ("PadD", "PadH", "PadW"),
    "dilation": ("DilD", "DilH", "DilW"), "output_padding": ("OutPadD", "OutPadH", "OutPadW"),
}  # fmt: skip
_MAY_BE_NONE = frozenset(("kernel_size", "padding"))  # in a record; of the others, `unknown` says so
_PER_LAYER = {"in_channels": "C", "out_channels": "K", "groups": "groups", **dict.fromkeys(
    ("bias", "bias_attr", "use_bias", "with_bias"), "bias")}  # fmt: skip
_SPANS = {**{name: (letter,) for name, letter in _PER_LAYER.items()}, **_LETTERS}


class ReadFields:
    """The known fields of a layer, the literals behind each, and the names of the unknown ones."""

    def __init__(self, layer: Convolution, reads: list[TensorPath], *, resized: bool = False) -> None:
        self._layer, self._dims = layer, layer.signature.dims
        self.fields: dict[str, Any] = {}
        self.stated: dict[str, tuple[StatedLiteral, ...]] = {}
        self.unknown: list[str] = []
        self.presets = False  # whether defaults of the command line are among them
        self._channels(reads)
        for name, letters in _LETTERS.items():
            own_forward = resized and name == "padding"  # which pads as it likes
            values = unknown_sizes(self._dims) if own_forward else per_axis(argument(layer, name), self._dims)
            if name == "padding" and named_padding(layer) and not own_forward:
                self._named_padding(named_padding(layer))
                continue
            for letter, value in zip(letters[3 - self._dims :], values, strict=True):
                if value.__class__ is Preset:  # the default of the command line
                    self.presets, value = True, value.number
                number = integer(value)
                if number is not None and number >= 0:
                    self._put(letter, value)
                elif name in _MAY_BE_NONE:
                    self.fields[letter] = None
                else:
                    self.unknown.append(letter)
                if name == "padding":
                    self.fields[f"{letter}_end"] = self.fields[letter]
        if self._dims == 1:
            self.fields.update(H=1, R=1)
        value = argument(layer, layer.signature.bias)
        if isinstance(value, Const):
            self._put("bias", value)
            self.fields["bias"] = value.value is not False if layer.signature.bias == "bias_attr" else bool(value.value)
        else:
            self.fields["bias"] = None

    def _channels(self, reads: list[TensorPath]) -> None:
        C, K, groups = widths = widths_of(self._layer, reads[0] if reads else None)
        if Preset in (C.__class__, K.__class__, groups.__class__):
            self.presets = True
            C, K, groups = without_presets(widths)
        if (integer(groups) or 0) < 1:  # whether a width fits depends on the groups: without them it says nothing
            self.unknown.append("groups")
            return
        self._put("groups", groups)
        for letter, value in (("C", C), ("K", K)):
            if (integer(value) or 0) > 0:
                self._put(letter, value)

    def _put(self, letter: str, value: Value) -> None:
        if isinstance(value, Const):
            self.fields[letter] = value.value
            if value.stated:
                self.stated[letter] = tuple(sorted(value.stated, key=place_of))

    def _named_padding(self, mode: str) -> None:
        """Set the padding for `same`, whose odd element is at the end, and `valid`, which is none.

        With strides, `same` depends on the input size, and for a transposed convolution it crops: both stay unknown.
        """
        steps = numbers_of(self._layer, "stride")
        plain = mode == "same" and self._layer.signature.op == "conv" and all(step == 1 for step in steps)
        sizes = zip(numbers_of(self._layer, "kernel_size"), numbers_of(self._layer, "dilation"), strict=True)
        for letter, (taps, dilation) in zip(_LETTERS["padding"][3 - self._dims :], sizes, strict=True):
            extent = dilation * (taps - 1) if plain and taps and dilation else 0 if mode == "valid" else None
            self.fields[letter] = None if extent is None else extent // 2
            self.fields[f"{letter}_end"] = None if extent is None else extent - extent // 2

    def take_sizes(self, reads: list[TensorPath]) -> None:
        """Set the batch and the spatial extents, if all runs agree on them."""
        known = [read.shape for read in reads if read.shape is not None and len(read.shape) == self._dims + 2]
        shapes = {tuple(map(integer, shape)) for shape in known}
        if len(shapes) == 1:
            shape = shapes.pop()
            self.fields["N"] = shape[0]
            if shape[1] is None or self.fields.get("C") in (None, shape[1]):
                self.fields.update(zip(_AXES[3 - self._dims :], shape[2:], strict=True))


class WrittenArguments:
    """The call of a construction: the positions of its arguments, and the source text of those for C and K."""

    def __init__(self, layer: Convolution) -> None:
        (file, node), signature = layer.place, layer.signature
        # A subclass in the source may order its positional arguments anew, as slim's `repeat` does.
        anew = layer.made_by or not signature.positional or last_name(node.func) == "repeat"
        places = () if anew else node.args
        plain = itertools.takewhile(lambda place: not isinstance(place, ast.Starred), places)
        values = dict(zip(signature.parameters, plain, strict=False))
        values |= {signature.parameter(option.arg): option.value for option in node.keywords if option.arg is not None}
        self.spans: dict[str, Span] = {"layer": file.span(node)}
        self.spans |= {letter: file.span(value) for name, value in values.items() for letter in _SPANS.get(name, ())}
        self.texts = {
            letter: unparsed(values[name])[:_MOST_TEXT]
            for name, letter in (("in_channels", "C"), ("out_channels", "K")) if name in values
        }  # fmt: skip


Start = tuple[str, int, int]  # path, line and column of a construction


def start(at: Location) -> Start:
    """Return where a construction begins, by which places are told apart."""
    return at.path, at.line or 0, at.column or 0


# Why a size is unknown, from what tells a user least on
_REASONS = ("caller", "call", "parameter", "branch", "limit", "config", "weight")


def tells(why: str) -> int:
    """Return how much a reason tells, so that the choice among several does not depend on their order."""
    return _REASONS.index(why) if why in _REASONS else 0


def known_places(layers: Iterable[SourceLayer]) -> set[Start]:
    """Return the places that construct a layer with known C and K."""
    return {start(layer.layer.locate()) for layer in layers if layer.layer.C is not None and layer.layer.K is not None}


_COMPARED = (
    "op", "N", "C", "D", "H", "W", "K", "T", "R", "S", "StrideD", "U", "V", "PadD", "PadH", "PadW", "PadD_end",
    "PadH_end", "PadW_end", "DilD", "DilH", "DilW", "groups", "OutPadD", "OutPadH", "OutPadW", "bias",
)  # fmt: skip
_compared = attrgetter(*_COMPARED)


def merged(seen: Iterable[Seen], name: str) -> list[SourceLayer]:
    """Return the distinct layers that one place constructs; `name` is that of the place."""
    parts = grouped([(entry.layer.signature.part, entry) for entry in seen])
    return [layer for part in sorted(parts) for layer in _merged_part(parts[part], f"{name}/{part}" if part else name)]


def _merged_part(seen: list[Seen], name: str) -> list[SourceLayer]:
    opinion = joined(opinion for entry in seen for opinion in entry.opinions)
    # A script that calls a network, or methods of it, on data of its own does not show what it gives to them.
    if any(entry.reads_input for entry in seen):
        for entry in seen:
            entry.reads_input = entry.reads_unknown or entry.reads_input
    calls = [(id(entry.layer.signature), entry.layer.made_by) for entry in seen]
    written = {call: WrittenArguments(entry.layer) for call, entry in dict(zip(calls, seen, strict=True)).items()}
    norm_by = _resting_on(defaults for entry in seen for defaults in entry.norm_by) if opinion is True else ()
    layers = [_layer(entry, name, opinion, written[call]) for entry, call in zip(seen, calls, strict=True)]
    loaded_at = _first_of(entry.loaded_at for entry in seen)
    layers = [replace(layer, norm_by=norm_by, loaded_at=loaded_at) for layer in layers]
    # Whether a norm cancels a bias is then nothing that can be said of the place.
    if _may_lack_bias(seen) or _is_declined(seen):
        layers = [replace(layer, layer=replace(layer.layer, norm_follows=None), silent=False) for layer in layers]
    return _merged(_without_chains(seen, layers))


def _resting_on(norms: Iterable[Collection[StatedLiteral]]) -> tuple[StatedLiteral, ...]:
    """Return the defaults on which norms rest; none where one of them rests on nothing."""
    groups = list(norms)
    return tuple(sorted({literal for group in groups for literal in group}, key=place_of)) if all(groups) else ()


def _first_of(places: Iterable[Location | None]) -> Location | None:
    return min((place for place in places if place is not None), key=start, default=None)


def _may_lack_bias(seen: Collection[Seen]) -> bool:
    """Whether some caller gives a bias that is unknown, as in `**config`.

    A root whose bias is known with its own defaults does not count, as no caller decides it.
    """
    known = {entry.root for entry in seen if isinstance(argument(entry.layer, entry.layer.signature.bias), Const)}
    return any(entry.root not in known for entry in seen)


def _is_declined(seen: Collection[Seen]) -> bool:
    """Whether nobody constructs it, as the defaults of roots decide against it in code that they call."""
    return any(entry.declined for entry in seen) and not any(entry.counts for entry in seen)


def _without_chains(seen: list[Seen], layers: list[SourceLayer]) -> list[SourceLayer]:
    """Return the layers, without the conditions of those of which every branch constructs an equal one."""
    ways: dict[Any, set[tuple[str, ...]]] = {}
    keys = [(_key(layer), layer.certainty, layer.root) if layer.condition else None for layer in layers]
    for key, entry in zip(keys, seen, strict=True):
        if key is not None and len(alternatives := ways.setdefault(key, set())) < _MOST_ALTERNATIVES:
            alternatives |= entry.alternatives
    unconditional = {key for key, alternatives in ways.items() if _covered(alternatives)}
    return [
        replace(layer, condition="") if key in unconditional else layer for key, layer in zip(keys, layers, strict=True)
    ]


def _key(layer: SourceLayer) -> tuple[Any, ...]:
    """What makes two layers of one place equal."""
    return _compared(layer.layer), layer.unknown, layer.made_by, tuple(layer.stated.items())


def merged_again(layers: Iterable[SourceLayer]) -> list[SourceLayer]:
    """Merge the layers of several processes, each of which has read a part of the roots."""
    places = grouped([((start(layer.layer.locate()), layer.part), layer) for layer in layers])
    result: list[SourceLayer] = []
    for _, group in sorted(places.items()):
        opinion = joined(SILENT if layer.silent else layer.layer.norm_follows for layer in group)
        follows, silent = (None, True) if opinion == SILENT else (opinion, False)
        norm_by = _resting_on(layer.norm_by for layer in group if layer.layer.norm_follows and not layer.silent)
        loaded_at = _first_of(layer.loaded_at for layer in group)
        result += _merged([
            replace(layer, layer=replace(layer.layer, norm_follows=follows), silent=silent, norm_by=norm_by,
                    loaded_at=loaded_at)
            for layer in group
        ])  # fmt: skip
    return result


def _merged(layers: Iterable[SourceLayer]) -> list[SourceLayer]:
    """Return the layers of one place, each set of values once."""
    same = grouped([(_key(layer), layer) for layer in layers])
    result = _without_less([group[0] if len(group) == 1 else _joined(group) for group in same.values()])
    return sorted(result, key=_order) if len(result) > 1 else result


def _order(layer: SourceLayer) -> tuple[Any, ...]:
    """Sort key: stated layers first, then by values, unknown ones last; independent of roots and processes."""
    values = [(value is None, value or 0) for value in _compared(layer.layer)]
    return layer.certainty != "stated", values, layer.condition, layer.made_by


def _layer(seen: Seen, name: str, opinion: Opinion, written: WrittenArguments) -> SourceLayer:
    read = ReadFields(seen.layer, seen.reads, resized=seen.resized)
    if seen.from_image or seen.certainty == "stated":  # else defaults of parameters decide, which callers change
        read.take_sizes(seen.reads)
    C = read.fields.get("C")
    path, own = seen.layer.place.file.path, written.spans["layer"]  # whose parameters have one name in every layer
    names_C, names_K = (
        [literal.name for literal in read.stated.get(field, ()) if not lies_in(literal.at, path, own)] for field in "CK"
    )
    first = seen.reads_input is not False and (
        (C is not None and C <= 4) or (seen.reads_input and (C in STACKED or any(map(_INPUT.search, names_C))))
    )
    last = seen.head and opinion is not True  # what is normalised is read on
    # Where the forward pass was not followed, which shows what is last, a name may say so
    by_name = any(map(_HEAD.search, names_K)) or (seen.head is None and any(map(_LAST.search, names_K)))
    signature = seen.layer.signature
    layer = ConvLayer(
        name=name, path=path, op=signature.op, dims=signature.dims, spans=written.spans,
        norm_follows=None if opinion == SILENT else opinion, first=bool(first), head=bool(last or by_name),
        **{**({"D": None} if signature.dims == 3 else {}), **read.fields},
    )  # fmt: skip
    # An output size needs every number that goes into it, and those that have a default in the record are numbers.
    loose = any(name != "groups" for name in read.unknown)
    if not loose and not read.fields.keys().isdisjoint(_AXES):
        layer = with_output(layer)
    wide = any((read.fields.get(letter) or 1) > 1 for letter in "TRS")
    return SourceLayer(
        layer=layer, framework=signature.framework, stated=read.stated,
        certainty="with defaults" if read.presets else seen.certainty,
        by_options=read.presets and seen.certainty == "stated",
        written=written.texts, condition=seen.condition, root=seen.root,
        pointwise_map=False if wide else all_true(seen.points or [None]), replaced=seen.replaced, calls=seen.calls,
        made_by=seen.layer.made_by, unknown=tuple(sorted(read.unknown)), context=seen.context,
        silent=opinion == SILENT, reads_input=seen.reads_input or (None if seen.reads_unknown else seen.reads_input),
        gives_output=bool(last),
    )  # fmt: skip


def _has_published(record: Recorded) -> bool:
    """Whether a layer gets weights that others made, as the call that loads them or one that leads there has it."""
    return record.thing.what == "loaded" and (
        record.thing.published or any(PUBLISHED.search(unparsed(site.node)) for site in record.stack)
    )


def _either(conditions: Iterable[str]) -> str:
    """Return the condition that one of several holds, a line for each; empty if one of them is empty."""
    distinct = set(conditions)
    if len(distinct) < 2 or "" in distinct:
        return distinct.pop() if len(distinct) == 1 else ""
    lines = {
        line: frozenset([line] if _BINDS_LESS.search(line) else line.split(" and "))
        for condition in distinct for line in condition.splitlines()
    }  # fmt: skip
    # A line whose tests include all tests of another line adds nothing.
    least = [line for line, tests in lines.items() if not any(other < tests for other in lines.values())]
    return "\n".join(sorted(least))


def _joined(group: list[SourceLayer]) -> SourceLayer:
    """Join equal layers of several roots: the certainty of the best, the position in the largest network."""
    best = min(group, key=lambda layer: (layer.certainty != "stated", bool(layer.condition)))
    # One of equal size that hands the output on runs nothing behind it either.
    placed = max(group, key=lambda layer: (layer.context, layer.layer.head))
    return replace(
        best,
        condition=_either(layer.condition for layer in group if layer.certainty == best.certainty),
        layer=replace(best.layer, first=placed.layer.first, head=placed.layer.head),
        reads_input=placed.reads_input,
        gives_output=placed.gives_output,
        calls=placed.calls,
        replaced=all(layer.replaced for layer in group),
        context=placed.context,
        pointwise_map=all_true([layer.pointwise_map for layer in group]),
    )


def _without_less(layers: list[SourceLayer]) -> list[SourceLayer]:
    """Drop layers whose known values another layer, as certain, has too, together with more."""
    kinds = grouped([(_gaps(layer), layer) for layer in layers])
    if len(kinds) == 1:
        return layers
    less: set[int] = set()
    for missing, group in kinds.items():
        known = [field for field in _COMPARED if field not in missing]
        more = grouped(  # those that know more, by what they say of the rest
            (tuple([getattr(layer.layer, field) for field in known]), layer)
            for gaps, others in kinds.items() if gaps < missing for layer in others
        )  # fmt: skip
        for member in group if more else ():
            beside = more.get(tuple([getattr(member.layer, field) for field in known]), ())
            knows = member.layer.C is not None or member.layer.K is not None  # a width, which some rules need
            beside = [layer for layer in beside if not knows or layer.condition in ("", member.condition)]
            certain = any(layer.certainty == "stated" for layer in beside)
            if certain or (beside and not (member.certainty == "stated" and knows)):
                less.add(id(member))
    return [layer for layer in layers if id(layer) not in less]


def _gaps(layer: SourceLayer) -> frozenset[str]:
    """Return the names of the fields that it does not know."""
    values = zip(_COMPARED, _compared(layer.layer), strict=True)
    return frozenset((*layer.unknown, *(field for field, value in values if value is None)))
