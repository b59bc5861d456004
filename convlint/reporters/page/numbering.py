"""Which layers of the report a finding is about, by their numbers on the page."""

from __future__ import annotations

from convlint.report import Finding, Report

_Key = tuple[str, str, str]  # model, path, name


class Numbers:
    """The numbers of layers: their places in the report."""

    def __init__(self, report: Report) -> None:
        self._at: dict[_Key, list[int]] = {}
        for number, entry in enumerate(report.layers):
            layer = entry.layer
            self._at.setdefault((layer.model, layer.path, layer.name), []).append(number)

    def of(self, finding: Finding) -> tuple[int, ...]:
        """Those of a finding, in network order; of several layers of one name, all."""
        names = finding.layers or ((finding.layer,) if finding.layer is not None else ())
        where = finding.location.model, finding.location.path
        return tuple(sorted(number for name in dict.fromkeys(names) for number in self._at.get((*where, name), ())))
