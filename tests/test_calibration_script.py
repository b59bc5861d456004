"""The script on calibrations: halves that share no shape, and what calibrating buys on the half that it never saw."""

import pytest
from benchmark_scripts import modules_fixture

HEAD = "gpu,dtype,layout,N,C,H,W,K,R,S,stride,groups,us\n"
# Constants were fitted on these very rows, so that there is nothing left to learn from half of them.
FITTED_ON = {"T4, deepbench", "TitanXp, deepbench", "V100, deepbench"}


script = modules_fixture("calibration")


def test_both_halves_are_judged_by_the_other_alone(script, tmp_path):
    path = tmp_path / "rows.csv"
    shapes = [(C, H) for C in (32, 64, 96, 128, 256) for H in (7, 14, 28, 56)]
    path.write_text(HEAD + "".join(f"V100,fp16,TensorRT,{N},{C},{H},{H},{C},3,3,1,1,{20 + N * C}\n"
                                   for C, H in shapes for N in (1, 32)))  # fmt: skip
    found, gpus = script.samples([path])
    (title,) = found
    assert (title, gpus[title].id) == ("V100, tensorrt", "v100-sxm2-16gb")
    halves = [{(each.row.layer.C, each.row.layer.H) for each in found[title] if each.half == half} for half in
              script.HALVES]  # fmt: skip
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == set(shapes)
    result = script.judged(title, found[title], gpus[title])
    assert result.n == len(found[title]) == 40


def test_too_few_rows_are_no_result(script, tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + "V100,fp16,TensorRT,1,64,56,56,64,3,3,1,1,20\n")
    assert script.results([path]) == []
    assert script.main([str(path)]) == 0
    assert script.main([str(tmp_path / "none.csv")]) == 2
    assert "calibration.py: " in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_held_out_comes_nearer(script):
    found = {result.title: result for result in script.results(script.CSVS)}
    large = {title: result for title, result in found.items() if result.n >= script.LEAST_ROWS}
    assert large.keys() == FITTED_ON | {"RTX A6000, kernelbench", "V100, tensorrt", "V100-PCIe, neusight"}
    for title, result in found.items():
        assert result.after.factor <= result.before.factor * 1.001, title
        if title in large.keys() - FITTED_ON:
            assert result.after.factor < result.before.factor, title
            assert result.after.median_percent < result.before.median_percent, title
    assert large["V100, tensorrt"].after.factor < 1.18 < 1.20 < large["V100, tensorrt"].before.factor
    assert found["RTX A6000, kernelbench"].after.factor < 0.95 * found["RTX A6000, kernelbench"].before.factor
