"""A long fuzz run of everything that reads text: specs, rules, configs and suppression comments; outside CI.

    pip install atheris && python tests/fuzz_text.py -max_total_time=3600 [corpus folder]

Only convlint's own exceptions may come out; atheris stops at anything else and keeps the input.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["convlint"]):
    from convlint.config import load_config
    from convlint.errors import ConvlintError
    from convlint.expr import compile_expr
    from convlint.readers.yaml_spec import read_spec
    from convlint.rule_file import read_rule
    from convlint.suppression_comments import find_comments
    from convlint.vocabulary import VOCABULARY

FOLDER = Path(tempfile.mkdtemp(prefix="convlint-fuzz-"))


def one_input(data: bytes) -> None:
    """One text through the reader that its first byte picks."""
    provider = atheris.FuzzedDataProvider(data)
    which = provider.ConsumeIntInRange(0, 4)
    text = provider.ConsumeUnicodeNoSurrogates(sys.maxsize)
    try:
        if which == 0:
            read_spec(text, "fuzz.yaml")
        elif which == 1:
            compile_expr(text, VOCABULARY)
        elif which == 2:
            find_comments(text)
        elif which == 3:
            path = FOLDER / "rule.yaml"
            path.write_text(text, encoding="utf-8")
            read_rule(str(path))
        else:
            path = FOLDER / "convlint.toml"
            path.write_text(text, encoding="utf-8")
            load_config(str(path))
    except ConvlintError:
        return


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
