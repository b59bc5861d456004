"""Networks that people published: what the source says of their convolutions is what torch builds of it."""

import importlib
import importlib.util
import os

import pytest
from built_models import built, evaluated, machine_of
from cases import sampled

# One or two of each family, as (module, function); all of them are called without arguments.
MODELS = (
    "alexnet:alexnet", "zfnet:zfnet", "vgg:vgg11", "vgg:bn_vgg16", "bninception:bninception", "resnet:resnet10",
    "resnet:resnet18", "resnet:resnet50", "resnet:resnetbc26b", "preresnet:preresnet18", "resnext:resnext50_32x4d",
    "seresnet:seresnet18", "sepreresnet:sepreresnet18", "seresnext:seresnext50_32x4d", "senet:senet16",
    "resnesta:resnestabc14", "ibnresnet:ibn_resnet50", "ibnresnext:ibn_resnext50_32x4d",
    "ibndensenet:ibn_densenet121", "airnet:airnet50_1x64d_r2", "airnext:airnext50_32x4d_r2",
    "bamresnet:bam_resnet18", "cbamresnet:cbam_resnet18", "resattnet:resattnet56", "sknet:sknet50", "scnet:scnet50",
    "diaresnet:diaresnet18", "pyramidnet:pyramidnet101_a360", "diracnetv2:diracnet18v2", "densenet:densenet121",
    "condensenet:condensenet74_c4_g4", "sparsenet:sparsenet121", "peleenet:peleenet", "wrn:wrn50_2", "dpn:dpn68",
    "darknet:darknet_tiny", "darknet53:darknet53", "irevnet:irevnet301", "bagnet:bagnet9", "dla:dla34",
    "hrnet:hrnet_w18_small_v1", "vovnet:vovnet39", "selecsls:selecsls42", "squeezenet:squeezenet_v1_0",
    "squeezenext:sqnxt23_w1", "shufflenet:shufflenet_g1_w1", "shufflenetv2:shufflenetv2_wd2",
    "shufflenetv2b:shufflenetv2b_w1", "menet:menet108_8x1_g3", "mobilenet:mobilenet_w1",
    "fdmobilenet:fdmobilenet_w1", "mobilenetv2:mobilenetv2_w1", "mobilenetv3:mobilenetv3_small_w7d20",
    "igcv3:igcv3_w1", "ghostnet:ghostnet", "mnasnet:mnasnet_a1", "proxylessnas:proxylessnas_cpu", "fbnet:fbnet_cb",
    "xception:xception", "inceptionv3:inceptionv3", "inceptionv4:inceptionv4",
    "inceptionresnetv1:inceptionresnetv1", "polynet:polynet", "nasnet:nasnet_4a1056", "pnasnet:pnasnet5large",
    "spnasnet:spnasnet", "efficientnet:efficientnet_b0", "efficientnet:efficientnet_b0", "mixnet:mixnet_s",
    "nin_cifar:nin_cifar10", "resnet_cifar:resnet20_cifar10", "densenet_cifar:densenet40_k12_cifar10",
    "wrn_cifar:wrn16_10_cifar10", "pspnet:pspnet_resnetd50b_voc", "deeplabv3:deeplabv3_resnetd50b_voc",
    "icnet:icnet_resnetd50b_cityscapes", "bisenet:bisenet_resnet18_celebamaskhq",
    "danet:danet_resnetd50b_cityscapes", "unet:unet_cityscapes", "darts:darts",
)  # fmt: skip
_SHARES = 9


@pytest.mark.slow
@pytest.mark.parametrize("first", sampled(range(_SHARES), 3))
def test_the_convolutions_of_published_networks_are_those_that_torch_builds(first: int) -> None:
    import torch

    spec = importlib.util.find_spec("pytorchcv")
    assert spec is not None, "pip install --no-deps pytorchcv==0.0.74 (with what it asks for, another torch would come)"
    assert spec.origin is not None
    folder = os.path.dirname(spec.origin)
    path = os.path.join(folder, "uses_of_models.py")  # a text that is not there: it calls each function once
    pairs = [model.split(":") for model in MODELS[first::_SHARES]]
    lines = [f"from .models.{module} import {name} as make_{at}\ndef use_{at}():\n    return make_{at}()\n"
             for at, (module, name) in enumerate(pairs)]  # fmt: skip
    machine = machine_of(folder, path, "".join(lines))
    wrong: list[str] = []
    for at, (module, name) in enumerate(pairs):
        with torch.device("meta"):
            real = built(getattr(importlib.import_module(f"pytorchcv.models.{module}"), name)())
        assert real
        if evaluated(machine, path, f"use_{at}") != real:
            wrong.append(name)
    assert not wrong
