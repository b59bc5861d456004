"""The file of a calibration: what is written is read, and nothing else gets through."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from calibrated import calibration, text
from hypothesis import given, settings
from hypothesis import strategies as st
from toml_values import toml
from toml_values import values as drawn_values

from convlint.config.calibration import calibration_text, read_calibration
from convlint.gpus.gpu import CalibrationOrigin, Group, load_gpu
from convlint.model.errors import UsageError
from convlint.model.layer import Dtype
from convlint.model.runtime import Version

pytestmark = pytest.mark.usefixtures("here")

GROUPS = (
    Group(kind="dense", dtype=Dtype.fp16, which="fprop", rows=22, spread=0.05, factor=1.25),
    Group(kind="depthwise", dtype=Dtype.tf32, which="wgrad", rows=3, spread=0.5),
)
FULL = calibration(load_gpu("a100"), tensor_clock=0.91, bandwidth=1.125, launch_us=-2.5, groups=GROUPS)
ORIGIN = CalibrationOrigin(
    device="NVIDIA A100-SXM4-40GB", compute_capability=Version("8.0"), convlint=Version("7.5.3"),
    cudnn=Version("9.1.0"), cuda=Version("12.4"), framework="pytorch", framework_version=Version("2.5.1"),
    date="2026-01-31",
)  # fmt: skip


def read(content: str | bytes):
    Path("gpu.toml").write_bytes(content.encode() if isinstance(content, str) else content)
    return read_calibration("gpu.toml", "gpu.toml")


def refused(content: str | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        read(content)
    return str(caught.value)


def test_what_is_written_is_read() -> None:
    file = read(calibration_text(ORIGIN, FULL))
    assert (file.path, file.origin, file.calibration) == ("gpu.toml", ORIGIN, FULL)
    assert calibration_text(file.origin, file.calibration) == Path("gpu.toml").read_text()


def test_the_least_that_a_file_holds() -> None:
    plain = CalibrationOrigin(device="x", compute_capability=Version("8.0"), convlint=Version("0.2"))
    empty = calibration(load_gpu("a100"))
    file = read(calibration_text(plain, empty))
    assert (file.origin, file.calibration) == (plain, empty)


def test_numbers_of_a_fit_survive_to_five_figures() -> None:
    exact = calibration(load_gpu("a100"), tensor_clock=0.9123456789, launch_us=12345.678 / 99)
    there = read(calibration_text(ORIGIN, exact)).calibration
    assert there.tensor_clock.value == pytest.approx(0.9123456789, rel=1e-4)
    assert there.launch_us.value == pytest.approx(12345.678 / 99, rel=1e-4)


def test_a_device_s_name_is_harmless() -> None:
    odd = CalibrationOrigin(device='A"1\\\n\x1b[31m\x7f≥', compute_capability=Version("8.0"), convlint=Version("0.2"))
    there = read(calibration_text(odd, FULL)).origin.device
    assert there.startswith('A"1\\ ')
    assert there.isprintable()
    assert read(text().replace("NVIDIA A100", "a\\u001b[31mb")).origin.device.isprintable()


def test_any_common_name_of_the_gpu() -> None:
    assert read(text("Tesla A100-40GB-SXM".replace("Tesla ", ""))).calibration.gpu == "a100-40gb-sxm"


WRONG = [
    ("", "1:1: format, gpu, device, compute_capability, convlint, rows, error_before, error_after are missing"),
    (text().replace("rows = 66\n", ""), "1:1: rows is missing"),
    (text().replace("format = 1", "format = 2"), "1:1: must be 1: this convlint reads no other form"),
    (text().replace("format = 1", "format = true"), "1:1: must be 1"),
    (text("h1000"), "2:1: unknown GPU 'h1000'"),
    (text().replace('"a100"', "3"), "2:1: must be text, not a number"),
    (text("t4"), "4:1: t4 has compute capability 7.5, not 8.0"),
    (text(capability="new"), '4:1: must be a version such as "9.1"'),
    (text(head="clock = 3\n"), "9:1: unknown key 'clock'"),
    (text(head="cudn = '9'\n"), "9:1: unknown key 'cudn'; did you mean 'cudnn'?"),
    (text(head="cudnn = 9.1\n"), "9:1: must be text, not a number"),
    (text(head="date = '2026-01-31'\n"), "9:1: must be a date without quotes"),
    (text(head="date = 2026-01-31T10:00:00\n"), "9:1: must be a date without quotes"),
    (text().replace("rows = 66", "rows = 0"), "6:1: must be from 1 to"),
    (text().replace("rows = 66", "rows = true"), "6:1: must be a whole number, not a boolean"),
    (text().replace("rows = 66", "rows = 6.5"), "6:1: must be a whole number"),
    (text().replace("rows = 66", "rows = " + "9" * 4000), "6:1: must be from 1 to"),
    (text().replace("before = 0.4", "before = nan"), "7:1: must be from 0 to 1e+06"),
    (text().replace("after = 0.1", "after = inf"), "8:1: must be from 0 to 1e+06"),
    (text().replace("after = 0.1", "after = -0.1"), "8:1: must be from 0"),
    (text(body="constants = 3\n"), "9:1: must be a table, not a number"),
    (text(body="[constants]\ntensor_clock = 0.9\n"), "10:1: must be a table, not a number"),
    (text(body="[constants]\ntensor_clok = {}\n"), "10:1: unknown key 'tensor_clok'; did you mean 'tensor_clock'?"),
    (text(body="[constants]\nbandwidth = {}\n"), "10:1: value, rows, spread are missing"),
    (text(body="groups = 3\n"), "9:1: must be tables: [[groups]]"),
    (text(body="groups = [3]\n"), "9:11: must be a table, not a number"),
    (text(body="[[groups]]\nkind = 'dens'\n"), "dtype, pass, rows, spread are missing"),
    ("a = " + "[" * 5000, "is nested too deep"),
    ("a = 'x", "is not valid TOML"),
    (b"\xff\xfe", "1:1: is not UTF-8: byte 0xff"),
    ("a = 1\n" * 200_000, "is larger than 1 MiB"),
]


@pytest.mark.parametrize(("content", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_wrong_is_said_with_its_place(content: str | bytes, message: str) -> None:
    said = refused(content)
    assert said.startswith("gpu.toml:")
    assert message in said
    assert len(said) < 400


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0.04", "20.1", "0", "-1", "1e308", "true", "'1'", "[1]"])
@pytest.mark.parametrize("name", ["tensor_clock", "cuda_clock", "bandwidth"])
def test_factors_lie_between_a_twentieth_and_twenty(name: str, value: str) -> None:
    body = f"[constants]\n{name} = {{ value = {value}, rows = 9, spread = 0.1 }}\n"
    assert refused(text(body=body)).startswith("gpu.toml:10:")


@pytest.mark.parametrize("value", ["0.05", "1", "20"])
def test_the_bounds_themselves_are_read(value: str) -> None:
    there = read(text(body=f"[constants]\nbandwidth = {{ value = {value}, rows = 9, spread = 0 }}\n")).calibration
    assert there.bandwidth.value == float(value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("kind = 'dens'", "10:1: 'dens' is not one of dense, depthwise, grouped, volume; did you mean 'dense'?"),
        ("dtype = 'fp17'", "11:1: 'fp17' is not one of"), ("pass = 'forward'", "12:1: 'forward' is not one of"),
        ("rows = 67", "13:1: must be from 1 to 66"), ("spread = nan", "14:1: must be from 0"),
        ("factor = 0.01", "15:1: must be from 0.05 to 20"), ("more = 1", "16:1: unknown key 'more'"),
    ],
)  # fmt: skip
def test_groups_are_checked_too(line: str, message: str) -> None:
    lines = ["kind = 'dense'", "dtype = 'fp16'", "pass = 'fprop'", "rows = 6", "spread = 0.1", "factor = 1.1"]
    key = line.split()[0]
    changed = [line if one.split()[0] == key else one for one in lines]
    changed += [] if line in changed else [line]
    assert message in refused(text(body="[[groups]]\n" + "\n".join(changed) + "\n"))


def test_a_group_is_there_once() -> None:
    group = "[[groups]]\nkind = 'dense'\ndtype = 'fp16'\npass = 'fprop'\nrows = 6\nspread = 0.1\n"
    assert "15:1: dense fp16 fprop is there twice" in refused(text(body=group * 2))


def test_what_is_no_file_is_not_waited_for() -> None:
    os.mkfifo("pipe.toml")
    Path("folder.toml").mkdir()
    Path("link.toml").symlink_to("nowhere")
    for path, message in (
        ("pipe.toml", "is no file: it is a pipe"), ("folder.toml", "is no file: it is a folder"),
        ("link.toml", "is a link to nothing"), ("none.toml", "does not exist"), ("/dev/zero", "it is a device"),
        ("a\0b", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            read_calibration(path, "shown")


_KEYS = st.sampled_from(["format", "gpu", "device", "compute_capability", "convlint", "rows", "constants", "groups",
                         "error_before", "error_after", "date", "cudnn", "x"])  # fmt: skip


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.dictionaries(_KEYS, drawn_values, max_size=6))
def test_no_file_is_a_defect_of_ours(tmp_path_factory: pytest.TempPathFactory, values: dict[str, object]) -> None:
    lines = dict(line.split(" = ", 1) for line in text(body="\n").strip().splitlines())
    lines |= {key: toml(item) for key, item in values.items()}
    path = tmp_path_factory.mktemp("fuzz") / "gpu.toml"
    path.write_text("".join(f"{key} = {item}\n" for key, item in lines.items()))
    with suppress(UsageError):
        file = read_calibration(str(path), "gpu.toml")
        assert calibration_text(file.origin, file.calibration)
