"""Which statements set what runs a program: cudnn's flags, their like, and variables of the environment."""

from __future__ import annotations

import ast

from msgspec import Struct

from convlint.readers.python.programs.unit import Unit

BENCHMARK, DETERMINISTIC, ENABLED = "cudnn.benchmark", "cudnn.deterministic", "cudnn.enabled"
ALGORITHMS = "use_deterministic_algorithms"
CUDNN_TF32, MATMUL_PRECISION = "cudnn.allow_tf32", "float32_matmul_precision"
PRECISIONS = ("fp32_precision", "cudnn.fp32_precision", "cudnn.conv.fp32_precision")
ANY = "cudnn.*"  # one of them, and nobody knows which
_FLAGS = {BENCHMARK, DETERMINISTIC, ENABLED, CUDNN_TF32, *PRECISIONS, "cuda.matmul.allow_tf32"}
_FLAGS |= {"cuda.matmul.fp32_precision"}
_ARGUMENTS = {"enabled": ENABLED, "benchmark": BENCHMARK, "deterministic": DETERMINISTIC, "allow_tf32": CUDNN_TF32}
_CALLS = {
    "torch.use_deterministic_algorithms": ALGORITHMS,
    "torch.set_deterministic": ALGORITHMS,
    "torch.set_float32_matmul_precision": MATMUL_PRECISION,
}
# Functions of libraries that set what nobody reads here.
_HELPERS = {
    "monai.utils.set_determinism",
    "transformers.enable_full_determinism",
    "transformers.trainer_utils.enable_full_determinism",
    "mmengine.runner.set_random_seed",
    "mmcv.runner.set_random_seed",
    "ignite.utils.manual_seed",
    "detectron2.utils.env.seed_all_rng",
    "catalyst.utils.prepare_cudnn",
    "catalyst.utils.set_global_seed",
}
_SEEDS = {"accelerate.utils.set_seed", "accelerate.utils.random.set_seed"}  # and more, if they are told to
VARIABLES = {
    "MXNET_CUDNN_AUTOTUNE_DEFAULT",
    "TF_CUDNN_USE_AUTOTUNE",
    "XLA_FLAGS",
    "TF_XLA_FLAGS",
}
# What a file has in its bytes if it sets anything of this.
TRACES = (
    b"cudnn",
    b"use_deterministic_algorithms",
    b"set_deterministic",
    b"set_seed(",
    b"set_determinism",
    b"fp32_precision",
    b"float32_matmul_precision",
    b"allow_tf32",
    b"full_determinism",
    b"set_random_seed",
    b"AUTOTUNE",
    b"XLA_FLAGS",
)


class Assignment(Struct, frozen=True):
    """A setting and the expression that it is set to; None where that is no expression of the source."""

    name: str
    value: ast.expr | None


def assignments(node: ast.stmt | ast.Call, unit: Unit) -> list[Assignment]:
    """What a statement, or a call in one, sets."""
    if isinstance(node, ast.Assign):
        return [each for target in node.targets for each in _assigned(target, node.value, unit)]
    if isinstance(node, ast.AnnAssign):
        return _assigned(node.target, node.value, unit)
    if isinstance(node, ast.AugAssign):
        return _assigned(node.target, None, unit)
    return _called(node, unit) if isinstance(node, ast.Call) else []


def scoped(node: ast.With | ast.AsyncWith, unit: Unit) -> bool:
    """Whether it is the block in which `torch.backends.cudnn.flags(...)` holds."""
    return any(
        isinstance(item.context_expr, ast.Call)
        and unit.full_name(item.context_expr.func) == "torch.backends.cudnn.flags"
        for item in node.items
    )


def _assigned(target: ast.expr, value: ast.expr | None, unit: Unit) -> list[Assignment]:
    if isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        values: list[ast.expr | None] = [*parts] if len(parts) == len(target.elts) else [None] * len(target.elts)
        return [each for one, two in zip(target.elts, values, strict=True) for each in _assigned(one, two, unit)]
    if isinstance(target, ast.Attribute):
        name = _flag(unit.full_name(target))
        return [Assignment(name, value)] if name else []
    if isinstance(target, ast.Subscript) and unit.full_name(target.value) == "os.environ":
        return _variable(target.slice, value)
    return []


def _flag(full: str) -> str:
    name = full.removeprefix("torch.backends.")
    return name if name != full and name in _FLAGS else ""


def _called(node: ast.Call, unit: Unit) -> list[Assignment]:
    args = node.args
    if isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(args) == 3:
        full = unit.full_name(args[0])
        if not full.startswith("torch.backends"):
            return []
        if isinstance(args[1], ast.Constant):
            name = _flag(f"{full}.{args[1].value!s}")
            return [Assignment(name, args[2])] if name else []
        return [Assignment(ANY, None)]
    full = unit.full_name(node.func)
    if full in _CALLS:
        given = args[0] if args else next((each.value for each in node.keywords if each.arg in ("mode", "d")), None)
        return [Assignment(_CALLS[full], given)]
    if full == "torch.set_deterministic_debug_mode":
        return [Assignment(ALGORITHMS, None)]
    if full in _SEEDS:
        return [Assignment(ALGORITHMS, each.value) for each in node.keywords if each.arg == "deterministic"]
    if full == "torch.backends.cudnn.set_flags":
        named = {(each.arg or "").lstrip("_"): each.value for each in node.keywords}
        if args or "" in named:
            return [Assignment(ANY, None)]
        return [Assignment(_ARGUMENTS[name], value) for name, value in named.items() if name in _ARGUMENTS]
    if full in _HELPERS:
        return [Assignment(name, None) for name in (BENCHMARK, DETERMINISTIC)]
    if full in ("os.putenv", "os.environ.setdefault") and len(args) == 2:
        return _variable(args[0], args[1])
    if full == "os.environ.update" and len(args) == 1 and isinstance(args[0], ast.Dict):
        pairs = zip(args[0].keys, args[0].values, strict=True)
        return [each for key, value in pairs if key is not None for each in _variable(key, value)]
    return []


def _variable(key: ast.expr, value: ast.expr | None) -> list[Assignment]:
    if isinstance(key, ast.Constant) and key.value in VARIABLES:
        return [Assignment(str(key.value), value)]
    return []
