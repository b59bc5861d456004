"""Names of layers, files, folders, GPUs and rules that try to forge output, in every command and format."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from .contract import Attack, Outcome, command
from .sandbox import FIRST, INNOCENT, LAST

FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "rdjson", "markdown")
NAMES = (
    "::error::pwn", "::stop-commands::x", "::add-mask::a", "::set-output name=a::b", "::error file=a.yaml,line=1::x",
    "  ::warning::x", "\t::error::x", "##[error]x", "##vso[task.setvariable variable=PATH]x", "##teamcity[buildStatus]",
    "a\n::error::x", "a\r::error::x", "a\r\n##vso[x]y", "a\v::error::x", "a\f::error::x", "a\x85::error::x",
    "a\u2028::error::x", "a\u2029##[x]", "\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "\x00::error::x", "\u202egnp",
    "\u2066a", "%0A::error::x", "%0D%0A##[x]", "\ufeff::error::x", "\u200b::error::x", "]]><x>", "<script>", "`a`|b",
    "@team", "[x](http://x)", "=1+1", "+cmd|' /C calc'!A0", "@SUM(1)", "-1+1", '"quoted",x', "a,b", "$(touch PWNED)",
    "; touch PWNED", "a" * 499, "\U000e0041", "\ud800", "\uffff", "__proto__", "{0.__class__}", "%s%n", "\\n::error::x",
)  # fmt: skip
FILES = tuple(
    name for name in NAMES if "\0" not in name and "/" not in name and "\ud800" not in name and len(name.encode()) < 200
)
EVIL = "import pathlib\npathlib.Path({marker!r}).write_text('ran')\nclass Net: pass\n"
EVIL_NAMES = ("evil:Net.yaml", "evil:Net", "evil:Net.onnx", "evil:Net.json", "evil:Net.pt2")
READ = frozenset({0, 1, 3})


def attacks() -> Iterator[Attack]:
    """Names of layers, of files, of what is typed, and files that look like modules."""
    for style in FORMATS:
        line = ("check", "--output", style, "--gpu", "a100", "--gpu", "v100", FIRST, "hostile.yaml", LAST)
        check = ("check", "--verbose", "--output", style)  # the short text joins what one change mends
        both = _anything if style in ("github", "markdown") else _names_both  # these two show only so many findings
        actions = {"GITHUB_ACTIONS": "true", "CI": "true"}
        yield command(f"layers_check_{style}", *line, make=_layers, exits={1}, after=both)
        yield command(f"files_check_{style}", *check, "--", FIRST, *FILES, LAST, make=_files, exits=READ)
        yield command(f"folder_check_{style}", *check, ".", make=_folders, exits=READ, after=both)
        yield command(f"faults_check_{style}", *check, ".", make=_faults, exits=READ, after=both)
        yield command(f"github_{style}", *line, make=_layers, env=actions, exits=READ)
    for style in ("text", "json", "csv"):
        line, two = ("estimate", "hostile.yaml"), ("--gpu", "a100", "--gpu", "v100")
        yield command(f"layers_estimate_{style}", *line, "--output", style, make=_layers, exits={0})
        yield command(f"two_gpus_estimate_{style}", *line, *two, "-o", style, make=_layers, exits={0})
        yield command(f"files_estimate_{style}", "estimate", "--output", style, "--", *FILES, make=_folders, exits=READ)
    swept = ("sweep", "hostile.yaml", "--layer", NAMES[0], "-N", "1,2", "-o", "text", "-o", "csv=new")
    narrow = {"COLUMNS": "20"}
    yield command("layers_export", "export", "hostile.yaml", make=_layers, exits={0})
    yield command("layers_sweep", *swept, make=_layers, exits={0}, outputs=("new",))
    yield command("layers_text_colored", "check", "--quiet", "hostile.yaml", make=_layers, env=narrow, exits=READ)
    yield command("onnx_layers_export", "export", "names.onnx", make=_onnx, bare="onnx")
    yield Attack(name="onnx_layers_check", make=_onnx, inputs=("names.onnx",), bare="onnx")
    for number, name in enumerate(NAMES):
        # no argument holds these; the gate is the same for all others: a few names for each place are enough
        if "\0" not in name and "\ud800" not in name and number % 7 == 0:
            yield from _typed(f"{number:02}", name)
    yield command("files_export", "export", "--", "a\n::error::x", make=_files)
    yield from _evil()


def _typed(number: str, name: str) -> Iterator[Attack]:
    """The same text wherever the command line takes one."""
    for place, argv in {
        "gpu": ("check", "--gpu", name, FIRST), "gpus": ("gpus", "--", name), "rule": ("rule", "--", name),
        "select": ("check", "--select", name, FIRST), "output": ("check", "--output", name, FIRST),
        "config": ("check", "--config", name, FIRST), "rules": ("check", "--rules", name, FIRST),
        "baseline": ("check", "--baseline", name, FIRST), "input": ("check", "--input", name, FIRST),
        "schema": ("schema", "--", name), "settings": ("config", "--", name), "sweep": ("sweep", "--", name),
        "layer": ("layer", "-C", name), "runtime": ("layer", "--runtime", f"{name}={name}"), "command": (name,),
        "option": (f"--{name}", FIRST), "estimate": ("estimate", "--", name), "export": ("export", "--", name),
        "to_folder": ("check", "-o", f"json={name}/x", FIRST), "figure": ("sweep", "--figure", name),
    }.items():  # fmt: skip
        yield command(f"typed_{place}_{number}", *argv)


def _evil() -> Iterator[Attack]:
    """Files whose names look like `package.module:name`, beside a module that must never run."""
    check = ("check", "-o", "json", FIRST)
    for name in EVIL_NAMES:
        make = partial(_evil_files, name)
        spelled = {"plain": name, "dot": f"./{name}", "folder": ".", "pattern": "evil*", "stars": "**/evil*",
                   "absolute": f"{{work}}/{name}"}  # fmt: skip
        if name in EVIL_NAMES[2:]:
            spelled = {name: name, ".": "."}
        for how, argument in spelled.items():
            yield command(f"evil_check_{how}_{name}", *check, argument, LAST, make=make, exits=READ)
        if name in EVIL_NAMES[2:]:
            continue
        yield command(f"evil_jobs_{name}", "check", "--jobs", "2", *check[1:], name, LAST, make=make, exits=READ)
        for verb in ("estimate", "export", "config", "sweep"):
            yield command(f"evil_{verb}_{name}", verb, name, make=make)
        for option in ("--baseline", "--config", "--rules"):
            yield command(f"evil_{option[2:]}_{name}", "check", option, name, FIRST, make=make)
    for kind, name, make_file in (
        ("folder", "evil:Net", Path.mkdir), ("link", "evil:Net", lambda p: p.symlink_to(FIRST)),
        ("dangling", "evil:Net", lambda p: p.symlink_to("no")), ("package", "evil.sub:Net.yaml", None),
        ("long", "evil:" + "a" * 240, None),
    ):  # fmt: skip
        make = partial(_evil_files, name, make=make_file)
        yield Attack(name=f"evil_{kind}", make=make, inputs=(name,), exits=READ)
    yield command("dash_o", "check", ".", make=_dashes, exits=READ, after=_names_both)
    yield Attack(name="dash_o_named", make=_dashes, inputs=("-o", "--config=x", "-"), exits=READ)


def _evil_files(name: str, folder: Path, *, make: Callable[[Path], object] | None = None) -> None:
    (folder / "evil.py").write_text(EVIL.format(marker=str(folder / "PWNED")), encoding="utf-8")
    (make or (lambda path: path.write_text(INNOCENT[FIRST], encoding="utf-8")))(folder / name)


def _layers(folder: Path) -> None:
    lines = [f"  - {{ name: {quoted(name)}, C: 62, K: 128, R: 3, S: 3, padding: 1 }}\n"
             for name in NAMES if not set(name) & set("\0\ud800\uffff")]  # fmt: skip
    text = INNOCENT[FIRST].split("  - ")[0] + "".join(lines)
    (folder / "hostile.yaml").write_text(text, encoding="utf-8")


def quoted(text: str) -> str:
    """Text between double quotes, as YAML escapes it."""
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\U{ord(c):08x}" for c in text) + '"'


def _files(folder: Path) -> None:
    for number, name in enumerate(FILES):
        content = INNOCENT[FIRST] if number % 2 else "version: 2\nlayers: [1]\n"
        (folder / name).write_text(content, encoding="utf-8")


def _folders(folder: Path) -> None:
    for name in FILES:
        if not name.startswith("."):
            (folder / name).mkdir()
            (folder / name / f"{name}.yaml").write_text(INNOCENT[FIRST], encoding="utf-8")


def _faults(folder: Path) -> None:
    """Errors that quote what is wrong."""
    for number, name in enumerate(NAMES):
        word = quoted(name)
        for key, line in {
            "key": f"{{ {word}: 1 }}", "size": f"{{ C: {word} }}", "input": f"{{ name: a, input: {word} }}",
            "dtype": f"{{ dtype: {word} }}", "op": f"{{ op: {word} }}",
        }.items():  # fmt: skip
            text = f"version: 1\ntarget: [{word}]\nruntime: {{ {word}: 1 }}\nlayers:\n  - {line}"
            text += f"  # convlint: ignore[{name!r}]\n"
            (folder / f"f{number}_{key}.yaml").write_text(text, encoding="utf-8", errors="replace")


def _onnx(folder: Path) -> None:
    from .onnx_parts import model, node

    names = [name for name in NAMES if "\ud800" not in name]
    nodes = [node("Conv", ["x", "w"], [f"y{i}"], name=name, doc_string=name) for i, name in enumerate(names)]
    made = model(nodes)
    made.graph.name = made.producer_name = NAMES[0]
    (folder / "names.onnx").write_bytes(made.SerializeToString())


def _dashes(folder: Path) -> None:
    for name in ("-o", "--config=x", "-", "--output=json=z_last.yaml", "-o.yaml", "--help.yaml"):
        (folder / name).write_text(INNOCENT[FIRST], encoding="utf-8")


def _anything(_: Path, outcome: Outcome) -> list[str]:
    return [] if outcome.out else ["nothing on standard output"]


def _names_both(_: Path, outcome: Outcome) -> list[str]:
    """Both innocent layers stand in the output."""
    missing = [name for name in ("first", "last") if name not in outcome.out]
    return [f"not in the output: {missing}"] if missing else []
