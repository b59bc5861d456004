"""The order in which a class and those above it are asked for an attribute."""

from __future__ import annotations

from convlint.readers.python.evaluator.values import Class, Name, Value

_LONGEST_ORDER = 64


def order_of(cls: Class) -> list[Value]:
    """The class and its bases in the order that attributes are looked for, as Python finds it; else depth first."""
    chains: list[list[Value]] = []
    for base in cls.bases:
        chains.append(list(base.order) if isinstance(base, Class) and base is not cls and base.order else [base])
    chains.append([base for base in cls.bases if base is not cls])
    found: list[Value] = [cls]
    while any(chains) and len(found) < _LONGEST_ORDER:
        chains = [chain for chain in chains if chain]
        head = next((chain[0] for chain in chains
                     if not any(_in(chain[0], other[1:]) for other in chains)), chains[0][0])  # fmt: skip
        if head is not cls:
            found.append(head)
        chains = [[base for base in chain if not _is(base, head)] for chain in chains]
    return found


def _is(first: Value, second: Value) -> bool:
    return first is second or (isinstance(first, Name) and isinstance(second, Name) and first.name == second.name)


def _in(value: Value, values: list[Value]) -> bool:
    return any(_is(value, each) for each in values)
