"""A network has the same channels in common whichever way it comes: live, as ONNX, or as a spec written from it."""

import warnings
from collections import Counter
from pathlib import Path

import pytest
import torch
from cases import sampled
from odd_nets import Attentive, ConvNeXt, Gated, Halves, MobileNet, UNet, resnet, resnext

from convlint.model.channels import channels_of
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.inputs import decide, file_input
from convlint.readers.reading import Reading
from convlint.readers.spec.reader import read_spec
from convlint.readers.spec.writing import spec_text

NETS = {
    "resnet": resnet, "mobilenet": MobileNet, "unet": UNet, "resnext": resnext, "convnext": ConvNeXt,
    "attentive": Attentive, "gated": Gated, "halves": Halves,
}  # fmt: skip
pytestmark = pytest.mark.slow


def groups(network: Network) -> Counter[tuple[object, ...]]:
    """Width, layers that write and read it, in their order, how many linear ones do, divisor, whether it is fixed."""
    return Counter(
        (group.width, group.writers, group.readers, len(group.linear), group.multiple_of, bool(group.fixed))
        for group in channels_of(network).groups
        if group.writers or group.readers or group.linear
    )


@pytest.mark.parametrize("name", sampled(sorted(NETS), 8))
def test_live_onnx_and_spec_agree(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = NETS[name]().eval()
    path = tmp_path / f"{name}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this exporter is the older one
        torch.onnx.export(model, (torch.zeros(2, 3, 64, 64),), str(path), dynamo=False)
    monkeypatch.chdir(Path(__file__).parent / "helpers")
    with Reading() as reading:
        live, errors = reading.read(decide(f"odd_nets:{NETS[name].__name__}"), ReadOptions(inputs={"": "2x3x64x64"}))
        stored, more = reading.read(file_input(str(path)), ReadOptions())
    assert (errors, more) == ((), ())
    assert live is not None
    assert stored is not None
    found = groups(live)
    assert len(found) > 2
    assert any(not fixed for *_, fixed in found)
    assert groups(stored) == found
    written, _ = read_spec(spec_text(live), "x.yaml")
    assert written is not None
    assert groups(written) == found
