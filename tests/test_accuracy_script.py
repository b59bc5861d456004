"""The accuracy script: its arithmetic, what it reads, and the floor under the model's accuracy on public timings."""

from math import log

import pytest
from benchmark_scripts import modules_fixture

pytestmark = [pytest.mark.slow, pytest.mark.contract]

HEADER = "gpu,precision,layout,N,C,H,W,K,R,S,pad_h,pad_w,stride_h,stride_w,pass,residual_inputs,ms,source\n"


scripts = modules_fixture("accuracy", "metrics", "timings")


@pytest.fixture(scope="module")
def predicted(scripts):
    accuracy, _, timings = scripts
    rows = timings.read_rows(timings.DEFAULT_CSV)
    gpus = {name: timings.resolve_gpu(name, {}) for name in {row.gpu for row in rows}}
    return {name: accuracy.predict(rows, model, gpus)[0] for name, model in accuracy.MODELS.items()}


# Least rank correlation of efficiency and largest error factor (after one clock factor per GPU), by GPU, precision
# and pass; what the model reaches lies a little above. benchmarks/README.md has the whole table.
FLOORS = {
    ("A100-80GB-PCIe", "fp16", "fprop"): (0.98, 1.06),
    ("T4", "fp16", "fprop"): (0.978, 1.10),
    ("T4", "fp16", "dgrad"): (0.955, 1.15),
    ("T4", "fp16", "wgrad"): (0.98, 1.18),
    ("T4", "int8", "fprop"): (0.985, 1.13),
    ("V100", "fp16", "fprop"): (0.955, 1.16),
    ("V100", "fp16", "dgrad"): (0.975, 1.14),
    ("V100", "fp16", "wgrad"): (0.97, 1.24),
    ("V100-PCIe", "fp32", "fprop"): (0.965, 1.16),
    ("V100", "fp32", "fprop"): (0.955, 1.12),
    ("V100", "fp32", "dgrad"): (0.93, 1.17),
    ("V100", "fp32", "wgrad"): (0.97, 1.16),
    ("T4", "fp32", "fprop"): (0.84, 1.21),
    ("T4", "fp32", "dgrad"): (0.90, 1.21),
    ("T4", "fp32", "wgrad"): (0.90, 1.19),
    ("TitanXp", "fp32", "fprop"): (0.965, 1.11),
    ("TitanXp", "fp32", "dgrad"): (0.94, 1.21),
    ("TitanXp", "fp32", "wgrad"): (0.935, 1.20),
}


def test_no_group_of_public_timings_falls_below_its_floor(scripts, predicted):
    _, metrics, _ = scripts
    rows = predicted["convlint"]
    clocks = metrics.clock_factors(rows)
    assert {(p.row.gpu, p.row.precision, p.row.which) for p in rows} == set(FLOORS)
    for key, (least_rho, most_factor) in FLOORS.items():
        figures = metrics.figures([p for p in rows if (p.row.gpu, p.row.precision, p.row.which) == key], clocks)
        assert figures.rho_efficiency >= least_rho, key
        assert figures.factor_clocked <= most_factor, key


# The same of the rows that were timed on an H100; of layers of timm's networks that were drawn by lot, on an H200, and
# in JAX; and of those of networks for segmentation, diffusion, audio and video, which nothing was fitted on.
FLOORS_ON_HOPPER = {
    "measured_h100-sxm": (7107, {
        ("bf16", "fprop"): (0.985, 1.20), ("bf16", "dgrad"): (0.98, 1.20), ("bf16", "wgrad"): (0.98, 1.24),
        ("fp16", "fprop"): (0.98, 1.20), ("fp16", "dgrad"): (0.98, 1.17), ("fp16", "wgrad"): (0.98, 1.20),
        ("tf32", "fprop"): (0.975, 1.25), ("tf32", "dgrad"): (0.975, 1.25), ("tf32", "wgrad"): (0.97, 1.32),
        ("fp32", "fprop"): (0.88, 1.35), ("fp32", "dgrad"): (0.72, 1.46), ("fp32", "wgrad"): (0.83, 1.57),
    }),
    "measured_h200-sxm": (3965, {
        ("bf16", "fprop"): (0.985, 1.25), ("bf16", "dgrad"): (0.985, 1.24), ("bf16", "wgrad"): (0.98, 1.35),
        ("fp16", "fprop"): (0.985, 1.27), ("fp16", "dgrad"): (0.985, 1.25), ("fp16", "wgrad"): (0.975, 1.40),
        ("tf32", "fprop"): (0.985, 1.27), ("tf32", "dgrad"): (0.985, 1.26), ("tf32", "wgrad"): (0.975, 1.36),
    }),
    "h100_others": (1163, {
        ("bf16", "fprop"): (0.985, 1.23), ("bf16", "dgrad"): (0.985, 1.28), ("bf16", "wgrad"): (0.98, 1.29),
        ("fp16", "fprop"): (0.985, 1.21), ("fp16", "dgrad"): (0.975, 1.26), ("fp16", "wgrad"): (0.975, 1.30),
        ("tf32", "fprop"): (0.96, 1.29), ("tf32", "dgrad"): (0.965, 1.28), ("tf32", "wgrad"): (0.95, 1.36),
    }),
    "h100_jax": (175, {
        ("bf16", "fprop"): (0.97, 1.28), ("bf16", "dgrad"): (0.98, 1.28), ("bf16", "wgrad"): (0.975, 1.32),
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOORS_ON_HOPPER)
def test_no_group_of_timings_on_hopper_falls_below_its_floor(scripts, name):
    accuracy, metrics, timings = scripts
    count, floors = FLOORS_ON_HOPPER[name]
    rows = timings.read_rows(timings.DEFAULT_CSV.parent / f"{name}.csv")
    gpu = rows[0].gpu
    predicted, _ = accuracy.predict(rows, accuracy.MODELS["convlint"], {gpu: timings.resolve_gpu(gpu, {})})
    assert len(predicted) == count
    clocks = metrics.clock_factors(predicted)
    for key, (least_rho, most_factor) in floors.items():
        figures = metrics.figures([p for p in predicted if (p.row.precision, p.row.which) == key], clocks)
        assert figures.rho_efficiency >= least_rho, key
        assert figures.factor_clocked <= most_factor, key


def test_the_model_beats_every_baseline(scripts, predicted):
    _, metrics, _ = scripts
    ours = metrics.figures(predicted["convlint"], metrics.clock_factors(predicted["convlint"]))
    assert ours.rho_time >= 0.985
    assert ours.rho_efficiency >= 0.975
    gains = metrics.gains(predicted["convlint"])
    assert gains.rho >= 0.80
    assert gains.agreement_decided >= 87
    for name in ("flops/peak", "roofline", "violations"):
        other = metrics.figures(predicted[name], metrics.clock_factors(predicted[name]))
        assert other.rho_efficiency < ours.rho_efficiency - 0.2
        assert other.factor_clocked > ours.factor_clocked + 0.5
        assert (metrics.gains(predicted[name]).rho or 0) < 0.1


def test_spearman_ranks_with_ties(scripts):
    _, metrics, _ = scripts
    assert metrics.spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert metrics.spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert metrics.ranks([5.0, 1.0, 5.0]) == [2.5, 1.0, 2.5]
    assert metrics.spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.9486833)
    assert metrics.spearman([1, 2, 3], [7, 7, 7]) is None
    assert metrics.spearman([1, 2], [1, 2]) is None


def row(scripts, tmp_path, *lines):
    _, _, timings = scripts
    path = tmp_path / "rows.csv"
    path.write_text(HEADER + "".join(line + "\n" for line in lines), encoding="utf-8")
    return timings.read_rows(path)


def test_benchmarks_that_pad_channels_are_read_as_padded(scripts, tmp_path):
    fp16, fp32, int8 = row(
        scripts,
        tmp_path,
        "V100,fp16,NHWC,4,3,224,224,64,7,7,3,3,2,2,fprop,0,0.1,deepbench",
        "V100,fp32,NCHW,4,3,224,224,64,7,7,3,3,2,2,fprop,0,0.1,deepbench",
        "T4,int8,NC/32HW32,4,3,224,224,64,7,7,3,3,2,2,fprop,0,0.1,deepbench",
    )
    assert (fp16.layer.C, fp32.layer.C, int8.layer.C) == (8, 3, 32)
    assert fp16.flops == fp32.flops == int8.flops == 2 * 4 * 112 * 112 * 64 * 3 * 49
    assert fp16.measured_us == pytest.approx(100)


def test_what_a_source_adds_is_added_to_its_rows_alone(scripts, tmp_path):
    _, _, timings = scripts
    sizes = "1,512,14,14,512,3,3,1,1,1,1,fprop,0,0.1"
    reordered, engine, half = row(
        scripts, tmp_path, f"T4,int8,NC/32HW32,{sizes},deepbench", f"T4,int8,NC/32HW32,{sizes},trt-engine-explorer",
        f"T4,fp16,NHWC,{sizes},deepbench",
    )  # fmt: skip
    gpu = timings.resolve_gpu("T4", {})
    weights = 512 * 512 * 9
    copied = 1.6 + 2 * weights / (0.85 * gpu.dram_bytes_per_s) * 1e6
    assert timings.with_harness(reordered, gpu, 1000.0) == pytest.approx(1000 + copied)
    assert timings.with_harness(reordered, gpu, 1.0) >= 18
    for other in (engine, half):
        assert timings.with_harness(other, gpu, 1.0) == 1


def test_gains_compare_rows_that_differ_in_n_alone(scripts, tmp_path):
    _, metrics, _ = scripts
    rows = row(
        scripts,
        tmp_path,
        "V100,fp16,NHWC,8,64,56,56,64,3,3,1,1,1,1,fprop,0,0.05,deepbench",
        "V100,fp16,NHWC,16,64,56,56,64,3,3,1,1,1,1,fprop,0,0.08,deepbench",
        "V100,fp16,NHWC,16,64,56,56,64,3,3,1,1,1,1,dgrad,0,0.08,deepbench",
        "V100,fp16,NHWC,32,64,56,56,64,1,1,0,0,1,1,fprop,0,0.08,deepbench",
    )
    pairs = metrics.gain_pairs([metrics.Predicted(each, 10.0) for each in rows])
    assert pairs == [(pytest.approx(log(2 * 0.05 / 0.08)), pytest.approx(log(2)))]


@pytest.mark.parametrize(
    ("name", "gpu_id"),
    [
        ("V100", "v100-sxm2-16gb"), ("V100-PCIe", "v100-pcie-16gb"), ("TitanXp", "titan-xp"), ("T4", "t4"),
        ("A100-80GB-PCIe", "a100-80gb-pcie"), ("RTX 3090", "rtx-3090"), ("GeForce RTX 3090", "rtx-3090"),
        ("P100", "p100-sxm2"), ("M40", "m40"), ("TITAN RTX", "titan-rtx"), ("K80", "k80"), ("1080Ti", "gtx-1080-ti"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"), ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
    ],
)  # fmt: skip
def test_gpu_names_are_resolved_generously(scripts, name, gpu_id):
    _, _, timings = scripts
    assert timings.resolve_gpu(name, {}).id == gpu_id
    assert timings.resolve_gpu(name, {name: "t4"}).id == "t4"


def test_main_prints_every_section_and_leaves_unknown_gpus_out(scripts, tmp_path, capsys):
    accuracy, _, _ = scripts
    path = tmp_path / "rows.csv"
    path.write_text(
        HEADER
        + "T4,fp16,NHWC,8,64,56,56,64,3,3,1,1,1,1,fprop,0,0.09,deepbench\n"
        + "T4,fp16,NHWC,16,64,56,56,64,3,3,1,1,1,1,fprop,0,0.16,deepbench\n"
        + "Abacus,fp16,NHWC,16,64,56,56,64,3,3,1,1,1,1,fprop,0,0.16,deepbench\n",
        encoding="utf-8",
    )
    assert accuracy.main([str(path)]) == 0
    out, err = capsys.readouterr()
    for expected in ("T4 fp16 fprop", "gain of a changed N", "convlint: 2 rows", "roofline", "flops/peak"):
        assert expected in out
    assert "Abacus" in err
    assert accuracy.main([str(path), "--gpu-map", "Abacus=a100", "--model", "convlint"]) == 0
    assert "convlint: 3 rows" in capsys.readouterr().out


def test_main_refuses_what_it_cannot_read(scripts, tmp_path, capsys):
    accuracy, _, _ = scripts
    path = tmp_path / "rows.csv"
    assert accuracy.main([str(path)]) == 2
    path.write_text(HEADER + "T4,fp16,NHWC,x,64,56,56,64,3,3,1,1,1,1,fprop,0,0.09,deepbench\n", encoding="utf-8")
    assert accuracy.main([str(path)]) == 2
    assert "rows.csv:2" in capsys.readouterr().err
