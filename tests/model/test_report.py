"""What the engine says and reporters print: fingerprints, and the letters and sums of times."""

from cases import for_each

from convlint.model.report import LayerTimes, NetworkTotal, fingerprint

ONE = ("CL102", "net.yaml", "stem", "a100", 0)


def test_a_fingerprint_is_the_same_in_each_run() -> None:
    assert fingerprint(ONE) == fingerprint(ONE) == "a2392666d2516aeb"


@for_each("other", [("CL101", *ONE[1:]), ("CL102", "net.yamls", "tem", "a100", 0), (*ONE[:4], 1)])
def test_another_identity_has_another_fingerprint(other: tuple[str, str, str, str, int]) -> None:
    assert fingerprint(other) != fingerprint(ONE)


def test_letters_say_how_close_a_time_is_to_the_best_form() -> None:
    times = LayerTimes(time_us=20.0, after_us=10.0, ideal_us=10.0)
    assert times.grade > times.grade_after == "A"
    assert LayerTimes(time_us=1000.0, after_us=900.0, ideal_us=1.0).grade == "F"
    assert LayerTimes(time_us=0.0, after_us=0.0, ideal_us=0.0).grade == "A"


def test_the_total_of_what_has_no_time_has_none() -> None:
    nothing = NetworkTotal(gpu="a100", mode="training")
    assert (nothing.grade, nothing.time_us, nothing.time_after_us, nothing.lost_us) == (None, None, None, None)
    known = NetworkTotal(gpu="a100", mode="training", times=LayerTimes(time_us=20.0, after_us=15.0, ideal_us=10.0))
    assert (known.time_us, known.lost_us, known.time_after_fix_us) == (20.0, 5.0, None)
