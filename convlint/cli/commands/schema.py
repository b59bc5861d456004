"""`convlint schema`: the JSON Schema of specs or of the config, for editors."""

from __future__ import annotations

import json
import sys

from convlint.cli.commands.json_schema import config_schema, spec_schema
from convlint.cli.streams.output import write
from convlint.errors import UsageError, suggestion
from convlint.rulebook.book import load_rulebook


def run(what: str) -> int:
    """Prints the schema. Raises UsageError for another word than spec and config."""
    known = ("spec", "config")
    if what not in known:
        raise UsageError(f"unknown schema {what[:60]!r}{suggestion(what, known)}; known are {', '.join(known)}")
    schema = spec_schema() if what == "spec" else config_schema(load_rulebook())
    write(sys.stdout, json.dumps(schema, indent=1))
    return 0
