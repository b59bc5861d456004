"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from convlint.completion import formats, gpus_and_aliases, rule_keys

Gpu = Annotated[list[str] | None, typer.Option("--gpu", "-g", help="Target GPU; repeat for several. Default: the spec's, else the config's, else a100.", show_default=False, autocompletion=gpus_and_aliases)]
ModeOption = Annotated[str | None, typer.Option("--mode", help="training or inference.", show_default=False)]
Select = Annotated[list[str] | None, typer.Option("--select", help="Only these rules: codes, names, prefixes such as CL1, or ALL.", show_default=False, autocompletion=rule_keys)]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="Not these rules.", show_default=False, autocompletion=rule_keys)]
ExtendSelect = Annotated[list[str] | None, typer.Option("--extend-select", help="These rules beside the default ones.", show_default=False, autocompletion=rule_keys)]
FailOnOption = Annotated[str | None, typer.Option("--fail-on", help="Least severity that fails: error, warning, info or never. Default: warning.", show_default=False)]
MinLoss = Annotated[float | None, typer.Option("--min-loss", metavar="PERCENT", help="Findings that lose less of the network's time do not fail. Default: 0.", min=0.0, max=100.0, show_default=False)]
Output = Annotated[list[str] | None, typer.Option("--output", "-o", metavar="FORMAT[=FILE]", help="text, concise, json, sarif, github, gitlab, junit, rdjson or markdown; repeatable.", show_default=False, autocompletion=formats)]
Rules = Annotated[list[str] | None, typer.Option("--rules", metavar="DIR", help="A folder of rules of your own, beside the built-in ones.", show_default=False)]
ConfigFile = Annotated[str | None, typer.Option("--config", metavar="FILE", help="This config for every input, rather than the closest one upward.", show_default=False)]
Isolated = Annotated[bool, typer.Option("--isolated", "--no-config", help="No config at all.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only what is needed to act.")]
Color = Annotated[str, typer.Option("--color", help="auto, always or never.")]
