"""`convlint init`: names the networks of a repository of Python, which is read and not run, in its config."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import islice
from keyword import iskeyword

from msgspec import Struct

from convlint.cli.commands.fix import print_diff, refuse_change
from convlint.cli.streams.gate import style_of, write
from convlint.cli.streams.outputs import refuse_way_out, replace_file
from convlint.config.find import NO_CONFIG, SHARED_FILE, Config, Configs, shown_path
from convlint.config.keys import SourceConfig, models_of
from convlint.config.toml_source import Spot, TomlSource, decode
from convlint.files.bounded_file import MOST_CONFIG_BYTES, is_there, read_settings
from convlint.files.cache import is_below
from convlint.files.languages import plural
from convlint.files.repository import root_of
from convlint.files.safe import clean, clean_path
from convlint.mend.checking import Edited
from convlint.model.errors import InputFault, UsageError
from convlint.readers.discovery import MOST_FILES, exists, files_below
from convlint.readers.python.nn.networks import FoundNetwork, find_networks
from convlint.readers.references import parse_reference
from convlint.reporters.words import place
from convlint.run.plan import Options, RunPlanner
from convlint.run.run import included

INCOMPLETE = 3  # exit code: nothing was found, or nothing could be read
MOST_ENTRIES = 20  # of one run: more is a library, of which a project checks a few
_MOST_OTHERS = 5  # names in a comment, and files in a note
# Of an input of so many axes, where the code states none; five halvings leave something of each.
_BATCHES = {1: 64, 2: 64, 3: 2}
_SIZES = {1: (1024,), 2: (224, 224), 3: (32, 128, 128)}
_TRY = "`convlint check package.module:Net --input 64x3x224x224`"
# The module and name of an entry; also of one that is commented out
_WRITTEN = re.compile(r"""^[ \t]*\#[ \t]*model[ \t]*=[ \t]*["']([^"'(]+)""", re.MULTILINE)


class _Entry(Struct, frozen=True, kw_only=True):
    """One table of the config. `missing` says why it is commented out; empty: it is not."""

    name: str
    model: str
    inputs: str  # as TOML
    shape: str
    comment: str  # on the inputs
    guessed: str  # such as "N, size"
    missing: str = ""
    others: tuple[str, ...] = ()

    def lines(self, table: str) -> Iterator[str]:
        """The lines of the config, without line breaks."""
        if self.missing:
            yield f"# To be completed: {self.missing}."
            yield '# Then remove the "# " of these lines:'
        sign = "# " if self.missing else ""
        yield f"{sign}[[{table}]]"
        yield f"{sign}name = {json.dumps(self.name, ensure_ascii=False)}"
        also = f"  # also: {_few(self.others)}" if self.others else ""
        yield f"{sign}model = {json.dumps(self.model, ensure_ascii=False)}{also}"
        yield f"{sign}inputs = {self.inputs}  # {self.comment}"


def run(folder: str, *, diff: bool, color: str) -> int:
    """Adds entries to the config, or with `diff` prints what would be added, and returns the exit code.

    Raises UsageError where the config is wrong or cannot be written.
    """
    if exists(folder) != "folder":
        return _incomplete(f"error: {clean_path(folder)} is no folder")
    planner = RunPlanner(Options(modules=False), date.today())
    path, config = _config_for(folder, planner.configs)
    before = read_settings(path, f"{path}:", MOST_CONFIG_BYTES) if is_there(path) else b""
    source = TomlSource(path, decode(before, path))
    try:
        files = [file for file in islice(files_below(folder, True, []), MOST_FILES) if file.endswith(".py")]
    except InputFault as fault:
        return _incomplete(f"error: {clean_path(folder)} {fault}")
    result = find_networks([file for file in files if included(file, planner)], root_of(folder))
    if result.unread:
        faults = [f"{place(name, file.line, file.column)} ({file.why})" for name, file in result.unread.items()]
        write(sys.stderr, f"convlint: {plural(len(faults), 'Python file')} not read: {_few(faults)}")
    importable = [network for network in result.networks if _module(network.path, path)]
    if unnamed := [f"{item.name} of {clean_path(item.path)}" for item in result.networks if item not in importable]:
        write(sys.stderr, f"convlint: no module name leads from the config's folder to {_few(unnamed)}")
    # The first are taken before those that are named already, so that a second run adds nothing.
    chosen = sorted(importable, key=lambda network: bool(network.needs))[:MOST_ENTRIES]
    rest = len(importable) - len(chosen)
    if not chosen and unnamed:
        return _incomplete(
            f"none of the networks in {clean_path(folder)} can be named from there: run convlint init in the folder "
            "that its scripts import from"
        )
    if not chosen:
        count = plural(len(files), "Python file")
        return _incomplete(f"no PyTorch network found in {count} of {clean_path(folder)}; name one with {_TRY}")
    new = [network for network in chosen if not _is_named(network, path, config, source.text)]
    entries = _entries(new, path, config)
    if not entries:
        write(sys.stdout, f"{clean_path(path)} names {plural(len(chosen), 'network')} already; nothing is written")
    else:
        edited = Edited(path=path, before=before, after=_with(before, entries, path, config))
        if diff:
            print_diff(edited, style_of(sys.stdout, color))
        else:
            _write(edited)
        _report(entries, path, diff=diff)
    if rest:
        more = plural(rest, "network")
        write(sys.stdout, f"{more} more left out; name a part of the repository: convlint init FOLDER")
    return 0


def _incomplete(message: str) -> int:
    write(sys.stderr, f"convlint: {clean(message)}")
    return INCOMPLETE


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_OTHERS} more" if len(names) > _MOST_OTHERS else ""
    return clean(", ".join(names[:_MOST_OTHERS]) + more)


def _config_for(folder: str, configs: Configs) -> tuple[str, Config]:
    """The config to add to, which need not exist, and its settings: the closest one, as long as it is the repository's.

    Else the closest pyproject.toml; else a new one, outside of packages. Raises UsageError.
    """
    start, top = os.path.abspath(folder), os.path.abspath(root_of(folder))
    while start != top and is_there(os.path.join(start, "__init__.py")):
        start = os.path.dirname(start)
    config = configs.of_folder(start)
    if config.path is not None and not is_below(os.path.abspath(config.path), top):
        config = NO_CONFIG
    if config.path is not None:
        return config.path, config
    here = start
    while not is_there(os.path.join(here, SHARED_FILE)) and here not in (top, os.path.dirname(here)):
        here = os.path.dirname(here)
    chosen = here if is_there(os.path.join(here, SHARED_FILE)) else start
    return shown_path(os.path.join(chosen, SHARED_FILE)), config


def _module(path: str, config: str) -> str:
    """The module by which a file can be imported from the config's folder or its `src`; empty where there is none."""
    folder = os.path.dirname(os.path.abspath(config))
    parts = os.path.relpath(os.path.abspath(path), folder).removesuffix(".py").split(os.sep)
    if len(parts) > 1 and parts[0] == "src" and not is_there(os.path.join(folder, "src", "__init__.py")):
        del parts[0]
    if len(parts) > 1 and parts[-1] == "__init__":
        del parts[-1]
    is_name = all(part.isidentifier() and not iskeyword(part) and part != "__init__" for part in parts)
    return ".".join(parts) if is_name else ""


def _is_named(network: FoundNetwork, path: str, config: Config, text: str) -> bool:
    """Whether the config has an entry of this network, perhaps commented out, by whichever function or package."""
    written = (*(entry.model for entry in config.models), *_WRITTEN.findall(text))
    for reference in written:
        module, _, name = reference.partition("(")[0].strip().partition(":")
        for file, maker in network.makers:
            own = _module(file, path)
            if maker == name and (own == module or own.startswith(f"{module}.")):  # which a package may hand on
                return True
    return False


def _entries(networks: Iterable[FoundNetwork], path: str, config: Config) -> list[_Entry]:
    names = {entry.name for entry in config.models}
    entries = []
    for network in sorted(networks, key=lambda network: (network.path, network.line)):
        module = _module(network.path, path)
        name = network.name.lower()
        if name in names:
            name = f"{module}.{name}"
        model = f"{module}:{network.name}({network.arguments})"
        try:
            parse_reference(model)
        except InputFault:  # too long, or beyond what an entry may say
            continue
        names.add(name)
        entries.append(_entry(network, name, model, config.source))
    return entries


def _entry(network: FoundNetwork, name: str, model: str, source: SourceConfig | None) -> _Entry:
    stated = source.input if source is not None and network.dims == 2 else None
    channels, sizes, batch = None if network.further_in else network.channels, network.sizes, _BATCHES[network.dims]
    facts = [f"C = {channels} from its first convolution"] if channels is not None else []
    guessed = ["N"] if channels is not None else ["N", "C"]
    if stated is not None and channels in (None, stated[-3]):
        channels, sizes = stated[-3], stated[-2:]
        batch = stated[0] if len(stated) > 3 else batch
        facts, guessed = ["the input of [tool.convlint.source]"], ["N"] if len(stated) == 3 else []
    elif sizes:
        facts.append(f"size from {network.sized_by}")
    else:
        sizes = _SIZES[network.dims]
        guessed.append("size")
    shape = "x".join(map(str, (batch, 3 if channels is None else channels, *sizes)))
    comment = "; ".join((*facts, *([f"guessed: {', '.join(guessed)}"] if guessed else [])))
    missing = [f"{network.name} takes {', '.join(network.needs)}"] if network.needs else []
    inputs = f'["{shape}"]'
    if len(network.inputs) > 1:
        first, *others = network.inputs
        missing.append(f"its forward method also takes {', '.join(others)}")
        pairs = [f'{first} = "{shape}"', *(f'{other} = ""' for other in others)]
        inputs = f"{{ {', '.join(pairs)} }}"
    return _Entry(
        name=name, model=model, inputs=inputs, shape=shape, comment=clean(comment), guessed=", ".join(guessed),
        missing=clean("; ".join(missing)), others=network.others,
    )  # fmt: skip


def _with(before: bytes, entries: Sequence[_Entry], path: str, config: Config) -> bytes:
    """The content of the config with the entries at its end; all else stays, byte for byte. Raises UsageError."""
    inherited = next((entry.at.source.path for entry in config.models if entry.at.source.path != path), None)
    if inherited is not None:
        raise UsageError(f"{path} extends {inherited}, whose models entries of its own would replace; add them there")
    shared = os.path.basename(path) == SHARED_FILE
    table = "tool.convlint.models" if shared else "models"
    lines = ["# Written by `convlint init` from the code, which it did not run: check what is guessed."]
    lines += [line for entry in entries for line in (*entry.lines(table), "")][:-1]
    ending = "\r\n" if b"\r\n" in before else "\n"
    between = "" if not before else ending if before.endswith(b"\n") else ending * 2
    after = before + (between + "".join(line + ending for line in lines)).encode()
    try:
        read = TomlSource(path, decode(after, path))
        value = read.values.get("tool", {}).get("convlint", {}) if shared else read.values
        at = Spot(read, ("tool", "convlint", "models") if shared else ("models",))
        models_of(value.get("models", []), at, os.path.dirname(os.path.abspath(path)))
    except UsageError as error:
        raise UsageError(f"{path} takes no more tables [[{table}]] at its end: {error}") from None
    return after


def _write(edited: Edited) -> None:
    """Writes the config. Raises UsageError."""
    if is_there(edited.path):
        try:
            refuse_change(edited)
        except InputFault as fault:
            raise UsageError(f"{edited.path} cannot be written: {fault}") from None
    else:
        refuse_way_out(edited.path)
    replace_file(edited.path, edited.after)


def _report(entries: Sequence[_Entry], path: str, *, diff: bool) -> None:
    """Says what was written, and what to type next."""
    lines = [f"{'would add' if diff else 'added'} {plural(len(entries), 'model')} to {clean_path(path)}"]
    width = max(len(clean(entry.model)) for entry in entries)
    for entry in entries:
        guessed = f", guessed: {entry.guessed}" if entry.guessed else ""
        note = f"commented out: {entry.missing}" if entry.missing else f"{entry.shape}{guessed}"
        lines.append(f"  {clean(entry.model):{width}}  {note}")
    is_here = os.path.dirname(path) == "" or Configs().of_folder(os.getcwd()).path == path
    option = "" if is_here else f" --config {shlex.quote(path)}"
    then = "complete those that are commented out, then" if all(entry.missing for entry in entries) else "next"
    if not diff:  # else there is nothing to check yet
        lines.append(f"{then}: convlint check --models{option}")
    write(sys.stdout, "\n".join(lines))
