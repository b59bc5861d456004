"""Records of Python source: they travel between processes and are equal by what they hold."""

import pickle

from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.model.source import SourceLayer, SourceReading, StatedLiteral, Unread


def test_a_reading_travels() -> None:
    at = Location(path="net.py", line=3, column=9, cell=(2, 1, 9))
    layer = SourceLayer(
        layer=ConvLayer(name="Net.conv", path="net.py", C=64, K=60),
        framework="pytorch",
        stated={"K": (StatedLiteral(at=at, value=60, name="width"),)},
    )
    reading = SourceReading(
        files=("net.py",), layers=(layer,), unread=(Unread(at=at, why="config"),), cells={"net.py": ((2, 1, 5),)}
    )
    again = pickle.loads(pickle.dumps(reading))
    assert again == reading
    assert again.layers[0].stated["K"][0].at.cell == (2, 1, 9)
