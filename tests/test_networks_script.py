"""The script on whole networks: its arithmetic, what it reads and refuses, and the networks that it holds."""

import sys
from collections import Counter
from types import SimpleNamespace

import pytest
from benchmark_scripts import modules_fixture, run_on_rows

from convlint.model.layer import ConvLayer, Dtype

STEPS = "model,gpu,torch,compile,mode,layout,amp,batch,img_size,step_ms\n"
HEADER = "model,img,gpu,mode,batch_nchw,batch_nhwc,img_s_nchw,img_s_nhwc,torch\n"
RESNET = "resnet50d,224,RTX 3090,{mode},256,256,{nchw},{nhwc},pt112\n"


networks = modules_fixture("networks")


exporting = modules_fixture("export_networks")


@pytest.fixture
def run(networks, tmp_path, capsys):
    return run_on_rows(networks.main, tmp_path, capsys)


def test_every_network_of_the_csv_is_held_once(networks):
    rows = networks.read_rows(networks.DATA / "layout_networks.csv")
    assert len(rows) == 52
    assert Counter(row.mode for row in rows) == {"inference": 26, "training": 26}
    models = {row.model for row in rows}
    assert {path.stem for path in (networks.DATA / "networks").iterdir()} == models
    for model in models:
        layers = [each.layer for each in networks.read_network(networks.DATA / "networks" / f"{model}.yaml")]
        assert sum(layer.calls for layer in layers if layer.first) == (2 if model == "repvgg_b0" else 1), model
        assert all(layer.dtype == Dtype.fp16 and layer.P and layer.Q for layer in layers), model


def test_a_network_has_as_many_layers_as_its_name_says(networks):
    layers = networks.read_network(networks.DATA / "networks" / "resnet101.yaml")
    downsampling, linear = 4, 1
    assert sum(each.layer.calls for each in layers) == 101 - linear + downsampling


def test_layers_are_predicted_at_the_rows_batch_in_its_layout(networks):
    side = networks.Side(batch=32, step_us=1000.0)
    layers = (
        ConvLayer(name="a", N=1, C=64, H=56, W=56, K=64, R=3, S=3, P=54, Q=54, dtype=Dtype.fp16, layout="NCHW"),
        ConvLayer(name="b", N=1, C=64, H=1, W=1, K=64, R=1, S=1, P=1, Q=1, dtype=Dtype.fp16, layout="auto", calls=3),
    )
    gpu = networks.known_gpus(["RTX 3090"], {}, "test")["RTX 3090"]
    for last, layout in ((True, "NHWC"), (False, "NCHW")):
        timed = networks.layers_us(tuple(map(networks.placed, layers)), side, gpu, "inference", channels_last=last)
        assert [(layer.N, layer.layout) for layer, _ in timed] == [(32, layout), (32, "auto")]
        for layer, time in timed:
            assert time * 32 == pytest.approx(networks.time_us(layer, gpu, networks.RUNTIME, "inference"))


def test_equal_layers_are_exported_once_with_the_calls_of_all(exporting):
    layers = [
        ConvLayer(name=name, C=C, K=64, path="model.py", node=name, bias=C == 3, first=C == 3, calls=calls)
        for name, C, calls in (("stem", 3, 1), ("a", 64, 1), ("b", 64, 2), ("c", 32, 1), ("d", 64, 1))
    ]
    found = exporting.merged(layers)
    assert [(layer.name, layer.C, layer.calls, layer.first) for layer in found] == [
        ("stem", 3, 1, True), ("a", 64, 4, False), ("c", 32, 1, False),
    ]  # fmt: skip


def test_exporting_says_which_timm_it_needs(exporting, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(exporting, "find_spec", lambda name: object())  # no stand-in for torchvision
    for timm, message in ((None, "timm"), (SimpleNamespace(__version__="0.6"), "needs timm 1.0.31, not 0.6")):
        monkeypatch.setitem(sys.modules, "timm", timm)
        assert exporting.main([str(tmp_path / "made")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def predicted(networks, nchw: tuple[float, float], nhwc: tuple[float, float]):
    """A row by the predicted convolutions and the measured step in each layout."""
    row = networks.Row(
        model="m", image=224, gpu="g", mode="training", nchw=networks.Side(batch=1, step_us=nchw[1]),
        nhwc=networks.Side(batch=1, step_us=nhwc[1]),
    )  # fmt: skip
    return networks.Predicted(row=row, nchw_us=nchw[0], nhwc_us=nhwc[0])


def test_figures_are_of_savings_that_mean_something(networks):
    rows = [
        predicted(networks, (60, 100), (40, 90)),  # predicted 20, measured 10
        predicted(networks, (70, 100), (40, 80)),  # predicted 30, measured 20
        predicted(networks, (55, 100), (50, 120)),  # slower in NHWC, predicted faster
        predicted(networks, (50, 100), (50, 98)),  # differs by too little
    ]
    f = networks.figures(rows)
    assert (f.n, f.paying, f.differing) == (4, 2, 3)
    assert f.ratio == pytest.approx((2.0 + 1.5) / 2)
    assert f.signs == pytest.approx(2 / 3)
    assert f.rho == pytest.approx(0.8)
    assert f.most == pytest.approx(0.7)
    assert networks.impossible(rows) == []
    beyond = predicted(networks, (120, 100), (40, 80))
    assert networks.impossible([beyond]) == ["m at 224, training on g, NCHW: 1.20"]


def test_main_prints_a_line_for_each_mode_and_network(run):
    slow = RESNET.format(mode="infer", nchw=1000, nhwc=1200) + RESNET.format(mode="train", nchw=300, nhwc=400)
    code, out, err = run(HEADER + slow, "--verbose")
    assert (code, err) == (0, "")
    for expected in ("RTX 3090 = rtx-3090", "RTX 3090 inference", "RTX 3090 training", "resnet50d"):
        assert expected in out
    code, out, _ = run(HEADER + slow)
    assert code == 0
    assert "resnet50d" not in out


def test_convolutions_that_take_longer_than_the_step_fail_the_run(run):
    code, out, _ = run(HEADER + RESNET.format(mode="infer", nchw=1000, nhwc=1e6))
    assert code == 1
    assert "convolutions take longer than the whole step: resnet50d at 224, inference on RTX 3090, NHWC" in out
    assert "NCHW:" not in out


def test_steps_in_both_layouts_are_one_row(networks, tmp_path):
    path = tmp_path / "rows.csv"
    lines = (
        "a,rtx-3090,2.4.0,0,inference,NCHW,fp16,8,224,16\n"
        "b,rtx-3090,2.4.0,0,inference,NCHW,fp16,8,224,99\n"  # has no twin
        "a,rtx-3090,2.4.0,1,inference,NHWC,fp16,8,224,1\n"  # compiled
        "a,rtx-3090,2.4.0,0,inference,NHWC,fp16,4,224,12\n"
        "a,rtx-3090,1.12,0,training,NHWC,fp16,4,224,40\n"
        "a,rtx-3090,1.12,0,training,NCHW,fp16,4,224,20\n"
    )
    path.write_text(STEPS + lines, encoding="utf-8")
    inference, training = networks.read_rows(path)
    assert (inference.model, inference.image, inference.mode) == ("a", 224, "inference")
    assert (inference.nchw, inference.nhwc) == (
        networks.Side(batch=8, step_us=2000), networks.Side(batch=4, step_us=3000),
    )  # fmt: skip
    assert (training.nchw.step_us, training.nhwc.step_us) == (5000, 10000)


def test_unknown_gpus_are_left_out_unless_they_are_mapped(run):
    rows = RESNET.format(mode="infer", nchw=1000, nhwc=1200)
    strange = rows.replace("RTX 3090", "Abacus")
    code, out, err = run(HEADER + rows + strange)
    assert code == 0
    assert "Abacus" in err
    assert "Abacus" not in out
    code, out, _ = run(HEADER + rows + strange, "--gpu-map", "Abacus=a100")
    assert code == 0
    assert "Abacus = a100-40gb-sxm" in out
    assert run(HEADER + strange)[0] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,img\nresnet50d,224\n", "rows.csv:2: KeyError('batch_nchw')"),
        (HEADER + RESNET.format(mode="infer", nchw="fast", nhwc=2), "rows.csv:2"),
        (HEADER + RESNET.format(mode="infer", nchw=0, nhwc=2), "rows.csv:2"),
        (HEADER + RESNET.format(mode="dream", nchw=1, nhwc=2), "rows.csv:2: KeyError('dream')"),
        (HEADER + "resnet50d,224\n", "rows.csv:2"),
        (
            HEADER + RESNET.format(mode="infer", nchw=1, nhwc=2).replace("resnet50d", "nonet"),
            "no layers are known of nonet",
        ),
        (HEADER, "holds no rows"),
    ],
)
def test_main_refuses_what_it_cannot_read(run, text, message):
    code, out, err = run(text)
    assert (code, out) == (2, "")
    assert err.startswith("networks.py: ")
    assert message in err


def test_main_refuses_a_file_that_is_not_there(networks, tmp_path, capsys):
    assert networks.main([str(tmp_path / "absent.csv")]) == 2
    assert "absent.csv" in capsys.readouterr().err


@pytest.mark.parametrize(("mode", "ratio", "rho"), [("inference", (0.7, 1.4), 0.4), ("training", (0.7, 1.4), 0.5)])
def test_what_nhwc_saves_is_what_was_measured(networks, mode, ratio, rho):
    """The median where it pays, the order of the networks, the sign, and nothing that is impossible."""
    rows = [row for row in networks.read_rows(networks.DATA / "layout_networks.csv") if row.mode == mode]
    specs = {row.model: networks.read_network(networks.DATA / "networks" / f"{row.model}.yaml") for row in rows}
    gpus = networks.known_gpus((row.gpu for row in rows), {}, "test")
    predicted = [networks.predict(row, specs[row.model], gpus[row.gpu]) for row in rows]
    figures = networks.figures(predicted)
    assert ratio[0] <= figures.ratio <= ratio[1]
    assert figures.rho >= rho
    assert figures.signs >= 0.9
    assert networks.impossible(predicted) == []


def test_few_convolutions_take_longer_than_the_step_of_their_network(networks):
    """All networks in both layouts: at most one in a hundred, and none by a tenth."""
    rows = networks.read_rows(networks.DATA / "network_steps.csv")
    gpus = networks.known_gpus((row.gpu for row in rows), {}, "test")
    layers = networks.networks_of(rows, networks.DATA / "networks")
    rows = [row for row in rows if (row.model, row.image) in layers]
    assert len(rows) > 1000
    predicted = [networks.predict(row, layers[row.model, row.image], gpus[row.gpu]) for row in rows]
    shares = [share for each in predicted for share in each.shares.values()]
    assert sum(share > 1 for share in shares) <= 0.01 * len(shares)
    assert max(shares) <= networks.OVER
