"""What was read in source becomes findings: of files that were given, once each, and only of what is in force."""

from __future__ import annotations

from typing import Any

import pytest
from source_records import checked as checked_alone
from source_records import literal, only, program, record, said, setting

from convlint.engine.source_check import SourceResult
from convlint.model.layer import Dtype
from convlint.report import Finding

BAD = record("Net.a", K=62, K_of=(literal(62, 7),))
# what reads a width shows it to be no output of the network; of itself nothing is said, as its map may be of 1x1
READS = record("Net.reads", 200, C=62, R=1, S=1)
BIASED = record("Net.b", 101, bias=True, norm_follows=True)


def checked(*given: Any, **wanted: Any) -> SourceResult:
    return checked_alone(*given, READS, **wanted)


def test_what_is_aligned_and_known_says_nothing() -> None:
    assert said(checked(record())) == []


def test_each_rule_says_its_own() -> None:
    found = checked(BAD, record("Net.b", 101, bias=True, norm_follows=True), program(cudnn_enabled=False))
    assert [(code, line) for code, line, _ in said(found)] == [("CL102", 7), ("CL506", 101), ("CL507", 1)]
    assert found.labels == ("a100",)
    assert {finding.gpu for finding in found.findings} == {None}
    assert {finding.lost_us for finding in found.findings} == {None}


@pytest.mark.parametrize(
    ("given", "expected"),
    [(("net.py",), 1), (("widths.py",), 1), (("other.py",), 0), ((), 0)],
)
def test_the_construction_or_the_literal_was_given(given: tuple[str, ...], expected: int) -> None:
    brought = record(K=62, K_of=(literal(62, 3, path="widths.py"),))
    assert len(checked(brought, given=given).findings) == expected


@pytest.mark.parametrize(("given", "expected"), [(("train.py",), 1), (("flags.py",), 1), (("net.py",), 0)])
def test_the_program_or_the_statement_was_given(given: tuple[str, ...], expected: int) -> None:
    script = program(cudnn_enabled=False, settings=(setting("cudnn.enabled", False, 4, "flags.py"),))
    assert len(checked(script, given=given).findings) == expected


@pytest.mark.parametrize(
    ("dtype", "gpu", "K", "message"),
    [
        (None, "a100", 62, "K=62 of Net.conv: no multiple of 8 (fp16, bf16)"),
        (None, "a100", 60, "K=60 of Net.conv: no multiple of 8 (fp16, bf16), but of 4, which is enough for tf32"),
        (None, "v100", 60, "K=60 of Net.conv: no multiple of 8 (fp16, bf16)"),
        (None, "p100", 62, ""),
        (Dtype.fp32, "a100", 60, ""),
        (Dtype.fp32, "a100", 62, "K=62 of Net.conv: no multiple of 4 for tf32"),
        (Dtype.fp32, "v100", 62, ""),
        (Dtype.int8, "a100", 72, "K=72 of Net.conv: no multiple of 16 for int8"),
    ],
)
def test_the_dtype_that_is_stated_decides(dtype: Dtype | None, gpu: str, K: int, message: str) -> None:
    found = checked(record(K=K), dtype=dtype, gpus=(gpu,))
    assert [text for _, _, text in said(found)] == ([message] if message else [])


def test_targets_that_say_the_same_say_it_once() -> None:
    assert only(checked(BAD, gpus=("a100", "h100", "p100"))).gpu is None
    assert only(checked(BAD, gpus=("p100", "a100"))).gpu == "a100"
    assert [(each.gpu, "tf32" in each.message) for each in checked(record(K=60), gpus=("a100", "v100")).findings] == [
        ("a100", True), ("v100", False),
    ]  # fmt: skip
    assert only(checked(BIASED, gpus=("a100", "h100"))).gpu is None


@pytest.mark.parametrize(
    "twice",
    [
        (BAD, BAD),
        (BAD, record("Net.a", K=62, K_of=(literal(62, 7),), root="net.py:other")),
        (program(cudnn_enabled=False), program(cudnn_enabled=False)),
    ],
)
def test_what_several_roots_or_chunks_lead_to_is_said_once(twice: Any) -> None:
    assert len(checked(*twice).findings) == 1


def test_one_statement_of_several_programs_is_said_once() -> None:
    shared = setting("cudnn.enabled", False, 4, "flags.py")
    scripts = [program(path, cudnn_enabled=False, settings=(shared,)) for path in ("train.py", "other.py")]
    assert said(checked(*scripts))[0][1] == 4
    assert len(checked(*scripts).findings) == 1


@pytest.mark.parametrize("path", ["tests/net.py", "docs/net.py", "third_party/net.py", "test_net.py"])
def test_of_tests_and_other_peoples_code_nothing_is_said(path: str) -> None:
    found = (
        record(path=path, K=62),
        record(path=path, bias=True, norm_follows=True),
        program(path, cudnn_enabled=False),
    )
    assert said(checked(*found, given=(path,))) == []


def test_what_is_taken_out_again_is_no_layer() -> None:
    assert said(checked(record(K=62, replaced=True))) == []


def test_rules_that_are_not_asked_for_say_nothing() -> None:
    assert [code for code, _, _ in said(checked(BAD, BIASED, codes=("CL506",)))] == ["CL506"]


@pytest.mark.parametrize("asked", ["silences", "known"])
def test_what_is_silenced_or_known_is_left_out(asked: str) -> None:
    others = (BAD, record("Net.c", 9, C=62, C_of=(literal(62, 7),)))

    def first(finding: Finding) -> bool:
        return finding.layer == "Net.a"

    assert said(checked(*others, **{asked: first}))[0][2] == "C=62 of Net.c: no multiple of 8 (fp16, bf16)"
    assert said(checked(*others, **{asked: lambda _: True})) == []
    assert said(checked(program(cudnn_enabled=False), **{asked: lambda _: True})) == []


def test_for_inference_a_bias_is_folded_away() -> None:
    assert said(checked(BIASED, mode="inference")) == []
    assert checked(BIASED).mode == "training"


def test_what_of_programs_could_not_be_checked() -> None:
    found = checked(program(), program("far.py"))
    assert {skip.path for skip in found.skipped} == {"train.py"}
    assert [(skip.code, set(skip.needs)) for skip in found.skipped] == [
        ("CL501", {"runtime.cudnn_benchmark", "runtime.fixed_input_size", "runtime.deterministic"})
    ]


def test_constructions_that_are_not_known_are_no_lines_of_the_report() -> None:
    assert checked(record(K=None), record(bias=True)).skipped == ()


@pytest.mark.parametrize(("construction", "stated"), [(3, 9), (30, 90)])
def test_fingerprints_do_not_move_with_lines(construction: int, stated: int) -> None:
    one = checked(record("Net.a", construction, K=62, K_of=(literal(62, stated),)))
    assert only(one).fingerprint == only(checked(BAD)).fingerprint
    assert only(one).identity == ("CL102", "net.py", "Net.a", "", 1)
