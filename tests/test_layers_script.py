"""The script on newer timings of single layers: what it reads and refuses, its halves, and its arithmetic."""

from collections import Counter

import pytest
from benchmark_scripts import modules_fixture, run_on_rows

KERNELBENCH = "gpu,dtype,layout,N,C,D,H,W,K,T,R,S,stride,pad,dil,groups,transposed,bias,us,runs\n"
TENSORRT = "gpu,dtype,layout,N,C,H,W,K,R,S,stride,groups,us\n"
H200 = "gpu,torch,dtype,layout,op,case,input,K,kernel,stride,pad,dil,groups,bias,eager_us,eager_kernels\n"
VOLUMES = "gpu,cudnn,dtype,pass,N,C,DHW,K,RST,pad,stride,ms_NCDHW,ms_NDHWC\n"
PRODUCTS = (
    "m,k,n,mat1_stride_0,mat1_stride_1,mat2_stride_0,mat2_stride_1,mat1_dtype,prepadded_mat1,prepadded_mat2,"
    "using_tf32,orig_ms,pad_ms\n"
)
PATCHES = "gpu,torch,cudnn,dtype,layout,copied,N,C,D,H,W,K,T,R,S,pass,bias,us,source\n"
ALIGNMENT = "gpu,pass,accumulate,N,C,H,W,K,R,S,pad,stride,alignment,us_aligned_8,us\n"


scripts = modules_fixture("layers", "layer_timings")


@pytest.fixture
def rows(scripts, tmp_path):
    def rows(*lines: str):
        path = tmp_path / "rows.csv"
        path.write_text("".join(line if line.endswith("\n") else line + "\n" for line in lines), encoding="utf-8")
        return scripts[1].read_csv(path)

    return rows


@pytest.fixture
def run(scripts, tmp_path, capsys):
    return run_on_rows(scripts[0].main, tmp_path, capsys)


def test_every_row_of_the_published_files_is_read_and_predicted(scripts):
    layers, layer_timings = scripts
    counts = []
    for path in layer_timings.DEFAULT_CSVS:
        found = layer_timings.read_csv(path)
        gpus = layer_timings.gpus_of(found, {}, "test")
        assert len(layers.predict(found, gpus)) == len(found)
        counts.append(len(found))
    assert counts == [153, 2400, 76, 55, 184, 8, 90]  # 228 pairs of 76 aligned kernels; 92 volumes in two layouts


def test_kernelbench_rows_keep_their_dimensions(rows):
    plain, volume, line = rows(
        KERNELBENCH,
        "T4,fp32,NCHW,16,3,1,224,112,64,1,11,9,4x2,2x1,1x3,1,0,bias,500,1",
        "A10,tf32,NCDHW,8,32,16,32,64,96,3,5,7,1x2x3,3x2x1,1x1x2,4,1,nobias,19200.0,2",
        "A10,tf32,NCW,8,32,1,1,4096,96,1,1,5,1x2,0x1,1x3,1,0,nobias,100,2",
    )
    assert [timed.row.source for timed in (plain, volume, line)] == [
        "kernelbench:2-D dense", "kernelbench:3-D grouped transposed", "kernelbench:1-D dense",
    ]  # fmt: skip
    a, b, c = plain.row.layer, volume.row.layer, line.row.layer
    assert (a.dims, a.U, a.V, a.PadH, a.PadH_end, a.PadW, a.DilH, a.DilW, a.bias) == (2, 4, 2, 2, 2, 1, 1, 3, True)
    assert (a.P, a.Q, a.StrideD, a.PadD, a.DilD) == ((224 + 4 - 11) // 4 + 1, (112 + 2 - 25) // 2 + 1, 1, 0, 1)
    assert (b.op, b.dims, b.groups, b.Z, b.P, b.Q) == (
        "conv_transpose", 3, 4, 15 - 6 + 3, 31 * 2 - 4 + 5, 63 * 3 - 2 + 6 * 2 + 1,
    )  # fmt: skip
    assert (c.dims, c.H, c.U, c.V, c.PadH, c.PadW, c.Q) == (1, 1, 1, 2, 0, 1, (4096 + 2 - 13) // 2 + 1)
    assert not plain.runtime.tf32
    assert volume.runtime.tf32
    assert volume.runtime.framework == "pytorch"
    assert volume.runtime.cudnn_benchmark is False


def test_tensorrt_rows_are_padded_by_half_the_filter(rows):
    (timed,) = rows(TENSORRT, "V100,int8,TensorRT,32,96,56,56,96,5,3,2,96,42.5")
    layer = timed.row.layer
    assert timed.row.source == "tensorrt:int8 depthwise"
    assert (layer.PadH, layer.PadW, layer.P, layer.Q, layer.layout) == (2, 1, 28, 28, "auto")
    assert timed.runtime.framework == "tensorrt"
    assert timed.row.measured_us == 42.5


def test_eager_rows_keep_sizes_that_stand_for_every_axis_and_their_bias(rows):
    line, image, volume = rows(
        H200,
        'H200,2.13,fp16,NCHW,C,a,"[1, 80, 3000]",1280,[3],2,1,1,1,0,56.8,4',
        'H200,2.13,bf16,NCHW,C,b,"[2, 64, 56, 40]",256,"[3, 5]","[2, 1]","[1, 2]",1,1,1,4.2,2',
        'H200,2.13,fp16,NCHW,C,c,"[1, 64, 8, 28, 30]",128,"[3, 1, 5]",1,"[1, 0, 2]","[2, 1, 1]",32,0,281.4,32',
    )
    assert [timed.row.source for timed in (line, image, volume)] == ["h200:1-D", "h200:k x k, bias", "h200:grouped"]
    a, b, c = (timed.row.layer for timed in (line, image, volume))
    assert (a.dims, a.H, a.W, a.R, a.S, a.U, a.V, a.PadH, a.PadW, a.bias) == (1, 1, 3000, 1, 3, 1, 2, 0, 1, False)
    assert (b.dims, b.H, b.W, b.R, b.S, b.U, b.V, b.PadH, b.PadW_end, b.bias) == (2, 56, 40, 3, 5, 2, 1, 1, 2, True)
    assert (c.dims, c.D, c.T, c.R, c.S, c.PadD, c.PadH, c.PadW, c.DilD, c.DilW, c.groups) == (
        3, 8, 3, 1, 5, 1, 0, 2, 2, 1, 32,
    )  # fmt: skip
    assert all(timed.runtime.cudnn_benchmark is False and timed.row.layer.layout == "NCHW" for timed in (line, image))


def test_volumes_are_one_row_in_each_layout_and_gradients_two_passes(rows, scripts):
    layers, layer_timings = scripts
    found = rows(VOLUMES, "V100,8005,fp16,dgrad+wgrad,2,128,32,256,3,1,2,0.8,0.6")
    assert [(timed.row.layer.layout, timed.row.measured_us, timed.passes) for timed in found] == [
        ("NCHW", 800, ("dgrad", "wgrad")), ("NHWC", 600, ("dgrad", "wgrad")),
    ]  # fmt: skip
    plain = found[0]
    assert plain.runtime.cudnn == layer_timings.Version("8.0.5")
    assert plain.row.flops == 2 * layer_timings.flops(plain.row.layer)
    gpus = layer_timings.gpus_of(found, {}, "test")
    _, predicted = layers.predict(found, gpus)[0]
    alone = [layers.estimate_pass(plain.row.layer, which, gpus["V100"], plain.runtime) for which in plain.passes]
    assert predicted.time_us == pytest.approx(sum(each.time_us for each in alone))


def test_changes_are_of_rows_that_differ_in_one_thing(rows, scripts):
    layers, _ = scripts
    volumes = rows(VOLUMES, *(f"V100,8005,fp16,fprop,2,{C},32,256,3,1,2,0.8,0.6" for C in (64, 128)))
    times = (100.0, 50.0, 100.0, 200.0)  # predicted: half in NHWC, and twice
    found = layers.changes(layers.Predicted(each.row, time) for each, time in zip(volumes, times, strict=True))
    change = found["NHWC over NCHW: fprop, V100"]
    assert found.keys() == {"NHWC over NCHW: fprop, V100", "NHWC over NCHW: all"}
    assert (change.n, change.same_sign) == (2, 0.5)
    assert change.measured == pytest.approx(0.75)
    assert change.predicted == pytest.approx(1)
    assert change.factor == pytest.approx((1.5 * 2 / 0.75) ** 0.5)
    biases = rows(
        H200, *(f'H200,2,fp16,NCHW,C,a,"[1, 80, 3000]",12,[3],2,1,1,1,{bias},{1 + bias},4' for bias in (0, 1))
    )
    found = layers.changes(layers.Predicted(each.row, 5.0) for each in (*biases, *volumes))
    assert found["bias over none: 1-D, H200"].measured == pytest.approx(2)


def test_patch_embeddings_have_the_stride_of_their_filter(rows):
    image, volume, named = rows(
        PATCHES,
        "H100,2.6.0,9.1.0,bf16,NCHW,0,4,3,1,224,224,768,1,16,16,fprop,1,125.7,trace",
        "H200,2.9.0,9.13.0,bf16,NHWC,1,137920,3,2,14,14,1280,2,14,14,fprop+wgrad,0,24710,page",
        "H200,2.9.0,9.13.0,bf16,NCHW,0,34480,3,2,14,14,1280,2,14,14,fprop,0,5170,page; cuDNN called by name",
    )
    assert (named.runtime.framework_version, str(volume.runtime.framework_version)) == (None, "2.9.0")
    a, b = image.row.layer, volume.row.layer
    assert (a.dims, a.U, a.V, a.StrideD, a.P, a.bias, a.copies_input) == (2, 16, 16, 1, 14, True, False)
    assert (b.dims, b.U, b.StrideD, b.Z, b.P, b.layout, b.copies_input) == (3, 14, 2, 1, 1, "NHWC", True)
    assert (image.passes, volume.passes) == (("fprop",), ("fprop", "wgrad"))


def test_alignments_of_one_kernel_are_one_row(rows, scripts):
    sizes = "rtx-3070,fprop,f32,256,64,56,56,256,1,1,0,1"
    (timed,) = rows(ALIGNMENT, f"{sizes},1,1000,1500", f"{sizes},2,1000,1200", f"{sizes},4,1000,1100")
    assert timed.row.measured_us == 1000
    assert [(alignment, us) for alignment, _, us in timed.narrow] == [(1, 1500), (2, 1200), (4, 1100)]
    assert [(layer.C, layer.K) for _, layer, _ in timed.narrow] == [(57, 249), (58, 250), (60, 252)]


def test_prices_of_narrow_vectors_are_beside_the_models(rows, scripts):
    layers, layer_timings = scripts
    sizes = "rtx-3070,fprop,f32,256,64,56,56,256,1,1,0,1"
    found = rows(ALIGNMENT, f"{sizes},1,1000,1500", f"{sizes},2,1000,1200")
    prices = layers.prices(found, layer_timings.gpus_of(found, {}, "test"))
    assert list(prices) == ["fprop f32, alignment 1", "fprop f32, alignment 2"]
    assert prices["fprop f32, alignment 1"].measured == pytest.approx(1.5)
    assert all(price.n == 1 and price.predicted > 1 for price in prices.values())


def test_products_are_convolutions_beside_their_padded_twins(rows, scripts):
    layers, layer_timings = scripts
    line = "4096,1026,2050,{},1,{},{},torch.bfloat16,False,True,not_float_32,5.0,2.0"
    found = rows(PRODUCTS, line.format(1026, 1, 1026), line.format(1026, 2050, 1))  # the second is not column-major
    (timed,) = found
    layer = timed.row.layer
    assert (layer.N, layer.W, layer.C, layer.K, layer.layout, timed.row.source) == (
        1, 4096, 1032, 2056, "NHWC", "product:bf16",
    )  # fmt: skip
    ((alignment, as_is, us),) = timed.narrow
    assert (alignment, as_is.C, as_is.K, us) == (2, 1026, 2050, 5000)
    copies = 2 * 4096 * (1026 + 1032) / (0.8 * layer_timings.load_gpu("a100-80gb-sxm").dram_bytes_per_s) * 1e6
    assert timed.row.measured_us == pytest.approx(2000 - copies)
    price = layers.prices(found, layer_timings.gpus_of(found, {}, "test"))["bf16, alignment 2"]
    assert price.measured == pytest.approx(5000 / (2000 - copies))
    tiny = "4096,1026,2050,1026,1,1,1026,torch.bfloat16,False,False,not_float_32,5.0,0.02"
    assert rows(PRODUCTS, tiny) == []  # copies alone take most of that


def test_halves_split_shapes_and_nothing_else(scripts):
    _, layer_timings = scripts
    found = [timed for path in layer_timings.DEFAULT_CSVS for timed in layer_timings.read_csv(path)]
    counts = Counter(layer_timings.half_of(timed.row.layer) for timed in found)
    assert set(counts) == {"fit", "held"}
    assert min(counts.values()) > 0.45 * len(found)
    halves: dict[object, set[str]] = {}
    for timed in found:
        layer = timed.row.layer
        shape = (layer.op, layer.C, layer.D, layer.H, layer.W, layer.K, layer.T, layer.R, layer.S, layer.U, layer.V,
                 layer.PadD, layer.PadH, layer.PadW, layer.DilH, layer.DilW, layer.groups)  # fmt: skip
        halves.setdefault(shape, set()).add(layer_timings.half_of(layer))
    assert len(halves) > 400
    assert all(len(found) == 1 for found in halves.values())


def test_a_half_does_not_move_between_runs(rows, scripts):
    (timed,) = rows(TENSORRT, "V100,int8,TensorRT,32,96,56,56,96,5,3,2,96,42.5")
    assert scripts[1].half_of(timed.row.layer) == "held"


def test_a_line_says_how_far_off_predictions_are(rows, scripts):
    layers, _ = scripts
    found = rows(TENSORRT, *(f"V100,fp16,TensorRT,{N},64,56,56,64,3,3,1,1,{10 * N}" for N in (1, 2, 4)))
    times = (20.0, 40.0, 160.0)  # twice, twice and four times the measured
    predicted = [layers.Predicted(timed.row, time) for timed, time in zip(found, times, strict=True)]
    line = layers.line(predicted)
    assert line.n == 3
    assert line.bias == pytest.approx(16 ** (1 / 3))
    assert line.median_error == pytest.approx(100)
    assert line.factor_clocked == pytest.approx(2 ** (1 / 3))


def test_main_prints_kinds_gpus_and_halves(run):
    text = (
        KERNELBENCH
        + "T4,fp32,NCHW,16,3,1,224,224,64,1,11,11,4x4,2x2,1x1,1,0,bias,500,1\n"
        + "A10,tf32,NCHW,16,64,1,224,224,64,1,3,3,1x1,1x1,1x1,64,0,nobias,50,1\n"
        + "Abacus,tf32,NCHW,16,64,1,224,224,64,1,3,3,1x1,1x1,1x1,64,0,nobias,50,1\n"
    )
    code, out, err = run(text, "--verbose")
    assert code == 0
    for expected in ("2-D dense", "2-D depthwise", "2-D dense, T4", "\nA10 ", "\nT4 ", "\nall ", "2 rows"):
        assert expected in out
    assert "Abacus" in err
    code, out, _ = run(text, "--gpu-map", "Abacus=a100")
    assert "3 rows" in out
    assert "2-D dense, T4" not in out
    code, out, _ = run(text, "--least-us", "100")
    assert "1 rows" in out
    outcomes = [run(text, "--half", half) for half in ("fit", "held")]
    assert all("half " in out for code, out, _ in outcomes if code == 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "columns of no known kind"),
        ("", "columns of no known kind"),
        (TENSORRT, "holds no rows"),
        (TENSORRT + "V100,int8,TensorRT,x,96,56,56,96,5,3,2,96,42.5\n", "rows.csv:2"),
        (TENSORRT + "V100,int4,TensorRT,1,96,56,56,96,5,3,2,96,42.5\n", "rows.csv:2"),
        (TENSORRT + "V100,int8,TensorRT,1,96,56,56,96,5,3,2,96,0\n", "rows.csv:2"),
        (TENSORRT + "V100,int8,TensorRT,1,96,2,2,96,9,9,2,96,inf\n", "rows.csv:2"),
        (TENSORRT + "V100,int8\n", "rows.csv:2"),
        (KERNELBENCH + "T4,fp32,NHCW,16,3,1,9,9,64,1,1,1,4x4,2x2,1x1,1,0,bias,500,1\n", "rows.csv:2"),
        (KERNELBENCH + "T4,fp32,NCHW,16,3,1,9,9,64,1,1,1,1x1x1x1,2x2,1x1,1,0,bias,500,1\n", "rows.csv:2"),
        (H200 + 'H200,2,fp16,NCHW,C,a,"[1, 80, 30]",12,"[3, 3]",2,1,1,1,0,5,4\n', "rows.csv:2"),
        (H200 + 'H200,2,fp16,NCHW,C,a,"[1, 80, 30]",12,"[3.5]",2,1,1,1,0,5,4\n', "rows.csv:2"),
        (VOLUMES + "V100,8005,fp16,sprop,2,128,32,256,3,1,2,0.8,0.6\n", "rows.csv:2"),
        (PATCHES + "H100,2.6,9,bf16,NWHC,0,4,3,1,224,224,768,1,16,16,fprop,1,125.7,trace\n", "rows.csv:2"),
        (ALIGNMENT + "rtx-3070,fprop,f64,256,64,56,56,256,1,1,0,1,1,9,9\n", "rows.csv:2"),
        (ALIGNMENT + "rtx-3070,sprop,f32,256,64,56,56,256,1,1,0,1,1,9,9\n", "rows.csv:2"),
        (ALIGNMENT + "rtx-3070,fprop,f32,256,64,56,56,256,1,1,0,1,3,9,9\n", "rows.csv:2"),
    ],
)
def test_main_refuses_what_it_cannot_read(run, text, message):
    code, out, err = run(text)
    assert (code, out) == (2, "")
    assert err.startswith("layers.py: ")
    assert message in err


def test_main_refuses_a_file_that_is_not_there(scripts, tmp_path, capsys):
    assert scripts[0].main([str(tmp_path / "absent.csv")]) == 2
    assert "absent.csv" in capsys.readouterr().err


# ρ of efficiency at least, geometric mean of predicted over measured within, factor after one clock per GPU at most;
# each a little below what stands in benchmarks/README.md. Rows under 100 us of eager PyTorch are its host's.
FLOORS = {
    ("newer_layers.csv", "2-D dense"): (0.98, (0.75, 1.0), 1.16),
    ("newer_layers.csv", "2-D dense transposed"): (0.96, (0.7, 1.0), 1.30),
    ("newer_layers.csv", "2-D depthwise"): (0.80, (0.6, 1.0), 1.15),
    ("newer_layers.csv", "2-D grouped transposed"): (0.80, (0.55, 1.0), 1.1),
    ("newer_layers.csv", "3-D dense"): (0.90, (0.8, 1.3), 1.40),
    ("newer_layers.csv", "3-D dense transposed"): (0.75, (0.55, 1.0), 1.65),
    ("newer_layers.csv", "3-D grouped transposed"): (0.70, (0.8, 1.3), 1.1),
    ("newer_layers.csv", "1-D dense"): (0.90, (0.8, 1.2), 1.20),
    ("newer_layers.csv", "1-D dense transposed"): (0.90, (0.5, 1.1), 1.65),
    ("newer_layers.csv", "all"): (0.94, (0.7, 1.0), 1.38),
    ("v100_tensorrt_layers.csv", "fp16 dense"): (0.975, (0.85, 1.15), 1.25),
    ("v100_tensorrt_layers.csv", "fp32 dense"): (0.965, (0.85, 1.15), 1.22),
    ("v100_tensorrt_layers.csv", "int8 dense"): (0.965, (0.85, 1.15), 1.26),
    ("v100_tensorrt_layers.csv", "fp16 depthwise"): (0.97, (0.8, 1.15), 1.42),
    ("v100_tensorrt_layers.csv", "fp32 depthwise"): (0.975, (0.8, 1.15), 1.22),
    ("v100_tensorrt_layers.csv", "int8 depthwise"): (0.975, (0.85, 1.15), 1.16),
}


def test_no_kind_of_newer_layers_falls_below_its_floor(scripts):
    layers, layer_timings = scripts
    checked = set()
    for path in layer_timings.DEFAULT_CSVS:
        rows = layer_timings.read_csv(path)
        rows = [row for row in rows if row.row.measured_us >= 100 or path.name != "newer_layers.csv"]
        predicted = [each for _, each in layers.predict(rows, layer_timings.gpus_of(rows, {}, "test"))]
        for title, found in layers.sections(predicted, each_gpu=False):
            if (path.name, title) in FLOORS:
                rho, (least, most), factor = FLOORS[path.name, title]
                figures = layers.line(found)
                assert figures.rho >= rho, title
                assert least <= figures.bias <= most, title
                assert figures.factor_clocked <= factor, title
                checked.add((path.name, title))
    assert checked == FLOORS.keys()
