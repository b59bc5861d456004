from pathlib import Path

import pytest
from training_scripts import program, programs

HEAD = """
import random
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms
import torchvision.transforms.v2 as T
import albumentations as A
"""
LOOP = """
model = nn.Conv2d(3, 64, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for image, label in DataLoader(data, batch_size=8):
    model(image).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("data", "fixed", "words"),
    [
        ("data = datasets.CIFAR100('d', train=True)", True, ["CIFAR100"]),
        ("data = torchvision.datasets.MNIST('d', transform=transforms.Resize(64))", True, ["MNIST", "Resize(64)"]),
        (
            "t = {'train': T.Compose([T.RandomResizedCrop(224)]), 'val': T.Compose([T.CenterCrop(224)])}\n"
            "sets = {x: datasets.ImageFolder(x, t[x]) for x in ['train', 'val']}\ndata = sets['train']",
            True,
            ["ImageFolder", "RandomResizedCrop(224)"],
        ),
        (
            "t = {'train': T.Compose([T.RandomResizedCrop(224)]), 'val': T.Compose([T.Resize(256)])}\n"
            "sets = {x: datasets.ImageFolder(x, t[x]) for x in ['train', 'val']}\ndata = sets['train']",
            None,
            [],
        ),
        (
            "class Pairs(datasets.CIFAR10):\n    pass\ndata = Pairs('d', train=True, transform=unknown())",
            True,
            ["Pairs"],
        ),
        ("class Pairs(datasets.CIFAR10):\n    pass\ndata = Pairs('d', train=False)", None, []),
        # each image of the evaluation has a size of its own
        (
            "data = datasets.ImageFolder('d', transforms.RandomCrop(224))\n"
            "val_data = datasets.ImageFolder('v', transforms.Resize(256))\n"
            "DataLoader(val_data, batch_size=1)",
            None,
            [],
        ),
        *(
            (
                "data = datasets.ImageFolder('d', transforms.RandomCrop(224))\n"
                f"val_data = datasets.ImageFolder('v', transforms.Resize(256))\nDataLoader(val_data{size})",
                fixed,
                words,
            )
            for size, fixed, words in (
                ("", None, []),
                (", 1", None, []),
                (", num_workers=4", None, []),
                (", 8", True, ["ImageFolder", "RandomCrop(224)"]),
                (", num_workers=4, batch_size=8", True, ["ImageFolder", "RandomCrop(224)"]),
            )
        ),
        (
            "data = datasets.ImageFolder('d', transforms.RandomCrop(224))\n"
            "val_data = datasets.ImageFolder('v', transforms.Resize((256, 256)))\n"
            "DataLoader(val_data, batch_size=1)",
            True,
            ["ImageFolder", "RandomCrop(224)"],
        ),
        ("class Pairs(datasets.CIFAR10):\n    pass\ndata = Pairs('d', T.ScaleJitter(9))", False, ["ScaleJitter(9)"]),
        ("class Pairs(datasets.ImageFolder):\n    pass\ndata = Pairs('d')", None, []),
        (
            "data = datasets.ImageFolder('d', transform=A.Compose([A.Resize(SIDE, SIDE), A.HorizontalFlip()]))",
            True,
            ["ImageFolder", "Resize(SIDE, SIDE)"],
        ),
        ("data = datasets.ImageFolder('d', transform=transforms.Resize(SIDE, BICUBIC))", None, []),
        (
            "kind = datasets.CIFAR10 if many else datasets.CIFAR100\ndata = kind('d', train=True)",
            None,
            [],
        ),
        (
            "if few:\n    kind = datasets.CIFAR10\nelse:\n    kind = datasets.CIFAR100\n"
            "data = kind(root='d', train=True, transform=transforms.Compose([transforms.RandomCrop(32, 4)]))",
            True,
            ["CIFAR10 or CIFAR100", "RandomCrop(32, 4)"],
        ),
        ("kind = datasets.CIFAR10\nif big:\n    kind = datasets.ImageFolder\ndata = kind('d')", None, []),
        ("kind = datasets.CIFAR10\nif mine:\n    kind = unknown()\ndata = kind('d')", None, []),
        ("kind = datasets.SVHN\ndata = kind('d', split='test')", None, []),
        ("data = datasets.STL10('d', split='train', transform=unknown())", True, ["STL10"]),
        ("data = datasets.ImageFolder('d')", None, []),
        ("data = datasets.ImageFolder('d', transforms.Resize(224))", None, []),
        (
            "data = datasets.ImageFolder('d', transforms.Resize((224, 224)))",
            True,
            ["ImageFolder", "Resize((224, 224))"],
        ),
        (
            "t = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])\n"
            "data = datasets.ImageFolder('d', transform=t)",
            True,
            ["ImageFolder", "CenterCrop(224)"],
        ),
        (
            "t = {'train': T.Compose([T.RandomResizedCrop(224)]), 'val': T.Compose([T.Resize(256)])}\n"
            "data = datasets.ImageFolder('d', transform=t['train'])\n"
            "val = datasets.ImageFolder('v', transform=t['val'])",
            True,
            ["ImageFolder", "RandomResizedCrop(224)"],
        ),
        (
            "data = datasets.ImageFolder('d', transforms.Compose([transforms.Resize(random.choice([224, 256]))]))",
            False,
            ["Resize(random.choice([224, 256]))"],
        ),
        ("data = datasets.ImageFolder('d', T.ScaleJitter((300, 300)))", False, ["ScaleJitter((300, 300))"]),
        (
            "def build(train):\n    return A.Compose([A.RandomCrop(width=256, height=256)])\n"
            "data = datasets.ImageFolder('d', transform=build(True))",
            True,
            ["ImageFolder", "RandomCrop(width=256, height=256)"],
        ),
        (
            "class Faces(Dataset):\n    def __init__(self, root, steps):\n        self.t = transforms.Compose(steps)\n"
            "steps = [transforms.Resize((64, 64)), transforms.ToTensor()]\n"
            "data = Faces('d', steps)",
            True,
            ["Faces", "Resize((64, 64))"],
        ),
        (
            "class Faces(Dataset):\n    def __init__(self, root):\n"
            "        self.t = transforms.Compose([transforms.ToTensor()])\n"
            "data = Faces('d')",
            None,
            [],
        ),
        ("data = [(torch.rand(3, 32, 32), 1)]", None, []),
        (
            "data = datasets.CIFAR10('d')\n"
            "def resize(x):\n    return F.interpolate(x, size=random.choice([24, 32]))\nresize(data)",
            None,
            [],
        ),
        ("multi_scale = True\ndata = datasets.CIFAR10('d')", None, []),
        (
            "def collate(batch):\n    return F.interpolate(batch, size=random.choice([24, 32]))\n"
            "data = datasets.CIFAR10('d', transforms.Resize(32))\nDataLoader(data, collate_fn=collate)",
            None,
            [],
        ),
        *(
            (
                f"def cut(x):\n    n = random.randint(0, 8)\n    return x.{body}\n"
                "data = datasets.ImageFolder('d', transforms.Compose([transforms.Resize((32, 32)), "
                f"transforms.Lambda({code})]))",
                fixed,
                ["ImageFolder", "Resize((32, 32))"] if fixed else [],
            )
            for code, body, fixed in (
                # always of one size
                ("lambda x: x.crop((0, 0, 24, 24)).rotate(4)", "x", True),
                ("lambda x: x.rotate(random.choice([0, 90]))", "x", True),
                ("cut", "crop((n, n, n + 24, n + 24))", True),
                # of several
                ("lambda x: x.resize((random.choice([24, 32]), 24))", "x", None),
                ("lambda x: T.resize(x, random.choice([24, 32]))", "x", None),
                ("lambda x: T.crop(x, 0, 0, random.randint(16, 32), 24)", "x", None),
                ("lambda x: x.crop((0, 0, random.randint(16, 32), 24))", "x", None),
                ("lambda x: T.resized_crop(x, 0, 0, 24, 24, random.choice([24, 32]))", "x", None),
                ("lambda x: T.resized_crop(x, 0, 0, random.randint(16, 32), 24, 24)", "x", None),
                ("lambda x: x.resize((24, 24)) if random.random() < 0.5 else x", "x", None),
                ("lambda x: random.choice([x, x.resize((24, 24))])", "x", None),
                ("lambda x: x.resize((24, 24), random.choice([x, 3]))", "x", None),
                ("cut", "resize((24 + n, 24 + n))", None),
                # what of it is drawn is not told apart
                ("lambda x: x.resize((24, 24), random.choice([2, 3]))", "x", None),
                ("lambda x: T.resize(x, (24, 24), interpolation=random.choice([2, 3]))", "x", None),
                ("lambda x: T.crop(x, random.randint(0, 8), random.randint(0, 8), 24, 24)", "x", None),
                ("lambda x: T.crop(x, random.randint(0, x.height - 24), left=0, height=24, width=24)", "x", None),
                ("lambda x: T.resized_crop(x, 0, 0, random.randint(16, 32), 24, (24, 24))", "x", None),
            )
        ),
        *(
            (
                "data = datasets.ImageFolder('d', transforms.Compose([T.RandomResize(24, 32), "
                f"transforms.Lambda(lambda x: {body})]))",
                fixed,
                words,
            )
            for body, fixed, words in (
                ("x.resize((24, 24))", None, []),
                ("T.crop(x, random.randint(0, 8), random.randint(0, 8), 24, 24)", None, []),
                ("x.rotate(random.choice([0, 90]))", False, ["RandomResize(24, 32)"]),
            )
        ),
        *(
            (
                f"class Box:\n    def __call__(self, x):\n        n = random.choice([24, 32])\n        x.{body}\n"
                "data = datasets.ImageFolder('d', transforms.Compose([transforms.Resize((32, 32)), Box()]))",
                fixed,
                words,
            )
            for body, fixed, words in (
                ("resize((n, n))", None, []),
                ("resize((n, n)).crop((0, 0, 24, 24))", True, ["ImageFolder", "Resize((32, 32))"]),
                ("rotate(n)", True, ["ImageFolder", "Resize((32, 32))"]),
            )
        ),
        (
            "def collate(batch):\n    return tuple(zip(*batch))\n"
            "data = datasets.CocoDetection('d', 'a')\nloader = DataLoader(data, collate_fn=collate)",
            False,
            ["collate_fn makes lists"],
        ),
        *(
            (
                f"def collate(batch):\n    a, b = zip(*batch)\n    {body}\n"
                "from torch.nn.utils.rnn import pad_sequence\n"
                "data = datasets.CocoDetection('d', 'a')\nloader = DataLoader(data, collate_fn=collate)",
                fixed,
                words,
            )
            for body, fixed, words in (
                ("return list(a), list(b)", False, ["collate_fn makes lists"]),
                ("return a, b", False, ["collate_fn makes lists"]),
                ("return torch.stack(a), list(b)", None, []),
                (
                    "return pad_sequence(a, batch_first=True), torch.tensor([len(x) for x in a]), b",
                    False,
                    ["collate_fn pads to the longest item"],
                ),
                # the images may have one size beside texts that have not
                ("return torch.stack(a), pad_sequence(b)", None, []),
                ("return F.pad(pad_sequence(a), (0, 9)), b", None, []),
                ("return sizes.fit(a), list(b)", None, []),
            )
        ),
        (
            "data = datasets.CIFAR10('d')\nother = datasets.ImageFolder('x')",
            None,
            [],
        ),
        ("data = datasets.CIFAR10('d')\ntest_data = datasets.ImageFolder('x')", True, ["CIFAR10"]),
    ],
)
def test_what_the_data_show(tmp_path: Path, data: str, fixed: bool | None, words: list[str]) -> None:
    found = program(tmp_path, HEAD + data + LOOP)
    assert found.fixed_input_size is fixed
    assert [each for each, _ in found.evidence] == words
    assert all(at.path == "train.py" for _, at in found.evidence)


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("image = F.interpolate(image, size=(side, side))", None),
        ("image = F.interpolate(image.cuda(), scale_factor=side / 32)", None),
        ("image = torchvision.transforms.functional.resize(image, [side, side])", None),
        ("image = F.interpolate(input=image, size=side)", None),
        ("x = image.cuda()\n    image = F.interpolate(x, size=side)", None),
        ("image = F.interpolate(image[:32], size=side)", None),
        ("image = F.interpolate(image, size=int(image.shape[2] * random.uniform(0.5, 1)))", None),
        ("image = nn.Upsample(size=side)(image)", None),
        ("image = transforms.Resize(side)(image)", None),
        ("image = torchvision.transforms.functional.resized_crop(image, 0, 0, 9, 9, side)", None),
        ("image = F.adaptive_avg_pool2d(image, side)", None),
        ("image = image[:, :, :random.randint(20, 32)]", None),
        ("image = image[..., :side]", None),
        ("image = F.pad(image, (side, side, side, side))", None),
        ("image = F.avg_pool2d(image, random.choice([1, 2]))", None),
        ("crop.size = (16 + epoch, 16 + epoch)", None),
        ("image = F.pad(image, (4, 4, 4, 4))", True),
        ("crop.size = (32, 32)", True),
        ("order = BucketSampler(data)", None),
        ("order = by_size(data, aspect_ratio_buckets)", None),
        ("order = make(data, length_bucket=4)", None),
        ("buckets = torch.argmax(image, dim=-1)", True),
        ("net = wrap(net, bucket_cap_mb=25, allreduce_bucket=4)", True),
        ("image = scale(image)", None),
        ("image = flip(image)", True),
        ("image = image[:side]", True),
        ("image = image[:, :, :24, :24]", True),
        ("image[:, :, :side] = image[order, :, :side]", True),  # a patch of another image
        ("image = nn.Upsample(size=64)(image)", True),
        ("image = F.interpolate(image, size=(64, 64))", True),
        ("label = F.interpolate(label, size=image.shape[2:])", True),  # what the model gives is held against it
        ("out = F.interpolate(model(image), size=label.shape[2:])", True),
    ],
)
def test_what_becomes_of_a_batch_before_the_model_reads_it(tmp_path: Path, line: str, fixed: bool | None) -> None:
    loop = LOOP.replace("    model(image)", f"    {line}\n    model(image)")
    helpers = "def scale(x):\n    return F.interpolate(x, size=SIDES[len(x) % 3])\ndef flip(x):\n    return x.flip(3)\n"
    data = "side = random.choice([24, 32])\ndata = datasets.CIFAR10('d')\n"
    found = program(tmp_path, HEAD + helpers + data + loop)
    assert found.fixed_input_size is fixed


@pytest.mark.parametrize(
    ("method", "fixed"),
    [
        ("forward(self, x, side):\n        for f in self.parts:\n            x = F.interpolate(x, size=side)", True),
        ("features(self, x, side):\n        for f in self.parts:\n            x = F.interpolate(x, size=side)", True),
        ("forward(self, x):\n        x = F.interpolate(x, size=random.choice([24, 32]))", None),
    ],
)
def test_what_a_network_scales_is_not_its_input_unless_at_random(
    tmp_path: Path, method: str, fixed: bool | None
) -> None:
    net = f"class Net(nn.Module):\n    def {method}\n"
    found = program(tmp_path, HEAD + net + "Net()\ndata = datasets.CIFAR10('d')\n" + LOOP)
    assert found.fixed_input_size is fixed


def test_a_data_set_that_the_program_does_not_reach(tmp_path: Path) -> None:
    helper = (
        HEAD + "def cifar():\n    return datasets.CIFAR10('d')\ndef folder():\n    return datasets.ImageFolder('d')\n"
    )
    found = programs(tmp_path, {"data.py": helper, "train.py": HEAD + "import data as d\ndata = d.cifar()" + LOOP})
    assert [each.fixed_input_size for each in found] == [True]


AMP = """
import contextlib, torch
from torch.cuda.amp import autocast
def step(model, criterion, optimizer, scaler, x, y):
"""
HELPERS = """
def mixed():
    return autocast()
def either():
    return profile() if x else autocast()
"""


@pytest.mark.parametrize(
    ("body", "backward", "loss"),
    [
        ("    with autocast():\n        loss = criterion(model(x), y)\n        loss.backward()\n", [7], []),
        ("    with torch.autocast('cuda'):\n        scaler.scale(criterion(model(x), y)).backward()\n", [6], []),
        ("    with autocast():\n        loss = criterion(model(x), y)\n    loss.backward()\n", [], []),
        ("    with autocast(enabled=False):\n        loss.backward()\n", [], []),
        ("    with autocast(False):\n        loss.backward()\n", [], []),
        ("    with autocast():\n        def later():\n            loss.backward()\n", [], []),
        ("    with autocast():\n        with autocast(enabled=False):\n            loss.backward()\n", [], []),
        ("    with other.autocast():\n        loss.backward()\n", [], []),
        ("    ctx = autocast()\n    with ctx:\n        loss.backward()\n", [7], []),
        ("    ctx = autocast()\n    with ctx:\n        loss = criterion(model(x), y)\n    loss.backward()\n", [], []),
        (
            "    ctx = contextlib.nullcontext() if d == 'cpu' else autocast()\n"
            "    with ctx:\n        loss.backward()\n",
            [7],
            [],
        ),
        ("    ctx = contextlib.nullcontext()\n    with ctx:\n        loss.backward()\n", [], []),
        ("    ctx = autocast()\n    ctx = profile()\n    with ctx:\n        loss.backward()\n", [], []),
        ("    ctx = autocast() if x else contextlib.nullcontext()\n    with ctx:\n        loss.backward()\n", [], []),
        ("    self.ctx = autocast()\n    with no_sync(), self.ctx:\n        loss.backward()\n", [7], []),
        ("    with ctx():\n        loss.backward()\n", [], []),
        ("    with mixed():\n        loss.backward()\n", [6], []),
        ("    with either():\n        loss.backward()\n", [], []),
        ("    ctx = ctx\n    with ctx:\n        loss.backward()\n", [], []),
        ("    with autocast(x):\n        if x:\n            y\n        else:\n            loss.backward()\n", [], []),
        ("    with autocast(x):\n        if not x:\n            loss.backward()\n", [], []),
        ("    with autocast(x):\n        if y:\n            loss.backward()\n", [7], []),
        ("    out = model(x)\n    with autocast():\n        loss = criterion(out, y)\n", [], [5]),
        ("    out = self.model(x)\n    with autocast():\n        l = loss_fn(out, y)\n        l = l / 4\n", [], [5]),
        ("    with autocast():\n        out = model(x)\n        loss = criterion(out, y)\n", [], []),
        ("    out = model(x)\n    with autocast():\n        loss = criterion(head(out), y)\n", [], []),
        ("    out = prepare(x)\n    with autocast():\n        loss = criterion(out, y)\n", [], []),
        (
            "    with autocast():\n        out = model(x)\n"
            "        with autocast():\n            loss = criterion(out, y)\n",
            [],
            [],
        ),
    ],
)
def test_autocast(tmp_path: Path, body: str, backward: list[int], loss: list[int]) -> None:
    found = programs(tmp_path, {"engine.py": AMP + body + HELPERS})
    assert [at.line for each in found for at in each.backward_in_autocast] == backward
    assert [at.line for each in found for at in each.autocast_around_loss] == loss
    assert programs(tmp_path, {"tests/engine.py": AMP + body}, paths=["tests/engine.py"]) == ()


@pytest.mark.parametrize(
    ("block", "inside"),
    [
        ("autocast()", True),
        ("autocast(True)", True),
        ("torch.autocast('cuda', dtype=torch.bfloat16)", True),
        ("torch.autocast('cuda', enabled=True)", True),
        ("autocast(args.amp)", False),
        ("torch.autocast('cuda', enabled=args.amp)", False),
        ("torch.autocast('cuda', enabled=False)", False),
        ("torch.no_grad()", False),
        ("torch.no_grad(), autocast()", False),
        ("autocast(), autocast(False)", False),
        ("torch.autocast(device.type)", True),
        ("torch.autocast(device.type, enabled=device.type == 'cuda')", True),
        ("autocast(torch.cuda.is_available())", True),
        ("autocast(device.type != 'cuda')", False),
        ("torch.autocast('cpu')", False),
        ("torch.autocast('cuda', torch.float16, False)", False),
        ("ctx", True),
    ],
)
def test_a_program_trains_its_model_in_autocast(tmp_path: Path, block: str, inside: bool) -> None:
    """Also where the call stands in another file."""
    engine = (
        "ctx = contextlib.nullcontext() if 'cpu' in device else autocast()\n"
        + AMP
        + f"    with {block}:\n        loss = criterion(model(x), y)\n    loss.backward()\n"
    )
    train = """
import torch
from engine import step
model = torch.nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(data):
    step(model, criterion, optimizer, None, x, y)
    penalty(model).backward()
    optimizer.step()
"""
    found = programs(tmp_path, {"train.py": train, "engine.py": engine})
    assert {each.in_autocast for each in found if each.path == "train.py"} == {inside}


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        ("accelerate.Accelerator(mixed_precision='bf16')", True),
        ("lightning.Trainer(precision='16-mixed')", True),
        ('lightning.Fabric(precision = "bf16-true")', True),
        ("transformers.TrainingArguments('out', fp16=True)", True),
        ("lightning.Trainer(precision=16)", True),
        ("composer.Trainer(precision='amp_bf16')", True),
        ("fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))", True),
        ("model.to(torch.bfloat16)", True),
        ("model = Net().to('cuda', dtype=torch.float16)", True),
        ("self.net = build(3).cuda().half()", True),
        ("torch.set_default_dtype(torch.float64)", True),
        ("deepspeed.initialize(config={'bf16': {'enabled': True}})", True),
        ("deepspeed.initialize(config={'bf16': {'enabled': False}, 'x': {'enabled': True}})", False),
        ("@torch.autocast('cuda', dtype=torch.bfloat16)\ndef forward(net, x):\n    return net(x)", True),
        ("@torch.autocast('cuda', enabled=False)\ndef forward(net, x):\n    return net(x)", False),
        ("@torch.autocast('cuda', dtype=torch.float32)\ndef forward(net, x):\n    return net(x)", False),
        ("torch.set_default_dtype(torch.float32)", False),
        ("vae.to(torch.bfloat16)", False),
        ("out = model(x.to(torch.bfloat16))", False),
        ("lightning.Trainer(precision=32)", False),
        ("accelerate.Accelerator(mixed_precision='no')", False),
        ("lightning.Trainer(precision='32-true')", False),
        ("transformers.TrainingArguments('out', fp16=False)", False),
        ("torch.set_float32_matmul_precision('high')", False),
    ],
)
def test_a_trainer_that_computes_in_16_bits(tmp_path: Path, line: str, inside: bool) -> None:
    found = program(tmp_path, HEAD + f"import accelerate, lightning, transformers\n{line}\ndata = []\n" + LOOP)
    assert found.in_autocast is inside


class TestGrowingImages:
    """A loop that makes its data anew in another size: what is tuned for one is of no use for the next."""

    MAKER = """
def loader_of(batch, size):
    steps = transforms.Compose([transforms.Resize((size, size)), transforms.ToTensor()])
    return DataLoader(datasets.ImageFolder("d", transform=steps), batch_size=batch)

def fit(data):
    model = nn.Conv2d(3, 64, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image, label in data:
        model(image).sum().backward()
        optimizer.step()
"""

    @pytest.mark.parametrize(
        "text",
        [
            "step = 0\nfor epochs in [8, 8, 8]:\n    fit(loader_of(16, 4 * 2 ** step))\n    step += 1\n",
            "for side in (64, 128):\n    fit(loader_of(batch=16, size=side))\n",
            "while True:\n    side = pick()\n    fit(loader_of(16, side))\n",
            "for side in (64, 128):\n    t = transforms.Compose([transforms.CenterCrop(side), transforms.ToTensor()])\n"
            "    fit(DataLoader(datasets.ImageFolder('d', transform=t)))\n",
            "t = transforms.Compose([transforms.CenterCrop(64), RandomScale()])\n"
            "fit(DataLoader(datasets.ImageFolder('d', transform=t)))\n",
        ],
    )
    def test_unknown(self, tmp_path: Path, text: str) -> None:
        own = "class RandomScale:\n    pass\n"
        assert program(tmp_path, HEAD + own + self.MAKER + text).fixed_input_size is None

    @pytest.mark.parametrize(
        "text",
        [
            "fit(loader_of(16, 64))\n",
            "for batch in (8, 16):\n    fit(loader_of(batch, 64))\n",
            "for fold in range(5):\n    fit(loader_of(size=args.size, batch=fold))\n",
            "SIDE = 64\nfor fold in range(5):\n    fit(loader_of(16, SIDE))\n",
        ],
    )
    def test_one_size(self, tmp_path: Path, text: str) -> None:
        assert program(tmp_path, HEAD + self.MAKER + text).fixed_input_size is True


@pytest.mark.parametrize(
    ("lines", "fixed"),
    [
        ("sound, rate = soundfile.read(path)\n        model(torch.tensor(sound[None]))", None),
        ("image = cv2.imread(path)\n        model(torch.tensor(image)[None])", None),
        ("image = Image.open(path)\n        model(to_tensor(image))", None),
        # of one size again
        ("image = cv2.resize(cv2.imread(path), (64, 64))\n        model(torch.tensor(image)[None])", True),
        ("image = transform(Image.open(path))\n        model(image[None])", True),
        # no images, or none that the network reads
        ("names = open(path).read()\n        model(names)", True),
        ("weights = torch.load(path)\n        model.load_state_dict(weights)", True),
    ],
)
def test_a_program_that_evaluates_file_by_file(tmp_path: Path, lines: str, fixed: bool | None) -> None:
    own = "import cv2\nimport soundfile\nfrom PIL import Image\n"
    own += f"@torch.no_grad()\ndef evaluate(paths):\n    for path in paths:\n        {lines}\n"
    found = program(tmp_path, HEAD + own + "data = datasets.CIFAR10('d')" + LOOP + "evaluate(sorted(paths))\n")
    assert found.fixed_input_size is fixed


SAMPLERS = "from torch.utils.data import RandomSampler\nfrom torch.utils.data.distributed import DistributedSampler\n"
OWN = """
class Scans(Dataset):
    def __getitem__(self, index):
        return read(index)


def get_loader(path, batch_size, shuffle=True):
    return DataLoader(Scans(path), batch_size=batch_size, shuffle=True)


parser.add_argument("--batch-size", "-b", type=int, default=16)
parser.add_argument("--test-batch", type=int, default=1)
many = 4
"""
TRAINS = LOOP.replace("DataLoader(data, batch_size=8)", "train")


@pytest.mark.parametrize(
    ("loads", "words"),
    [
        ("train = DataLoader(Scans(p), batch_size=12, shuffle=True)", ["DataLoader stacks 12 of them"]),
        ("train = DataLoader(Scans(p), 12, True, num_workers=4)", ["DataLoader stacks 12 of them"]),
        ("train = DataLoader(Scans(p), many, shuffle=True, drop_last=True)", ["DataLoader stacks 4 of them"]),
        ("train = DataLoader(Scans(p), args.batch_size, shuffle=True)", ["DataLoader stacks 16 of them"]),
        ("train = get_loader(p, args.batch_size)", ["DataLoader stacks 16 of them"]),
        (
            "train = DataLoader(Scans(p), 12, shuffle=True)\nval = DataLoader(Scans(v), 2)",
            ["DataLoader stacks 12 of them"],
        ),
        (
            "train = DataLoader(Scans(p), args.batch_size, shuffle=True)\n"
            "val = DataLoader(Scans(v), args.batch_size * 2)",
            ["DataLoader stacks 16 of them"],
        ),
        ("train = DataLoader(Scans(p), 3 * many, shuffle=True)", ["DataLoader stacks 12 of them"]),
        ("size = args.batch_size\ntrain = DataLoader(Scans(p), size, shuffle=True)", ["DataLoader stacks 16 of them"]),
        ("size = many * 2\ntrain = DataLoader(Scans(p), size, shuffle=True)", ["DataLoader stacks 8 of them"]),
        ("size = args.test_batch\ntrain = DataLoader(Scans(p), size, shuffle=True)", []),
        ("size = size * 2\ntrain = DataLoader(Scans(p), size, shuffle=True)", []),
        ("train = DataLoader(Scans(p), many // 4, shuffle=True)", []),
        ("train = DataLoader(Scans(p), 2 * side, shuffle=True)", []),
        (
            "train = DataLoader(Scans(p), 12, shuffle=True)\nfor x in y:\n    model.get_loader()",
            ["DataLoader stacks 12 of them"],
        ),
        ("train = DataLoader(Scans(p), 12, shuffle=True)\nfor x in y:\n    x[0]()", ["DataLoader stacks 12 of them"]),
        (
            "if spread:\n    s = DistributedSampler(d)\nelse:\n    s = RandomSampler(d)\n"
            "train = DataLoader(d, 12, sampler=s)",
            ["DataLoader stacks 12 of them"],
        ),
        (
            "s = DistributedSampler(d) if spread else None\ntrain = DataLoader(d, 12, shuffle=s is None, sampler=s)",
            ["DataLoader stacks 12 of them"],
        ),
        (
            "more = {'num_workers': 1, 'pin_memory': True} if cuda else {}\n"
            "train = DataLoader(Scans(p), batch_size=12, shuffle=True, **more)",
            ["DataLoader stacks 12 of them"],
        ),
        ("more = {'collate_fn': pad} if cuda else {}\ntrain = DataLoader(d, batch_size=12, shuffle=True, **more)", []),
        ("more = {}\nmore['collate_fn'] = pad\ntrain = DataLoader(d, batch_size=12, shuffle=True, **more)", []),
        ("more = {}\nmore.update(others)\ntrain = DataLoader(d, batch_size=12, shuffle=True, **more)", []),
        *(
            (f"def load(path, n{default}):\n    return DataLoader(Scans(path), n, shuffle=True)\n{calls}", words)
            for default, calls, words in (
                ("", "train = load(p, 24)", ["DataLoader stacks 24 of them"]),
                ("", "train = load(p, n=args.batch_size)", ["DataLoader stacks 16 of them"]),
                ("=4", "train = load(p)", ["DataLoader stacks 4 of them"]),
                ("", "train = load(p, 24)\nvalid = load(v, 1)", []),
                ("=1", "train = load(p)", []),
                ("=4", "train = load(p, side)", []),
                ("=4", "train = load(*both)", []),
            )
        ),
        # what a data set draws is no other size: a batch of such cannot be stacked
        (
            "class Drawn(Dataset):\n    def __getitem__(self, i):\n        size = random.choice([1, 2])\n"
            "        for image in self.images:\n            image = F.interpolate(image, size=size)\n"
            "train = DataLoader(Drawn(p), 12, shuffle=True)",
            ["DataLoader stacks 12 of them"],
        ),
        # one by one, each may have a size of its own, and so may what comes in order
        ("s = DistributedSampler(d) if spread else None\ntrain = DataLoader(d, 12, sampler=s)", []),
        ("s = BySize(d)\ntrain = DataLoader(d, 12, sampler=s)", []),
        ("train = DataLoader(d, 12, batch_sampler=BySize(d))", []),
        ("train = DataLoader(Scans(p), shuffle=True)", []),
        ("train = DataLoader(Scans(p), 1, shuffle=True)", []),
        ("train = DataLoader(Scans(p), 12)", []),
        ("train = DataLoader(Scans(p), args.test_batch, shuffle=True)", []),
        ("train = DataLoader(Scans(p), args.other, shuffle=True)", []),
        ("train = DataLoader(Scans(p), 12, shuffle=True)\nval = DataLoader(Scans(v), batch_size=args.test_batch)", []),
        ("train = DataLoader(Scans(p), 12, shuffle=True)\nscore(torch.unsqueeze(data_val[0], 0))", []),
        ("train = DataLoader(Scans(p), 12, shuffle=True, collate_fn=padded)", []),
        ("train = DataLoader(Scans(p), 12, shuffle=True, **more)", []),
        ("for side in sides:\n    train = DataLoader(Scans(side), 12, shuffle=True)", []),
        ("for side in sides:\n    train = get_loader(side, args.batch_size)", []),
    ],
)
def test_what_a_loader_stacks_has_one_size(tmp_path: Path, loads: str, words: list[str]) -> None:
    found = program(tmp_path, HEAD + SAMPLERS + OWN + loads + TRAINS)
    assert (found.fixed_input_size, [word for word, _ in found.evidence]) == (True if words else None, words)
