"""The values behind the vocabulary for what stands in source: a construction, a channel count of it, a program."""

from __future__ import annotations

from typing import ClassVar

from convlint.facts.layer import LayerFacts
from convlint.facts.programs import PROGRAM, RUNTIME_OF_PROGRAM
from convlint.facts.quantity import Table, View
from convlint.facts.source_layers import CONSTRUCTION, WIDTH, Width
from convlint.facts.table import OF_SOURCE, QUANTITIES
from convlint.facts.target import TargetFacts
from convlint.facts.unknown import UNKNOWN
from convlint.model.layer import ConvLayer
from convlint.model.source import Program, SourceLayer


class SourceFacts(LayerFacts):
    """The namespace of rules on source code; what belongs to another scope than theirs is unknown."""

    __slots__ = ()
    quantities: ClassVar[Table] = {**QUANTITIES, **OF_SOURCE}


def of_construction(context: TargetFacts, record: SourceLayer) -> SourceFacts:
    """What rules can ask of a convolution where source constructs it."""
    facts = _facts(context, record.layer, source=View(CONSTRUCTION, record))
    facts.update(dict.fromkeys(record.unknown, UNKNOWN))
    return facts


def of_width(context: TargetFacts, width: Width) -> SourceFacts:
    """What rules can ask of one of its channel counts."""
    facts = of_construction(context, width.record)
    facts["width"] = View(WIDTH, width)
    return facts


def of_program(context: TargetFacts, program: Program, layer: ConvLayer) -> SourceFacts:
    """What rules can ask of a program; of its layers nothing is known but what `layer`, a stand-in, has."""
    return _facts(context, layer, program=View(PROGRAM, program), runtime=View(RUNTIME_OF_PROGRAM, program))


def _facts(context: TargetFacts, layer: ConvLayer, **views: View) -> SourceFacts:
    facts = SourceFacts(context, layer, None, (), None)
    facts.update({"source": UNKNOWN, "width": UNKNOWN, "program": UNKNOWN, "network": UNKNOWN, **views})
    return facts
