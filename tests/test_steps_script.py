"""The tables of networks and the script that makes them: what is written is read, and what is counted."""

import sys
from types import SimpleNamespace

import pytest
from benchmark_scripts import modules_fixture
from wirings import resnet50, told

from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype
from convlint.model.network import Network, Operation, Work

tables = modules_fixture("network_tables")


exporting = modules_fixture("export_steps")


def conv(C: int, calls: int = 1, **fields) -> ConvLayer:
    return ConvLayer(
        name="row", C=C, H=8, W=8, K=16, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1, dtype=Dtype.fp16,
        calls=calls, **fields,
    )  # fmt: skip


def test_tables_hold_each_layer_once_and_give_every_network_back(tables, tmp_path):
    paths = tmp_path / "layers.csv", tmp_path / "networks.csv"
    stem = tables.Placed(layer=conv(3, first=True, bias=True), in_nchw="NCHW", in_nhwc="NHWC")
    twice = tables.Placed(layer=conv(16, calls=2), in_nchw="NCHW", in_nhwc="copied")
    once = tables.Placed(layer=conv(16), in_nchw="NCHW", in_nhwc="copied")
    other = tables.Placed(layer=conv(16), in_nchw="NHWC", in_nhwc="NHWC")
    assert tables.write_networks({("b", 8): [stem, other, twice, once], ("a", 8): [twice, stem]}, *paths) == 3
    found = tables.read_networks(*paths)
    assert found.keys() == {("a", 8), ("b", 8)}
    a, b = found["a", 8], found["b", 8]
    assert [(each.layer.C, each.layer.calls, each.in_nhwc) for each in a] == [(16, 2, "copied"), (3, 1, "NHWC")]
    assert sum(each.layer.calls for each in b) == 5
    assert [(each.layer.first, each.layer.bias, each.layer.P) for each in a] == [(False, False, 8), (True, True, 8)]


def test_a_layer_runs_in_the_layout_of_its_network(tables):
    copied = tables.Placed(layer=conv(16), in_nchw="NCHW", in_nhwc="copied")
    plain, last = (copied.laid_out(4, channels_last=last) for last in (False, True))
    assert (plain.N, plain.layout, plain.copies_input) == (4, "NCHW", False)
    assert (last.N, last.layout, last.copies_input) == (4, "NHWC", True)
    either = tables.placed(conv(16, layout="auto"))
    assert (either.in_nchw, either.in_nhwc) == ("auto", "auto")
    assert tables.placed(conv(16, layout="NCHW")).in_nhwc == "NHWC"


def test_the_tables_hold_the_measured_networks(tables):
    found = tables.read_networks()
    assert len(found) > 440
    assert all(sum(each.layer.first for each in layers) >= 1 for layers in found.values())
    assert all(each.layer.P and each.layer.Q for layers in found.values() for each in layers)


def test_a_table_that_does_not_fit_is_refused(tables, tmp_path):
    (tmp_path / "layers.csv").write_text("C\n3\n", encoding="utf-8")
    (tmp_path / "networks.csv").write_text("model,img,layers\na,8,0\n", encoding="utf-8")
    with pytest.raises(tables.ConvlintError, match="networks"):
        tables.read_networks(tmp_path / "layers.csv", tmp_path / "networks.csv")


def test_exporting_says_which_timm_it_needs(exporting, monkeypatch, capsys):
    monkeypatch.setattr(exporting, "find_spec", lambda name: object())  # no stand-in for torchvision
    for timm, message in ((None, "timm"), (SimpleNamespace(__version__="0.6"), "needs timm 1.0.31, not 0.6")):
        monkeypatch.setitem(sys.modules, "timm", timm)
        assert exporting.main() == 2
        assert message in capsys.readouterr().err


# --- whole steps against measured ones


steps = modules_fixture("steps")
HEADER = "model,gpu,torch,compile,mode,layout,amp,batch,img_size,step_ms,params_m,gmacs,macts_m\n"


def test_rows_know_their_table_and_the_sizes_of_their_network(steps, tmp_path):
    path = tmp_path / "steps.csv"
    path.write_text(
        HEADER + "a,rtx-4090,2.4.0,1,inference,NCHW,fp16 autocast,64,224,8,1,2.0,3.0\n"
        "a,rtx-3090,1.12,0,training,NHWC,fp16 autocast,32,224,16,,,\n"
        "b,rtx-3090,1.12,0,training,NHWC,fp16 autocast,32,224,16,,,\n"
    )
    one, two, three = steps.read_rows(path)
    assert (one.table, two.table) == (
        "rtx-4090 inference compiled, PyTorch 2.4.0", "rtx-3090 training NHWC, PyTorch 1.12"
    )  # fmt: skip
    assert (one.step_us, one.batch, two.gmacs, two.activations, three.gmacs) == (8000.0, 64, 2.0, 3.0, 0.0)


def test_published_rows_state_framework_and_optimizer(steps):
    rows = steps.read_rows(steps.DATA / "published_steps.csv")
    assert len(rows) == 512
    assert {load_gpu(row.gpu).id for row in rows} == {row.gpu for row in rows}
    engine = next(row for row in rows if row.model == "lcnet_050")
    assert (engine.table, engine.runtime.framework, engine.runtime.cuda_graphs) == (
        "t4 inference graphs, fp16, TensorRT", "tensorrt", True
    )  # fmt: skip
    assert engine.runtime.framework_version is None
    assert {row.optimizer for row in rows if row.torch == "1.13"} == {"momentum"}


def test_three_numbers_fit_what_three_numbers_made(steps, tmp_path):
    sizes = [(1.0, 9.0), (4.0, 2.0), (8.0, 1.0), (3.0, 7.0), (6.0, 6.0), (0.5, 4.0)]
    rows = [
        steps.StepRow(model=str(n), image=224, gpu="g", torch="2", how="0", mode="inference", layout="NCHW",
                      batch=2, step_us=2 * 30 * macs + 2 * 11 * acts + 100, gmacs=macs, activations=acts)
        for n, (macs, acts) in enumerate(sizes)
    ]  # fmt: skip
    assert steps.factor(steps.three_numbers(rows), clock=True) == pytest.approx(1, abs=0.02)
    assert steps.factor([0.1, 0.3], clock=True) == pytest.approx(1.105, abs=1e-3)
    assert steps.factor([0.1, 0.3], clock=False) == pytest.approx(1.221, abs=1e-3)


def test_a_row_is_predicted_at_its_batch_and_a_compiled_one_is_shorter(steps):
    network = told(resnet50(N=1))
    rows = [
        steps.StepRow(model="resnet50", image=224, gpu="rtx-4090", torch="2.4", how=how, mode="inference",
                      layout="NHWC", batch=batch, step_us=1e4, gmacs=4.1, activations=11.1)
        for how, batch in (("0", 128), ("0", 256), ("1", 256))
    ]  # fmt: skip
    small, large, compiled = (steps.predict(row, network, load_gpu(row.gpu)).step.time_us for row in rows)
    assert large == pytest.approx(2 * small, rel=0.05)
    assert compiled < 0.8 * large


def test_fast_norms_run_in_16_bits(steps):
    norm = Work(kind="layer norm", op="layer_norm", reads=(8,), writes=8, in_32_bits=True)
    network = Network(path="n", layers=(), operations=(Operation(kind="identity", work=norm),))
    (one,) = steps.with_fast_norms(network).operations
    assert not one.work.in_32_bits


def test_both_halves_have_networks(steps):
    names = [f"net{n}" for n in range(40)]
    assert 10 < sum(map(steps.is_held, names)) < 30
