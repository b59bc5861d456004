"""SQL blocks of a page, each followed by a table: asked of an audit's Parquet files, compared, refreshed."""

import re
from collections.abc import Sequence
from pathlib import Path

_BLOCK = re.compile(r"^```sql\n(?P<query>.*?)^```\n(?:\n(?P<shown>(?:\|[^\n]*\n)+))?", re.MULTILINE | re.DOTALL)


def questions(text: str) -> list[tuple[str, str]]:
    """Each query of a page with the table that is shown below it; "" where there is none."""
    return [(match["query"], match["shown"] or "") for match in _BLOCK.finditer(text)]


def answered(query: str, folder: Path) -> str:
    """What DuckDB answers in the folder, as a table of Markdown."""
    import duckdb

    quoted = re.sub(r"'([\w-]+\.parquet)'", lambda match: f"'{folder / match[1]}'", query)
    with duckdb.connect() as base:
        found = base.execute(quoted)
        names = [column[0] for column in found.description]
        rows = found.fetchall()
    numbers = [any(isinstance(row[column], int | float) for row in rows) for column in range(len(names))]
    rule = ["--:" if number else "---" for number in numbers]
    return "".join(_line(line) for line in (names, rule, *([_cell(cell) for cell in row] for row in rows)))


def refreshed(text: str, folder: Path) -> str:
    """The page with what its queries answer now."""
    return _BLOCK.sub(lambda match: f"```sql\n{match['query']}```\n\n{answered(match['query'], folder)}", text)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cell(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() else f"{value:,}"
    return f"{value:,}" if isinstance(value, int) else str(value)
