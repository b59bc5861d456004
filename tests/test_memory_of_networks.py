"""What four networks keep in memory, against PyTorch itself and against what others measured."""

from collections.abc import Iterator
from typing import Any

import known_networks
import pytest
import torch
from checkout import ROOT
from msgspec.structs import replace
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from convlint.estimate.memory import Footprint, NetworkMemory, parameters
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.torch.module import read

pytestmark = [pytest.mark.slow, pytest.mark.contract]

GIB = 2**30
# Training peaks of torch.cuda.max_memory_allocated, fp32, no optimizer: MONeT's README, "the original PyTorch
# implementation" (github.com/utsaslab/MONeT); inputs and batches are those of its examples/check_runtime_original.py.
PEAKS_GIB = {
    "resnet50": ((184, 3, 224, 224), 15.06),
    "vgg16": ((176, 3, 224, 224), 14.12),
    "UNet": ((11, 3, 416, 608), 14.32),
    "efficientnet_b0": ((64, 3, 224, 224), None),  # nobody's figure has its method beside it
}
# torchvision's and milesial's own counts, with norms and classifiers: Million
PARAMETERS = {"resnet50": 25.56, "vgg16": 138.4, "UNet": 17.27, "efficientnet_b0": 5.29}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "tests" / "helpers")


def network_of(name: str, shape: tuple[int, ...]) -> Network:
    network, errors = read(f"known_networks:{name}", ReadOptions(inputs={"": "x".join(map(str, shape))}))
    assert errors == ()
    return replace(network, runtime=replace(network.runtime, framework="pytorch"))


def kept(network: Network, mode: Mode) -> NetworkMemory:
    """Without workspace, which is the algorithms' matter."""
    footprint = Footprint(network.layers, network.edges, network.runtime, mode, network.operations)
    return footprint.memory([0] * len(network.layers))


def on_no_device(name: str, shape: tuple[int, ...]) -> tuple[nn.Module, torch.Tensor]:
    with torch.device("meta"):
        return getattr(known_networks, name)(), torch.empty(shape)


def storages(value: Any) -> Iterator[tuple[int, int]]:
    """(identity, bytes) of the tensors in it."""
    for each in value if isinstance(value, tuple | list) else (value,):
        if isinstance(each, torch.Tensor):
            storage = each.untyped_storage()
            yield storage._cdata, storage.nbytes()


def saved(model: nn.Module, x: torch.Tensor) -> int:
    """Bytes that autograd keeps for the backward pass, parameters and buffers left out."""
    own = {storage for tensor in (*model.parameters(), *model.buffers()) for storage, _ in storages(tensor)}
    seen, todo, found = set(), [model(x).grad_fn], dict[int, int]()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for attribute in dir(node):
            if attribute.startswith("_saved_"):
                found.update(storages(getattr(node, attribute)))
        todo += [following for following, _ in node.next_functions]
    return sum(size for storage, size in found.items() if storage not in own)


@pytest.mark.parametrize("name", PEAKS_GIB)
def test_training_keeps_what_autograd_keeps(name: str) -> None:
    shape, peak_gib = PEAKS_GIB[name]
    model, x = on_no_device(name, shape)
    ours = kept(network_of(name, shape), "training")
    assert ours.activations == pytest.approx(saved(model.train(), x), rel=0.01)
    if peak_gib is not None:  # with workspace
        assert 0.9 < ours.total / GIB / peak_gib < 1


@pytest.mark.parametrize("name", ["resnet50_with_frozen_stages", "resnet50_behind_its_stem", "adapted"])
def test_of_frozen_layers_training_keeps_what_autograd_keeps(name: str) -> None:
    shape = (4, 3, 224, 224)
    model, x = on_no_device(name, shape)
    assert kept(network_of(name, shape), "training").activations == pytest.approx(saved(model.train(), x), rel=0.02)


@pytest.mark.parametrize("name", ["vgg16", "resnet50"])
def test_weights_are_those_of_convolutions_and_linear_layers(name: str) -> None:
    shape, _ = PEAKS_GIB[name]
    model, _ = on_no_device(name, shape)
    own = sum(p.numel() for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear) for p in m.parameters())
    assert kept(network_of(name, shape), "training").weights == 4 * own


class Uses(TorchDispatchMode):
    """Between which operations each tensor is in use."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: dict[int, tuple[int, int, int]] = {}
        self.operations = 0
        self.held: list[Any] = []  # so that no identity is used twice

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations += 1
        self.held.append((args, result))
        for value in (*args, *(result if isinstance(result, tuple | list) else (result,))):
            for storage, size in storages(value):
                first, _, _ = self.spans.get(storage, (self.operations, 0, 0))
                self.spans[storage] = first, self.operations, size
        return result


def live(name: str, shape: tuple[int, ...]) -> int:
    """The most bytes that are in use at once in inference, if each tensor goes with its last use."""
    model, x = on_no_device(name, shape)
    own = {storage for tensor in (*model.parameters(), *model.buffers()) for storage, _ in storages(tensor)}
    with torch.no_grad(), Uses() as uses:
        model.eval()(x)
    changes = [0] * (uses.operations + 2)
    for storage, (first, last, size) in uses.spans.items():
        if storage not in own:
            changes[first] += size
            changes[last + 1] -= size
    most = now = 0
    for change in changes:
        now += change
        most = max(most, now)
    return most


@pytest.mark.parametrize("name", PEAKS_GIB)
def test_inference_needs_the_tensors_that_are_in_use_at_once(name: str) -> None:
    (_, *image), _ = PEAKS_GIB[name]
    shape = (2, *image)
    assert kept(network_of(name, shape), "inference").activations == pytest.approx(live(name, shape), rel=0.01)


def test_inference_of_an_image_more_is_what_others_measured() -> None:
    """ResNet-50 in fp32 with eager PyTorch: 11.04 MB for each further image (huggingface/optimum-benchmark)."""
    ours = kept(network_of("resnet50", (8, 3, 224, 224)), "inference").activations / 8 / 1e6
    assert ours == pytest.approx(11.04, rel=0.25)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_the_convolutions(name: str) -> None:
    shape, _ = PEAKS_GIB[name]
    model, _ = on_no_device(name, shape)
    own = sum(p.numel() for m in model.modules() if isinstance(m, nn.Conv2d) for p in m.parameters())
    whole = sum(p.numel() for p in model.parameters())
    assert parameters(network_of(name, shape).layers) == own
    if any(isinstance(module, nn.Linear) and module.in_features > 4 for module in model.modules()):
        assert whole == pytest.approx(PARAMETERS[name] * 1e6, rel=0.01)
