"""All quantities under the names that rules use: vocabulary, documentation and skip reasons derive from here."""

from __future__ import annotations

from convlint.facts.arriving import ARRIVING
from convlint.facts.fields import DTYPE, FIELDS
from convlint.facts.lacking import LACKING
from convlint.facts.predicted import PASS_TABLES, PREDICTED, lacking_prediction
from convlint.facts.programs import PROGRAM
from convlint.facts.quantity import Quantity, Table
from convlint.facts.shapes import SHAPES
from convlint.facts.sizes import PRINTED
from convlint.facts.source_layers import CONSTRUCTION, WIDTH
from convlint.facts.taps import TAPS
from convlint.facts.target import TARGET, VIEWS
from convlint.facts.tile_sides import TILE_SIDES

# read as they stand, of one layer
OF_LAYERS: Table = {**FIELDS, **SHAPES, **TAPS, **PRINTED, **TARGET, **LACKING, **PREDICTED, **TILE_SIDES}


def _dotted(first: str, table: Table) -> dict[str, Quantity]:
    return {f"{first}.{name}": quantity for name, quantity in table.items()}


def _of_pass(which: str, table: Table) -> dict[str, Quantity]:
    """With the pass in every meaning, but for that of the worst one's name."""
    return {
        f"{which}.{name}": row._replace(
            meaning=row.meaning if name == "pass_name" else f"{which}: {row.meaning}",
            needs=lacking_prediction,
            gpu=True,
        )
        for name, row in table.items()
    }


QUANTITIES: Table = {
    **OF_LAYERS,
    **_dotted("dtype", DTYPE),
    **_dotted("arriving", ARRIVING),
    **{name: row for first, table in VIEWS.items() for name, row in _dotted(first, table).items()},
    **{name: row for which, table in PASS_TABLES.items() for name, row in _of_pass(which, table).items()},
}
# what rules on source code read beside them
OF_SOURCE: Table = {**_dotted("source", CONSTRUCTION), **_dotted("width", WIDTH), **_dotted("program", PROGRAM)}
