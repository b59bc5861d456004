"""What all convolutions of an input come to."""

from __future__ import annotations

from small_networks import checked, layer, rulebook

from convlint.report import NetworkReport

CHAIN = "".join(layer(f"c{number}", N=1, input=f"c{number - 1}" if number else None) for number in range(10))
EAGER = "runtime: { framework: pytorch }\n"


def one(tmp_path, layers: str, **options) -> NetworkReport:
    (network,) = checked(rulebook(tmp_path), layers, **options).networks
    return network


def test_parameters_flops_and_memory(tmp_path):
    found = one(tmp_path, layer("a") + layer("b"))
    assert (found.path, found.gpu, found.mode, found.batch) == ("net.yaml", "a100", "training", 32)
    assert found.parameters == 2 * 64 * 64 * 9
    assert found.flops == 2 * 2 * 32 * 28 * 28 * 64 * 64 * 9
    assert found.memory["activations"] == 2 * 32 * 28 * 28 * 64 * 2
    assert found.memory_needs == ()
    assert found.capacity_bytes == 40 * 2**30
    assert (found.host_us, found.waits) == (None, False)


def test_a_network_for_each_target(tmp_path):
    networks = checked(rulebook(tmp_path), layer("a"), gpus="a100 k80").networks
    assert [network.gpu for network in networks] == ["a100", "k80"]
    assert networks[0].largest_batch > networks[1].largest_batch


def test_what_is_unknown_is_left_out(tmp_path):
    found = one(tmp_path, layer("a", N=None) + layer("b"))
    assert (found.batch, found.flops, found.memory, found.memory_needs) == (None, None, {}, ("N",))
    assert found.parameters == 2 * 64 * 64 * 9
    assert one(tmp_path, layer("a", C=None)).parameters is None
    assert one(tmp_path, layer("a", N=8) + layer("b")).batch is None


def test_an_eager_network_waits_for_its_host(tmp_path):
    found = one(tmp_path, CHAIN, top=EAGER, mode="inference")
    assert found.waits
    assert found.host_us > found.gpu_us > 0


def test_a_head_of_another_batch_belongs_to_the_network(tmp_path):
    head = layer("head", N=64, H=7, W=7)
    found = one(tmp_path, CHAIN + head, top=EAGER, mode="inference")
    assert found.waits
    assert found.host_us > one(tmp_path, CHAIN, top=EAGER, mode="inference").host_us


def test_a_part_of_a_network_has_no_host(tmp_path):
    nine = "".join(CHAIN.splitlines(keepends=True)[:9])
    assert one(tmp_path, nine, top=EAGER, mode="inference").host_us is None


def test_int8_has_a_time_where_nobody_asked_for_training(tmp_path):
    for top, known in (("", True), ("mode: training\n", False)):
        (network,) = checked(rulebook(tmp_path), layer("a", dtype="int8"), top=top).networks
        assert (network.gpu_us is not None) == known


def test_layers_that_stand_alone_have_no_host(tmp_path):
    apart = "".join(layer(f"c{number}", N=1, C=8 * number, K=8 * number + 16) for number in range(1, 11))
    assert one(tmp_path, apart, top=EAGER, mode="inference").host_us is None


def test_what_the_framework_lacks_is_said_of_each_layer(tmp_path):
    result = checked(
        rulebook(tmp_path), layer("a", dtype="fp8") + layer("b"), top=EAGER, gpus="h100 b200", mode="inference"
    )
    first, second = result.layers
    assert list(first.lacking) == ["h100"]
    assert first.lacking["h100"].startswith("PyTorch has no fp8")
    assert first.estimates["h100"] is None
    assert first.estimates["b200"] is not None
    assert second.lacking == {}
