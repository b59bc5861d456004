"""Random mutations of valid content: of bytes, of JSON nodes, and of lines of text."""

import copy
import json
from random import Random
from typing import Any

NUMBERS = (
    0, 1, -1, 2, 3, 7, 127, 128, 255, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 10**30,
)  # fmt: skip
TEXTS = (
    "", "a", "same", "valid", "::error::x", "\x1b[31m", "\n", "\0", "\u202e", "é", "\ud800", "channels_first", "conv",
    "../x", "/etc/passwd", "1e999", "-0", "nan", "None", "True", "torch.ops.aten.conv2d.default", "Conv2D",
    "Functional", "a" * 300, "x" * 5000, "1" * 5000, "__class__", "Symbol('s0')", "FloorDiv(Integer(1), Integer(0))",
    "s0*s0",    "input",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 1.5, -0.0, float("inf"), float("nan"), 1e308, [], {}, [[]], [None], {"": None}, [1, 2], [1] * 7,
    {"a": {"b": []}}, *NUMBERS, *TEXTS,
)  # fmt: skip


def in_bytes(content: bytes, random: Random, other: bytes = b"") -> bytes:
    """One to four changes to bytes: flips, cuts, repeats, insertions, and pieces of another file."""
    made = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        size = len(made)
        if not size:
            return bytes(made)
        at, end = random.randrange(size), min(size, random.randrange(size) + random.choice((1, 2, 8, 64)))
        deed = random.randrange(9)
        if deed == 0:
            made[at] ^= 1 << random.randrange(8)
        elif deed == 1:
            made[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        elif deed == 2:
            del made[at:]
        elif deed == 3:
            del made[at : at + random.choice((1, 2, 4, 16, 100))]
        elif deed == 4:
            made[at:at] = made[at : at + random.choice((1, 8, 50, 400))] * random.choice((1, 2, 30))
        elif deed == 5:
            made[at:at] = random.randbytes(random.choice((1, 4, 20)))
        elif deed == 6 and other:
            start = random.randrange(len(other))
            made[at : at + 40] = other[start : start + random.choice((4, 40, 400))]
        elif deed == 7:
            made[at : at + 8] = random.choice(NUMBERS).to_bytes(16, "little", signed=True)[:8]
        else:
            made[min(at, end) : max(at, end)] = made[min(at, end) : max(at, end)][::-1]
    return bytes(made)


def in_document(document: Any, random: Random) -> Any:
    """One to four changes to nested lists and objects: replaced, taken out, doubled, moved, wrapped, renamed."""
    made = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        places = _places(made)
        if not places:
            return random.choice(VALUES)
        holder, key = random.choice(places)
        deed = random.randrange(9)
        if deed <= 2:
            holder[key] = copy.deepcopy(random.choice(VALUES))
        elif deed == 3 and isinstance(holder[key], (int, float)):
            holder[key] = random.choice(
                (holder[key] + 1, holder[key] - 1, -holder[key], holder[key] * 2, holder[key] / 2)
            )
        elif deed == 4:
            del holder[key]
        elif deed == 5 and isinstance(holder, list):
            holder[key:key] = [copy.deepcopy(holder[key])] * random.choice((1, 3, 40))
        elif deed == 6:
            source, name = random.choice(places)
            if name in source if isinstance(source, dict) else name < len(source):
                holder[key] = copy.deepcopy(source[name])
        elif deed == 7:
            holder[key] = random.choice(([holder[key]], {"a": holder[key]}, str(holder[key])[:300]))
        elif isinstance(holder, dict):
            holder[random.choice((*TEXTS, *holder))] = holder.pop(key)
    return made


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) in a document."""
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting and len(found) < 20_000:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return found


def as_json(document: Any) -> str:
    """Its text; what JSON cannot hold is written as Python's own reader accepts it."""
    return json.dumps(document, ensure_ascii=True)


def in_text(text: str, random: Random) -> str:
    """One to four changes to a text: lines moved, words replaced, marks put in."""
    for _ in range(random.choice((1, 1, 2, 4))):
        lines = text.split("\n")
        at = random.randrange(len(lines))
        deed = random.randrange(7)
        if deed == 0:
            del lines[at]
        elif deed == 1:
            lines[at:at] = [lines[at]] * random.choice((1, 5))
        elif deed == 2:
            other = random.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif deed == 3:
            lines[at] = (
                random.choice(("  ", "\t", "- ", "? ", "&a ", "*d ", "<<: ", "# ", "", "[", '"', "'''")) + lines[at]
            )
        elif deed == 4:
            words = lines[at].split(" ")
            words[random.randrange(len(words))] = _word(random)
            lines[at] = " ".join(words)
        elif deed == 5:
            spot = random.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:spot] + _word(random) + lines[at][spot:]
        else:
            spot = random.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:spot] + lines[at][spot + random.choice((1, 2, 10)) :]
        text = "\n".join(lines)
    return text


MARKS = (
    "{", "}", "[", "]", ":", ",", "'", '"', "|", ">", "!!int", "!x", "%", "@", "`", "---", "...", "\r", "\x85", "\\",
)  # fmt: skip


def _word(random: Random) -> str:
    words = (random.choice(MARKS), random.choice(TEXTS), random.choice(NUMBERS), "1:30", "017", "~", "no", "=")
    return str(random.choice(words))
