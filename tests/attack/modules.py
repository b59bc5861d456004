"""Attacks by Python modules (`package.module:name`) that misbehave: the other inputs must be reported all the same."""

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .contract import Attack, Outcome, Signal, command
from .sandbox import NAMES
from .seeds import MODULE

SHAPE = ("--input", "1x3x8x8")
FAILED = frozenset({3})
EITHER = frozenset({1, 3})
# what the module does, and where: while it is imported, while the network is built, or in its forward pass
DEEDS: dict[str, tuple[str, frozenset[int]]] = {
    "keyboard_interrupt": ("raise KeyboardInterrupt", FAILED),
    "system_exit": ("raise SystemExit(0)", FAILED),
    "sys_exit_text": ("import sys; sys.exit('::error::pwn\\n\\x1b[31m')", FAILED),
    "base_exception": ("raise BaseException('::error::x')", FAILED),
    "generator_exit": ("raise GeneratorExit", FAILED),
    "odd_exception": ("class E(Exception):\n    def __str__(self): raise SystemExit(0)\nraise E", FAILED),
    "long_exception": ("raise ValueError('\\n::error::x' * 1000000)", FAILED),
    "os_exit": ("import os; os._exit(0)", FAILED),
    "os_exit_by_ctypes": ("import ctypes; ctypes.CDLL(None)._exit(0)", FAILED),
    "kill": ("import os; os.kill(os.getpid(), 9)", FAILED),
    "abort": ("import os; os.abort()", FAILED),
    "segfault": ("import ctypes; ctypes.string_at(1)", FAILED),
    "exec": ("import os; os.execv('/bin/true', ['true'])", FAILED),
    "recursion": ("def f(): return f()\nf()", FAILED),
    "deep_recursion": ("import sys; sys.setrecursionlimit(10**8)\ndef f(n=0): return [f(n + 1)]\nf()", FAILED),
    "chdir": ("import os; os.chdir('/')", EITHER),
    "prints": ("print('{\"forged\": 1}\\n::error::pwn'); import os; os.write(1, b'raw\\n::error::raw')", EITHER),
    "prints_escapes": ("import sys; sys.stderr.write('\\x1b[31m\\n::error::pwn\\n##vso[x]')", EITHER),
    "prints_much": ("import sys\nfor _ in range(3000): print('::error::x' * 100)", EITHER),
    "replaces_stdout": ("import sys, io; sys.stdout = io.StringIO(); sys.__stdout__ = None", EITHER),
    "closes_stdout": ("import os; os.close(1)", EITHER),
    "closes_streams": ("import os; [os.close(n) for n in (0, 1, 2)]", EITHER),
    "closes_everything": ("import os; os.closerange(0, 1000)", EITHER),
    "forks": ("import os; os.fork()", EITHER),
    "forks_and_exits": ("import os, sys; os.fork() or sys.exit(0)", EITHER),
    "fork_stays": ("import os, time; os.fork() or time.sleep(1000)", EITHER),
    "fork_escapes": ("import os, time\nif not os.fork():\n    os.setsid()\n"
                     "    if not os.fork(): time.sleep(1000)\n    os._exit(0)", EITHER),
    "subprocess": ("import subprocess; subprocess.Popen(['sleep', '1000'])", EITHER),
    "atexit_zero": ("import atexit, os; atexit.register(os._exit, 0)", EITHER),
    "atexit_raises": ("import atexit; atexit.register(lambda: 1 / 0)", EITHER),
    "thread_stays": ("import threading, time; threading.Thread(target=time.sleep, args=(1000,)).start()", EITHER),
    "thread_exits": ("import threading, os; threading.Timer(0.01, os._exit, (0,)).start()", EITHER),
    "thread_prints": ("import threading as t; t.Thread(target=lambda: print('::error::x\\n' * 2000)).start()", EITHER),
    "signal_handlers": ("import signal\nfor n in (2, 15, 14): signal.signal(n, signal.SIG_IGN)", EITHER),
    "alarm": ("import signal; signal.setitimer(signal.ITIMER_REAL, 0.05)", EITHER),
    "excepthook": ("import sys; sys.excepthook = lambda *a: print('::error::x')\nraise ValueError", FAILED),
    "patches_json": ("import json; json.dumps = lambda *a, **k: '{}'", EITHER),
    "patches_convlint": ("import convlint.model.errors as e; e.InputFault.__init__ = None", EITHER),
    "patches_os": ("import os; os.write = os.dup2 = os.pipe = None", EITHER),
    "del_modules": ("import sys; sys.modules.clear()", EITHER),
    "sys_path": ("import sys; sys.path[:] = []; sys.meta_path[:] = []", EITHER),
    "umask_limits": ("import os, resource as r; os.umask(0o777); r.setrlimit(r.RLIMIT_NOFILE, (3, 3))", EITHER),
    "kills_parent": ("import os; os.kill(os.getppid(), 18)", EITHER),
    "huge_names": ("globals()['Net'] = type('N' * 1000000, (Net,), {}) if 'Net' in globals() else None", EITHER),
    "reads_stdin": ("import sys; sys.stdin.read()", EITHER),
    "sleeps": ("import time; time.sleep(1000)", FAILED),
    "loops": ("while True: pass", FAILED),
    "loops_deaf": ("import signal\nfor n in (2, 15, 14): signal.signal(n, signal.SIG_IGN)\nwhile True: pass", FAILED),
}  # fmt: skip
_ENDLESS = ("sleeps", "loops", "loops_deaf", "deep_recursion")
_CLASS = "class Net(torch.nn.Module):\n"
_OF_ONE = _CLASS + "    def __init__(self):\n        super().__init__()\n        self.c = torch.nn.Conv2d(3, 3, 1)\n"
_FORWARD = "    def forward(self, x):\n"
RESULTS = {
    "none": "Net = None",
    "number": "Net = 3",
    "liar": "class Net:\n    __class__ = torch.nn.Module",
    "factory_of_none": "def Net(): return None",
    "getattr": "class M:\n    def __getattr__(self, n): raise SystemExit(0)\nNet = M()",
    "module_getattr": "def __getattr__(n): raise KeyboardInterrupt",
    "no_eval": _CLASS + "    def eval(self): raise SystemExit(0)",
    "odd_parameters": _CLASS + "    def parameters(self, *a): return iter([1])",
    "endless_children": _CLASS + "    def named_modules(self, *a, **k):\n        while True: yield 'a', self",
    "circular": _CLASS + "    def forward(self, x): return self(x)",
    "hostile_name": _OF_ONE.replace("self.c = ", "self.add_module('::error::x\\n\\x1b[31m##vso[x]', ").replace(
        "1)\n", "1))\n"
    )
    + _FORWARD
    + "        return list(self.children())[0](x)",
    "many_layers": _OF_ONE + _FORWARD + "        for _ in range(200000): x = self.c(x)\n        return x",
    "huge_layer": _OF_ONE.replace("3, 3, 1", "3, 2**40, 2**10") + _FORWARD + "        return self.c(x)",
}
_AT_IMPORT, _IN_INIT, _IN_FORWARD = "import", "init", "forward"


def attacks() -> Iterator[Attack]:
    """Every deed at every place, every odd result, and a run that is interrupted."""
    for deed, (code, exits) in DEEDS.items():
        for place in (_AT_IMPORT, _IN_INIT, _IN_FORWARD):
            yield of_module(f"{deed}_{place}", _misbehaving(code, place), exits, endless=deed in _ENDLESS)
    for name, code in RESULTS.items():
        yield of_module(
            f"result_{name}", f"import torch\n{code}\n", EITHER, endless=name in ("endless_children", "many_layers")
        )
    waits = partial(
        _write, "m_waits", "import pathlib, time\npathlib.Path('started').write_text('')\ntime.sleep(1000)\n"
    )
    for number, exits in ((signal.SIGINT, {130}), (signal.SIGTERM, {143, -15, 130})):
        for jobs in ((), ("--jobs", "2")):
            argv = ("check", *SHAPE, *jobs, *NAMES, "m_waits:Net")
            more = {"signal": Signal(number=number, when="started"), "outputs": ("started",), "after": _sent}
            name = f"signal_{number:d}_{'jobs' if jobs else 'one'}"
            yield command(name, *argv, make=waits, bare="module", exits=exits, **more)


def of_module(name: str, code: str, exits: frozenset[int], *, endless: bool = False) -> Attack:
    """A module that is checked beside the innocent specs; one that never ends is given three seconds."""
    module = f"m_{name}"
    options = (*SHAPE, "--module-timeout", "3") if endless else SHAPE
    return Attack(name=name, make=partial(_write, module, code), inputs=(f"{module}:Net",), options=options,
                  exits=exits, bare="module", extra_s=3.0 if endless else 0.0,
                  says="--module-timeout" if endless else "",
                  alone=endless,
                  stdin="open" if "stdin" in name else b"", after=_not_forged)  # fmt: skip


def _misbehaving(code: str, place: str) -> str:
    """The ordinary network with that deed at that place."""
    if place == _AT_IMPORT:
        return MODULE + code + "\n"
    after = "        super().__init__()\n" if place == _IN_INIT else "    def forward(self, x):\n"
    indented = "".join(f"        {line}\n" for line in code.split("\n"))
    return MODULE.replace(after, after + indented)


def _write(module: str, code: str, folder: Path) -> None:
    (folder / f"{module}.py").write_text(code, encoding="utf-8")


def _sent(_: Path, outcome: Outcome) -> list[str]:
    return [] if outcome.signalled else ["the signal was never sent"]


def _not_forged(_: Path, outcome: Outcome) -> list[str]:
    return ["what the module prints stands in the report"] if outcome.report and "forged" in outcome.report else []
