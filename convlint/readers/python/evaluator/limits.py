"""Limits of the evaluator: source is untrusted, so that every loop, text and number that it asks for is bounded."""

from __future__ import annotations

from typing import Final

STEPS_OF_ROOT: Final = 100_000  # statements, calls and rounds of a loop for each root, those of remembered calls too
STEPS_OF_NOTHING: Final = 6_000  # without anything recorded: networks construct something long before
STEPS_OF_NOTHING_OF_MANY: Final = 4_000  # where files have fewer steps than STEPS_OF_FILE
STEPS_OF_RECORD: Final = 5  # beside those for each record, as code may go through a network layer by layer
STEPS_OF_ANY_ROOT: Final = 20  # charged for each root at least, as even a call of an empty function takes time
STEPS_OF_MODULE: Final = 50_000  # of a module's body
STEPS_OF_FILE: Final = 100_000  # of all roots of a file, without those of remembered calls
STEPS_OF_FILE_OF_MANY: Final = 33_000  # of a file, at least, where many files of a repository construct convolutions
STEPS_SHARED: Final = 3_000_000  # of all those files together, within the two bounds above
STEPS_OF_RUN: Final = 20_000_000  # of one process
ROUNDS: Final = 200  # of a loop that is unrolled
MOST_PRESET: Final = 32  # rounds of a loop that the command line sets by default
ROUNDS_OF_NEST: Final = 1000  # of a loop and those around it in one function, multiplied: tables of positions take more
LONGEST: Final = 4096  # items of a list, and characters of a text that is computed
MOST_BITS: Final = 4096  # of a whole number
MOST_STATED: Final = 16  # literals that a value remembers
DEEPEST: Final = 600  # frames of Python that an evaluation may stand on
DEEPEST_CODE: Final = 60  # nested expressions and statements
MOST_KINDS: Final = 8  # classes of a OneKind: a call is run with each of them
RECURSION: Final = 2  # calls of one function within itself where an argument is unknown
MOST_RECORDED: Final = 20_000  # that a library records for one root
DEEPEST_VALUE: Final = 12  # of lists in lists among arguments, and of objects in objects of a result


class Exhausted(Exception):
    """The evaluation has used all of its steps."""


def steps_of_file(files: int) -> int:
    """Return the steps of each file, given how many files construct convolutions.

    The result does not depend on the number of processes, so that `--jobs` changes no finding.
    """
    return min(max(STEPS_SHARED // max(files, 1), STEPS_OF_FILE_OF_MANY), STEPS_OF_FILE)
