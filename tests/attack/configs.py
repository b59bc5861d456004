"""Hostile configs, baselines, rule folders and glob patterns: large, deep, slow to match, or not regular files."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from .contract import Attack, command
from .sandbox import FIRST, INNOCENT
from .seeds import RULE

WRONG = frozenset({2})
READ_OR_WRONG = frozenset({1, 2})
OWN, SHARED = "convlint.toml", "pyproject.toml"
LONG_NAME = "a" * 200 + ".yaml"
Write = Callable[[Path], object]


def text(content: str | bytes | Callable[[], str]) -> Write:
    """Writes that content."""

    def write(path: Path) -> None:
        made = content() if callable(content) else content
        path.write_bytes(made if isinstance(made, bytes) else made.encode())

    return write


def sparse(path: Path, start: bytes = b"", size: int = 3 << 30) -> None:
    """A file of 3 GB that takes no room."""
    path.write_bytes(start)
    os.truncate(path, size)


NO_FILES: dict[str, Write] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "looping_link": lambda path: path.symlink_to(path.name),
    "dangling_link": lambda path: path.symlink_to("nowhere"),
    "link_to_zeros": lambda path: path.symlink_to("/dev/zero"),
    "link_to_fifo": lambda path: (os.mkfifo(path.with_name("fifo")), path.symlink_to("fifo")),
    "link_to_memory": lambda path: path.symlink_to("/proc/self/mem"),
    "socket": lambda path: os.mknod(path, 0o140644),
}
LARGE: dict[str, Write] = {
    "sparse_3_gb": sparse,
    "words_of_tool": text("tool " * 200_000),
    "tool_and_spaces": text("[" + " tool" * 100_000 + " " * 500_000),
    "brackets_of_tool": text("[tool" * 150_000),
    "dots_of_tool": text("tool." * 200_000 + "x = 1\n"),
    "mention_late": text(lambda: "# " + "x" * 5_000_000 + "\n[tool.convlint]\n"),
    "dotted_key": text("a." * 400_000 + "a = 1\n"),
    "dotted_header": text("[" + "a." * 400_000 + "a]\n"),
    "dotted_below_tool": text("[tool.convlint]\n" + "a." * 400_000 + "a = 1\n"),
    "dotted_short": text("[tool.convlint]\n" + "".join("a." * 400 + f"b{i} = 1\n" for i in range(1000))),
    "nested_lists": text("[tool.convlint]\nx = " + "[" * 500_000),
    "nested_tables": text("[tool.convlint]\nx = " + "{a = " * 200_000),
    "nested_90": text("[tool.convlint]\nx = " + "[" * 90 + "]" * 90),
    "many_keys": text(lambda: "[tool.convlint]\n" + "".join(f"k{i} = 1\n" for i in range(90_000))),
    "many_tables": text(lambda: "".join(f"[tool.t{i}]\n" for i in range(70_000)) + "[tool.convlint]\nx = 1\n"),
    "many_array_tables": text("[[tool.convlint.x]]\n" * 50_000),
    "long_string": text("[tool.convlint]\nignore = ['" + "a" * 1_000_000 + "']\n"),
    "open_string": text("[tool.convlint]\nignore = '''" + "''" * 500_000),
    "quotes": text('[tool.convlint]\n' + '"' * 1_000_000),
    "escapes": text('[tool.convlint]\nignore = ["' + "\\\\" * 500_000),
    "many_ignores": text(lambda: "[tool.convlint]\nignore = [" + ", ".join(f"'x{i}'" for i in range(90_000)) + "]\n"),
    "many_excludes": text(lambda: "[tool.convlint]\nexclude = ["
                          + ", ".join(f"'**/{i}/*'" for i in range(50_000)) + "]"),
    "many_severities": text(lambda: "[tool.convlint.severity]\n" + "".join(f"CL{i} = 'info'\n" for i in range(60_000))),
    "many_file_ignores": text(lambda: "[tool.convlint.per-file-ignores]\n"
                              + "".join(f"'**/{i}*' = ['CL1']\n" for i in range(40_000))),
    "huge_number": text("[tool.convlint]\nmin-loss = 1" + "0" * 5000 + "\n"),
    "huge_float": text("[tool.convlint]\nmin-loss = 1e999999999\n"),
    "not_utf8": text(b"[tool.convlint]\nignore = ['\xff']\n"),
    "utf16": text("[tool.convlint]\n".encode("utf-16")),
    "nul": text(b"[tool.convlint]\n" + b"\0" * 100_000),
    "control_key": text('[tool.convlint]\n"\\u001b[31m::error::x\\n::error::pwn" = 1\n'),
    "control_value": text('[tool.convlint]\nselect = ["\\u001b[31m\\n::error::pwn"]\n'),
    "commands": text('[tool.convlint]\n"::error::pwn" = 1\n"##vso[x]" = 2\n'),
    "extends_itself": text(f'[tool.convlint]\nextend = "{SHARED}"\n'),
    "extends_zeros": text('[tool.convlint]\nextend = "/dev/zero"\n'),
    "extends_memory": text('[tool.convlint]\nextend = "/proc/self/mem"\n'),
    "rules_of_root": text('[tool.convlint]\nrules = ["/proc"]\n'),
    "surrogates": text('[tool.convlint]\nignore = ["\\ud800"]\n'),
}  # fmt: skip
RULES: dict[str, str] = {
    "deep_expression": RULE.replace("groups == 1", "(" * 5000 + "1" + ")" * 5000),
    "deep_not": RULE.replace("groups == 1", "not " * 5000 + "C == 1"),
    "deep_minus": RULE.replace("groups == 1", "-" * 90_000 + "1 == 1"),
    "long_expression": RULE.replace("groups == 1", " + ".join(["C"] * 100_000) + " == 1"),
    "long_comparison": RULE.replace("groups == 1", " < ".join(["C"] * 300)),
    "power": RULE.replace("groups == 1", "9 ** 9 ** 9 ** 9 == 1"),
    "shift": RULE.replace("groups == 1", "1 << 99999999999 == 1"),
    "text_times": RULE.replace("groups == 1", "'a' * 99999999999 == 'b'"),
    "long_text": RULE.replace("groups == 1", "'" + "a" * 900_000 + "' == 'b'"),
    "format": RULE.replace("{align}", "{align:>99999999999}"),
    "format_attribute": RULE.replace("{align}", "{align.__class__.__mro__}"),
    "braces": RULE.replace("{align}", "{" * 90_000),
    "call": RULE.replace("groups == 1", "__import__('os').system('touch PWNED') == 0"),
    "squares": RULE.replace('let: { align: "16 // dtype.bytes" }', "let: { align: \"16\", a0: \"C * C\", "
                            + ", ".join(f'a{i}: "a{i - 1} * a{i - 1}"' for i in range(1, 60)) + " }")
    .replace("C % align == 0", "a59 > 0 and C % align == 0"),
    "many_lets": RULE.replace('let: { align: "16 // dtype.bytes" }', "let: { align: \"16\", "
                              + ", ".join(f'a{i}: "C + {i}"' for i in range(50_000)) + " }"),
    "many_variants": RULE + "variants: [" + ", ".join(['{ when: "C > 1", message: "a" }'] * 20_000) + "]\n",
    "control_title": RULE.replace("Channels are odd", '"\\e[31m\\n::error::pwn ##vso[x]"'),
    "command_title": RULE.replace("Channels are odd", '"::stop-commands::x"'),
    "long_title": RULE.replace("Channels are odd", "a" * 900_000),
    "command_message": RULE.replace('"C={C}', '"::error::C={C}').replace('message: "C=62', 'message: "::error::C=62'),
    "zero_division": RULE.replace("C % align", "C % (C - C)"),
    "ceil_zero": RULE.replace("C % align", "ceil_to(C, 0)"),
    "overflow": RULE.replace("C % align == 0", "9e307 * C * 1e300 > ceil(1e308 * 1e10)"),
    "alias_bomb": "x: &a [1]\n" + RULE,
}  # fmt: skip
_GROUP = "[[groups]]\nkind = 'dense'\ndtype = 'fp16'\npass = 'fprop'\nrows = 1\nspread = 0\n"
_HEAD = (
    'format = 1\ngpu = "a100"\ndevice = "d"\ncompute_capability = "8.0"\nconvlint = "0.1"\nrows = 1\n'
    "error_before = 0\nerror_after = 0\n"
)
CALIBRATIONS: dict[str, Write] = {
    **NO_FILES,
    **LARGE,
    "many_groups": text(_HEAD + _GROUP * 9_000),
    "many_constants": text(lambda: _HEAD + "[constants]\n" + "".join(f"c{i} = {{}}\n" for i in range(40_000))),
    "long_version": text(_HEAD.replace('"8.0"', '"' + "9." * 200_000 + '"')),
    "long_device": text(_HEAD.replace('"d"', '"' + "d" * 900_000 + '"')),
    "command_device": text(_HEAD.replace('"d"', '"\\n::error::x ##vso[x] \\u001b[31m"')),
    "surrogate_device": text(_HEAD.replace('"d"', '"\\ud800"')),
    "not_a_number": text(_HEAD + "[constants]\nbandwidth = { value = nan, rows = 1, spread = 0 }\n"),
    "no_time": text(_HEAD + "[constants]\nbandwidth = { value = 1e-300, rows = 1, spread = 0 }\n"),
    "no_launch": text(_HEAD + "[constants]\nlaunch_us = { value = -1000, rows = 1, spread = 0 }\n"),
}
BASELINES: dict[str, Write] = {
    **NO_FILES,
    "sparse_3_gb": sparse,
    "deep": text("[" * 1_000_000),
    "many": text(lambda: '{"convlint_baseline": 1, "findings": [' + "{}," * 900_000 + "{}]}"),
    "numbers": text(lambda: '{"convlint_baseline": 1, "findings": [' + "1," * 9_000_000 + "1]}"),
    "huge_number": text('{"convlint_baseline": 1' + "0" * 5000 + "}"),
    "commands": text('{"convlint_baseline": 1, "findings": [{"fingerprint": "\\n::error::x", "code": "::error::y", '
                     '"path": "##vso[x]", "layer": "\\u001b[31m"}]}'),
    "surrogates": text('{"convlint_baseline": 1, "findings": [{"fingerprint": "\\ud800", "code": "a", "path": "b"}]}'),
}  # fmt: skip


def attacks() -> Iterator[Attack]:
    """Every one of them, each beside the two innocent specs."""
    for name in (OWN, SHARED):
        for case, write in NO_FILES.items():
            if (name, case) != (SHARED, "dangling_link"):
                yield Attack(name=f"{name}_{case}", make=_at(name, write), exits=WRONG, says=name)
        for case, write in LARGE.items():
            yield Attack(name=f"{name}_{case}", make=partial(_config, name, write), exits=READ_OR_WRONG)
    yield Attack(name="extends_for_long", make=_chain, exits=WRONG)
    yield command("config_command", "config", make=_at(OWN, LARGE["dotted_key"]), exits=WRONG)
    mine = ("--rules", "mine")
    for case, content in RULES.items():
        make = partial(_rule, text(content))
        yield Attack(name=f"rule_{case}", make=make, options=mine, exits=READ_OR_WRONG)
        yield command(f"rule_shown_{case}", "rule", *mine, make=make)
        yield command(f"rule_tested_{case}", "rule", "--test", "mine", make=make)
    explained = partial(_rule, text(RULES["control_title"]))
    yield command("rule_explained", "rule", "ACME001", *mine, make=explained)
    for case, write in {**NO_FILES, "sparse_3_gb": sparse}.items():
        yield Attack(name=f"rule_file_{case}", make=partial(_rule, write), options=mine, exits=READ_OR_WRONG)
    for case, write in CALIBRATIONS.items():
        yield Attack(name=f"calibration_{case}", make=partial(_calibrated, write), exits=READ_OR_WRONG)
    for case, write in BASELINES.items():
        make, options = _at("base.json", write), ("--baseline", "base.json")
        yield Attack(name=f"baseline_{case}", make=make, options=options, exits=READ_OR_WRONG)
    yield from _patterns()


def _patterns() -> Iterator[Attack]:
    """Patterns of thirty stars wherever one may be given, against a name that nearly fits."""
    for name, pattern in {
        "stars": "*a" * 30 + "b", "words": "**/" * 30 + "b", "pairs": "**" * 60 + "b", "marks": "?*" * 60 + "b",
        "classes": "[a-z]*" * 30 + "b", "open_class": "[" * 5000, "long": "*a" * 50_000,
    }.items():  # fmt: skip
        for key, kept in (("exclude", ""), ("include", ", '*.yaml'")):
            make = partial(_long_names, f"{key} = ['{pattern}'{kept}]\n")
            yield command(f"{key}_{name}", "check", ".", make=make)
        for what in ("file", "layer"):
            make = partial(_long_names, f"[per-{what}-ignores]\n'{pattern}' = ['CL1']\n")
            yield Attack(name=f"{what}_ignores_{name}", make=make)
        yield Attack(name=f"argument_{name}", make=partial(_long_names, ""), inputs=(pattern,))


def _long_names(config: str, folder: Path) -> None:
    (folder / OWN).write_text(config, encoding="utf-8")
    deep = folder / "/".join(["a" * 100] * 20)
    deep.mkdir(parents=True)
    layer = INNOCENT[FIRST].replace("name: first", f"name: {'a' * 400}")
    for place in (folder, deep):
        (place / LONG_NAME).write_text(layer, encoding="utf-8")


def _at(name: str, write: Write) -> Callable[[Path], None]:
    return lambda folder: void(write(folder / name))


def void(_: object) -> None:
    """Discards what a writer returns."""


def _config(name: str, write: Write, folder: Path) -> None:
    """In a config of its own the keys stand at the top."""
    path = folder / name
    write(path)
    if name == OWN and path.stat().st_size < 16 << 20:
        content = path.read_bytes().replace(b"[tool.convlint]\n", b"").replace(b"tool.convlint.", b"")
        path.write_bytes(content.replace(SHARED.encode(), OWN.encode()))


def _calibrated(write: Write, folder: Path) -> None:
    (folder / OWN).write_text('calibration = "gpu.toml"\n', encoding="utf-8")
    write(folder / "gpu.toml")


def _chain(folder: Path) -> None:
    for number in range(2000):
        (folder / f"c{number}.toml").write_text(f'extend = "c{number + 1}.toml"\n', encoding="utf-8")
    (folder / OWN).write_text('extend = "c0.toml"\n', encoding="utf-8")


def _rule(write: Write, folder: Path) -> None:
    (folder / "mine").mkdir()
    write(folder / "mine" / "acme.yaml")
