"""Layers whose width somebody else fixes, by the names of the numbers: classes, anchors, channels of an image."""

from __future__ import annotations

import re
from collections.abc import Iterable

from convlint.model.source import Stated

# What the task asks for
_HEAD = re.compile(
    r"(?:^|_)(?:class(?:es)?|nclass(?:es)?|nclasses|anchors?|nc|outputs?|keypoints?|joints?|labels?|landmarks?|boxes|"
    r"coords?|categories|num_cls|ncls|attrs?|attributes|bins|vocab(?:ulary)?)(?:$|_|\d)|num_?class|n_?class",
    re.IGNORECASE,
)
# What may be the width of any block, but that of the last layer all the same
_LAST = re.compile(r"(?:^|_)(?:out_?(?:channels?|chans?|ch|dim|nc|planes)|output_nc|c_?out)(?:$|_)", re.IGNORECASE)
_INPUT = re.compile(
    r"(?:^|_)(?:in_?(?:channels?|chans?|ch|nc|dim)|input_(?:nc|channels?|dim|depth)|num_input_channels|n_channels|"
    r"img_?(?:channels?|ch)|image_channels?|num_in_ch|nb_channels?|channels_img)(?:$|_)",
    re.IGNORECASE,
)


def head_by_name(stated: Iterable[Stated], *, followed: bool) -> bool:
    """Whether the task fixes the width: a name says so. `followed`: the forward pass was, and shows what is last."""
    names = [each.name for each in stated]
    return any(_HEAD.search(name) for name in names) or (not followed and any(_LAST.search(name) for name in names))


def input_by_name(stated: Iterable[Stated]) -> bool:
    """Whether the width is that of the network's input, by its name."""
    return any(_INPUT.search(each.name) for each in stated)
