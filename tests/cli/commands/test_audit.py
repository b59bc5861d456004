"""`convlint audit` as a user types it: tables, ranking, going on, and whatever is wrong with what is asked for."""

import csv
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from audited import all_bytes, names_of, rows_of, write_spec
from command_line import convlint, default_interrupt

PYTHON_FILE = "import torch\n"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # of audits in processes of their own


@pytest.fixture
def zoo(here: Path) -> Path:
    """Three specs: one that wastes nothing, one in the wrong layout, one with channels that are not aligned."""
    write_spec(here / "zoo" / "good.yaml")
    write_spec(here / "zoo" / "layout.yaml", layout="NCHW")
    write_spec(here / "zoo" / "odd.yaml", C=62, K=66)
    return here


def answer(*arguments: str, code: int | None = None) -> dict[str, Any]:
    """The answer of an audit as JSON."""
    ran = convlint("audit", *arguments, "-o", "json")
    assert code is None or ran.code == code, ran.err
    return json.loads(ran.out)


class TestTables:
    def test_rows_say_what_check_says(self, zoo: Path) -> None:
        assert convlint("audit", "zoo", "--gpu", "a100,t4", "-o", "jsonl=a.jsonl").code == 1
        for path in ("zoo/good.yaml", "zoo/layout.yaml", "zoo/odd.yaml"):
            told = json.loads(convlint("check", path, "--gpu", "a100,t4", "-o", "json").out)
            found = [row for row in rows_of("a.jsonl") if row["model"] == path]
            same = ("code", "severity", "message", "layer", "line", "gpu", "lost_us", "lost_percent", "fingerprint")
            assert [[row[key] for key in same] for row in found] == [
                [finding[key] for key in same] for finding in told["findings"]
            ]
            layers = [row for row in rows_of("a.jsonl", "layers") if row["model"] == path]
            assert [(row["gpu"], row["time_us"], row["grade"]) for row in layers] == [
                (each["gpu"], each["time_us"], each["grade"]) for each in told["layers"][0]["estimates"]
            ]
            models = [row for row in rows_of("a.jsonl", "models") if row["model"] == path]
            assert [(row["gpu"], row["time_us"], row["time_after_us"]) for row in models] == [
                (total["gpu"], total["time_us"], total["time_after_us"]) for total in told["totals"]
            ]

    def test_what_is_silenced_is_counted_on_its_gpu(self, zoo: Path) -> None:
        (zoo / "convlint.toml").write_text('[[per-layer-ignores]]\nlayers = "a"\nrules = ["CL102"]\nreason = "soon"\n')
        convlint("audit", "zoo/odd.yaml", "--gpu", "a100,t4", "-o", "jsonl=a.jsonl")
        told = json.loads(convlint("check", "zoo/odd.yaml", "--gpu", "a100,t4", "-o", "json").out)
        rows = rows_of("a.jsonl", "models")
        assert [row["suppressed"] for row in rows] == [1, 1]
        assert len(told["suppressed"]) == 2

    def test_three_formats_have_the_same_rows(self, zoo: Path) -> None:
        from pyarrow import parquet

        convlint(
            "audit", "zoo", "-o", "jsonl=a.jsonl", "-o", "csv=a.csv", "-o", "parquet=a.parquet", "-o", "json=a.json"
        )
        for table in ("findings", "layers", "models", "errors"):
            name = "a" if table == "findings" else f"a-{table}"
            lines = rows_of("a.jsonl", table)
            assert parquet.read_table(f"{name}.parquet").to_pylist() == lines
            with open(f"{name}.csv", newline="") as file:
                cells = list(csv.DictReader(file))
            assert [_as_text(row) for row in lines] == cells
            assert table == "errors" or lines
        assert not list(zoo.glob("*.tmp"))

    def test_more_processes_than_there_can_be(self, zoo: Path) -> None:
        assert convlint("audit", "zoo/good.yaml", "--jobs", str(10**20), "-q").code == 0

    def test_an_empty_table_has_its_columns(self, zoo: Path) -> None:
        from pyarrow import parquet

        convlint("audit", "zoo/good.yaml", "-o", "parquet=a.parquet", "-o", "csv=a.csv")
        titles = "model,path,line,column,message,internal"
        assert parquet.read_table("a-errors.parquet").column_names == titles.split(",")
        assert Path("a-errors.csv").read_text() == f"{titles}\n"

    def test_the_time_of_passes_is_that_of_all_calls(self, zoo: Path) -> None:
        spec = write_spec(zoo / "twice.yaml", C=62)
        Path(spec).write_text(Path(spec).read_text().replace("C: 62", "C: 62, calls: 3"))
        convlint("audit", spec, "-o", "jsonl=a.jsonl")
        (row,) = rows_of("a.jsonl", "layers")
        spent = [row[which] or 0 for which in ("fprop_us", "dgrad_us", "wgrad_us")]
        assert sum(spent) == pytest.approx(row["time_us"], abs=0.01)

    @pytest.mark.parametrize("form", ["parquet", "jsonl"])
    def test_numbers_beyond_64_bits_are_unknown(self, zoo: Path, form: str) -> None:
        from pyarrow import parquet

        (zoo / "zoo" / "vast.yaml").write_text(
            "version: 1\nlayers: [{name: a, N: 1000000000, C: 1000000000, H: 1000000, W: 1000000, K: 1000000000, R: 3, "
            "S: 3, padding: 1, dtype: fp16, layout: NHWC}]\n"
        )
        assert convlint("audit", "zoo", "-o", f"{form}=a.{form}").code in (0, 1)
        models = rows_of("a.jsonl", "models") if form == "jsonl" else parquet.read_table("a-models.parquet").to_pylist()
        (vast,) = (row for row in models if row["model"] == "zoo/vast.yaml")
        assert (vast["flops"], vast["memory_bytes"]) == (None, None)
        assert {type(row["flops"]) for row in models if row is not vast} == {int}

    @pytest.mark.contract
    @pytest.mark.slow
    def test_processes_write_the_same_bytes(self, zoo: Path) -> None:
        for number in range(12):
            write_spec(zoo / "zoo" / f"more{number}.yaml", C=60 + number, K=66)
        (zoo / "zoo" / "broken.yaml").write_text("version: 1\nlayers: [{name: a, C: no, K: 3}]\n")
        for jobs in ("1", "2"):
            assert convlint("audit", "zoo", "--jobs", jobs, "-o", f"jsonl=j{jobs}.jsonl").code == 3
        assert all_bytes("j1.jsonl") == all_bytes("j2.jsonl")
        assert len(rows_of("j1.jsonl", "models")) == 16


def _as_text(row: dict[str, Any]) -> dict[str, str]:
    """A row as CSV has it."""
    return {
        key: "" if value is None else " ".join(value) if isinstance(value, list) else str(value)
        for key, value in row.items()
    }


class TestHours:
    def test_hours_lost_are_the_share_of_time_that_advice_saves(self, zoo: Path) -> None:
        Path("hours.csv").write_text("model,gpu_hours,convolution_share\nzoo/layout.yaml,200,0.5\n")
        found = answer("zoo", "--weights", "hours.csv", "-o", "jsonl=a.jsonl")
        (model,) = (row for row in rows_of("a.jsonl", "models") if row["model"] == "zoo/layout.yaml")
        share = model["lost_us"] / model["time_us"]
        assert model["gpu_hours"] == 200
        assert model["lost_gpu_hours"] == pytest.approx(100 * share) != 0
        findings = [row for row in rows_of("a.jsonl") if row["model"] == "zoo/layout.yaml" and row["advised"]]
        assert sum(row["lost_gpu_hours"] for row in findings) == pytest.approx(100 * share, rel=1e-4)
        assert found["lost_hours"] == pytest.approx(100 * share, rel=1e-4)
        assert found["worst_models"][0]["model"] == "zoo/layout.yaml"
        assert found["worst_models"][0]["code"] == "CL401"
        assert found["rules"][0]["what"] == "CL401 prefer-nhwc"
        assert found["without_hours"]["pairs"] == 2
        assert found["hours_taken_for_convolutions"] == 0

    def test_hours_decide_the_order(self, zoo: Path) -> None:
        for heavy in ("layout", "odd"):
            light = "odd" if heavy == "layout" else "layout"
            Path("hours.csv").write_text(f"model,gpu_hours\nzoo/{heavy}.yaml,100000\nzoo/{light}.yaml,1\n")
            found = answer("zoo", "--weights", "hours.csv")
            assert [each["model"] for each in found["worst_models"]] == [f"zoo/{heavy}.yaml", f"zoo/{light}.yaml"]

    @pytest.mark.parametrize(
        ("weights", "hours"),
        [
            ("model,gpu_hours\nzoo/odd.yaml,10\n", [("h100", 10), ("t4", None)]),  # of the first one
            ("name,hours,gpu\nzoo/odd.yaml,10,T4\nzoo/odd.yaml,5,h100\n", [("h100", 5), ("t4", 10)]),
        ],
    )
    def test_hours_by_gpu(self, zoo: Path, weights: str, hours: list[tuple[str, int | None]]) -> None:
        Path("hours.csv").write_text(weights)
        convlint("audit", "zoo/odd.yaml", "-g", "h100,t4", "--weights", "hours.csv", "-o", "jsonl=a.jsonl")
        assert [(row["gpu"], row["gpu_hours"]) for row in rows_of("a.jsonl", "models")] == hours

    def test_a_gpu_of_two_names_counts_once(self, zoo: Path) -> None:
        (zoo / "zoo" / "own.yaml").write_text(
            (zoo / "zoo" / "odd.yaml").read_text().replace("layers:", "target: [A100, tesla-t4]\nlayers:")
        )
        (zoo / "list.jsonl").write_text(
            '{"model": "zoo/odd.yaml", "gpu": "A100, a100"}\n{"model": "zoo/good.yaml"}\n{"model": "zoo/own.yaml"}\n'
        )
        Path("hours.csv").write_text("model,gpu_hours,gpu\nodd,7,a100\nown,5,T4\n")
        found = answer("--models-from", "list.jsonl", "--weights", "hours.csv", "-o", "jsonl=a.jsonl")
        rows = rows_of("a.jsonl", "models")
        assert [(row["model"], row["gpu"], row["gpu_hours"]) for row in rows] == [
            ("zoo/odd.yaml", "A100", 7),
            ("zoo/good.yaml", "a100", None),
            ("zoo/own.yaml", "A100", None),
            ("zoo/own.yaml", "tesla-t4", 5),
        ]
        assert found["targets"] == ["A100", "tesla-t4"]
        assert found["hours"] == 12
        by_gpu = answer("--models-from", "list.jsonl")["gpus"]
        assert {group["what"]: group["models"] for group in by_gpu} == {"A100": 3, "tesla-t4": 1}
        for table in ("findings", "layers"):
            assert {row["gpu"] for row in rows_of("a.jsonl", table)} <= {"A100", "a100", "tesla-t4"}
        assert len(rows_of("a.jsonl", "layers")) == 4

    def test_the_stem_of_a_file_is_enough_where_no_other_has_it(self, zoo: Path) -> None:
        write_spec(zoo / "zoo" / "old" / "good.yaml")
        Path("hours.csv").write_text("model,gpu_hours\nodd,7\ngood,9\n")
        found = answer("zoo", "--weights", "hours.csv", "-o", "jsonl=a.jsonl")
        hours = {row["model"]: row["gpu_hours"] for row in rows_of("a.jsonl", "models")}
        assert hours == {"zoo/odd.yaml": 7, "zoo/layout.yaml": None, "zoo/good.yaml": None, "zoo/old/good.yaml": None}
        assert found["unused_weights"] == {"rows": 1, "hours": 9.0, "names": ["good"]}
        assert "1 row of weights (9 h) match" not in convlint("audit", "zoo").out

    def test_without_weights_every_model_counts_the_same(self, zoo: Path) -> None:
        found = answer("zoo", "-o", "jsonl=a.jsonl")
        shares = [row["lost_us"] / row["time_us"] for row in rows_of("a.jsonl", "models")]
        assert found["weighed"] is False
        assert (found["hours"], found["lost_hours"]) == (3, pytest.approx(sum(shares), abs=1e-5))
        assert {row["gpu_hours"] for row in rows_of("a.jsonl", "models")} == {None}

    def test_changed_weights_need_no_new_audit(self, zoo: Path) -> None:
        convlint("audit", "zoo", "-o", "jsonl=a.jsonl")
        Path("hours.csv").write_text("model,gpu_hours\nodd,7\n")
        found = answer("zoo", "--weights", "hours.csv", "-o", "jsonl=a.jsonl", "--resume")
        assert (found["known"], found["hours"]) == (3, 7)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("model,gpu_hours\na,1\na,2\n", "hours.csv:3: 'a' has hours already: add them up to one row"),
            ("model,gpu_hours\na,-1\n", "hours.csv:2: '-1' are no GPU hours"),
            ("model,gpu_hours\na,nan\n", "hours.csv:2: 'nan' are no GPU hours"),
            ("model,gpu_hours\n,1\n", "hours.csv:2: names no model"),
            ("model,gpu_hours,gpu\na,1,a1000\n", "hours.csv:2: unknown GPU 'a1000'"),
            ("model,gpu_hours,convolution_share\na,1,2\n", "hours.csv:2: convolution_share must be from 0 to 1"),
            ("model,gpu_hour\na,1\n", "hours.csv:1: unknown column 'gpu_hour'; did you mean 'gpu_hours'?"),
            ("model\na\n", "hours.csv:1: must have one column model and one gpu_hours"),
            ("", "hours.csv:1: must have one column model and one gpu_hours"),
            ("model,gpu_hours\na\n", "hours.csv:2: has 1 cells, and the header 2"),
            ('model,gpu_hours\n"a,1\n', "hours.csv:2: unexpected end of data"),
        ],
    )
    def test_wrong_weights(self, zoo: Path, text: str, message: str) -> None:
        Path("hours.csv").write_text(text)
        ran = convlint("audit", "zoo", "--weights", "hours.csv")
        assert (ran.code, ran.out) == (2, "")
        assert f"convlint: error: {message}" in ran.err

    def test_weights_that_are_not_there(self, zoo: Path) -> None:
        assert convlint("audit", "zoo", "--weights", "none.csv").code == 2


class TestGoingOn:
    def audit(self, *more: str) -> dict[str, Any]:
        return answer("zoo", "-o", "jsonl=a.jsonl", "--resume", *more)

    def test_nothing_is_read_again(self, zoo: Path) -> None:
        assert self.audit()["known"] == 0  # a first audit may be asked to go on, too
        before = all_bytes("a.jsonl")
        assert self.audit()["known"] == 3
        assert all_bytes("a.jsonl") == before

    def test_content_of_the_same_size_and_time(self, zoo: Path) -> None:
        self.audit()
        odd = zoo / "zoo" / "odd.yaml"
        status = odd.stat()
        odd.write_text(odd.read_text().replace("62", "64"))
        os.utime(odd, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (odd.stat().st_size, odd.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
        assert self.audit()["known"] == 2
        assert {row["C"] for row in rows_of("a.jsonl", "layers")} == {64}

    def test_touched_content_is_the_same(self, zoo: Path) -> None:
        self.audit()
        os.utime(zoo / "zoo" / "odd.yaml", ns=(1, 1))
        assert self.audit()["known"] == 3

    def test_what_is_settled_is_not_even_opened(self, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from convlint.audit import store

        self.audit()
        for path in (zoo / "zoo").iterdir():
            os.utime(path, ns=(1, 1))  # ctime is of now
        time.sleep(2.1)
        self.audit()  # each is opened, since its times are others, and they are kept
        monkeypatch.setattr(store, "digest_of", lambda source: pytest.fail(f"{source.name} was opened"))
        assert self.audit()["known"] == 3

    def test_config_options_and_new_and_old_files(self, zoo: Path) -> None:
        self.audit()
        assert self.audit("--gpu", "h100")["known"] == 0
        assert self.audit("--gpu", "h100", "--runtime", "cudnn=8.9.2")["known"] == 0
        (zoo / "convlint.toml").write_text('ignore = ["CL401"]\n')
        assert self.audit("--gpu", "h100", "--runtime", "cudnn=8.9.2")["known"] == 0
        assert "CL401" not in {row["code"] for row in rows_of("a.jsonl")}
        write_spec(zoo / "zoo" / "new.yaml")
        (zoo / "zoo" / "good.yaml").unlink()
        assert self.audit("--gpu", "h100", "--runtime", "cudnn=8.9.2")["known"] == 2
        assert names_of(rows_of("a.jsonl", "models")) == ["zoo/layout.yaml", "zoo/new.yaml", "zoo/odd.yaml"]

    def test_a_comment_whose_last_day_is_over(self, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        spec = zoo / "zoo" / "odd.yaml"
        lines = spec.read_text().rstrip()
        spec.write_text(f"{lines}  # convlint: ignore[CL102] until 2026-05-31 -- soon\n")

        def audit_on(month: int, day: int) -> int:
            class Clock(date):
                @classmethod
                def today(cls) -> date:
                    return date(2026, month, day)

            monkeypatch.setattr("convlint.cli.commands.audit.date", Clock)
            return int(self.audit()["known"])

        assert (audit_on(5, 1), audit_on(5, 31)) == (0, 3)
        assert {row["suppressed"] for row in rows_of("a.jsonl", "models")} == {0, 1}
        assert (audit_on(6, 1), audit_on(6, 2)) == (2, 3)
        assert {row["suppressed"] for row in rows_of("a.jsonl", "models")} == {0}

    def test_another_version(self, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.audit()
        monkeypatch.setattr("convlint.audit.task.__version__", "99.0.0")
        assert self.audit()["known"] == 0

    def test_what_could_not_be_read_is_tried_again(self, zoo: Path) -> None:
        (zoo / "list.txt").write_text("zoo/good.yaml\nlate.yaml\n")
        arguments = ("--models-from", "list.txt", "-o", "jsonl=a.jsonl", "--resume")
        assert answer(*arguments, code=3)["failed"] == 1
        write_spec(zoo / "late.yaml")
        found = answer(*arguments, code=0)
        assert (found["known"], found["failed"], found["models"]) == (1, 0, 2)

    def test_modules_are_known_while_their_code_is(self, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from convlint.audit import task

        (zoo / "nets.py").write_text(
            "import torch\nfrom widths import K\n\ndef net():\n    return torch.nn.Conv2d(64, K, 3, padding=1)\n"
        )
        (zoo / "widths.py").write_text("K = 66\n")
        arguments = ("nets:net", "--input", "8x64x56x56", "--dtype", "fp16", "-o", "jsonl=a.jsonl", "--resume")
        assert answer(*arguments)["known"] == 0
        assert answer(*arguments)["known"] == 1
        (zoo / "widths.py").write_text("K = 72\n")
        task.digest_of_code.cache_clear()  # another run is another process
        assert answer(*arguments)["known"] == 0
        assert {row["K"] for row in rows_of("a.jsonl", "layers")} == {72}

    def test_code_that_cannot_be_read_hides_no_other(self, zoo: Path) -> None:
        from convlint.audit import task

        found = set()
        os.mkfifo(zoo / "a.py")
        for text in ("K = 66\n", "K = 72\n"):
            (zoo / "b.py").write_text(text)
            task.digest_of_code.cache_clear()
            found.add(task.digest_of_code(str(zoo)))
        assert len(found) == 2

    def test_a_module_that_failed_is_tried_again(self, zoo: Path) -> None:
        (zoo / "late.py").write_text(
            "import os\nimport torch\n\ndef net():\n    assert os.path.exists('weights')\n"
            "    return torch.nn.Conv2d(64, 64, 3)\n"
        )
        arguments = ("late:net", "--input", "8x64x56x56", "-o", "jsonl=a.jsonl", "--resume")
        assert answer(*arguments, code=3)["failed"] == 1
        (zoo / "weights").touch()
        assert answer(*arguments)["models"] == 1

    def test_an_output_that_exists(self, zoo: Path) -> None:
        self.audit()
        before = all_bytes("a.jsonl")
        ran = convlint("audit", "zoo", "-o", "jsonl=a.jsonl")
        assert ran.code == 2
        assert "an audit has left a-resume.sqlite: --resume goes on with it; remove it to audit anew" in ran.err
        Path("a-resume.sqlite").unlink()
        for more in ((), ("--resume",)):
            ran = convlint("audit", "zoo", "-o", "jsonl=a.jsonl", *more)
            assert (ran.code, "a.jsonl exists" in ran.err) == (2, True)
        assert all_bytes("a.jsonl") == before

    def test_one_of_the_tables_exists(self, zoo: Path) -> None:
        Path("a-models.csv").write_text("mine")
        assert convlint("audit", "zoo", "-o", "csv=a.csv").code == 2
        assert Path("a-models.csv").read_text() == "mine"
        assert not Path("a-resume.sqlite").exists()

    def test_links_and_modes_of_tables_are_kept(self, zoo: Path) -> None:
        self.audit()
        Path("a.jsonl").chmod(0o600)
        Path("a-layers.jsonl").rename("real")
        Path("a-layers.jsonl").symlink_to("real")
        write_spec(zoo / "zoo" / "new.yaml")
        assert self.audit()["known"] == 3
        assert Path("a.jsonl").stat().st_mode & 0o777 == 0o600
        assert Path("a-layers.jsonl").is_symlink()
        assert len(Path("real").read_text().splitlines()) == 4

    def test_what_never_began_leaves_nothing(self, zoo: Path) -> None:
        Path("hours.csv").write_text("model,gpu_hours\nodd,many\n")
        for _ in range(2):
            ran = convlint("audit", "zoo", "--weights", "hours.csv", "-o", "jsonl=a.jsonl")
            assert (ran.code, "are no GPU hours" in ran.err) == (2, True)
        assert not list(zoo.glob("a*"))
        self.audit()
        assert convlint("audit", "zoo", "--weights", "hours.csv", "-o", "jsonl=a.jsonl", "--resume").code == 2
        assert self.audit()["known"] == 3

    def test_an_interrupt_before_the_first_model(self, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(tasks: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("convlint.cli.commands.audit.audit_as_worth", interrupted)
        ran = convlint("audit", "zoo", "-o", "jsonl=a.jsonl")
        assert (ran.code, "goes on" in ran.err) == (130, False)
        assert not list(zoo.glob("a*"))

    @pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
    def test_an_interrupt_while_tables_are_written(self, zoo: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(number: int) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("convlint.cli.streams.tables.os.fsync", interrupted)
            assert convlint("audit", "zoo", "-o", f"{form}=a.{form}").code == 130
        assert sorted(path.name for path in zoo.glob("a*")) == ["a-resume.sqlite"]
        assert answer("zoo", "-o", f"{form}=a.{form}", "--resume")["known"] == 3

    def test_a_file_that_no_audit_wrote_is_not_written_over(self, zoo: Path) -> None:
        self.audit()
        Path("b-layers.csv").write_text("mine")
        ran = convlint("audit", "zoo", "-o", "jsonl=a.jsonl", "-o", "csv=b.csv", "--resume")
        assert (ran.code, "b-layers.csv exists, and is no table of the audit" in ran.err) == (2, True)
        assert Path("b-layers.csv").read_text() == "mine"
        Path("b-layers.csv").unlink()
        for _ in range(2):
            assert answer("zoo", "-o", "jsonl=a.jsonl", "-o", "csv=b.csv", "--resume")["known"] == 3

    def test_a_state_that_is_larger_than_it_looks(self, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.audit()
        monkeypatch.setattr("convlint.audit.store._MOST_BYTES", 100)
        ran = convlint("audit", "zoo", "-o", "jsonl=a.jsonl", "--resume")
        assert (ran.code, "a model has more rows than any can have" in ran.err) == (2, True)

    def test_a_config_that_moves(self, zoo: Path) -> None:
        write_spec(zoo / "zoo" / "sub" / "a.yaml")
        own = zoo / "zoo" / "sub" / "convlint.toml"
        own.write_text('[per-file-ignores]\n"a.yaml" = ["CL401"]\n')
        assert self.audit()["known"] == 0
        own.rename(zoo / "zoo" / "convlint.toml")
        assert self.audit()["known"] == 0

    def test_going_on_needs_tables(self, zoo: Path) -> None:
        ran = convlint("audit", "zoo", "--resume")
        assert (ran.code, "--resume needs tables" in ran.err) == (2, True)

    @pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be one" * 100])
    def test_a_state_that_is_none(self, zoo: Path, content: bytes) -> None:
        Path("a-resume.sqlite").write_bytes(content)
        ran = convlint("audit", "zoo", "-o", "jsonl=a.jsonl", "--resume")
        assert ran.code == (1 if not content else 2)
        assert content == b"" or "a-resume.sqlite is not what an audit left" in ran.err

    def test_rows_that_are_none(self, zoo: Path) -> None:
        self.audit()
        base = sqlite3.connect("a-resume.sqlite")
        base.execute("UPDATE models SET found = x'00'")
        base.commit()
        base.close()
        ran = convlint("audit", "zoo", "-o", "jsonl=a.jsonl", "--resume")
        assert (ran.code, "a-resume.sqlite is not what an audit left" in ran.err) == (2, True)

    def test_a_state_in_use(self, zoo: Path) -> None:
        self.audit()
        base = sqlite3.connect("a-resume.sqlite", isolation_level=None)
        base.execute("BEGIN EXCLUSIVE")
        ran = convlint("audit", "zoo", "-o", "jsonl=a.jsonl", "--resume")
        base.close()
        assert (ran.code, "in use: another audit writes the same output" in ran.err) == (2, True)

    @pytest.mark.slow
    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_an_interrupted_audit_goes_on(self, zoo: Path, jobs: str) -> None:
        for number in range(300):
            write_spec(zoo / "zoo" / f"more{number:03}.yaml", C=64 + number)
        command = [sys.executable, "-m", "convlint", "audit", "zoo", "-j", jobs, "-o", "jsonl=a.jsonl"]
        running = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, preexec_fn=default_interrupt)
        state = zoo / "a-resume.sqlite"
        while running.poll() is None and not (state.exists() and state.stat().st_size):  # what was found is saved
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
        assert running.returncode == 130
        assert b"--resume goes on" in said
        assert not (zoo / "a.jsonl").exists()
        again = answer("zoo", "-o", "jsonl=a.jsonl", "--resume")
        assert 0 < again["known"] < 803
        assert answer("zoo", "-o", "jsonl=b.jsonl")["known"] == 0
        assert all_bytes("a.jsonl") == all_bytes("b.jsonl")


def audited_on_a_small_disk(limit: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """An audit of the zoo in a process of which no file may be larger than `limit` bytes."""

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "convlint", "audit", "zoo", *arguments]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, preexec_fn=small, timeout=120)


class TestWhatIsWrong:
    def test_a_model_that_fails_is_a_row(self, zoo: Path) -> None:
        (zoo / "zoo" / "broken.onnx").write_bytes(b"garbage")
        found = answer("zoo", "missing.onnx", "-o", "jsonl=a.jsonl", code=3)
        assert (found["models"], found["failed"], found["complete"]) == (3, 2, False)
        errors = rows_of("a.jsonl", "errors")
        assert names_of(errors) == ["zoo/broken.onnx", "missing.onnx"]
        assert [row["path"] for row in errors] == ["zoo/broken.onnx", "missing.onnx"]

    def test_nothing_to_audit(self, zoo: Path) -> None:
        (zoo / "empty.txt").write_text("# nothing\n\n")
        ran = convlint("audit", "--models-from", "empty.txt")
        assert (ran.code, "error: empty.txt: nothing to audit" in ran.out) == (3, True)
        assert convlint("audit", "--models-from", "empty.txt", "--allow-empty").code == 0
        (zoo / "bare").mkdir()
        ran = convlint("audit", "bare")
        assert (ran.code, "bare: holds nothing that convlint reads" in ran.out) == (3, True)
        for word in ("bare", "bare/*.onnx"):
            assert convlint("audit", word, "--allow-empty").code == convlint("check", word, "--allow-empty").code == 0
        assert convlint("audit", "gone.onnx", "--allow-empty").code == 3

    def test_python_source_is_no_model(self, zoo: Path) -> None:
        (zoo / "zoo" / "net.py").write_text(PYTHON_FILE)
        assert answer("zoo")["failed"] == 0
        found = answer("zoo/net.py", "-o", "jsonl=a.jsonl", code=3)
        assert found["models"] == 0
        assert "name package.module:Net" in rows_of("a.jsonl", "errors")[0]["message"]

    def test_standard_input_is_no_model(self, zoo: Path) -> None:
        assert convlint("audit", "-").code == 3

    def test_one_name_for_two_models(self, zoo: Path) -> None:
        (zoo / "list.csv").write_text("name,model,batch\na,zoo/good.yaml,8\na,zoo/odd.yaml,8\na,zoo/good.yaml,8\n")
        found = answer("--models-from", "list.csv", "-o", "jsonl=a.jsonl", code=3)
        assert found["models"] == 1  # the third is the first once more
        (error,) = rows_of("a.jsonl", "errors")
        assert error["message"] == (
            "a model before it is called a too, and is another file or asked for otherwise: give each a name of its own"
        )

    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_names_that_are_no_text(self, zoo: Path, jobs: str) -> None:
        write_spec(zoo / "odd" / os.fsdecode(b"a\xff.yaml"))
        (zoo / "list.jsonl").write_text(
            '{"model": "\\ud800.onnx"}\n{"model": "zoo/odd.yaml", "name": "x\\ud800"}\n{"model": "zoo/good.yaml"}\n'
        )
        found = answer("odd", "--models-from", "list.jsonl", "-j", jobs, "-o", "jsonl=a.jsonl", code=3)
        assert (found["models"], found["failed"]) == (3, 1)
        assert names_of(rows_of("a.jsonl", "models")) == ["odd/a\ufffd.yaml", "x\ufffd", "zoo/good.yaml"]
        assert names_of(rows_of("a.jsonl", "errors")) == ["\ufffd.onnx"]
        assert answer("odd", "--models-from", "list.jsonl", "-o", "jsonl=a.jsonl", "--resume")["known"] == 3

    def test_a_name_that_cannot_be_shown(self, zoo: Path) -> None:
        (zoo / "list.jsonl").write_text('{"model": "zoo/odd.yaml", "name": "\\u0001"}\n{"model": "\\u0000"}\n')
        found = answer("--models-from", "list.jsonl", "-o", "jsonl=a.jsonl", code=3)
        assert found["models"] == 0
        assert [(row["line"], row["message"]) for row in rows_of("a.jsonl", "errors")] == [
            (1, "zoo/odd.yaml: no character of its name can be shown"),
            (2, "no character of its name can be shown"),
        ]

    def test_names_that_are_written_alike(self, zoo: Path) -> None:
        """Tables are joined by name, so that two models of one would count as one."""
        for name in (b"a\xfe.yaml", b"a\xff.yaml"):
            write_spec(zoo / "odd" / os.fsdecode(name))
        found = answer("odd", "-o", "jsonl=a.jsonl", code=3)
        assert found["models"] == 1
        assert "a model before it is called odd/a\ufffd.yaml too" in rows_of("a.jsonl", "errors")[0]["message"]

    def test_a_file_named_twice_is_audited_once(self, zoo: Path) -> None:
        assert answer("zoo/odd.yaml", "zoo", "./zoo/odd.yaml")["models"] == 3

    def test_a_config_that_is_wrong_beside_a_model(self, zoo: Path) -> None:
        write_spec(zoo / "zoo" / "sub" / "a.yaml")
        (zoo / "zoo" / "sub" / "convlint.toml").write_text("selct = []\n")
        found = answer("zoo", "-o", "jsonl=a.jsonl", code=3)
        assert found["models"] == 3
        (error,) = rows_of("a.jsonl", "errors")
        assert error["model"] == "zoo/sub/a.yaml"
        assert "selct" in error["message"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--gpu", "a1000"), "unknown GPU 'a1000'"),
            (("-o", "parquet"), "--output parquet needs a file"),
            (("-o", "sarif=a.sarif"), "unknown format 'sarif'"),
            (("--select", "CL999"), "unknown rule 'CL999'"),
            (("--models-from", "none.txt"), "none.txt: cannot read the file"),
            (("--weights", "h.csv", "-o", "csv=h.csv"), "h.csv"),
            (("-o", "csv=nowhere/a.csv"), "nowhere"),
            (("--cluster", "auto", "--jobs", "2"), "--cluster and --jobs"),
        ],
    )
    def test_wrong_usage(self, zoo: Path, arguments: tuple[str, ...], message: str) -> None:
        Path("h.csv").write_text("model,gpu_hours\nodd,7\n")
        ran = convlint("audit", "zoo", *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert not list(zoo.glob("*.sqlite"))

    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
    @pytest.mark.parametrize("limit", [1 << 10, 1 << 17])
    def test_a_disk_that_is_full(self, zoo: Path, form: str, limit: int) -> None:
        """Of what was there, nothing is lost, and of what is half written, nothing stays."""
        for number in range(250):
            write_spec(zoo / "zoo" / f"more{number:03}.yaml", C=65 + number)

        ran = audited_on_a_small_disk(limit, "-o", f"{form}=a.{form}")
        assert ran.returncode == 2, ran.stderr
        assert "cannot be written" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert not list(zoo.glob("*.tmp"))
        assert not list(zoo.glob(f"*.{form}"))

    @pytest.mark.slow
    def test_no_room_for_weights(self, zoo: Path) -> None:
        with open("hours.csv", "w") as file:
            file.write("model,gpu_hours\n" + "".join(f"a/model/that/has/a/long/name/{n},{n}\n" for n in range(60_000)))

        ran = audited_on_a_small_disk(1 << 17, "--weights", "hours.csv")
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "cannot be written" in ran.stderr


def test_weights_are_stored_in_a_dtype_and_may_run_in_another(zoo: Path) -> None:
    import numpy as np
    import safetensors.numpy

    safetensors.numpy.save_file({"a.weight": np.zeros((64, 64, 3, 3), np.float32)}, zoo / "a.safetensors")
    assert answer("a.safetensors", "zoo")["stored_dtype"]["pairs"] == 1
    assert "1 model stored in fp32 may run in another dtype" in " ".join(
        convlint("audit", "a.safetensors", "zoo").out.split()
    )
    assert answer("a.safetensors", "zoo", "--dtype", "fp16")["stored_dtype"]["pairs"] == 0


class TestText:
    def test_the_answer_keeps_to_the_width(self, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_spec(zoo / "zoo" / ("a" * 90) / "odd.yaml", C=62)
        Path("hours.csv").write_text("model,gpu_hours\nlayout,12345\n")
        for width in (60, 80, 120):
            monkeypatch.setenv("COLUMNS", str(width))
            for more in ((), ("--weights", "hours.csv")):
                lines = convlint("audit", "zoo", *more).out.splitlines()
                assert max(map(len, lines)) <= width

    def test_wide_characters_keep_columns_apart(self, zoo: Path) -> None:
        from convlint.reporters.ink import columns

        (zoo / "list.jsonl").write_text('{"model": "zoo/odd.yaml", "name": "卷积网络"}\n{"model": "zoo/layout.yaml"}\n')
        lines = convlint("audit", "--models-from", "list.jsonl").out.splitlines()
        rows = [line for line in lines if "  a100  " in line]
        assert len({columns(row[: row.index("  a100  ")]) for row in rows}) == 1 < len(rows)

    def test_colours_change_no_word(self, zoo: Path) -> None:
        import re

        plain, coloured = (convlint("audit", "zoo", "--color", color).out for color in ("never", "always"))
        assert "\x1b[" in coloured
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain

    def test_names_cannot_steer_a_terminal(self, zoo: Path) -> None:
        (zoo / "list.jsonl").write_text(json.dumps({"model": "zoo/odd.yaml", "name": "x\x1b[31m\ny"}) + "\n")
        ran = convlint("audit", "--models-from", "list.jsonl", "-o", "jsonl=a.jsonl")
        assert "\x1b" not in ran.out
        assert names_of(rows_of("a.jsonl", "models")) == ["x y"]

    def test_quiet_leaves_out_the_tables(self, zoo: Path) -> None:
        out = convlint("audit", "zoo", "-q").out
        assert "Changes that help most" not in out
        assert "3 layers in 3 models on a100" in out
