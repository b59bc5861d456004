"""Which flaws are those of a number that several layers share, and what else has to change with it."""

from __future__ import annotations

from msgspec.structs import replace
from small_networks import checked

from convlint.engine.check import Target, check_network
from convlint.engine.findings import NetworkResult
from convlint.engine.levers import Coupling
from convlint.gpus.gpu import load_gpu
from convlint.model.report import Finding
from convlint.readers.spec.reader import read_spec
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
TOP = "defaults: { N: 64, dtype: fp16, layout: NHWC }\n"
IMAGE = "  - { name: image, op: input, C: 4, H: 56, W: 56 }\n"


def conv(name: str, K: int, source: str = "", more: str = "kernel_size: 3, padding: 1") -> str:
    read = f"input: {source}, " if source else ""
    return f"  - {{ name: {name}, {read}K: {K}, {more} }}\n"


def coupling_of(layers: str) -> Coupling:
    network, errors = read_spec(f"version: 1\n{TOP}layers:\n{layers}", "x.yaml")
    assert network is not None
    assert not errors
    return Coupling(network)


def alignment(layers: str) -> list[Finding]:
    return [finding for finding in checked(BUILTIN, layers, top=TOP).findings if finding.rule.code == "CL102"]


def test_layers_that_stand_alone_share_nothing() -> None:
    alone = "  - { name: a, C: 60, H: 8, W: 8, K: 60, kernel_size: 1, first: false }\n"
    coupling = coupling_of(alone)
    assert not coupling.wired
    assert coupling.group_of(0, "K") is None
    (finding,) = alignment(alone)
    assert (finding.layer, finding.layers, finding.message) == (
        "a", (), "C=60 and K=60 should be multiples of 8 for fp16",
    )  # fmt: skip


def test_an_image_and_a_head_are_one_layers_own() -> None:
    coupling = coupling_of(IMAGE + conv("a", 60) + conv("head", 21))
    assert coupling.group_of(0, "C") is None
    assert coupling.group_of(0, "K") == coupling.group_of(1, "C") is not None
    assert coupling.group_of(1, "K") is None


def test_a_flaw_on_both_sides_is_one_on_each() -> None:
    found = alignment(IMAGE + conv("a", 60) + conv("b", 124) + conv("c", 64))
    assert [(finding.layer, finding.message) for finding in found] == [
        ("a", "K=60 should be a multiple of 8 for fp16"), ("b", "K=124 should be a multiple of 8 for fp16"),
    ]  # fmt: skip


def test_where_nothing_fires_at_the_layer_that_writes_it_stands_at_one_that_reads() -> None:
    grouped = "groups: 2, kernel_size: 3, padding: 1"
    (finding,) = alignment(IMAGE + conv("a", 64) + conv("g", 60, more=grouped) + conv("c", 64))
    assert (finding.layer, finding.layers) == ("c", ("c", "g"))
    assert finding.fix is not None
    assert finding.fix.by_layer == ({"C": 64}, {"K": 64})
    assert finding.fix.describe == "use C=64; K of g with it"


def test_a_sum_of_parts_asks_for_the_part_that_is_not_aligned() -> None:
    grouped = "groups: 2, kernel_size: 3, padding: 1"
    layers = (
        IMAGE + conv("a", 64) + conv("g", 60, more=grouped) + "  - { op: concat, inputs: [a, g] }\n" + conv("c", 64)
    )
    (finding,) = alignment(layers)
    assert (finding.layer, finding.layers) == ("c", ("c", "g"))
    assert finding.fix is not None
    assert finding.fix.by_layer == ({"C": 128}, {"K": 64})
    assert finding.fix.describe == "use 64 channels in place of 60; K of g and part of C of c with it"


def test_a_sum_of_parts_that_are_all_at_fault_elsewhere_is_no_finding_of_its_own() -> None:
    layers = IMAGE + conv("a", 60) + conv("b", 62, "a") + "  - { op: concat, inputs: [a, b] }\n" + conv("c", 64)
    assert [(finding.layer, finding.layers) for finding in alignment(layers)] == [
        ("a", ("a", "b", "c")), ("b", ("b", "c")),
    ]  # fmt: skip


def test_the_words_name_four_layers_and_count_the_rest() -> None:
    readers = "".join(conv(f"r{number}", 64, "a") for number in range(6))
    (finding,) = alignment(IMAGE + conv("a", 60) + readers)
    assert finding.fix is not None
    assert finding.fix.describe == "use K=64; C of r0, r1, r2, r3 and 2 more with it"
    assert len(finding.layers) == 7


def test_a_silenced_reader_leaves_the_finding() -> None:
    def result(silenced: str) -> NetworkResult:
        network, _ = read_spec(f"version: 1\n{TOP}layers:\n{IMAGE}{conv('a', 60)}{conv('b', 64)}", "x.yaml")
        assert network is not None
        return check_network(
            network, BUILTIN, [Target(label="a100", gpu=load_gpu("a100"))], "training",
            silences=lambda finding: finding.layer == silenced,
        )  # fmt: skip

    assert [finding.layer for finding in result("b").findings if finding.rule.code == "CL102"] == ["a"]
    assert [finding.layer for finding in result("a").findings if finding.rule.code == "CL102"] == []


def test_an_error_without_a_price_is_one_finding_as_well() -> None:
    layers = (IMAGE + conv("a", 62) + conv("b", 64)).replace("C: 4", "C: 16")
    result = checked(BUILTIN, layers, top=TOP.replace("fp16", "int8"), mode="inference")
    (finding,) = [each for each in result.findings if each.rule.code == "CL101"]
    assert (finding.severity, finding.layer, finding.layers, finding.lost_us) == ("error", "a", ("a", "b"), None)
    assert finding.fix is not None
    assert replace(finding.fix, describe="").by_layer == ({"K": 64}, {"C": 64})


def test_what_several_layers_read_of_an_image_is_one_number() -> None:
    """Zeros are added to the one input of them all."""
    coupling = coupling_of(IMAGE.replace("C: 4", "C: 3") + conv("a", 64) + conv("b", 64, "image"))
    assert coupling.group_of(0, "C") == coupling.group_of(1, "C") is not None
    found = [each for each in checked(BUILTIN, IMAGE.replace("C: 4", "C: 3") + conv("a", 64) + conv("b", 64, "image"),
                                      top=TOP).findings if each.rule.code == "CL103"]  # fmt: skip
    assert len(found) == 1
    assert found[0].fix is not None
    assert found[0].fix.by_layer == ({"C": 4}, {"C": 4})


def test_what_is_free_to_change() -> None:
    coupling = coupling_of(IMAGE + conv("a", 60) + conv("head", 21))
    assert coupling.is_free(0, ["C"])  # an image can be filled up,
    assert coupling.is_free(0, ["K"])
    assert coupling.is_free(1, ["C"])
    assert not coupling.is_free(1, ["C", "K"])  # and a head's classes stay
    alone = coupling_of("  - { name: a, C: 60, H: 8, W: 8, K: 60, kernel_size: 1, first: false }\n")
    assert alone.is_free(0, ["C", "K"])  # nothing is known that would count on them


def test_the_number_of_a_layers_own_channels() -> None:
    coupling = coupling_of(IMAGE + conv("a", 60) + conv("head", 21))
    assert coupling.number_of(1, "K") is not None
    assert coupling.group_of(1, "K") is None  # nobody else has it
    assert coupling.number_of(0, "R") is None
