"""The cells of the estimates' table."""

from convlint.model.layer import ConvLayer, with_output
from convlint.reporters.estimates import bar, clock, figures, product


def test_bars_and_numbers():
    assert bar(1.0, 10, ascii_=False) == "█" * 10
    assert bar(0.5, 10, ascii_=True) == "#####"
    assert bar(1e-9, 10, ascii_=False) == "▏"
    assert [clock(t) for t in (3.7, 887.2, 3700, 1.25e6, 999.7)] == [
        "3.70 us",
        "887 us",
        "3.70 ms",
        "1.25 s",
        "1.00 ms",
    ]
    assert [figures(v) for v in (0.0372, 1.25, 61.27, 1284.4, 99.97)] == ["0.037", "1.25", "61.3", "1284", "100"]


def test_grouped_products_say_how_many():
    layer = with_output(ConvLayer(name="d", N=2, C=64, H=8, W=8, K=64, R=3, S=3, groups=64))
    assert product(layer, "fprop", "x") == "64 of 72x1x9"
