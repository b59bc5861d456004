"""Every sentence that the code, templates and scripts say in the language of a report, as they stand there."""

import ast
import re
from collections.abc import Iterator

from checkout import ROOT

from convlint.files.languages.catalogue import entries_of
from convlint.reporters.page.layers import script_sentences
from convlint.rulebook.book import load_rulebook

CODE = ROOT / "convlint"
_COUNTED = ("plural", "_count")
# Where nouns are counted for formats and streams that are English.
ENGLISH_PLACES = (
    "audit/", "cli/commands/", "mend/", "run/", "reporters/audits.py", "reporters/github.py",
    "reporters/gitlab.py", "reporters/json_v3.py", "reporters/junit.py", "reporters/markdown.py",
    "reporters/measurements.py", "reporters/plans.py", "reporters/rdjson.py", "reporters/sarif.py",
)  # fmt: skip
_IN_TEMPLATE = re.compile(r"""\bt\((?:"([^"]*)"|'([^']*)')""")


def sentences() -> dict[str, str]:
    """English -> the file that says it first."""
    found: dict[str, str] = {}
    for path in sorted(CODE.rglob("*.py")):
        name = path.relative_to(CODE).as_posix()
        for text in _in_code(ast.parse(path.read_text(encoding="utf-8")), name):
            found.setdefault(text, name)
    for path in sorted(CODE.rglob("*.j2")):
        for match in _IN_TEMPLATE.finditer(path.read_text(encoding="utf-8")):
            found.setdefault(match[1] or match[2], path.name)
    for text in script_sentences():
        found.setdefault(text, "scripts")
    return found


def _in_code(tree: ast.AST, name: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id in ("say", "sentence", "Text") and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)
            elif node.func.id in _COUNTED and not name.startswith(ENGLISH_PLACES):
                yield from (f"{{count}} {noun.value}" for noun in node.args[1:] if isinstance(noun, ast.Constant))


def untranslated_rules(language: str) -> list[str]:
    """The codes of rules of which nothing is translated."""
    begun = {each.section for each in entries_of(language) if each.of_rule}
    return sorted(rule.info.code for rule in load_rulebook().rules if rule.info.code not in begun)
