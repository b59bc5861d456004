"""Random mutations of the fields of a protobuf message."""

import copy
from random import Random
from typing import Any

from .mutations import NUMBERS, TEXTS


def in_message(content: bytes, random: Random) -> bytes:
    """One to four changes to the fields of an ONNX model, nested messages included."""
    import onnx

    model = onnx.ModelProto.FromString(content)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        fields = _fields(model)
        message, field = random.choice(fields)
        deed = random.randrange(6)
        if deed == 0:
            message.ClearField(field.name)
        elif _is_repeated(field):
            _in_repeated(getattr(message, field.name), field, random, deed)
        elif field.message_type is not None:
            same = [other for other, _ in fields if other.DESCRIPTOR is field.message_type and other is not message]
            if same:
                content_of_other = random.choice(same).SerializeToString()
                getattr(message, field.name).ParseFromString(content_of_other)
        else:
            setattr(message, field.name, _scalar(field, random))
    return bytes(model.SerializeToString())


def _in_repeated(values: Any, field: Any, random: Random, deed: int) -> None:
    if not len(values):
        return
    at = random.randrange(len(values))
    if deed == 1:
        del values[at]
    elif deed == 2:
        values.extend([values[at]] * random.choice((1, 3, 50)))
    elif deed == 3:
        order = list(values)
        random.shuffle(order)
        kept = [copy.deepcopy(value) for value in order]
        del values[:]
        values.extend(kept)
    elif field.message_type is None:
        values[at] = _scalar(field, random)
    else:
        values[at].CopyFrom(copy.deepcopy(values[random.randrange(len(values))]))


def _scalar(field: Any, random: Random) -> Any:
    if field.type == field.TYPE_STRING:
        return random.choice(TEXTS).replace("\ud800", "")
    if field.type == field.TYPE_BYTES:
        return random.choice((b"", b"\xff", b"NOTSET", b"SAME_UPPER", random.randbytes(24)))
    if field.type == field.TYPE_FLOAT:
        return random.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
    small = field.type in (field.TYPE_INT32, field.TYPE_ENUM)
    most = 2**31 if small else 2**63
    number = random.choice((*NUMBERS, *range(24)))
    if field.type == field.TYPE_ENUM:
        return random.choice([value.number for value in field.enum_type.values])
    return number if -most <= number < most and (number >= 0 or field.type != field.TYPE_UINT64) else 5


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def _fields(model: Any) -> list[tuple[Any, Any]]:
    """Every field that is set, anywhere in a message."""
    found: list[tuple[Any, Any]] = []
    waiting = [model]
    while waiting:
        message = waiting.pop()
        for field, value in message.ListFields():
            found.append((message, field))
            if field.message_type is not None:
                waiting += list(value) if _is_repeated(field) else [value]
    return found
