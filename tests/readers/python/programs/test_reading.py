import os
from pathlib import Path

import pytest
from training_scripts import LOOP, program, programs

BEFORE = LOOP.count("\n")  # lines in front of what is added to it
GUARD = '\nif __name__ == "__main__":\n    train()\n'
TESTED = 'def test():\n    pass\n\nif __name__ == "__main__":\n'


class TestConflict:
    """Deterministic algorithms and the search for the fastest, both on one path of one program."""

    @pytest.mark.parametrize(
        ("body", "lines"),
        [
            ("torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = True\n", (1, 2)),
            ("torch.backends.cudnn.benchmark = True\ntorch.use_deterministic_algorithms(True)\n", (2, 1)),
            (
                "if args.seed is not None:\n    torch.backends.cudnn.deterministic = True\n"
                "torch.backends.cudnn.benchmark = True\n",
                (2, 3),
            ),
            (
                "if args.fast:\n    torch.backends.cudnn.deterministic = True\n"
                "    torch.backends.cudnn.benchmark = True\n",
                (2, 3),
            ),
            (
                "def seed(n, deterministic=False):\n    if deterministic:\n"
                "        torch.backends.cudnn.deterministic = True\n"
                "seed(0, deterministic=True)\ntorch.backends.cudnn.benchmark = True\n",
                (3, 5),
            ),
            ("setattr(torch.backends.cudnn, 'deterministic', True)\ntorch.backends.cudnn.benchmark = True\n", (1, 2)),
            (
                "from torch.backends import cudnn\ncudnn.deterministic = cudnn.benchmark = True\n",
                (2, 2),
            ),
            (
                "from monai.utils import set_determinism\nset_determinism(seed=0)\n"
                "torch.backends.cudnn.benchmark = True\n",
                (2, 3),
            ),
            (  # the Trainer sets flags of its own
                "from lightning.pytorch import Trainer\nTrainer(benchmark=True, deterministic=True).fit(train)\n",
                (2, 2),
            ),
            (
                "import pytorch_lightning as pl\ntorch.backends.cudnn.benchmark = True\n"
                "pl.Trainer(\n    deterministic='warn',\n    benchmark=True,\n).fit(train)\n",
                (3, 2),
            ),
            (  # one of two commands runs
                "def fit(a):\n    torch.backends.cudnn.benchmark = True\n    torch.use_deterministic_algorithms(True)\n"
                "def test(a):\n    torch.backends.cudnn.benchmark = False\n"
                "parser.set_defaults(func=fit)\nparser.set_defaults(func=test)\n",
                (3, 2),
            ),
            (  # a process of its own inherits no settings, but has both
                "def work(gpu):\n    if args.seed is not None:\n        torch.backends.cudnn.deterministic = True\n"
                "    torch.backends.cudnn.benchmark = True\ntorch.multiprocessing.spawn(work, nprocs=8)\n",
                (3, 4),
            ),
        ],
    )
    def test_found(self, tmp_path: Path, body: str, lines: tuple[int, int]) -> None:
        conflict = program(tmp_path, LOOP + body + GUARD).conflict
        assert (conflict[0].at.line - BEFORE, conflict[1].at.line - BEFORE) == lines

    @pytest.mark.parametrize(
        "body",
        [
            "torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = False\n",
            # Lightning's Trainer switches the search off where it is to be deterministic
            "torch.backends.cudnn.deterministic = torch.backends.cudnn.benchmark = True\nimport lightning\n"
            "lightning.Trainer(deterministic=True).fit(train)\n",
            "import lightning\nlightning.Trainer(benchmark=True, deterministic=False).fit(train)\n",
            # who asks first whether results must repeat knows
            "torch.use_deterministic_algorithms(True)\nif not torch.are_deterministic_algorithms_enabled():\n"
            "    torch.backends.cudnn.benchmark = True\n",
            "torch.use_deterministic_algorithms(args.d)\ntorch.backends.cudnn.deterministic = True\n"
            "if torch.backends.cudnn.deterministic is False:\n    torch.backends.cudnn.benchmark = True\n",
            "import lightning\nlightning.Trainer(benchmark=args.fast, deterministic=True).fit(train)\n",
            "torch.backends.cudnn.benchmark = True\n"
            "if args.seed:\n    torch.backends.cudnn.deterministic = True\n"
            "    torch.backends.cudnn.benchmark = False\n",
            "if args.seed:\n    torch.backends.cudnn.deterministic = True\n"
            "else:\n    torch.backends.cudnn.benchmark = True\n",
            "if args.seed is None:\n    torch.backends.cudnn.benchmark = True\n"
            "if args.seed is not None:\n    torch.backends.cudnn.deterministic = True\n",
            "def fit(a):\n    torch.backends.cudnn.benchmark = True\n    torch.use_deterministic_algorithms(True)\n"
            "parser.set_defaults(func=fit)\ntorch.backends.cudnn.benchmark = False\n",
            "match args.a:\n    case 'x':\n        torch.backends.cudnn.deterministic = True\n"
            "match args.b:\n    case 'x':\n        torch.backends.cudnn.benchmark = True\n",
            "match args.a:\n    case 'x':\n        torch.backends.cudnn.deterministic = True\n"
            "    case 'y':\n        torch.backends.cudnn.benchmark = True\n",
            "if args.a:\n    torch.backends.cudnn.deterministic = True\n"
            "if args.b:\n    torch.backends.cudnn.benchmark = True\n",
            "torch.backends.cudnn.deterministic = args.d\ntorch.backends.cudnn.benchmark = not args.d\n",
            "torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = args.b\n",
            "def seed(n, deterministic=False):\n    if deterministic:\n"
            "        torch.backends.cudnn.deterministic = True\n"
            "seed(0)\ntorch.backends.cudnn.benchmark = True\n",
            "def never():\n    torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = True\n",
            "def f():\n    if args.d:\n        torch.backends.cudnn.deterministic = True\n        return\n"
            "    torch.backends.cudnn.benchmark = True\nf()\n",
            "import sys\nif args.e:\n    torch.backends.cudnn.deterministic = True\n    sys.exit()\n"
            "torch.backends.cudnn.benchmark = True\n",
            "def work():\n    torch.backends.cudnn.benchmark = True\n"
            "torch.backends.cudnn.deterministic = True\ntorch.multiprocessing.spawn(work, nprocs=8)\n",
            "if False:\n    torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = True\n",
            "import monai\ntorch.backends.cudnn.benchmark = True\nmonai.utils.set_determinism(0)\n",
            "import monai\nmonai.utils.set_determinism(None)\ntorch.backends.cudnn.benchmark = True\n",
            "import monai\nmonai.utils.set_determinism(args.s)\ntorch.backends.cudnn.benchmark = True\n",
            "with torch.backends.cudnn.flags(deterministic=True):\n    pass\ntorch.backends.cudnn.benchmark = True\n",
            "torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = True\n"
            "for k in ('benchmark',):\n    setattr(torch.backends.cudnn, k, False)\n",
            "class T:\n    def off(self):\n        torch.backends.cudnn.benchmark = False\n"
            "def go(x):\n    x.off()\n"
            "torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = True\ngo(T())\n",
        ],
    )
    def test_silent(self, tmp_path: Path, body: str) -> None:
        assert program(tmp_path, LOOP + body + GUARD).conflict is None

    HELPER = (
        "def set_seed(n, d=False):\n    if d:\n        torch.backends.cudnn.deterministic = True\n"
        "        torch.backends.cudnn.benchmark = False\n"
    )
    BOTH = "torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = True\n"

    @pytest.mark.parametrize(
        "body",
        [
            HELPER + "set_seed(0)\n" + BOTH,
            HELPER + "def main(n):\n    set_seed(n)\nmain(3)\n" + BOTH,
            HELPER + "set_seed(0, args.d)\n" + BOTH,
            HELPER + "class T:\n    def go(self):\n        set_seed(1, d=False)\nT().go()\n" + BOTH,
            "seed = 0\nif seed:\n    torch.backends.cudnn.benchmark = False\n" + BOTH,
            "def prepare(m):\n    match m:\n        case 'exact':\n            torch.backends.cudnn.benchmark = False\n"
            "        case 'fast':\n            pass\nprepare('fast')\n" + BOTH,
            "SLOW = False\ndef prepare():\n    if SLOW:\n        torch.backends.cudnn.benchmark = False\n"
            "prepare()\n" + BOTH,
        ],
    )
    def test_found_behind_a_branch_that_is_never_taken(self, tmp_path: Path, body: str) -> None:
        conflict = program(tmp_path, LOOP + body + GUARD).conflict
        assert conflict[1].at.line == BEFORE + body.count("\n")

    @pytest.mark.parametrize(
        "body",
        [
            HELPER + "set_seed(0)\n" + BOTH + "set_seed(0, True)\n",
            HELPER + "set_seed(0)\n" + BOTH + "set_seed(0, args.d)\n",
            HELPER + "set_seed(0)\n" + BOTH + "def go(x, d):\n    set_seed(0, d)\nargs.run(x.go)\n",
            HELPER + "def go(d):\n    set_seed(0, d)\ngo(False)\n" + BOTH + "getattr(args.module, 'go')(True)\n",
            HELPER + "set_seed(0)\n" + BOTH + "args.callbacks = [set_seed]\n",
            HELPER + "set_seed(0)\n" + BOTH + "args.run('tools.set_seed', True)\n",
            HELPER + "set_seed(0)\n" + BOTH + "args.tools.set_seed(0, True)\n",
            HELPER + "set_seed(0)\n" + BOTH + "again = set_seed\nagain(0, True)\n",
            HELPER + "set_seed(0)\n" + BOTH + "exec(open('late.py').read())\n",
            "class T:\n    def seed(self, d=False):\n        if d:\n"
            "            torch.backends.cudnn.benchmark = False\nT().seed()\n" + BOTH + "args.t.seed(d=True)\n",
        ],
    )
    def test_silent_where_another_call_may_take_the_branch(self, tmp_path: Path, body: str) -> None:
        assert program(tmp_path, LOOP + body + GUARD).conflict is None

    @pytest.mark.parametrize("late", ["import tools as t\nt.SLOW = True\n", "from tools import seed as s\ns(True)\n"])
    def test_silent_where_another_file_may_take_the_branch(self, tmp_path: Path, late: str) -> None:
        tools = (
            "import torch\nSLOW = False\ndef seed(d=False):\n    if d or SLOW:\n"
            "        torch.backends.cudnn.benchmark = False\n"
        )
        calls = "from tools import seed\nseed()\n" + self.BOTH
        with_late = (
            calls + "class C:\n    def __init__(self):\n" + "".join(f"        {line}\n" for line in late.splitlines())
        )
        files = {"tools.py": tools, "train.py": LOOP + calls + GUARD}
        assert program(tmp_path, files).conflict is not None
        files["train.py"] = LOOP + with_late + "        seed()\n" + "args.run(C)\n" + GUARD
        assert program(tmp_path, files).conflict is None

    def test_two_entries_are_not_merged(self, tmp_path: Path) -> None:
        found = programs(
            tmp_path,
            {
                "loop.py": LOOP,
                "one.py": "import torch\nfrom loop import train\ntorch.backends.cudnn.benchmark = True\n" + GUARD,
                "two.py": "import torch\nfrom loop import train\ntorch.backends.cudnn.deterministic = True\n" + GUARD,
            },
        )
        assert [each.path for each in found] == ["one.py", "two.py"]
        assert [each.conflict for each in found] == [None, None]
        assert [each.cudnn_benchmark for each in found] == [True, False]

    def test_a_helper_in_another_file_and_a_launcher(self, tmp_path: Path) -> None:
        conflict = program(
            tmp_path,
            {
                "lib/seed.py": "import torch\nfrom torch.backends import cudnn\n\n"
                "def set_seed(n):\n    cudnn.deterministic = True\n",
                "lib/launch.py": "def launch(fn, *args):\n    fn(*args)\n",
                "train.py": LOOP + "from lib.seed import set_seed\nfrom lib.launch import launch\n"
                "def main():\n    set_seed(1)\n    torch.backends.cudnn.benchmark = True\n    train()\n"
                'if __name__ == "__main__":\n    launch(main)\n',
            },
        ).conflict
        assert (conflict[0].at.path, conflict[1].at.path) == ("lib/seed.py", "train.py")

    def test_nothing_is_said_of_vendored_files(self, tmp_path: Path) -> None:
        found = program(
            tmp_path,
            {
                "third_party/seed.py": "import torch\ntorch.backends.cudnn.deterministic = True\n",
                "train.py": LOOP + "from third_party import seed\ntorch.backends.cudnn.benchmark = True\n" + GUARD,
            },
        )
        assert found.conflict is None


class TestCudnnOff:
    @pytest.mark.parametrize(
        ("body", "enabled"),
        [
            ("torch.backends.cudnn.enabled = False\n", False),
            ("def main():\n    torch.backends.cudnn.enabled = False\nmain()\n", False),
            ("if torch.cuda.is_available():\n    torch.backends.cudnn.enabled = False\n", False),
            ("torch.backends.cudnn.enabled = False\ntorch.backends.cudnn.enabled = True\n", True),
            ("if args.no_cudnn:\n    torch.backends.cudnn.enabled = False\n", None),
            ("torch.backends.cudnn.enabled = False\nif args.cudnn:\n    torch.backends.cudnn.enabled = True\n", None),
            ("torch.backends.cudnn.enabled = not args.no_cudnn\n", None),
            ("def never():\n    torch.backends.cudnn.enabled = False\n", True),
            ("for _ in data:\n    torch.backends.cudnn.enabled = False\n", None),
            ("try:\n    torch.backends.cudnn.enabled = False\nexcept Exception:\n    pass\n", None),
            ("if not torch.cuda.is_available():\n    torch.backends.cudnn.enabled = False\n", None),
            ("", True),
        ],
    )
    def test_only_where_sure(self, tmp_path: Path, body: str, enabled: bool | None) -> None:
        found = program(tmp_path, LOOP + body + GUARD)
        assert found.cudnn_enabled is enabled
        assert found.has_convolutions


class TestFlags:
    @pytest.mark.parametrize(
        ("body", "benchmark", "deterministic", "complete"),
        [
            ("", False, False, True),
            ("torch.backends.cudnn.benchmark = True\n", True, False, True),
            ("if torch.cuda.is_available():\n    torch.backends.cudnn.benchmark = True\n", True, False, True),
            ("if device.type == 'cuda':\n    torch.backends.cudnn.benchmark = True\n", True, False, True),
            ("if device.type != 'cuda':\n    torch.backends.cudnn.benchmark = True\n", None, False, True),
            ("if args.cuda:\n    torch.backends.cudnn.benchmark = True\n", None, False, True),
            ("torch.backends.cudnn.benchmark = args.b\n", None, False, True),
            ("if args.seed:\n    torch.backends.cudnn.deterministic = True\n", False, None, True),
            ("torch.use_deterministic_algorithms(True)\n", False, True, True),
            ("torch.set_deterministic_debug_mode('warn')\n", False, None, True),
            ("from accelerate.utils import set_seed\nset_seed(1, deterministic=True)\n", False, True, True),
            ("from accelerate.utils import set_seed\nset_seed(1)\n", False, False, True),
            ("from monai.utils import set_determinism\nset_determinism(1)\n", False, True, True),
            ("from monai.utils import set_determinism\nset_determinism(seed=args.s)\n", None, None, True),
            ("from monai.utils import set_determinism\nset_determinism(1, additional_settings=f)\n", None, None, True),
            ("import lightning as L\nL.Trainer(benchmark=True).fit(1)\n", True, None, False),
            (
                "from transformers import Trainer, TrainingArguments\ntorch.backends.cudnn.benchmark = True\n"
                "Trainer(model, TrainingArguments('out', full_determinism=True)).train()\n",
                False,
                True,
                False,
            ),
            (
                "from transformers import Trainer, TrainingArguments\ntorch.backends.cudnn.benchmark = True\n"
                "Trainer(model, TrainingArguments('out', full_determinism=False)).train()\n",
                True,
                None,
                False,
            ),
            (
                "from transformers import Trainer, TrainingArguments\ntorch.backends.cudnn.benchmark = True\n"
                "Trainer(model, TrainingArguments('out', full_determinism=args.full)).train()\n",
                None,
                None,
                False,
            ),
            ("from fancy_training import setup\nsetup()\n", None, None, False),
            ("import importlib\nm = importlib.import_module('models.' + args.m)\n", None, None, False),
            ("from .missing import x\n", None, None, False),
            ("exec(args.code)\n", None, None, False),
            ("import accelerate, timm, tqdm\n", False, False, True),
            ("import argbind, optimi, pytorch_metric_learning, pytorch_optimizer, tap, torchao\n", False, False, True),
        ],
    )
    def test_values(
        self, tmp_path: Path, body: str, benchmark: bool | None, deterministic: bool | None, complete: bool
    ) -> None:
        found = program(tmp_path, LOOP + body + GUARD)
        assert (found.cudnn_benchmark, found.deterministic, found.complete) == (benchmark, deterministic, complete)
        assert bool(found.incomplete_for) is not complete

    @pytest.mark.parametrize(
        ("body", "tf32"),
        [
            ("torch.backends.cudnn.allow_tf32 = False\n", False),
            ("torch.backends.cudnn.conv.fp32_precision = 'ieee'\n", False),
            ("torch.backends.fp32_precision = 'ieee'\n", False),
            # the more special one decides, in whatever order they stand
            ("torch.backends.fp32_precision = 'ieee'\ntorch.backends.cudnn.conv.fp32_precision = 'tf32'\n", True),
            ("torch.backends.cudnn.conv.fp32_precision = 'ieee'\ntorch.backends.fp32_precision = 'tf32'\n", False),
            ("torch.backends.cudnn.fp32_precision = 'tf32'\ntorch.backends.fp32_precision = 'ieee'\n", True),
            ("torch.backends.cudnn.rnn.fp32_precision = 'ieee'\n", None),
            (
                "if args.exact:\n    torch.backends.cudnn.conv.fp32_precision = 'ieee'\n"
                "torch.backends.fp32_precision = 'tf32'\n",
                None,
            ),
            ("import os\nos.environ['NVIDIA_TF32_OVERRIDE'] = '0'\n", False),
            ("import os\nos.environ['NVIDIA_TF32_OVERRIDE'] = '0'\ntorch.backends.cudnn.allow_tf32 = True\n", False),
            ("import os\nos.environ['NVIDIA_TF32_OVERRIDE'] = '1'\n", None),
            ("torch.backends.cudnn.allow_tf32 = True\n", True),
            ("from transformers import TrainingArguments\nTrainingArguments('out', tf32=True)\n", True),
            ("from transformers import TrainingArguments\nTrainingArguments('out', tf32=False)\n", False),
            ("from transformers import TrainingArguments\nTrainingArguments('out', tf32=None)\n", None),
            ("if args.exact:\n    torch.backends.cudnn.allow_tf32 = False\n", None),
            ("torch.backends.cuda.matmul.allow_tf32 = False\n", None),
            ("torch.backends.cudnn.allow_tf32 = False\ntorch.backends.cudnn.conv.fp32_precision = 'tf32'\n", None),
            ("", None),
        ],
    )
    def test_tf32(self, tmp_path: Path, body: str, tf32: bool | None) -> None:
        assert program(tmp_path, LOOP + body + GUARD).tf32 is tf32

    def test_settings_say_where_and_under_what(self, tmp_path: Path) -> None:
        body = "if args.seed is not None:\n    torch.backends.cudnn.deterministic = True\n"
        (found,) = program(tmp_path, LOOP + body + GUARD).settings
        assert (found.name, found.value, found.at.line) == ("cudnn.deterministic", True, BEFORE + 2)
        assert (found.guard, found.certain) == ("args.seed is not None", False)

    @pytest.mark.parametrize(
        ("line", "found"),
        [
            ("os.environ['MXNET_CUDNN_AUTOTUNE_DEFAULT'] = '0'", 1),
            ("os.environ.setdefault('TF_CUDNN_USE_AUTOTUNE', '0')", 1),
            ("os.environ['XLA_FLAGS'] = '--xla_a=1 --xla_gpu_autotune_level=0'", 1),
            ("os.environ['XLA_FLAGS'] = '--xla_gpu_autotune_level=4'", 0),
            ("os.environ['MXNET_CUDNN_AUTOTUNE_DEFAULT'] = args.x", 0),
        ],
    )
    def test_environment(self, tmp_path: Path, line: str, found: int) -> None:
        text = f"import os\n{line}\nimport mxnet as mx\n\ndef train():\n    mod.fit(data)\n" + GUARD
        each = program(tmp_path, text)
        assert each.framework == "mxnet"
        assert len(each.autotune_disabled) == found


class TestEntries:
    @pytest.mark.parametrize(
        ("files", "entries"),
        [
            ({"train.py": LOOP + GUARD}, ["train.py"]),
            ({"train.py": LOOP}, []),
            ({"gan.py": LOOP.replace("def train(args=None):", "if 1:")}, ["gan.py"]),
            ({"notebook.py": LOOP + "train()\n"}, ["notebook.py"]),
            ({"cpu.py": LOOP.replace(".cuda()", "") + GUARD}, []),
            ({"loop.py": LOOP, "run.py": "from loop import train\n" + GUARD}, ["run.py"]),
            (
                {"src/p/loop.py": LOOP, "src/p/__init__.py": "", "run.py": "from p.loop import train\n" + GUARD},
                ["run.py"],
            ),
            ({"loop.py": LOOP, "eval.py": "from loop import nn\nif __name__ == '__main__':\n    print(nn)\n"}, []),
            ({"tests/train.py": LOOP + GUARD}, []),
            ({"third_party/x/train.py": LOOP + GUARD}, []),
            ({"fit.py": "from sklearn.svm import SVC\nSVC().fit([1], [2])\n"}, []),
            ({"fit.py": "import keras\nmodel = keras.Sequential()\nmodel.fit(1, 2)\n"}, ["fit.py"]),
        ],
    )
    def test_found(self, tmp_path: Path, files: dict[str, str], entries: list[str]) -> None:
        assert [each.path for each in programs(tmp_path, files)] == entries

    def test_the_configuration_wins(self, tmp_path: Path) -> None:
        files = {"a.py": LOOP + GUARD, "b.py": LOOP + "train()\n"}
        assert [each.path for each in programs(tmp_path, files, entries=["b.py"])] == ["b.py"]

    def test_only_what_the_paths_concern(self, tmp_path: Path) -> None:
        files = {
            "seed.py": "import torch\ndef seed():\n    torch.backends.cudnn.benchmark = False\n",
            "other.py": "x = 1\n",
            "train.py": LOOP + "from seed import seed\nimport other\nseed()\n" + GUARD,
        }
        assert [each.path for each in programs(tmp_path, files, paths=["seed.py"])] == ["train.py"]
        assert programs(tmp_path, files, paths=["other.py"]) == ()

    @pytest.mark.parametrize("text", ["def f(:\n", "\0", "x = " + "(" * 300, "# -*- coding: nonsense -*-\n"])
    def test_what_cannot_be_read_makes_it_incomplete(self, tmp_path: Path, text: str) -> None:
        found = program(tmp_path, {"broken.py": text + "__main__", "train.py": LOOP + "import broken\n" + GUARD})
        assert not found.complete


class TestInsertion:
    @pytest.mark.parametrize(
        ("text", "line", "name"),
        [
            (LOOP + GUARD, 7, "torch"),
            (LOOP.replace("import torch\n", "import torch as th\n", 1) + GUARD, 7, "th"),
            (LOOP.replace("import torch\n", "from torch import Tensor\n", 1) + GUARD, 7, ""),
            (
                LOOP + '\nif __name__ == "__main__":\n    args = 1\n    for _ in range(3):\n        train()\n',
                18,
                "torch",
            ),
            (LOOP.replace("args=None):", 'args=None):\n    """Trains."""') + GUARD, 8, "torch"),
            # a call behind the one that trains, or one of two, is not where it begins
            (LOOP + TESTED + "    for _ in range(3):\n        train()\n    test()\n", 20, "torch"),
            (LOOP + TESTED + "    train()\n    test()\n", 20, "torch"),
            (LOOP + '\nif __name__ == "__main__":\n    args = 1\n    train(args)\n', 7, "torch"),
            (
                LOOP + "def spawned():\n    torch.multiprocessing.spawn(train)\n" + GUARD.replace("train", "spawned"),
                6,
                "torch",
            ),
            (
                '"""Doc."""\nfrom __future__ import annotations\n' + LOOP.replace("def train(args=None):", "if 1:"),
                8,
                "torch",
            ),
        ],
    )
    def test_place(self, tmp_path: Path, text: str, line: int, name: str) -> None:
        found = program(tmp_path, text)
        assert (found.insert_at.line, found.torch_name) == (line, name)


def test_what_an_imported_file_does_below_its_guard_is_not_run(tmp_path: Path) -> None:
    sets = "torch.backends.cudnn.benchmark = True\n"
    test = "import torch\ndef test(net):\n    pass\ndef main():\n    " + sets + GUARD.replace("train", "main")
    text = "from evaluate import test\n" + LOOP + "torch.use_deterministic_algorithms(True)\n" + sets + GUARD
    for name, code in {"guard": GUARD.replace("train()", sets), "function": test}.items():
        folder = tmp_path / name
        folder.mkdir()
        found = programs(folder, {"train.py": text, "evaluate.py": code if name == "function" else test + code})
        conflict = next(each.conflict for each in found if each.path == "train.py")
        assert conflict is not None, name


DETERMINISTIC, TUNED = "    torch.use_deterministic_algorithms(True)\n", "    torch.backends.cudnn.benchmark = True\n"


@pytest.mark.parametrize(
    ("commands", "conflict", "benchmark"),
    [
        (f"@app.command()\ndef fit():\n{DETERMINISTIC}{TUNED}    train()\n", True, True),
        (f"@app.command('fit')\n@click.option('-n')\ndef fit(n):\n{TUNED}{DETERMINISTIC}    train()\n", True, True),
        # one of two commands runs
        (f"@app.command()\ndef fit():\n{DETERMINISTIC}    train()\n@app.command()\ndef test():\n{TUNED}", False, None),
        (f"@app.command()\ndef fit():\n    train()\n@app.command()\ndef test():\n{TUNED}{DETERMINISTIC}", True, None),
    ],
)
@pytest.mark.parametrize("makes", ["import typer\napp = typer.Typer()\n", "@click.group()\ndef app():\n    pass\n"])
def test_commands_of_a_command_line(
    tmp_path: Path, makes: str, commands: str, conflict: bool, benchmark: bool | None
) -> None:
    cli = "import click\nimport torch\nfrom loop import train\n" + makes + commands
    for files in (
        {"cli.py": cli + GUARD.replace("train", "app")},
        {"cli.py": cli, "run.py": "from cli import app\n" + GUARD.replace("train", "app")},
    ):
        found = program(tmp_path / str(len(files)), {"loop.py": LOOP, **files})
        assert (found.conflict is not None, found.cudnn_benchmark) == (conflict, benchmark)


INSTALLED = '[project]\nname = "net"\n\n[project.scripts]\nnet-train = "net.cli:run"\nother = "click:main"\n'


@pytest.mark.parametrize(
    ("metadata", "files", "conflict", "line"),
    [
        (
            INSTALLED,
            {"src/net/cli.py": LOOP + f"def run(argv=None):\n{TUNED}{DETERMINISTIC}    train(argv)\n"},
            True,
            17,
        ),
        (INSTALLED, {"net/cli.py": LOOP + f"def run(argv=None):\n{TUNED}    train(argv)\n"}, False, 17),
        (
            INSTALLED.replace("project.scripts", "tool.poetry.scripts"),
            {
                "net/cli.py": "import typer\nimport torch\nfrom net.loop import train\nrun = typer.Typer()\n"
                f"@run.command()\ndef fit():\n{TUNED}{DETERMINISTIC}    train()\n",
                "net/loop.py": LOOP,
            },
            True,
            4,
        ),
    ],
)
def test_a_command_that_a_package_installs(
    tmp_path: Path, metadata: str, files: dict[str, str], conflict: bool, line: int
) -> None:
    found = program(tmp_path, {"pyproject.toml": metadata, **files})
    assert (found.conflict is not None, found.cudnn_benchmark, found.insert_at.line) == (conflict, True, line)


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        (INSTALLED, 1),
        (INSTALLED.replace("cli:run", "cli:train"), 1),
        (INSTALLED.replace("cli:run", "cli:none"), 0),
        (INSTALLED.replace("net.cli", "net.other"), 0),
        ("[project.scripts\n", 0),
        ("[project]\nscripts = 3\n", 0),
        ("project = 3 # scripts]\n", 0),
        ("[project.scripts]\na = 3\nb = 'net'\nc = 'net.cli:'\n", 0),
    ],
)
def test_metadata_that_installs_a_command_or_none(tmp_path: Path, metadata: str, found: int) -> None:
    files = {"pyproject.toml": metadata, "net/cli.py": LOOP + "def run():\n    train()\n"}
    assert len(programs(tmp_path, files)) == found


@pytest.mark.parametrize(
    ("decorator", "found"),
    [
        ("@app.function(gpu='H100')", 1),
        ("@app.local_entrypoint()", 1),
        ("@experiment.automain", 1),
        ("@app.command()", 1),
        ("@torch.no_grad()", 0),
        ("@tf.function", 0),
        ("@hook.register", 0),
    ],
)
def test_a_function_that_a_launcher_runs_begins_a_program(tmp_path: Path, decorator: str, found: int) -> None:
    run = f"{decorator}\ndef run():\n{TUNED}{DETERMINISTIC}    train()\n"
    text = LOOP + "from elsewhere import app, experiment, hook, tf\n" + run
    assert [each.conflict is not None for each in programs(tmp_path, {"train.py": text})] == [True] * found


def test_an_installed_command_that_a_script_runs_too_is_one_program(tmp_path: Path) -> None:
    files = {
        "net/cli.py": LOOP + "def run():\n    train()\n",
        "net/__main__.py": "from net.cli import run\n" + GUARD.replace("train", "run"),
    }
    assert [each.path for each in programs(tmp_path, {"pyproject.toml": INSTALLED, **files})] == ["net/__main__.py"]


@pytest.mark.parametrize("line", ["raise SystemExit(train())", "sys.exit(train())", "exit(train() or 0)"])
def test_a_script_that_ends_with_what_its_function_returns(tmp_path: Path, line: str) -> None:
    loop = LOOP.replace("args=None):\n", f"args=None):\n{TUNED}{DETERMINISTIC}")
    assert program(tmp_path, loop + GUARD.replace("train()", line)).conflict is not None


def test_an_import_runs_the_packages_above_a_module(tmp_path: Path) -> None:
    sets = "import torch\ntorch.backends.cudnn.benchmark = True\n"
    run = "from lab.deep.loop import train\nimport torch\ntorch.backends.cudnn.deterministic = True\n" + GUARD
    found = program(
        tmp_path, {"run.py": run, "lab/__init__.py": sets, "lab/deep/__init__.py": "", "lab/deep/loop.py": LOOP}
    )
    assert found.conflict is not None
    assert [(setting.at.path, setting.certain) for setting in found.settings] == [
        ("lab/__init__.py", True),
        ("run.py", True),
    ]


def test_a_script_without_a_guard_trains_by_functions_that_call_others(tmp_path: Path) -> None:
    text = LOOP + "def once():\n    train()\ndef main():\n    for epoch in range(3):\n        once()\nmain()\n"
    assert program(tmp_path, text).at.line == text.count("\n")


@pytest.mark.parametrize(
    ("library", "complete"),
    [
        ("librosa", True),
        ("batchgenerators.util", True),
        ("StringIO", True),
        ("mine", False),
        ("einx", True),
        ("pydantic_settings", True),
        ("modal", True),
    ],
)
def test_what_reads_data_sets_no_flags(tmp_path: Path, library: str, complete: bool) -> None:
    assert program(tmp_path, f"import {library}\n{LOOP}{GUARD}").complete is complete


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("from engine import train\nloss = train(1)\n", 1),
        ("import engine\nfor epoch in range(3):\n    engine.train(epoch)\n", 1),
        ("from engine import train\n", 0),
        ("from engine import train_data\ntrain_data()\n", 0),
        ("from torch import train\ntrain()\n", 0),
    ],
)
def test_a_script_without_a_guard_trains_by_a_function_of_another_file(
    tmp_path: Path, lines: str, expected: int
) -> None:
    files = {"engine.py": LOOP + "def train_data():\n    pass\n", "experiment.py": "import torch\n" + lines}
    assert [each.path.rpartition("/")[2] for each in programs(tmp_path, files)] == ["experiment.py"] * expected


@pytest.mark.parametrize(
    "lines",
    [
        "import torch.backends.cudnn as cd\ncd.benchmark = True\n",
        "cd = torch.backends.cudnn\ncd.benchmark = True\n",
        "def tune(lib):\n    lib.benchmark = True\ntune(torch.backends.cudnn)\n",
    ],
)
def test_flags_under_other_names(tmp_path: Path, lines: str) -> None:
    assert program(tmp_path, LOOP + lines + GUARD).cudnn_benchmark is True


@pytest.mark.parametrize(
    ("line", "source", "complete"),
    [
        ("from .cpu_nms import nms", "lib/nms/cpu_nms.pyx", True),
        ("from ..utils.overlap import overlap", "lib/utils/overlap.pyx", True),
        ("from lib.nms.cpu_nms import nms", "lib/nms/cpu_nms.pyx", True),
        ("from .align.core import path", "lib/nms/core.pyx", True),
        ("from .cpu_nms import nms", "lib/other/cpu_nms.pyx", False),
        ("from .cpu_nms import nms", "lib/nms/cpu_nms.txt", False),
        ("from ..version import __version__", "lib/nms/net.py", True),
        ("from ._ext import dcn_v2", "lib/nms/net.py", True),
        ("from .version2 import __version__", "lib/nms/net.py", False),
    ],
)
def test_a_module_that_a_build_makes_is_not_missing(tmp_path: Path, line: str, source: str, complete: bool) -> None:
    files = {
        "lib/__init__.py": "", "lib/nms/__init__.py": "", "lib/nms/wrapper.py": line + "\n", source: "",
        "train.py": "from lib.nms import wrapper\n" + LOOP + GUARD,
    }  # fmt: skip
    assert program(tmp_path, files).complete is complete


@pytest.mark.parametrize(
    ("line", "net", "expected"),
    [
        ("net = importlib.import_module(args.config).net", "layer = nn.Conv2d(3, 64, 7)\n", True),
        ("net = importlib.import_module(args.config).net", "layer = nn.Linear(3, 64)\n", False),
        ("net = unknown()", "layer = nn.Conv2d(3, 64, 7)\n", False),
        ("from diffusers import UNet2DConditionModel\nnet = UNet2DConditionModel()", "", True),
        ("from diffusers import DDPMScheduler\nnet = unknown()", "", False),
    ],
)
def test_what_a_program_imports_by_name_may_be_any_network_of_the_repository(
    tmp_path: Path, line: str, net: str, expected: bool
) -> None:
    loop = LOOP.replace("nn.Conv2d(3, 64, 3)", "nn.Linear(3, 64)")
    files = {"train.py": f"import importlib\n{loop}\n{line}\n{GUARD}", "nets/net.py": "import torch.nn as nn\n" + net}
    assert program(tmp_path, files).has_convolutions is expected


@pytest.mark.parametrize(
    ("line", "complete"),
    [
        ("net = import_module(f'nets.{args.net}')", True),
        ("net = import_module('nets.' + args.net.lower())", True),
        ("net = import_module('nets.%s' % args.net)", True),
        ("net = import_module('nets.{}'.format(args.net))", True),
        ("net = __import__('nets.' + args.net, fromlist=['net'])", True),
        ("net = import_module('nets.small')", True),
        ("name = 'nets.' + args.net + '_net'\nnet = import_module(name)", True),
        ("for name in ['nets.small', 'tensorboardX']:\n    net = import_module(name)", True),
        ("for name in ['nets.small', args.net]:\n    net = import_module(name)", False),
        ("name = 'nets.' + args.net\nfor name in args.names:\n    net = import_module(name)", False),
        ("def load(name):\n    name = 'nets.' + name\n    return import_module(name)\nload(1)", False),
        ("net = import_module(f'{args.folder}.net')", False),
        ("net = import_module('nets.' + args.net + '_other')", False),
        ("net = import_module('.' + args.net, args.package)", False),
        ("net = args.import_module('nets.net')", False),
    ],
)
def test_a_name_behind_that_of_a_package_is_any_of_its_modules(tmp_path: Path, line: str, complete: bool) -> None:
    loop = LOOP.replace("nn.Conv2d(3, 64, 3)", "nn.Linear(3, 64)")
    files = {
        "train.py": f"from importlib import import_module\n{loop}\n{line}\n{GUARD}",
        "nets/small.py": "", "nets/big_net.py": "import torch.nn as nn\nlayer = nn.Conv2d(3, 64, 7)\n",
        "others/more.py": "import torch\ntorch.backends.cudnn.benchmark = True\n",
    }  # fmt: skip
    found = program(tmp_path, files)
    assert found.complete is complete
    assert found.has_convolutions is (not complete or "small" not in line)


@pytest.mark.parametrize(
    ("line", "complete"),
    [
        ("importlib.import_module(f'{__name__}.{file}')", True),
        ("importlib.import_module('.' + file, __package__)", True),
        ("importlib.import_module('.' + file, package=__name__)", True),
        ("importlib.import_module(f'{__file__}.{file}')", False),
    ],
)
def test_modules_that_a_package_imports_from_its_folder(tmp_path: Path, line: str, complete: bool) -> None:
    files = {
        "nets/__init__.py": f"import importlib, os\nfor file in os.listdir('nets'):\n    {line}\n", "nets/net.py": "",
        "train.py": f"import nets\n{LOOP}{GUARD}",
    }  # fmt: skip
    found = program(tmp_path, files)
    has_net = any(path.replace(os.sep, "/").endswith("nets/net.py") for path in found.closure)
    assert (found.complete, has_net) == (complete, complete)


OPTIMIZES = """
import torch
class Model:
    def optimize_parameters(self):
        self.net(self.image).sum().backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("line", "found"), [("model.optimize_parameters()", 1), ("model.test()", 0), ('"""optimize_parameters"""', 0)]
)
def test_a_class_that_a_computed_name_chooses_trains_the_program(tmp_path: Path, line: str, found: int) -> None:
    files = {
        "models/__init__.py": "import importlib\ndef create(opt):\n"
        "    return getattr(importlib.import_module(f'models.{opt.kind}'), opt.kind)().cuda()\n",
        "models/Model.py": OPTIMIZES,
        "main.py": f'from models import create\nif __name__ == "__main__":\n    model = create(opt)\n    {line}\n',
    }
    assert len(programs(tmp_path, files)) == found


def test_a_backward_pass_that_is_defined_is_none(tmp_path: Path) -> None:
    operation = (
        "import torch\nclass Blur(torch.autograd.Function):\n    def backward(ctx, gradient):\n        return 1\n"
    )
    sampling = "x = Blur.apply(1).cuda()\nfor t in times:\n    x = scheduler.step(x)\n"
    assert not programs(tmp_path, {"sample.py": operation + sampling + 'if __name__ == "__main__":\n    pass\n'})


def test_where_any_module_may_be_imported_by_name_literals_name_some(tmp_path: Path) -> None:
    model = OPTIMIZES + "import torch.nn as nn\nlayer = nn.Conv2d(3, 64, 7)\n"
    text = (
        "import importlib, torch\ndef make(name):\n    module, _, attr = name.rpartition('.')\n"
        "    return getattr(importlib.import_module(module), attr)\n"
        'if __name__ == "__main__":\n    make("training.model.Model")().cuda().optimize_parameters()\n'
        '    print("run by other.py")\n    name = "other.py"\n'
    )
    (found,) = programs(tmp_path, {"main.py": text, "training/model.py": model, "other.py": model})
    assert [os.path.basename(path) for path in found.closure] == ["main.py", "model.py"]
    assert (found.has_convolutions, found.complete) == (True, False)


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        ("for image in images:\n    model.optimize_parameters()\n", 1),
        ("while epochs:\n    for image in images:\n        model.optimize_parameters()\n", 1),
        ("if ready:\n    # this trains\n\n    while epochs:\n        model.optimize_parameters()\n", 1),
        ("for image in images:\n    model.show()\n", 0),
        ("if training:\n    model.optimize_parameters()\n", 0),
    ],
)
def test_a_loop_without_a_guard_that_calls_a_method_which_trains(tmp_path: Path, loop: str, found: int) -> None:
    begin = "from trainer import Model\nmodel = Model().cuda()\n"
    assert len(programs(tmp_path, {"trainer.py": OPTIMIZES, "train.py": begin + loop})) == found


TRAINER = (
    OPTIMIZES
    + """
class Base:
    def train(self):
        for image in self.loader:
            Model().optimize_parameters()
class Trainer(Base):
    def run(self):
        self.train()
class Net(torch.nn.Module):
    def train(self, mode=True):
        self.norm.eval()
"""
)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("trainer = Trainer(device='cuda')\ntrainer.train()\n", 1),
        (
            "if one:\n    it = Base(device='cuda')\nelse:\n    it = Trainer(device='cuda')\nit.train()\n",
            1,
        ),
        # of a class that has no such method, or one that only chooses the mode; of a library
        ("trainer = Model(device='cuda')\ntrainer.train()\n", 0),
        ("net = Net(device='cuda')\nnet.train()\n", 0),
        ("trainer = torch.Runner(device='cuda')\ntrainer.train()\n", 0),
        ("trainer = Trainer(device='cuda')\n", 0),
    ],
)
def test_a_script_without_a_guard_trains_by_an_object_of_the_repository(tmp_path: Path, lines: str, found: int) -> None:
    files = {"engine.py": TRAINER, "train.py": "import torch\nfrom engine import Base, Model, Net, Trainer\n" + lines}
    assert len(programs(tmp_path, files)) == found


def test_a_package_of_a_name_is_the_one_beside_the_importer(tmp_path: Path) -> None:
    load = 'from importlib import import_module\nmodule = import_module("data." + args.data)\n'
    files = {f"{folder}/data/{name}.py": "" for folder, name in (("a", "cifar"), ("b", "cifar"), ("b", "other"))}
    found = program(tmp_path, {"a/data/__init__.py": load, "a/train.py": f"import data\n{LOOP}{GUARD}", **files})
    assert found.complete
    assert sorted(map(os.path.basename, found.closure)) == ["__init__.py", "cifar.py", "train.py"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("train_segmentor(model.cuda(), data, cfg)", 1),
        ("build_runner(cfg.runner).run(data, cfg.workflow)", 1),
        ("IterBasedRunner(model.cuda()).run(data, cfg.workflow)", 1),
        ("single_gpu_test(model.cuda(), data)", 0),
    ],
)
def test_a_library_is_handed_the_training(tmp_path: Path, line: str, found: int) -> None:
    text = f"import torch\nfrom mmcv.runner import *\nfrom mmseg.apis import *\n{GUARD.replace('train()', line)}"
    assert len(programs(tmp_path, {"train.py": text})) == found


def test_a_script_that_calls_its_own_function_runs_no_other_of_that_name(tmp_path: Path) -> None:
    train = f"{OPTIMIZES}def parse():\n    pass\ndef main():\n    Model().cuda().optimize_parameters()\n"
    test = 'from train import parse\ndef main():\n    parse()\nif __name__ == "__main__":\n    main()\n'
    begin = 'if __name__ == "__main__":\n    main()\n'
    (found,) = programs(tmp_path, {"train.py": train + begin, "test.py": test})
    assert os.path.basename(found.path) == "train.py"


@pytest.mark.parametrize(("folder", "complete"), [("triton", True), ("kernels", False)])
def test_a_folder_named_after_a_library_is_not_what_an_import_misses(
    tmp_path: Path, folder: str, complete: bool
) -> None:
    files = {
        f"ops/{folder}/norm.py": f"import {folder}.language as tl\n", f"ops/{folder}/other.py": "",
        "train.py": f"from ops.{folder} import norm\n{LOOP}{GUARD}",
    }  # fmt: skip
    assert program(tmp_path, files).complete is complete


@pytest.mark.parametrize(
    ("line", "complete"), [("tools.show(1)", True), ("tools.find('a')", False), ("tools.run('a')", False)]
)
def test_a_helper_that_imports_by_name_or_runs_text_counts_where_it_is_called(
    tmp_path: Path, line: str, complete: bool
) -> None:
    helper = "import importlib\ndef find(name):\n    return importlib.import_module(name)\ndef show(x):\n    print(x)\n"
    helper += "def run(text):\n    exec(text)\n"
    found = program(tmp_path, {"tools.py": helper, "train.py": f"import tools\n{LOOP}\n{line}\n{GUARD}"})
    assert found.complete is complete
