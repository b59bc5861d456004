"""The namespaces of rules on source: what belongs to another scope is unknown, and what is lacking has a name."""

from __future__ import annotations

from source_records import program, record

from convlint.facts.source import SourceFacts, of_construction, of_program, of_width
from convlint.facts.source_layers import Width
from convlint.facts.table import OF_SOURCE, QUANTITIES
from convlint.facts.target import TargetFacts
from convlint.facts.unknown import UNKNOWN
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer
from convlint.model.runtime import Runtime

CONTEXT = TargetFacts("a100", load_gpu("a100"), Runtime(framework="pytorch"), "training")


def kinds() -> dict[str, SourceFacts]:
    return {
        "construction": of_construction(CONTEXT, record(K=62)),
        "width": of_width(CONTEXT, Width(record=record(K=62), side="K")),
        "program": of_program(CONTEXT, program(), ConvLayer(name="")),
    }


def test_each_scope_has_its_own_names_and_the_layer_s() -> None:
    found = kinds()
    assert [(found["construction"]["K"], found["construction"]["source"].stated)] == [(62, True)]
    assert (found["width"]["width"].value, found["width"]["source"].stated) == (62, True)
    assert found["program"]["program"].path == "train.py"
    assert found["construction"]["width"] is found["construction"]["program"] is UNKNOWN
    assert found["program"]["source"] is found["program"]["K"] is UNKNOWN


def test_numbers_that_a_layer_has_to_have_may_be_unknown() -> None:
    facts = of_construction(CONTEXT, record(K=62, unknown=("groups",)))
    assert (facts["groups"], facts["U"]) == (UNKNOWN, 1)


def test_what_a_network_alone_shows_is_unknown() -> None:
    for facts in kinds().values():
        assert facts["network"].time_us is UNKNOWN
        assert facts["time_us"] is UNKNOWN if "time_us" in QUANTITIES else True


def test_what_is_lacking_has_the_name_that_a_user_knows() -> None:
    assert kinds()["program"].needs(frozenset(("runtime.cudnn_benchmark", "program.trainer"))) == (
        "runtime.cudnn_benchmark",
    )
    assert kinds()["construction"].needs(frozenset(("source.pointwise_map", "bias"))) == (
        "bias", "source.pointwise_map",
    )  # fmt: skip


def test_names_of_source_are_none_of_a_layer_s() -> None:
    assert OF_SOURCE.keys().isdisjoint(QUANTITIES)
    meanings = [quantity.meaning for quantity in OF_SOURCE.values()]
    assert all(meanings)
    assert len(set(meanings)) == len(meanings)
