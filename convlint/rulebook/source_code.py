"""How a rule on layers or networks judges source code too: what it says there, the rest being its own."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from convlint.rulebook.decision import compile_decision
from convlint.rulebook.judgement import cases_of, let_of
from convlint.rulebook.pieces import Pieces
from convlint.rulebook.rule import SOURCE_SCOPES, Rule
from convlint.rulebook.vocabulary import GPU_NAMES

_DECIDING = ("when", "let", "check")
_SAYING = ("severity", "message", "at", "fix", "variants")
_USUAL = {"layer": "construction", "network": "program"}


def in_source(pieces: Pieces, rule: Rule) -> Rule:
    """The rule as its `source_code` has it. Raises RuleError.

    Where that decides anew, it leaves nothing of how the rule decides elsewhere; where it has a message of its own,
    the rule's variants, which speak in other words, are left out too. All else is the rule's.
    """
    value = pieces.top["source_code"]
    if not isinstance(value.data, dict):
        pieces.fail("source_code is a mapping", value)
    own = value.data
    pieces.keys(own, ("scope", *_DECIDING, *_SAYING), "source_code")
    inner = Pieces(pieces.path, pieces.document)
    left_out = {"variants"} if "message" in own else set()
    if "check" in own:
        left_out.update(_DECIDING)
    inner.top = {key: item for key, item in pieces.top.items() if key not in left_out} | own
    scope: Any = inner.choice("scope", SOURCE_SCOPES, _USUAL.get(rule.scope), mapping=own)
    inner.reads(scope)
    when = inner.optional_expr("when", "truth")
    let = let_of(inner)
    check = inner.expr(inner.top["check"], "truth", "check")
    cases = cases_of(inner)
    return replace(
        rule,
        info=replace(rule.info, loss="none", loss_passes=()),
        scope=scope,
        decision=compile_decision(when, let, check),
        cases=cases,
        loss="none",
        loss_passes=(),
        join=None,
        needs_gpu=not GPU_NAMES.isdisjoint(inner.read),
        in_source=None,
    )
