"""Names that people give to configs."""

from __future__ import annotations

import ast

CONFIGS = frozenset({
    "args", "arg", "cfg", "cfgs", "conf", "config", "configs", "configuration", "flags", "FLAGS", "hparams", "hp",
    "hyp", "model_cfg", "opt", "options", "opts", "params", "yaml", "yaml_cfg",
})  # fmt: skip


def names_config(node: ast.expr) -> bool:
    """Whether what stands there is a config by its name."""
    if isinstance(node, ast.Name):
        return node.id in CONFIGS
    return isinstance(node, ast.Attribute) and node.attr in CONFIGS
