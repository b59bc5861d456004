"""Classes of the source: the order of their bases, their attributes, what a call of one gives."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import calls, record_fields
from convlint.readers.python.evaluator.class_order import bound, is_field, order_of
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Instance,
    Name,
    Partial,
    Table,
    Unknown,
    Value,
    unknown,
)
from convlint.readers.python.source_file import SourceFile

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})
_TUPLES = frozenset({"typing.NamedTuple"})
_PLAIN = frozenset({"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol", "typing.NamedTuple"})


class Classes:
    """What the machine does with classes."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def finish(self, cls: Class, *, is_record: bool) -> None:
        """The body has run: find the order of bases, fields and members."""
        cls.order = order_of(cls)
        parents = [base for base in cls.order if isinstance(base, Class) and base is not cls]
        inherited = next((base.fields for base in parents if base.fields is not None), None)
        named = any(isinstance(base, Name) and base.name in _TUPLES for base in cls.order)
        if is_record or named or inherited is not None:
            own = [
                each.target.id
                for each in cls.node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and is_field(each)
            ]
            before = inherited or []
            cls.fields = [*before, *(name for name in own if name not in before)] if is_record or named else before
        if self.is_enum(cls):
            for name, value in list(cls.namespace.items()):
                if not name.startswith("_") and not isinstance(value, Function):
                    member = Instance(cls)
                    member.attributes = {"name": Const(name), "value": value}
                    cls.namespace[name] = member

    def is_enum(self, cls: Class) -> bool:
        """Whether it is an enumeration."""
        return any(isinstance(base, Name) and base.name in _ENUMS for base in cls.order or ())

    def find(self, cls: Class, name: str, after: Class | None = None) -> tuple[Value | None, bool]:
        """The attribute of the class, behind `after` in its order if given; whether no unknown base may have one."""
        order = cls.order or [cls]
        start = 0
        if after is not None:
            start = next((at + 1 for at, base in enumerate(order) if base is after), 0)
        certain = True
        for base in order[start:]:
            if isinstance(base, Class):
                found = base.namespace.get(name)
                if found is not None:
                    return (found if certain else None), certain
            elif isinstance(base, Unknown):
                certain = False
        return None, certain

    def framework_base(self, cls: Class, after: Class | None = None) -> str:
        """The first base that is not of the source, behind `after`; nothing where there is none but object."""
        order = cls.order or [cls]
        start = next((at + 1 for at, base in enumerate(order) if base is after), 0) if after is not None else 0
        names = [base.name for base in order[start:] if isinstance(base, Name) and base.name not in _PLAIN]
        return names[0] if names else ""

    def method_of(self, instance: Instance, name: str) -> Value | None:
        """The method as the source defines it, bound; None where it does not."""
        if not isinstance(instance.cls, Class):
            return None
        found, _ = self.find(instance.cls, name)
        return self.bind(found, instance, instance.cls) if found is not None else None

    def bind(self, value: Value, instance: Instance | None, cls: Class) -> Value:
        """A class's attribute as it is read from an instance, or from the class itself."""
        if not isinstance(value, Function) or value.bound is not None:
            return value
        if value.kind == "static":
            return value
        if value.kind == "class":
            return bound(value, cls)
        if instance is None or value.owner is None:
            return value
        if value.kind == "property":
            call = self.machine.no_call(value.node)
            return self.machine.call(bound(value, instance), [], {}, call, value.file)
        return bound(value, instance)

    def attribute(self, cls: Class, name: str) -> Value:
        """`cls.name`."""
        found, certain = self.find(cls, name)
        if found is not None:
            return self.bind(found, None, cls)
        if name in ("__name__", "__qualname__"):
            return Const(cls.name)
        if name == "__init__" and certain:
            return Partial(Name("convlint.init"), [cls], {})
        if name == "__members__" and self.is_enum(cls):
            return Table({key: value for key, value in cls.namespace.items() if isinstance(value, Instance)})
        return unknown("call")

    def inherited(self, start: Value, of: Value, name: str) -> Value:
        """`super().name`."""
        if not isinstance(start, Class):
            return unknown("call")
        cls = of.cls if isinstance(of, Instance) else of
        if not isinstance(cls, Class):
            return unknown("call")
        found, _ = self.find(cls, name, start)
        if found is not None:
            return self.bind(found, of if isinstance(of, Instance) else None, cls)
        return Partial(Name(f"convlint.method.{name}"), [of], {})

    def call_inherited(
        self, start: Value, of: Value, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call,
        file: SourceFile, exact: bool,
    ) -> Value:  # fmt: skip
        """`super().name(...)`."""
        machine = self.machine
        cls = of.cls if isinstance(of, Instance) else of
        if not isinstance(start, Class) or not isinstance(cls, Class):
            machine.give_away(args, keywords)
            return unknown("call")
        found, certain = self.find(cls, name, start)
        if found is not None:
            target = self.bind(found, of if isinstance(of, Instance) else None, cls)
            return machine.call(target, args, keywords, node, file, exact)
        if not isinstance(of, Instance):
            return unknown("call")
        if name == "__init__":
            self.initialize(of, start, args, keywords, node, file, exact, certain=certain)
            return Const(None)
        call = machine.library_call(node, file, args, keywords, exact)
        known = machine.library.method(machine, of, name, call)
        if known is None:
            machine.give_away(args, keywords)
        return known or unknown("call")

    def initialize(
        self, instance: Instance, after: Class | None, args: list[Value], keywords: dict[str, Value], node: ast.Call,
        file: SourceFile, exact: bool, *, certain: bool,
    ) -> None:  # fmt: skip
        """`__init__` of what is not in the source."""
        machine = self.machine
        if not isinstance(instance.cls, Class):
            return
        if not certain:
            instance.complete = False
        base = self.framework_base(instance.cls, after)
        if not base:
            return
        call = machine.library_call(node, file, args, keywords, exact)
        if not machine.library.initialize(machine, instance, base, call):
            machine.give_away(args, keywords)
            instance.complete = False

    def create(
        self, cls: Class, args: list[Value], keywords: dict[str, Value], node: ast.Call, file: SourceFile, exact: bool,
    ) -> Value:  # fmt: skip
        """`cls(...)`."""
        if self.is_enum(cls):
            return self._member(cls, args)
        instance = Instance(cls)
        init, certain = self.find(cls, "__init__")
        if isinstance(init, Function):
            calls.run(self.machine, bound(init, instance), args, keywords, exact)
        elif init is not None or not certain:
            instance.complete = False
            self.machine.give_away(args, keywords)
        elif cls.fields is not None:
            record_fields.fill(self.machine, instance, cls, args, keywords, node, exact)
        else:
            self.initialize(instance, None, args, keywords, node, file, exact, certain=certain)
        return instance

    def _member(self, cls: Class, args: list[Value]) -> Value:
        for value in cls.namespace.values():
            if isinstance(value, Instance) and args and isinstance(args[0], Const):
                held = value.attributes.get("value")
                if isinstance(held, Const) and held.value == args[0].value:
                    return value
        return args[0] if args and isinstance(args[0], Instance) else unknown("call")

    def fields_of(self, instance: Instance) -> list[Value] | None:
        """What a loop over a named tuple goes through."""
        cls = instance.cls
        if not isinstance(cls, Class) or cls.fields is None:
            return None
        if not any(isinstance(base, Name) and base.name in _TUPLES for base in cls.order or ()):
            return None
        return [instance.attributes.get(name, unknown("call")) for name in cls.fields]

    def members(self, cls: Class) -> list[Value] | None:
        """What a loop over an enumeration goes through."""
        return [each for each in cls.namespace.values() if isinstance(each, Instance)] if self.is_enum(cls) else None

    def named_tuple(self, name: str, fields: list[str], defaults: list[Value], file: SourceFile) -> Class:
        """collections.namedtuple(name, fields)."""
        node = ast.ClassDef(name=name, bases=[], keywords=[], body=[], decorator_list=[], lineno=1, col_offset=0)
        cls = Class(node, file, name, [Name("typing.NamedTuple")])
        cls.fields = fields
        cls.order = [cls, *cls.bases]
        cls.namespace.update(zip(fields[len(fields) - len(defaults) :], defaults, strict=True))
        return cls
