"""`convlint layer`: one layer by its flags."""

import json
from pathlib import Path

import pytest
from checked_files import check, prepared, report
from command_line import convlint

from convlint.cli.check import SizeFlags, given
from convlint.cli.options import LayerSettingFlags
from convlint.model.errors import UsageError


@pytest.mark.parametrize(
    ("sizes", "runtime", "texts"),
    [
        (SizeFlags(), [], {}),
        (SizeFlags(C="3", pad="same"), [], {"C": "3", "pad": "same"}),
        (SizeFlags(T="3"), [], {"T": "3", "dims": "3"}),
        (SizeFlags(D="3"), [], {"D": "3", "dims": "3"}),
        (SizeFlags(), ["cudnn=8.9", "cuda=a=b"], {"runtime.cudnn": "8.9", "runtime.cuda": "a=b"}),
    ],
)
def test_flags_of_a_layer(sizes: SizeFlags, runtime: list[str], texts: dict[str, str]) -> None:
    assert given(sizes, LayerSettingFlags(runtime=runtime)) == texts


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="--runtime: 'cudnn' is not KEY=VALUE"):
        given(SizeFlags(), LayerSettingFlags(runtime=["cudnn"]))


folder = pytest.fixture(autouse=True)(prepared)


SIZES = "-N 256 -C 3 -H 224 -W 224 -K 64 -R 7 -S 7 --stride 2 --pad 3"
FIELDS = "name: layer, N: 256, C: 3, H: 224, W: 224, K: 64, R: 7, S: 7, stride: 2, padding: 3"


@pytest.mark.parametrize(
    ("flags", "fields", "top", "code"),
    [
        (f"{SIZES} --dtype fp16 --layout NCHW", f"{FIELDS}, dtype: fp16, layout: NCHW", "", 1),
        (
            f"{SIZES} -C 4 --dtype fp16 --layout NHWC", f"{FIELDS}, dtype: fp16, layout: NHWC".replace("C: 3", "C: 4"),
            "", 0,
        ),
        (f"{SIZES} --dtype fp32 --gpu v100", f"{FIELDS}, dtype: fp32", "gpu: v100", 1),
        (f"{SIZES} --dtype fp32 --gpu a100", f"{FIELDS}, dtype: fp32", "gpu: a100", 1),
        (
            f"{SIZES} --dtype fp32 --gpu a100 --runtime tf32=false", f"{FIELDS}, dtype: fp32",
            "gpu: a100\nruntime: { tf32: false }", 1,
        ),
    ],
)  # fmt: skip
def test_the_same_layer_from_flags_and_from_a_file(flags: str, fields: str, top: str, code: int) -> None:
    Path("stem.yaml").write_text(f"version: 1\n{top}\nlayers:\n  - {{ {fields} }}\n")
    told = report("stem.yaml")
    ran = convlint("layer", *flags.split(), "-o", "json")
    shown = json.loads(ran.out)
    assert ran.code == check("stem.yaml").code == code
    for one, other in zip(told["findings"], shown["findings"], strict=True):
        for key in ("code", "severity", "message", "fix", "lost_us", "lost_percent"):
            assert one[key] == other[key]
    assert told["layers"][0]["estimates"] == shown["layers"][0]["estimates"]


def test_three_dimensions_by_flags() -> None:
    flags = "-N 2 -C 8 -D 16 -H 32 -W 32 -K 8 -T 3 -R 3 -S 3 --pad 1 --dtype fp16 -o json"
    ran = convlint("layer", *flags.split())
    (found,) = json.loads(ran.out)["layers"]
    assert [found[key] for key in "DZTPQ"] == [16, 16, 3, 32, 32]
