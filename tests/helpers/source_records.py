"""Records of source as its reader hands them on: constructions, literals, programs, and what is found in them."""

from typing import Any

from convlint.engine.check import Target
from convlint.engine.source_check import SourceResult, check_source
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.model.report import Finding
from convlint.model.source import ProgramSetting, SourceLayer, SourceReading, StatedLiteral, TrainingProgram
from convlint.rulebook.book import load_rulebook

RULEBOOK = load_rulebook()


def at(line: int, path: str = "net.py", column: int = 1) -> Location:
    return Location(path=path, line=line, column=column, end_line=line, end_column=column + 4)


def literal(value: Any, line: int, name: str = "", path: str = "net.py", *, quiet: bool = False) -> StatedLiteral:
    return StatedLiteral(at=at(line, path), value=value, name=name, quiet=quiet)


def record(name: str = "Net.conv", line: int = 100, path: str = "net.py", **given: Any) -> SourceLayer:
    """Fields of the layer, of the record, and `C_of` and `K_of` for its literals."""
    stated = {side: given.pop(f"{side}_of") for side in ("C", "K") if f"{side}_of" in given}
    of_record = {key: given.pop(key) for key in tuple(given) if key in SourceLayer.__struct_fields__}
    sizes = {"C": 64, "K": 64, "R": 3, "S": 3} | given
    layer = ConvLayer(name=name, path=path, spans={"layer": (line, 9, line, 60)}, **sizes)
    return SourceLayer(**{"layer": layer, "framework": "pytorch", "stated": stated} | of_record)


def setting(name: str, value: Any = None, line: int = 1, path: str = "train.py", **given: Any) -> ProgramSetting:
    return ProgramSetting(name=name, value=value, at=at(line, path), **given)


def program(path: str = "train.py", **given: Any) -> TrainingProgram:
    return TrainingProgram(**{"path": path, "at": at(1, path), "has_convolutions": True} | given)


def checked(*found: SourceLayer | TrainingProgram, gpus: tuple[str, ...] = ("a100",), **options: Any) -> SourceResult:
    layers = tuple(each for each in found if isinstance(each, SourceLayer))
    programs = tuple(each for each in found if isinstance(each, TrainingProgram))
    options = {"given": ("net.py", "train.py", "other.py")} | options
    targets = [Target(label=gpu, gpu=load_gpu(gpu)) for gpu in gpus]
    mode, defaults = options.pop("mode", None), options.pop("defaults", {})
    reading = SourceReading(layers=layers, programs=programs, **defaults)
    return check_source(reading, RULEBOOK, targets, mode, **options)


def said(result: SourceResult) -> list[tuple[str, int | None, str]]:
    return [(each.rule.code, each.location.line, each.message) for each in result.findings]


def only(result: SourceResult) -> Finding:
    (finding,) = result.findings
    return finding
