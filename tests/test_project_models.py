"""A project's own models: from its config, in folders below it, by calls, and how every input runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from cases import sampled
from command_line import Ran, convlint

pytestmark = pytest.mark.slow

CODE = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, C, K):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(C, K, 3, padding=1), nn.BatchNorm2d(K)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, channels, classes, width=1.0):
        super().__init__()
        self.stem, self.body = Block(channels, int(64 * width)), Block(int(64 * width), int(64 * width))
        self.head = nn.Conv2d(int(64 * width), classes, 1)

    def forward(self, x, t):
        x = self.stem(x)
        with torch.autocast("cuda", enabled=False):
            x = self.body(x)
        return self.head(x * t.float().view(-1, 1, 1, 1))


class Zoo:
    @staticmethod
    def make(name, deep=False):
        return nn.Sequential(Net(3, 10)) if deep else Net(3, 10)


class Lit(Net):
    example_input_array = (torch.zeros(8, 3, 32, 32), torch.ones(8, dtype=torch.int64))


def broken(width):
    raise ValueError("no such width")


class Values(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3)

    def forward(self, x):
        x = self.a(x)
        if not self.training and x.sum().item() > 0:
            return x
        return self.b(x)


def fetched(pretrained=True):
    import urllib.request

    urllib.request.urlopen("https://weights.example/x.pth")


NET = Net(3, 21)
"""
CONFIG = """\
[tool.convlint]
target = "a100"

[[tool.convlint.models]]
name = "net"
model = "mypkg.models:Net(3, 48, width=2.0)"
inputs = {{ x = "16x3x64x64:channels_last", t = "16:int64" }}
channels_last = true
autocast = "bf16"
mode = "training"
runtime = {{ cudnn_benchmark = false, fixed_input_size = true, deterministic = false }}
target = ["t4"]
{more}"""
MORE = """
[[tool.convlint.models]]
name = "more"
model = "{model}"
inputs = {inputs}
"""
BOTH = '["8x3x32x32", "8:int64"]'


@pytest.fixture(autouse=True)
def project(here: Path) -> Path:
    package = here / "src" / "mypkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "models.py").write_text(CODE)
    configure(here)
    return here


def configure(folder: Path, model: str = "", inputs: str = BOTH) -> None:
    more = MORE.format(model=model, inputs=inputs) if model else ""
    (folder / "pyproject.toml").write_text(CONFIG.format(more=more))


def report(*arguments: str) -> dict[str, Any]:
    ran = convlint("check", *arguments, "-o", "json")
    assert ran.code in (0, 1), ran.err + ran.out
    return dict(json.loads(ran.out))


@pytest.mark.contract
def test_a_model_runs_as_its_entry_says() -> None:
    found = report("--models")
    assert (found["targets"], found["mode"]) == (["t4"], "training")
    layers = {layer["name"]: layer for layer in found["layers"]}
    assert {name: (layer["C"], layer["K"]) for name, layer in layers.items()} == {
        "stem.conv": (3, 128), "body.conv": (128, 128), "head": (128, 48),
    }  # fmt: skip
    assert {layer["layout"] for layer in layers.values()} == {"NHWC"}
    assert [layer["dtype"] for layer in layers.values()] == ["bf16", "fp32", "bf16"]  # the body leaves autocast
    assert {layer["path"] for layer in layers.values()} == {"src/mypkg/models.py"}


def test_findings_on_settings_stand_in_the_config() -> None:
    (autotune,) = [found for found in report("--model", "net")["findings"] if found["code"] == "CL501"]
    assert (autotune["path"], autotune["line"]) == ("pyproject.toml", 11)
    assert "runtime = { cudnn_benchmark = false" in convlint("check", "--model", "net", "--verbose").out


def test_the_command_line_overrules_an_entry_and_names_choose(project: Path) -> None:
    configure(project, "mypkg.models:NET")
    found = report("--model", "net", "--gpu", "h100", "--mode", "inference", "--runtime", "cudnn_benchmark=true")
    assert (found["targets"], found["mode"]) == (["h100"], "inference")
    assert not [each for each in found["findings"] if each["code"] == "CL501"]
    assert len(report("--models")["layers"]) == 6
    assert len(report("--model", "more")["layers"]) == 3


@pytest.mark.parametrize(
    ("model", "inputs", "first"),
    sampled(
        [
            ("mypkg.models:NET", BOTH, "stem.conv"),
            ("mypkg.models:Zoo.make('a')", BOTH, "stem.conv"),
            ("mypkg.models:Zoo.make('a', deep=True)", "[]", None),
            ("mypkg.models:Zoo.make('a')", '{ t = "8:int64", x = "8x3x32x32" }', "stem.conv"),
            ("mypkg.models:NET.body", '"8x64x16x16"', "conv"),
            ("mypkg.models:Zoo.make('a').head", '"8x64x16x16"', ""),
            ("mypkg.models:Lit(3, 10)", "[]", "stem.conv"),
        ],
        3,
    ),
)
def test_modules_classes_functions_and_attributes(project: Path, model: str, inputs: str, first: str | None) -> None:
    configure(project, model, inputs)
    ran = convlint("check", "--model", "more", "-o", "json")
    names = [layer["name"] for layer in json.loads(ran.out)["layers"]]
    assert (names[0] if names else None) == first or (first == "" and len(names) == 1)


@pytest.mark.parametrize(
    ("model", "inputs", "place", "message"),
    sampled(
        [
            (
                "mypkg.models:Net(3)",
                BOTH,
                "16:1",
                "missing a required argument: 'classes'; it is Net(channels, classes",
            ),
            ("mypkg.models:Nett(3)", BOTH, "16:1", "mypkg.models has no 'Nett'; did you mean 'Net'?"),
            ("mypkg.model:Net(3)", BOTH, "16:1", "there is no module 'mypkg.model'"),
            ("mypkg.models:NET", '"8x3x32x32"', "17:1", "its inputs do not fit: missing a required argument: 't'"),
            ("mypkg.models:NET", '["8x3x32x32", "8", "8"]', "17:1", "its inputs do not fit: too many positional"),
            ("mypkg.models:NET", "[]", "17:1", "the input's shape is not known"),
        ],
        3,
    ),
)
def test_an_entry_that_cannot_be_right_is_the_configs(
    project: Path, model: str, inputs: str, place: str, message: str
) -> None:
    configure(project, model, inputs)
    ran = convlint("check", "--models", "-o", "concise")
    assert ran.code == 2
    assert f"pyproject.toml:{place}: error: more: " in ran.out
    assert message in ran.out
    assert "src/mypkg/models.py" in ran.out  # the other model is checked


def test_a_reference_that_is_no_call_with_literals_is_refused_in_the_config(project: Path) -> None:
    configure(project, "mypkg.models:Net(width)")
    ran = convlint("check", "--models")
    assert (ran.code, ran.out) == (2, "")
    assert "pyproject.toml:16:1: 'width' is no literal" in ran.err


@pytest.mark.contract
def test_what_the_models_code_raises_is_its_own(project: Path) -> None:
    configure(project, "mypkg.models:broken(3)")
    ran = convlint("check", "--models", "-o", "concise")
    assert ran.code == 3
    assert "raises ValueError: no such width at src/mypkg/models.py:38" in ran.out


@pytest.mark.contract
def test_models_are_not_checked_without_being_asked_for() -> None:
    ran = convlint("check", ".", "-o", "concise")
    assert ran.out.endswith("4 convolutions in 2 Python files: 0 errors, 0 warnings, 1 info\n")  # read, and not run


def test_in_a_folder_below_the_config_the_models_are_the_same(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = report("--models")["summary"]
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")
    assert report("--models")["summary"] == before


@pytest.mark.contract
def test_the_command_line_calls_too() -> None:
    call = "mypkg.models:Net(3, 40, width=0.5)"
    found = report(call, "--input", "x=2x3x32x32", "--input", "t=2:int64")
    assert [layer["K"] for layer in found["layers"]] == [32, 32, 40]


@pytest.mark.contract
def test_other_commands_take_models() -> None:
    assert '"name": "stem.conv"' in convlint("estimate", "--model", "net", "-o", "json").out
    exported = convlint("export", "--model", "net")
    assert exported.code == 0
    assert "target: [t4]" in exported.out
    assert "cudnn_benchmark: false" in exported.out
    Path("net.yaml").write_text(exported.out)
    assert report("net.yaml")["summary"]["time_us"] == report("--model", "net")["summary"]["time_us"]
    assert convlint("export").code == 2
    assert "net: mypkg.models:Net(3, 48, width=2.0)" in convlint("config").out


def test_what_was_reached_of_a_forward_pass_is_checked() -> None:
    ran = convlint("check", "mypkg.models:Values", "--input", "8x3x32x32", "-o", "json")
    found = json.loads(ran.out)
    assert (ran.code, found["complete"]) == (3, False)
    assert [layer["name"] for layer in found["layers"]] == ["a"]
    (error,) = found["errors"]
    assert "at src/mypkg/models.py:48" in error["message"]
    assert error["message"].endswith(
        "--trace train follows another path where the model has one; "
        "the 1 convolution before that is checked, not reached: b; "
        "what follows is unknown, and with it the time of the step"
    )
    trained = convlint("check", "mypkg.models:Values", "--input", "8x3x32x32", "-o", "json", "--trace", "train")
    assert [layer["name"] for layer in json.loads(trained.out)["layers"]] == ["a", "b"]
    assert convlint("check", "mypkg.models:Values", "--trace", "training").code == 2


def test_weights_are_not_fetched() -> None:
    ran = convlint("check", "mypkg.models:fetched", "--input", "8x3x32x32", "-o", "concise")
    assert ran.code == 3
    assert "wants to load something from weights.example; pass pretrained=False" in ran.out


def test_gpus_may_share_an_option() -> None:
    assert report("--models", "--gpu", "a100,h100", "--gpu", "t4")["targets"] == ["a100", "h100", "t4"]


# --- how every input runs ---------------------------------------------------------------------------------------------

SPEC = "version: 1\nlayers: [ { name: a, N: 8, C: 64, H: 8, W: 8, K: 64, kernel_size: 3, dtype: fp32 } ]\n"


def spec(*arguments: str) -> Ran:
    Path("a.yaml").write_text(SPEC)
    return convlint("check", "a.yaml", "-o", "json", *arguments)


def test_runtime_dtype_and_layout_on_the_command_line_hold_for_specs() -> None:
    found = json.loads(spec("--dtype", "fp16", "--layout", "NHWC", "--runtime", "framework=tensorrt").out)
    (layer,) = found["layers"]
    assert (layer["dtype"], layer["layout"], found["mode"]) == ("fp16", "NHWC", "inference")
    estimated = json.loads(convlint("estimate", "a.yaml", "-o", "json", "--dtype", "fp16").out)
    assert estimated["layers"][0]["dtype"] == "fp16"


@pytest.mark.contract
def test_the_config_says_what_the_input_does_not(project: Path) -> None:
    text = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(
        text + "\n[tool.convlint.runtime]\ncudnn_benchmark = false\nfixed_input_size = true\n"
    )
    found = json.loads(spec().out)
    assert [each["code"] for each in found["findings"] if each["code"] == "CL501"] == ["CL501"]
    assert "cudnn_benchmark = false" in convlint("config").out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("runtime = { cudnnn = 8 }", "unknown runtime setting 'cudnnn'; did you mean 'cudnn'?"),
        ("runtime = 3", "must be a table, not a number"),
        ("dtype = 'fp15'", "'fp15' is not one of"),
        ("layout = 'NHCW'", "'NHCW' is not one of"),
    ],
)
def test_wrong_settings_of_the_config_have_a_place(project: Path, line: str, message: str) -> None:
    (project / "convlint.toml").write_text(line)
    ran = spec()
    assert ran.code == 2
    assert ran.err.startswith("convlint: error: convlint.toml:1:")
    assert message in ran.err


CHECK, PRICED = ("check",), ("check", "estimate", "sweep -N 1:2")
RUN, WRITTEN = ("check", "estimate", "plan", "measure"), ("check", "estimate", "plan", "export")
SHAPE = "mypkg.models:NET --input"
# the commands, what follows them, and what standard error says of it
REFUSED = [
    (CHECK, "--model nett", "--model: pyproject.toml has no model 'nett'; did you mean 'net'?"),
    (CHECK, "mypkg.models:Net(width)", "'width' is no literal"),
    (CHECK, "--models --files-only", "--files-only runs no code of the project"),
    (CHECK, "--models --isolated", "there is no config, and so no models"),
    (PRICED, "a.yaml --input 8x3x8x8", "--input: none of the inputs takes a shape"),
    (PRICED, "a.yaml --module-timeout 5", "--module-timeout: none of the inputs is a module"),
    (PRICED, "a.yaml --channels-last", "--channels-last: none of the inputs is a module; --layout says"),
    (PRICED, "a.onnx --input 8x3x8x8:fp16", "--input: 'fp16' is for modules alone; --dtype and --layout"),
    (PRICED, "a.onnx --input 8x3x8x8:channels_last", "--input: 'channels_last' is for modules alone"),
    (RUN, "a.yaml --trace train", "--trace: none of the inputs is a module"),
    (RUN, "a.yaml --channels-last", "--channels-last: none of the inputs is a module"),
    (WRITTEN, f"{SHAPE} 1,3,32,32", "commas stand between inputs; did you mean 1x3x32x32?"),
    (WRITTEN, f"{SHAPE} (1,3,32,32)", "did you mean 1x3x32x32?"),
    (WRITTEN, f"{SHAPE} x=1x3x32x32:nhwc", "unknown dtype 'nhwc'; did you mean 'channels_last'?"),
    (WRITTEN, f"{SHAPE} Nx3x32x32", "N stands for the batch size, which --batch sets"),
]


@pytest.mark.contract
@pytest.mark.parametrize(("commands", "words", "message"), REFUSED, ids=[words for _, words, _ in REFUSED])
def test_words_that_cannot_be_right_are_refused(commands: tuple[str, ...], words: str, message: str) -> None:
    Path("a.yaml").write_text(SPEC)
    for command, *options in map(str.split, commands):
        ran = convlint(command, *words.split(), *options)
        assert (ran.code, ran.out) == (2, "")
        assert message in " ".join(ran.err.split())


def test_a_sweep_without_an_input_takes_no_option_of_modules() -> None:
    assert "there is no module" in convlint("sweep", "--channels-last", "-K", "8:64:8").err


MODES = """
import torch
from torch import nn


class Aux(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.aux = nn.Conv2d(3, 64, 3), nn.Conv2d(64, 16, 1)

    def forward(self, x):
        x = self.stem(x)
        return (x, self.aux(x)) if self.training else x
"""


def test_a_module_is_followed_in_the_mode_that_is_stated(project: Path) -> None:
    (project / "src" / "mypkg" / "modal.py").write_text(MODES)

    def names(*arguments: str, command: str = "check") -> list[str]:
        ran = convlint(command, *arguments, "-o", "json")
        assert ran.code in (0, 1), ran.err + ran.out
        return [layer["name"] for layer in json.loads(ran.out)["layers"]]

    module = ("mypkg.modal:Aux", "--input", "8x3x32x32")
    assert names(*module) == ["stem"]
    assert names(*module, "--mode", "inference") == ["stem"]
    assert names(*module, "--mode", "training") == ["stem", "aux"]
    assert names(*module, "--mode", "training", "--trace", "eval") == ["stem"]
    assert names(*module, "--mode", "inference", "--trace", "train", command="estimate") == ["stem", "aux"]
    config = "[[tool.convlint.models]]\nname = 'aux'\nmodel = 'mypkg.modal:Aux'\ninputs = '8x3x32x32'\n"
    for entry, found in (("", ["stem"]), ("mode = 'training'", ["stem", "aux"]), ("mode = 'inference'", ["stem"]),
                         ("mode = 'training'\ntrace = 'eval'", ["stem"])):  # fmt: skip
        (project / "pyproject.toml").write_text(config + entry)
        assert names("--models") == found
        assert ("name: aux" in convlint("export", "--model", "aux").out) is ("aux" in found)
    assert names("--models", "--mode", "training", "--trace", "train") == ["stem", "aux"]
    (project / "pyproject.toml").write_text("[tool.convlint]\nmode = 'training'\n")
    assert names(*module) == ["stem", "aux"]
    (project / "pyproject.toml").write_text(config + "trace = 'trian'")
    ran = convlint("check", "--models")
    assert (ran.code, "did you mean 'train'" in ran.err) == (2, True)


def test_channels_last_on_the_command_line_is_that_of_the_config(project: Path) -> None:
    (project / "src" / "mypkg" / "modal.py").write_text(MODES)
    module = ("mypkg.modal:Aux", "--input", "8x3x32x32")
    entry = "[[tool.convlint.models]]\nname = 'aux'\nmodel = 'mypkg.modal:Aux'\ninputs = '8x3x32x32'\n"
    (project / "pyproject.toml").write_text(entry + "channels_last = true")
    by_config, plain, asked = report("--models"), report(*module), report(*module, "--channels-last")
    assert [layer["layout"] for layer in plain["layers"]] == ["NCHW"]
    assert [layer["layout"] for layer in asked["layers"]] == ["NHWC"]
    assert [layer["estimates"] for layer in asked["layers"]] == [layer["estimates"] for layer in by_config["layers"]]
    assert "layout: NHWC" in convlint("export", *module, "--channels-last").out
    estimated = json.loads(convlint("estimate", *module, "--channels-last", "-o", "json").out)
    assert estimated["layers"][0]["layout"] == "NHWC"
    assert convlint("plan", *module, "--channels-last").code == 0
    (project / "pyproject.toml").write_text(entry)
    assert [layer["layout"] for layer in report("--models", "--channels-last")["layers"]] == ["NHWC"]


def test_an_image_without_a_batch_is_said_to_be_one(project: Path) -> None:
    (project / "src" / "mypkg" / "modal.py").write_text(MODES)
    said = "an input of 3x32x32 states no N, and is priced as N = 1; write 64x3x32x32, say, for another"
    for command in ("check", "estimate", "plan"):
        ran = convlint(command, "mypkg.modal:Aux", "--input", "3x32x32")
        assert said in " ".join(ran.out.split())
        assert "states no N" not in convlint(command, "mypkg.modal:Aux", "--input", "1x3x32x32").out
    (network,) = report("mypkg.modal:Aux", "--input", "3x32x32")["networks"]
    assert (network["batch"], network["batch_assumed"]) == (1, True)
    assert not report("mypkg.modal:Aux", "--input", "1x3x32x32")["networks"][0]["batch_assumed"]


OFFLINE = """
import socket
import subprocess
from torch import nn


def is_online():
    for address in (("one.one.one.one", 80), ("1.1.1.1", 443)):
        try:
            socket.create_connection(address, timeout=2).close()
        except OSError:
            continue
        return True
    return False


ONLINE = is_online()


def asks():
    return nn.Conv2d(3, 64, 3) if not is_online() else None


def curls():
    if not is_online():
        subprocess.run(["curl", "-LO", "https://weights.example/x.pth"])
    return nn.Conv2d(3, 64, 3)


def insists():
    socket.create_connection(("licences.example", 443))
"""


def test_a_library_that_asks_whether_it_is_online_goes_on(project: Path) -> None:
    (project / "src" / "mypkg" / "offline.py").write_text(OFFLINE)
    assert [layer["K"] for layer in report("mypkg.offline:asks", "--input", "8x3x32x32")["layers"]] == [64]
    for name, words in (
        ("curls", "wants to load something from weights.example"),
        ("insists", "wants to reach licences.example, which models cannot here"),
    ):
        ran = convlint("check", f"mypkg.offline:{name}", "--input", "8x3x32x32", "-o", "concise")
        assert (ran.code, words in ran.out) == (3, True), ran.out


def test_a_layer_of_a_model_is_swept_as_the_config_has_it(project: Path) -> None:
    config = project / "pyproject.toml"
    config.write_text(config.read_text().replace("bf16", "fp16"))
    ran = convlint("sweep", "--model", "net", "--layer", "head", "-K", "48:56:4", "-o", "csv")
    assert ran.code == 0, ran.err
    rows = ran.out.splitlines()
    assert len(rows) > 3
    assert all("t4" in row for row in rows[1:])  # the entry's target
    for arguments, words in (
        (("sweep", "--model", "nut", "-K", "1:9"), "did you mean 'net'?"),
        (("sweep", "a.yaml", "--model", "net", "-K", "1:9"), "give one input"),
        (("sweep", "--model", "net", "--figure", "4"), "leave out --model"),
    ):
        ran = convlint(*arguments)
        assert ran.code == 2
        assert words in ran.err


DETECTOR = """
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 64, 1)
        self.mask = nn.Conv2d(64, 64, 3)

    def forward(self, images, targets=None):
        choice = int(torch.empty(1).uniform_(0.0, 2.0).item())
        scale = torch.min(torch.tensor(images[0].shape[-2:])).item() / 8
        assert scale == 8 and choice in (0, 1)
        if self.training:
            for target in targets:
                if (target["boxes"][:, 2:] <= target["boxes"][:, :2]).any():
                    raise ValueError("degenerate boxes")
        x = self.head(self.backbone(torch.stack(images)))
        kept = torch.nonzero(x.sum((1, 2, 3)) > 0).flatten()
        return self.mask(x[kept])


def example():
    boxes = torch.tensor([[0.0, 0.0, 9.0, 9.0]])
    return [torch.rand(3, 64, 64) for _ in range(4)], [{"boxes": boxes, "labels": torch.tensor([1])} for _ in range(4)]


def degenerate():
    images, targets = example()
    return images, [{"boxes": -targets[0]["boxes"]} for _ in images]
"""


def test_a_detector_in_train_mode_reads_the_targets_that_are_given(project: Path) -> None:
    (project / "src" / "mypkg" / "detector.py").write_text(DETECTOR)
    ran = convlint(
        "check", "mypkg.detector:Detector", "--input", "mypkg.detector:example", "--trace", "train", "-o", "json"
    )
    document = json.loads(ran.out)
    assert ran.code == 3
    assert [(layer["name"], layer["N"], layer["H"]) for layer in document["layers"]] == [
        ("backbone", 4, 64),
        ("head", 4, 64),
    ]
    (error,) = document["errors"]
    assert "the 2 convolutions before that are checked, not reached: mask" in error["message"]
    ran = convlint("check", "mypkg.detector:Detector", "--input", "mypkg.detector:degenerate", "--trace", "train")
    assert "degenerate boxes" in " ".join(ran.out.split())


STATE = """
import torch
from torch import nn


class Caches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.kept = nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3), None

    def forward(self, x):
        x = self.a(x)
        if self.kept is None:
            self.kept = self.b(x)
        if not torch.compiler.is_exporting():
            x.sum().item()
        return x


class Numbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 64, 3)

    def forward(self, x):
        values = [torch.rand(()), torch.empty(size=(1,)), torch.zeros([1])]
        values += [torch.full((1,), 2.0), torch.randint(0, 5, (1,))]
        noise = torch.normal(torch.zeros(4, 1), torch.ones(4, 1))
        return self.a(x) * int(sum(value.item() >= 0 for value in values)) if noise.dim() == 2 else x
"""


@pytest.mark.parametrize(("name", "layers"), [("Caches", ["a", "b"]), ("Numbers", ["a"])])
def test_each_attempt_at_a_forward_pass_starts_afresh(project: Path, name: str, layers: list[str]) -> None:
    (project / "src" / "mypkg" / "state.py").write_text(STATE)
    ran = convlint("check", f"mypkg.state:{name}", "--input", "8x3x32x32", "-o", "json")
    document = json.loads(ran.out)
    assert document["errors"] == []
    assert [layer["name"] for layer in document["layers"]] == layers


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ('["8x3x64x64:fp17", "8:int64"]', "unknown dtype 'fp17'"),
        ('["Nx3x64x64", "8:int64"]', "N stands for the batch size"),
        ('{ x = "8x3x64x64", tt = "8:int64" }', "takes no 'tt'; did you mean 't'?"),
        ('{ x = "8x3x64x64,8x3x64x64", t = "8:int64" }', "takes one shape"),
        ('["what is this"]', "neither a shape"),
    ],
)
def test_inputs_of_an_entry_that_cannot_be_right_are_exit_2_with_their_place(
    project: Path, inputs: str, words: str
) -> None:
    configure(project, model="mypkg.models:NET", inputs=inputs)
    ran = convlint("check", "--model", "more", "-o", "concise")
    assert ran.code == 2
    text = (project / "pyproject.toml").read_text().splitlines()
    line = 1 + max(number for number, each in enumerate(text) if each.startswith("inputs"))
    assert f"pyproject.toml:{line}:" in ran.out + ran.err
    assert words in ran.out + ran.err
