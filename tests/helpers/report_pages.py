"""HTML reports for browser tests: networks, the page that convlint writes for each, and its JSON to compare with."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from checkout import ROOT
from command_line import convlint

RESNET50 = ROOT / "sample_configs" / "resnet50.yaml"
TWO = ("--gpu", "a100", "--gpu", "v100-sxm2-16gb")

# Findings of every severity; a100 and V100 differ in what they find.
MIXED = """\
version: 1
mode: training
runtime: { framework: pytorch, cudnn_benchmark: false, fixed_input_size: true }
defaults: { N: 32, dtype: fp16, layout: NCHW }
layers:
  - { name: stem, C: 3, H: 224, W: 224, K: 64, kernel_size: 7, stride: 2, padding: 3 }
  - { name: block0.reduce, C: 64, H: 56, W: 56, K: 20, kernel_size: 1 }
  - { name: block0.conv, C: 62, H: 56, W: 56, K: 126, kernel_size: 3, padding: 1 }
  - { name: block0.wrong, C: 64, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1, P: 57, Q: 57 }
  - { name: block1.grouped, C: 64, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1, groups: 64 }
  - { name: block1.late, C: 512, H: 7, W: 7, K: 512, kernel_size: 3, padding: 1 }
"""
MIXED_NAMES = ("stem", "block0.reduce", "block0.conv", "block0.wrong", "block1.grouped", "block1.late")
NO_LAYERS = "version: 1\nlayers: []\n"
UNREAD = "version: 1\nlayers:\n  - { name: stem, C: none, H: 8 }\n"

# Each sets `window.ran`, or asks for a file, where a page takes it for more than text.
RUN = "window.ran=1"
HOSTILE_NAMES = (
    f"<img src=x onerror={RUN}>",
    f"</script><script>{RUN}</script>",
    f"</style></template></svg><svg onload={RUN}>",
    f"<!--<script>{RUN}//",
    f"javascript:{RUN}",
    f'" onfocus="{RUN}" autofocus tabindex="0',
    f"' onmouseover='{RUN}' x='",
    f"{{{{ {RUN} }}}}{{% raw %}}${{{RUN}}}`{RUN}`",
    "&lt;b&gt; &amp;amp; &#x3c;",
    "\u202egnp.yxorp",
    "\u2066\u05d0\u05d1\u05d2 conv",
    "\u0627\u0644\u0637\u0628\u0642\u0629",
    "\U0001f642\U0001f468\u200d\U0001f469\u200d\U0001f467 \u5377\u79ef",
    "long" * 125,
)


class Made(NamedTuple):
    """A page on disk, and the same report as JSON."""

    page: Path
    report: dict[str, Any]


def make_page(folder: Path, spec: str | Path, *arguments: str) -> Made:
    """`convlint check` of a spec, given as a file or as its text, as a page."""
    if isinstance(spec, str):
        source = folder / "network.yaml"
        source.write_text(spec, encoding="utf-8")
    else:
        source = spec
    page, other = folder / "report.html", folder / "report.json"
    outputs = ("--output", f"html={page}", "--output", f"json={other}")
    ran = convlint("check", "--isolated", str(source), *arguments, *outputs)
    assert ran.code in (0, 1, 3), ran.err
    return Made(page, json.loads(other.read_text(encoding="utf-8")))


def many_layers(count: int) -> str:
    """A spec of that many layers, of which three in five have a finding."""
    lines = ["version: 1", "defaults: { N: 32, dtype: fp16, layout: NHWC }", "layers:"]
    widths = ((62, 126), (64, 128), (64, 128), (64, 20), (64, 30))
    for number in range(count):
        C, K = widths[number % 5]
        wrong = ", P: 57, Q: 57" if number % 50 == 7 else ""
        name = f"stage{number // 100}.block{number}.conv"
        lines.append(f"  - {{ name: {name}, C: {C}, H: 56, W: 56, K: {K}, kernel_size: 3, padding: 1{wrong} }}")
    return "\n".join(lines) + "\n"


def named_layers(names: tuple[str, ...]) -> str:
    """A spec with a layer of each name, all with findings; JSON strings are YAML too."""
    sizes = "C: 62, H: 56, W: 56, K: 126, kernel_size: 3, padding: 1"
    layers = (f"  - {{ name: {json.dumps(name, ensure_ascii=False)}, {sizes} }}\n" for name in names)
    return "version: 1\ndefaults: { N: 8, dtype: fp16, layout: NCHW }\nlayers:\n" + "".join(layers)
