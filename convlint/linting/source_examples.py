"""The examples of rules on source: each states what was read of a construction or a program, and the rule judges it.

`construction` (`constructions`: a list of them) has the layer's letters, the literals that they were `stated` by and
all else that a record has; `program` has the fields of a program, its statements as {name, value, line, guard}. `gpu`,
`mode` and `dtype` may stand beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct, field

from convlint.engine.findings import Target
from convlint.engine.source_check import check_source
from convlint.errors import RuleError, UsageError
from convlint.files.located_yaml import Value
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, Mode
from convlint.model.location import Location
from convlint.model.source import Certainty, Program, Setting, SourceLayer, SourceReading, Stated
from convlint.report import Finding
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule

_NET, _SCRIPT = "net.py", "train.py"


class _Literal(Struct, forbid_unknown_fields=True):
    value: int | float | str | bool | None
    name: str = ""
    line: int = 1
    quiet: bool = False

    def stated(self) -> Stated:
        return Stated(at=_at(_NET, self.line), value=self.value, name=self.name, quiet=self.quiet)


class _Construction(Struct, forbid_unknown_fields=True):
    name: str = "Net.conv"
    line: int = 100
    framework: str = "pytorch"
    C: int | None = 64
    K: int | None = 64
    R: int | None = 3
    S: int | None = 3
    groups: int = 1
    bias: bool | None = None
    norm_follows: bool | None = None
    first: bool = False
    head: bool = False
    stated: dict[str, list[_Literal]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    certainty: Certainty = "stated"
    condition: str = ""
    root: str = ""
    pointwise_map: bool | None = None

    def record(self) -> SourceLayer:
        layer = ConvLayer(
            name=self.name, path=_NET, C=self.C, K=self.K, R=self.R, S=self.S, groups=self.groups, bias=self.bias,
            norm_follows=self.norm_follows, first=self.first, head=self.head,
            spans={"layer": (self.line, 1, self.line, 80)},
        )  # fmt: skip
        return SourceLayer(
            layer=layer, framework=self.framework, certainty=self.certainty, condition=self.condition, root=self.root,
            written=self.written, pointwise_map=self.pointwise_map,
            stated={name: tuple(each.stated() for each in several) for name, several in self.stated.items()},
        )  # fmt: skip


class _Statement(Struct, forbid_unknown_fields=True):
    name: str
    value: bool | int | str | None = None
    line: int = 1
    guard: str = ""
    certain: bool = False

    def setting(self) -> Setting:
        at = _at(_SCRIPT, self.line)
        return Setting(name=self.name, value=self.value, at=at, guard=self.guard, certain=self.certain)


class _Program(Struct, forbid_unknown_fields=True):
    framework: str = "pytorch"
    complete: bool = False
    trainer: str = ""
    settings: list[_Statement] = field(default_factory=list)
    cudnn_benchmark: bool | None = None
    deterministic: bool | None = None
    cudnn_enabled: bool | None = None
    tf32: bool | None = None
    fixed_input_size: bool | None = None
    evidence: list[str] = field(default_factory=list)
    conflict: tuple[_Statement, _Statement] | None = None
    backward_in_autocast: list[int] = field(default_factory=list)
    autocast_around_loss: list[int] = field(default_factory=list)
    autotune_disabled: list[_Statement] = field(default_factory=list)
    has_convolutions: bool = False

    def program(self) -> Program:
        statements = tuple(each.setting() for each in (*self.settings, *(self.conflict or ())))
        return Program(
            path=_SCRIPT, at=_at(_SCRIPT, 1), framework=self.framework, closure=(_SCRIPT,), complete=self.complete,
            trainer=self.trainer, settings=statements, cudnn_benchmark=self.cudnn_benchmark,
            deterministic=self.deterministic, cudnn_enabled=self.cudnn_enabled, tf32=self.tf32,
            fixed_input_size=self.fixed_input_size,
            evidence=tuple((words, _at(_SCRIPT, 1)) for words in self.evidence),
            conflict=None if self.conflict is None else (self.conflict[0].setting(), self.conflict[1].setting()),
            backward_in_autocast=tuple(_at(_SCRIPT, line) for line in self.backward_in_autocast),
            autocast_around_loss=tuple(_at(_SCRIPT, line) for line in self.autocast_around_loss),
            autotune_disabled=tuple(each.setting() for each in self.autotune_disabled),
            has_convolutions=self.has_convolutions,
        )  # fmt: skip


class _Example(Struct, forbid_unknown_fields=True):
    construction: _Construction | None = None
    constructions: list[_Construction] = field(default_factory=list)
    program: _Program | None = None
    gpu: str = "a100"
    mode: Mode | None = None
    dtype: Dtype | None = None


def is_of_source(given: Value) -> bool:
    """Whether an example is one of source."""
    return not {"construction", "constructions", "program"}.isdisjoint(given.data)


def source_findings(rule: Rule, given: Value, plain: Callable[[Value], Any]) -> tuple[tuple[Finding, ...], list[str]]:
    """What the rule finds in an example, and what it lacks. Raises RuleError where the example cannot be read."""
    try:
        example = msgspec.convert(_unwrapped(given, plain), _Example)
        target = Target(label=example.gpu, gpu=load_gpu(example.gpu))
    except (msgspec.ValidationError, UsageError) as error:
        raise RuleError(f"examples: {error}", path=rule.path, line=given.span[0], column=given.span[1]) from error
    several = [*([example.construction] if example.construction else []), *example.constructions]
    reading = SourceReading(
        layers=tuple(each.record() for each in several),
        programs=() if example.program is None else (example.program.program(),),
    )
    result = check_source(reading, Rulebook([rule]), [target], example.mode, given=(_NET, _SCRIPT), dtype=example.dtype)
    return result.findings, [need for skip in result.skipped for need in skip.needs]


def _unwrapped(value: Value, plain: Callable[[Value], Any]) -> Any:
    """Mappings, lists and scalars without the places where they stand."""
    if isinstance(value.data, dict):
        return {key: _unwrapped(item, plain) for key, item in value.data.items()}
    if isinstance(value.data, list):
        return [_unwrapped(item, plain) for item in value.data]
    return None if value.is_null else plain(value)


def _at(path: str, line: int) -> Location:
    return Location(path=path, line=line, column=1)
