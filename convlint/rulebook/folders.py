"""Folders of rules: where those that ship with convlint lie, and which files in a folder are rules."""

from __future__ import annotations

import os

from convlint.errors import RuleError

MOST_SEEN = 5_000  # files and folders below a folder of rules
MOST_RULES = 200  # in one folder; convlint itself has some fifty
MOST_BYTES = 2**20  # of all of them


def builtin_folder() -> str:
    """Where the rules that ship with convlint lie."""
    import convlint_rules

    return str(next(iter(convlint_rules.__path__)))


def rule_files(folder: str) -> list[str]:
    """All .yaml files under `folder`, sorted; links to folders are not followed. Raises RuleError where it is vast."""
    found = []
    seen = 0
    for root, folders, files in os.walk(folder):
        seen += len(folders) + len(files)
        if seen > MOST_SEEN:  # a config may name any folder, the whole disk included
            raise RuleError(
                f"holds more than {MOST_SEEN:,} files and folders, too many for a folder of rules", path=folder
            )
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        found += [os.path.join(root, name) for name in sorted(files) if name.endswith((".yaml", ".yml"))]
    if len(found) > MOST_RULES:
        raise RuleError(f"holds more than {MOST_RULES} rules", path=folder)
    if sum(os.path.getsize(path) for path in found if os.path.isfile(path)) > MOST_BYTES:
        raise RuleError(f"holds rules of more than {MOST_BYTES >> 20} MiB in all", path=folder)
    return found
