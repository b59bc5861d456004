"""Random constructors run and read: a part of `python -m attack.constructors`, by fixed seeds."""

from .constructors import Built, Writer, attacked, judged

PROGRAMS = 60


def test_reading_states_no_width_that_a_run_contradicts() -> None:
    found = attacked(range(PROGRAMS), told=lambda _: None)
    assert found.wrong == []
    assert found.sites > 8 * PROGRAMS
    assert found.known >= 0.45 * found.sites


CHOSEN = """
from torch import nn
class Refused(Exception): pass
def main(flag, count, name, slim, extra):
    kw = {}
    KNOWN
    nn.Conv2d(8, kw.get("mid", 64), 1)
"""


def test_a_width_is_known_where_no_run_has_another() -> None:
    verdict = judged(CHOSEN.replace("KNOWN", "kw['mid'] = 62"), 1)
    assert (verdict.sites, verdict.known, verdict.wrong) == (1, 1, [])


def test_a_width_that_a_run_contradicts_is_told() -> None:
    from . import constructors

    text = CHOSEN.replace("KNOWN", "kw['mid'] = 62")
    real, width = constructors.built, (8, 64, 1, True)
    constructors.built = lambda *given: [Built(each.line, width, each.names) for each in real(*given)]
    try:
        wrong = judged(text, 1).wrong
    finally:
        constructors.built = real
    assert any("without a condition" in each for each in wrong)


def test_a_program_that_calls_itself_without_end_is_judged() -> None:
    assert judged(Writer(106).program(), 106).sites > 0


def test_a_loop_that_both_empties_a_dict_and_changes_a_key_of_it_is_read() -> None:
    assert judged(Writer(665).program(), 665).wrong == []
