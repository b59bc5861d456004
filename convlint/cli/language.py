"""The option that chooses the language of reports."""

from __future__ import annotations

from typing import Annotated

import typer

from convlint.cli.options import listed
from convlint.files.languages import LANGUAGES

Lang = Annotated[
    str | None,
    typer.Option(
        "--lang",
        metavar="LANGUAGE",
        help=f"Of the text and HTML reports: {listed(LANGUAGES)}. Default: CONVLINT_LANG, else the config's, else en.",
        show_default=False,
    ),
]
