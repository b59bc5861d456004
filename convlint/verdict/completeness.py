"""Errors of a check that read everything: nothing could be priced, or `--strict` asks for values that are unknown."""

from __future__ import annotations

from collections.abc import Iterator

from convlint.engine.findings import NetworkResult
from convlint.facts.network import shortened
from convlint.facts.predicted import lacking_for_time, missing_sizes
from convlint.model.report import InputError, LayerReport
from convlint.model.source import SourceReport

_MOST_NAMED = 5  # layers, or rules


def incompleteness(result: NetworkResult, *, strict: bool) -> Iterator[InputError]:
    """Why a network was not checked completely; nothing where it was.

    Without `strict` that is so where no layer has the sizes that a time needs and no error among the findings explains
    it. Weights alone have none, and Python that is only read is no network.
    """
    if result.source is not None:
        if strict:
            yield from _unknown(result, result.source)
            yield from _unchecked(result)
        return
    unpriced = [entry for entry in result.layers if lacking_for_time(entry.layer)]
    if strict and unpriced:
        wanted = ", ".join(dict.fromkeys(name for entry in unpriced for name in lacking_for_time(entry.layer)))
        names = shortened([entry.layer.name for entry in unpriced], _MOST_NAMED)
        yield _error(
            result,
            f"{len(unpriced)} of {_layers(len(result.layers))} not priced for want of {wanted}: {names}",
            unpriced,
        )
    elif result.layers and all(missing_sizes(entry.layer) for entry in result.layers):
        first = result.layers[0].layer
        if not result.weights_only and not _is_explained(result):
            yield _error(
                result,
                f"nothing could be priced: no layer has the sizes that a time needs; {first.name} "
                f"lacks {', '.join(lacking_for_time(first))}",
                list(result.layers),
            )
    if strict:
        yield from _unchecked(result)


def _unknown(result: NetworkResult, source: SourceReport) -> Iterator[InputError]:
    if unknown := source.constructions - source.known:
        convolutions = "1 convolution" if source.constructions == 1 else f"{source.constructions} convolutions"
        yield _error(result, f"unknown widths of {unknown} of {convolutions}")


def _unchecked(result: NetworkResult) -> Iterator[InputError]:
    if result.skipped:
        needs = ", ".join(dict.fromkeys(name for skip in result.skipped for name in skip.needs))
        codes = list(dict.fromkeys(skip.code for skip in result.skipped))
        count = "1 rule" if len(codes) == 1 else f"{len(codes)} rules"
        yield _error(result, f"{count} not checked for want of {needs}: {shortened(codes, _MOST_NAMED)}")


def _is_explained(result: NetworkResult) -> bool:
    """Whether an error among the findings, silenced or not, says what is wrong with layers; one on a GPU does not."""
    silenced = (entry.finding for entry in result.suppressed)
    findings = (finding for finding in (*result.findings, *silenced) if finding.layer is not None or finding.layers)
    return any(finding.severity == "error" for finding in findings)


def _layers(count: int) -> str:
    return "1 layer" if count == 1 else f"{count} layers"


def _error(result: NetworkResult, message: str, layers: list[LayerReport] | None = None) -> InputError:
    """At the first of the `layers`, where they have a place in the file."""
    at = layers[0].layer.locate() if layers else None
    if at is None or at.path != result.path:
        return InputError(path=result.path, message=message)
    return InputError(path=result.path, message=message, line=at.line, column=at.column)
