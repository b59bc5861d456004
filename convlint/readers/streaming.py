"""From a path to the models in it, one after the other as they are found: none is held, however many there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import groupby

from convlint.errors import InputFault
from convlint.readers import find_format
from convlint.readers.discovery import (
    HOLDS_NOTHING,
    MAGIC,
    MATCHES_NOTHING,
    exists,
    files_below,
    files_matching,
    is_shared,
    nothing_in,
    without_shards,
)
from convlint.readers.inputs import Input, decide, file_input
from convlint.readers.spec.sniff import look
from convlint.report import InputError


def streamed(
    argument: str, *, modules: bool = True, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[Input | InputError]:
    """What a word of the user's means: itself, or the specs and models of a folder or glob, in the order of a walk.

    An error where it means nothing. As in `discover`, but for Python source, which is passed over in folders, and an
    input like any other where it is named.
    """
    there = exists(argument)
    if there == "folder":
        inside, what = files_below(argument, False), HOLDS_NOTHING
    elif there is None and MAGIC.search(argument):
        inside, what = files_matching(argument, False), MATCHES_NOTHING
    else:
        yield decide(argument, modules=modules)
        return
    any_file = any_wanted = False
    try:
        for _, several in groupby(inside, os.path.dirname):
            for path in without_shards(list(several)):
                kind = _kind(path)
                any_file = any_file or kind != "foreign"
                if kind == "model" and wanted(path):
                    any_wanted = True
                    yield file_input(path)
    except InputFault as fault:
        yield InputError(path=argument, message=fault.message)
        return
    if not any_file:
        yield InputError(path=argument, message=nothing_in(argument, what, source=False))
    elif not any_wanted:
        yield InputError(path=argument, message="holds nothing to check: all of it is excluded, or no spec")


def _kind(path: str) -> str:
    """A model or spec; a file that speaks of layers and is none; or foreign."""
    if not is_shared(find_format(path)):
        return "model"
    verdict = look(path).verdict
    return "model" if verdict == "spec" else verdict
