"""What the shell offers when Tab is pressed: rules, GPUs and formats; nothing is loaded until then."""

from __future__ import annotations

from collections.abc import Iterable


def rule_keys(incomplete: str) -> list[tuple[str, str]]:
    """Codes with their names, and names with their titles."""
    from convlint.rulebook.book import load_rulebook

    before, start = _last_of_list(incomplete)
    infos = [rule.info for rule in load_rulebook().rules]
    pairs = [(info.code, info.name) for info in infos] + [(info.name, info.title) for info in infos]
    lower = start.lower()
    return [(before + key, help_) for key, help_ in pairs if key.lower().startswith(lower)]


def gpus_and_aliases(incomplete: str) -> list[str]:
    """Ids of GPUs, and the other names that people use."""
    from convlint.gpus.gpu import aliases, gpu_names

    return _starting(incomplete, (*gpu_names(), *sorted(aliases())))


def formats(incomplete: str) -> list[str]:
    """Output formats; what follows `=` is a file, which the shell knows better."""
    from convlint.reporters import REPORTERS

    return _starting(incomplete, REPORTERS)


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    lower = incomplete.lower()
    return [name for name in names if name.lower().startswith(lower)]


def _last_of_list(incomplete: str) -> tuple[str, str]:
    """`CL101,CL1` -> what is settled, and what is being typed."""
    before, comma, start = incomplete.rpartition(",")
    return before + comma, start
