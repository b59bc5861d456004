"""What programs run on, and whether they have convolutions."""

import ast
from pathlib import Path
from time import process_time

import pytest
from training_scripts import programs

from convlint.readers.python.programs.entries import convolves, uses_class_of_convolutions


class TestConvolves:
    @pytest.mark.parametrize(
        "text",
        [
            "nn.Conv2d(3, 64, 7)",
            "nn.Conv2d(3, width(2, (4)), kernel_size=3, stride=2)",
            "nn.ConvTranspose2d(\n    64,\n    32,\n    kernel_size=2,\n)",
            "nn.Conv2d(3, 64, kernel_size=p, stride=p)\nnn.Conv2d(64, 64, kernel_size=3)",
            "nn.Conv2d(64, 64, kernel_size=1, stride=1)",
            "nn.Conv2d(3, 64, kernel_size=p, stride=p // 2)",
            "nn.Conv2d(3, 64",
            "F.conv2d(x, w, stride=4)",
            "net = torchvision.models.resnet18()",
            "from torchvision import datasets, models",
            "timm.create_model('vit_small_patch16_224')",
            "from timm.models import create_model, load_checkpoint",
            "from timm.models.resnetv2 import ResNetV2",
            "from monai.networks.nets import UNet",
            "from efficientnet_pytorch import EfficientNet",
            "from timm.layers import ConvNormAct",
        ],
    )
    def test_yes(self, text: str) -> None:
        assert convolves(text.encode())

    @pytest.mark.parametrize(
        "text",
        [
            "nn.Linear(3, 64)",
            "nn.Conv2d(3, 64, kernel_size=patch_size, stride=patch_size)",
            "nn.Conv2d(\n    3, dim(1),\n    kernel_size = (16, 16),\n    stride = (16, 16)\n)",
            "self.proj = nn.Conv3d(3, 64, stride=self.patch, kernel_size=self.patch, bias=False)",
        ],
    )
    def test_no(self, text: str) -> None:
        assert not convolves(text.encode())


class TestUsesClassOfConvolutions:
    @pytest.mark.parametrize(
        "text",
        [
            "class Conv(nn.Conv2d):\n    pass",
            "class Conv(Conv2d, Mixin):\n    pass",
            "conv3x3 = functools.partial(torch.nn.Conv2d, kernel_size=3)",
            "conv3x3 = partial(nn.LazyConv1d)",
            "conv = nn.ConvTranspose3d",
            "CONV = {2: nn.Conv2d, 3: nn.Conv3d}",
            "conv = (nn.Conv1d, nn.Conv2d)[dims - 1]",
            "conv = nn.Conv2d if flat else nn.Conv3d",
            "def block(width, *, layer=nn.Conv2d): pass",
            "net = Net(64, layer=nn.Conv2d)",
            "def layer():\n    return nn.Conv2d",
        ],
    )
    def test_yes(self, text: str) -> None:
        assert not convolves(text.encode())
        assert uses_class_of_convolutions(ast.parse(text))

    @pytest.mark.parametrize(
        "text",
        [
            "isinstance(m, nn.Conv2d)",
            "isinstance(m, (nn.Linear, nn.Conv2d))",
            "if type(m) is nn.Conv2d: pass",
            "KINDS = (nn.Linear, nn.Conv2d)",
            "def init(m: nn.Conv2d) -> nn.Conv2d: pass",
            "from torch.nn import Conv2d",
            "replace(net, nn.Conv2d)",
            "class Converted(nn.Module):\n    conv2d = None",
            "'class Conv(nn.Conv2d):'",
        ],
    )
    def test_no(self, text: str) -> None:
        assert not uses_class_of_convolutions(ast.parse(text))


SCRIPT = """
import torch
import torch.nn as nn
from torchvision import datasets
{above}
model = nn.Conv2d(3, 64, 3){move}
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for image, label in torch.utils.data.DataLoader(datasets.CIFAR10("d", train=True)):
    model(image).sum().backward()
    optimizer.step()
"""


class TestWhetherAGpuIsUsed:
    """Of a script that trains on the CPU nothing is said: what its comments and texts say of GPUs moves nothing."""

    @pytest.mark.parametrize(
        ("above", "move"),
        [
            ("", ".cuda()"),
            ("device = 'cuda:0' if torch.cuda.is_available() else 'cpu'", ".to(device)"),
            ("device = torch.device(f'cuda:{rank}')", ".to(device)"),
            ("torch.set_default_tensor_type(torch.cuda.FloatTensor)", ""),
            ("torch.cuda.set_device(1)", ".to(1)"),
            ("from torch.cuda.amp import autocast", ".to(1)"),
            ("", ".to(args.gpu)"),
            ("", ".to(args.local_gpu_id)"),
            ("from accelerate import Accelerator\naccelerator = Accelerator()", ""),
            ("torch.backends.cudnn.deterministic = True", ".to(where)"),
            ("def run(gpus=1):\n    pass", ""),
            ("device = torch.accelerator.current_accelerator()", ".to(device)"),
        ],
    )
    def test_used(self, tmp_path: Path, above: str, move: str) -> None:
        (found,) = programs(tmp_path, {"train.py": SCRIPT.format(above=above, move=move)})
        assert found.has_convolutions

    @pytest.mark.parametrize(
        ("above", "move"),
        [
            ("", ""),
            ("# device = torch.device('cuda')", ".to('mps')"),
            ("torch.backends.cudnn.enabled = False", ""),
            ("torch.cuda.manual_seed_all(0)\ntorch.cuda.empty_cache()", ""),
            ("print(torch.cuda.is_available(), 'no CUDA, no GPU')", ".to('cpu')"),
            ("'''\nmodel.cuda()\n'''", ""),
            ("print(torch.accelerator.is_available())", ".to('cpu')"),
        ],
    )
    def test_not_used(self, tmp_path: Path, above: str, move: str) -> None:
        assert programs(tmp_path, {"train.py": SCRIPT.format(above=above, move=move)}) == ()


TOY = "import torch\nw = torch.ones(3, requires_grad=True)\nw.sum().backward()\n"
NET = "from torchvision import models\nnet = models.resnet18().cuda()\nopt = torch.optim.SGD(net.parameters())\n"


@pytest.mark.parametrize(
    ("training", "line"),
    [
        ("for x, y in loader:\n    f(net(x), y).backward()\n    if y:\n        opt.step()\n", 8),
        ("def train():\n    f(net(x), y).backward()\n    opt.step()\ntrain()\n", 10),
        ("f(net(x), y).backward()\nopt.step()\n", 3),
    ],
)
def test_a_toy_before_the_training_is_not_where_it_begins(tmp_path: Path, training: str, line: int) -> None:
    (found,) = programs(tmp_path, {"train.py": TOY + NET + training})
    assert found.at.line == line


SCALED = """
import torch
from timm.utils import NativeScaler
from torchvision import models

def train(loader):
    model = models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss_scaler = NativeScaler()
    for image, label in loader:
        loss = torch.nn.functional.cross_entropy(model(image), label)
        {step}

if __name__ == "__main__":
    train(None)
"""


@pytest.mark.parametrize(
    ("step", "count"),
    [
        ("loss_scaler(\n            loss, optimizer, clip_grad=1.0, parameters=model.parameters())", 1),
        ("print(loss_scaler(loss))", 0),
        ("optimizer.zero_grad()", 0),
    ],
)
def test_a_scaler_of_timm_makes_the_step(tmp_path: Path, step: str, count: int) -> None:
    assert len(programs(tmp_path, {"train.py": SCALED.format(step=step)})) == count


def test_a_long_name_in_a_scaler_takes_no_time(tmp_path: Path) -> None:
    begin = process_time()
    programs(tmp_path, {"train.py": SCALED.format(step=f"loss_scaler({'loss' * 12_000}, 1)")})
    assert process_time() - begin < 5  # a quadratic search takes minutes of a file
