"""Which formats go where, which files are written and how, and the progress bar."""

import io
import os
import resource
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import slow_contract
from checked_files import RULE
from command_line import convlint
from specs import GOOD

from convlint.cli.streams import outputs
from convlint.cli.streams.outputs import Destination, Progress, files_of, parse_outputs, replace_file
from convlint.model.errors import UsageError

TEXT, JSON = Destination(format="text"), Destination(format="json", file="a=b.json")


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ((), (TEXT,)),
        (("json=a=b.json",), (JSON,)),
        (("text", "json=a=b.json"), (TEXT, JSON)),
        (("text=",), (TEXT,)),
    ],
)
def test_outputs(values: tuple[str, ...], places: tuple[Destination, ...]) -> None:
    assert parse_outputs(values, ("text", "json")) == places
    assert [use.path for use in files_of(places)] == [place.file for place in places if place.file]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("jsn",), "unknown format 'jsn'; did you mean 'json'?; known are text, json, svg"),
        (("svg",), "--output svg needs a file: --output svg=FILE.svg"),
        (("text", "json"), "two formats write to standard output; give one of them a file: json=FILE"),
    ],
)
def test_outputs_that_are_refused(values: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_outputs(values, ("text", "json", "svg"), files_only=("svg",))
    assert str(caught.value) == message


SPEC = "version: 1\nlayers:\n  - { name: a, N: 8, C: 60, H: 8, W: 8, K: 64, kernel_size: 1, dtype: fp16 }\n"
BASELINE = '{"convlint_baseline": 1, "findings": []}'


def content() -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_ino, path.read_bytes() if path.is_file() else b"")
        for path in sorted(Path().rglob("*"))
    }


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an input, a config that extends another, a baseline, rules, models, and links to them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    for name, text in {
        "ok.yaml": SPEC, "nets/deep.yaml": SPEC, "convlint.toml": 'extend = "parent.conf"\n',
        "parent.conf": 'extend = "grandparent.conf"\n', "grandparent.conf": "min-loss = 1\n", "other.conf": "",
        "base.json": BASELINE, "own/rule.yaml": RULE, "pkg/net.txt": "", "there.json": "", "kept.md": "",
        "m.onnx": "", "weights.H5": "", "m.onnx.data": "", "code.py": "", "pkg/__init__.py": "",
        "pkg/sub.py": "", "shards/m.safetensors.index.json": "{}", "shards/part-1.safetensors": "",
        "nets/x/y.txt": "",
    }.items():  # fmt: skip
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    os.link("ok.yaml", "hard.txt")
    os.link("shards/part-1.safetensors", "shard.txt")
    os.link("pkg/sub.py", "sub.txt")
    os.link("pkg/__init__.py", "init.txt")
    os.link("grandparent.conf", "grand.txt")
    os.link("own/rule.yaml", "rule.txt")
    os.link("there.json", "again.json")
    for link, target in {
        "soft.txt": "ok.yaml", "chain.txt": "soft.txt", "here": ".", "model.txt": "m.onnx", "new1.json": "new.json",
        "base.txt": "base.json", "there.txt": "there.json",
    }.items():  # fmt: skip
        os.symlink(target, link)
    return tmp_path


@slow_contract
def test_mode_and_links_stay() -> None:
    Path("there.json").unlink()
    os.unlink("again.json")
    Path("there.json").write_text("old")
    for mode in (0o600, 0o640, 0o755):
        os.chmod("there.json", mode)
        assert convlint("check", "ok.yaml", "-o", "json=there.txt").code == 1
        assert stat.S_IMODE(os.stat("there.json").st_mode) == mode
    assert os.readlink("there.txt") == "there.json"
    assert Path("there.json").read_text().startswith('{"schema_version"')


@slow_contract
def test_a_hard_link_holds() -> None:
    for text in ("longer than before", "short", ""):
        replace_file("there.json", text)
        assert Path("again.json").read_text() == text


@slow_contract
def test_a_new_file_is_as_open_as_the_umask_says() -> None:
    for mask, mode in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(mask)
        replace_file(f"new{mask}", "x")
        os.umask(before)
        assert stat.S_IMODE(os.stat(f"new{mask}").st_mode) == mode


@slow_contract
def test_a_link_to_nothing_gets_its_target() -> None:
    replace_file("new1.json", "x")
    assert (os.readlink("new1.json"), Path("new.json").read_text()) == ("new.json", "x")
    os.symlink("no/where", "lost.json")
    assert convlint("check", "ok.yaml", "-o", "json=lost.json").code == 2


@slow_contract
def test_bytes_and_long_names() -> None:
    replace_file("a" * 255, b"\x00\xff")
    assert Path("a" * 255).read_bytes() == b"\x00\xff"


@slow_contract
def test_an_owner_that_cannot_be_kept_means_writing_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("shared.json").write_text("old, and longer")
    number = os.stat("shared.json").st_ino

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    own = os.fstat

    def someone_elses(descriptor: int) -> os.stat_result:
        status = list(own(descriptor))
        status[4] += 1
        return os.stat_result(status)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fchown", refused)
        patched.setattr(os, "fstat", someone_elses)
        replace_file("shared.json", "new")
    assert (os.stat("shared.json").st_ino, Path("shared.json").read_text()) == (number, "new")
    assert not list(Path().glob(".convlint*"))


@slow_contract
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_owner_is_kept_where_that_is_possible() -> None:
    Path("theirs.json").write_text("old")
    os.chown("theirs.json", 12345, 54321)
    os.chmod("theirs.json", 0o640)
    replace_file("theirs.json", "new")
    status = os.stat("theirs.json")
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 54321, 0o640)


@slow_contract
@pytest.mark.parametrize("name", ["alone.txt", "there.json", "fresh.txt"])
@pytest.mark.parametrize("option", ["json", "baseline"])
def test_a_full_disk_leaves_what_was_there(name: str, option: str) -> None:
    """`there.json` has a second link and is written in place, `fresh.txt` does not exist."""
    if name != "fresh.txt":
        Path(name).write_text("as it was")
    before = content()
    given = ["-o", f"json={name}"] if option == "json" else ["-o", "json=/dev/null", "--write-baseline", name]
    many = SPEC + "".join(SPEC.splitlines()[-1].replace("name: a", f"name: a{i}") + "\n" for i in range(50))
    done = subprocess.run(
        [sys.executable, "-m", "convlint", "check", "-", "--isolated", *given],
        input=many, text=True, capture_output=True, env={**os.environ, "CONVLINT_NO_CACHE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )  # fmt: skip
    assert (done.returncode, f"{name} cannot be written: File too large" in done.stderr) == (2, True), done.stderr
    assert content() == before


@slow_contract
def test_a_pipe_that_nobody_reads_does_not_hang() -> None:
    os.mkfifo("pipe")
    ran = convlint("check", "ok.yaml", "-o", "json=pipe")
    assert (ran.code, "pipe cannot be written: " in ran.err) == (2, True)


@slow_contract
def test_a_nul_in_a_path_is_an_error() -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        replace_file("a\0b", "x")
    assert convlint("check", "ok.yaml", "-o", "json=a\0b").code == 2


@slow_contract
@pytest.mark.parametrize("git", [True, False])
def test_a_link_that_leads_out_of_the_checkout_is_no_output(
    git: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's branch may hold a link under the name that CI writes its report to."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".bashrc").write_text("mine\n")
    work = tmp_path / "work"
    work.mkdir()
    if git:
        (work / ".git").mkdir()
    (work / "net.yaml").write_text(GOOD)
    (work / "report").symlink_to(tmp_path / "home" / ".bashrc")
    (work / "folder").symlink_to(tmp_path / "home")
    (work / "inside").symlink_to("kept")
    (work / "kept").write_text("")
    monkeypatch.chdir(work)
    for file in ("report", "folder/.bashrc", "folder/new"):
        ran = convlint("check", "net.yaml", "--output", f"json={file}")
        assert ran.code == 2
        assert "leads out of" in ran.err
    assert (tmp_path / "home" / ".bashrc").read_text() == "mine\n"
    assert convlint("check", "net.yaml", "--output", "json=inside").code in (0, 1)
    assert (work / "inside").is_symlink()
    assert (work / "kept").read_text().startswith("{")


INPUT = "is an input"


@slow_contract
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        # inputs, however they were found and however the output is spelled
        ("check . -o json=ok.yaml", INPUT),
        ("check . -o json=nets/deep.yaml", INPUT),
        ("check -o json=ok.yaml", INPUT),
        ("check *.yaml -o json=ok.yaml", INPUT),
        ("check nets -o json=nets/deep.yaml", INPUT),
        ("check nets/** -o json=nets/deep.yaml", INPUT),
        ("check . -o text -o json=./nets/../ok.yaml", INPUT),
        ("check . -o json=here/ok.yaml", INPUT),
        ("check . -o json=hard.txt", "hard.txt is an input (ok.yaml); write json to another file"),
        ("check . -o json=soft.txt", "soft.txt is an input (ok.yaml)"),
        ("check . -o json=chain.txt", "chain.txt is an input (ok.yaml)"),
        ("check soft.txt -o json=ok.yaml", "ok.yaml is an input (soft.txt)"),
        ("check . --write-baseline ok.yaml", "ok.yaml is an input; write the new baseline to another file"),
        ("check shards -o json=shard.txt", "shard.txt is part of an input (shards/part-1.safetensors)"),
        ("check shards/m.safetensors.index.json -o json=shard.txt", "is part of an input"),
        ("check pkg.sub:Net -o json=sub.txt", INPUT),
        ("check pkg:Net -o json=init.txt", INPUT),
        ("estimate ok.yaml -o csv=hard.txt", INPUT),
        ("estimate ok.yaml -o text -o json=here/ok.yaml", INPUT),
        ("sweep ok.yaml -N 1,2 -o csv=soft.txt", INPUT),
        ("sweep ok.yaml -N 1,2 -o svg=soft.txt", INPUT),
        ("export ok.yaml -o hard.txt", INPUT),
        ("export ok.yaml -o ./ok.yaml", INPUT),
        ("export pkg.sub:Net -o sub.txt", INPUT),
        ("plan ok.yaml --write ok.yaml", INPUT),
        ("audit . -o json=ok.yaml", INPUT),
        ("audit nets -o json=nets/deep.yaml", INPUT),
        ("audit . -o json=hard.txt", "hard.txt is an input (ok.yaml); write json to another file"),
        ("audit soft.txt -o text=ok.yaml", "ok.yaml is an input (soft.txt)"),
        ("audit shards -o json=shard.txt", "shard.txt is part of an input (shards/part-1.safetensors)"),
        ("audit pkg.sub:Net -o json=sub.txt", INPUT),
        # configs, baselines, rules
        ("check . -o json=parent.conf", "parent.conf is a config in force"),
        ("check . -o json=grandparent.conf", "grandparent.conf is a config in force"),
        ("check . -o json=grand.txt", "grand.txt is a config in force (grandparent.conf)"),
        ("check . --config other.conf -o json=other.conf", "other.conf is a config in force"),
        ("layer -C 3 --config other.conf -o json=other.conf", "other.conf is a config in force"),
        ("check . -o json=convlint.toml", "by its name"),
        ("audit . -o json=grand.txt", "grand.txt is a config in force (grandparent.conf)"),
        ("check . --isolated -o json=convlint.toml", "by its name"),
        ("check . --baseline base.json -o json=base.json", "is the baseline"),
        ("check . --baseline base.json -o json=base.txt", "base.txt is the baseline (base.json)"),
        ("check . --baseline base.json --prune-baseline -o json=base.txt", "write to the same file"),
        ("check . --baseline base.json --write-baseline ./base.json -o json=base.json", "write to the same file"),
        ("check . -o json=b.json --write-baseline ./b.json", "json and the new baseline write to the same file"),
        ("check . --rules own -o json=own/rule.yaml", "own/rule.yaml is a"),
        ("check ok.yaml --rules own -o json=rule.txt", "rule.txt is a rule (own/rule.yaml)"),
        ("audit ok.yaml --rules own -o json=rule.txt", "rule.txt is a rule (own/rule.yaml)"),
        # each other
        ("check ok.yaml -o json=a.json -o sarif=a.json", "write to the same file"),
        ("check ok.yaml -o json=a.json -o sarif=./a.json", "json and sarif write to the same file: a.json and ./a.j"),
        ("check ok.yaml -o json=a.json -o sarif=here/a.json", "write to the same file"),
        ("check ok.yaml -o json=new.json -o sarif=new1.json", "write to the same file"),
        ("check ok.yaml -o json=there.json -o sarif=again.json", "write to the same file"),
        ("check ok.yaml -o json=there.json -o sarif=there.txt", "write to the same file"),
        ("layer -C 3 -o json=a.json -o sarif=./a.json", "write to the same file"),
        ("estimate ok.yaml -o json=a.json -o csv=./a.json", "write to the same file"),
        ("sweep ok.yaml -N 1,2 -o csv=a.csv -o svg=./a.csv", "write to the same file"),
        ("plan ok.yaml --write a.yaml -o json=a.yaml", "write to the same file"),
        ("audit ok.yaml -o csv=a.x -o jsonl=./a.x", "csv and jsonl write to the same file"),
        ("audit ok.yaml -o csv=a.x -o json=a-layers.x", "csv and json write to the same file"),
        ("audit ok.yaml -o csv=a.x -o json=a-resume.sqlite", "write to the same file"),
        # what no report belongs into
        ("check ok.yaml -o json=m.onnx", "m.onnx is a model, by its name"),
        ("check ok.yaml -o json=weights.H5", "is a model, by its name"),
        ("check ok.yaml -o json=m.onnx.data", "is a model, by its name"),
        ("check ok.yaml -o json=model.txt", "model.txt is a model, by its name"),
        ("check ok.yaml -o json=code.py", "is source code or a config, by its name"),
        ("estimate ok.yaml -o json=m.onnx", "is a model, by its name"),
        ("export ok.yaml -o m.onnx", "is a model, by its name"),
        ("check ok.yaml -o json=nets", "is a folder"),
        ("check ok.yaml -o json=no/where", "there is no folder no"),
    ],
)
def test_nothing_is_destroyed(arguments: str, message: str) -> None:
    before = content()
    ran = convlint(*arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert content() == before


@slow_contract
@pytest.mark.parametrize(
    ("summary", "message"),
    [("ok.yaml", "is an input"), ("soft.txt", "is an input (ok.yaml)"), ("./g.md", "write to the same file")],
)
def test_the_job_summary_is_an_output_too(summary: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", summary)
    before = content()
    ran = convlint("check", ".", "-o", "github", "-o", "markdown=g.md")
    assert (ran.code, ran.out, message in ran.err) == (2, "", True)
    assert content() == before


@slow_contract
@pytest.mark.parametrize(
    "arguments",
    [
        "check . -o json=r.json -o sarif=r.sarif -o markdown=r.md -o junit=r.xml -o gitlab=g.json -o rdjson=rd.json",
        "check . --write-baseline base.json",
        "check . --baseline base.json --write-baseline base.json",
        "check . --baseline base.json --prune-baseline",
        "check . --baseline base.json -o json=there.json",
        "check ok.yaml -o json=/dev/null -o sarif=/dev/null -o text=/dev/stdout",
        "estimate ok.yaml -o json=r.json -o csv=r.csv",
        "export ok.yaml -o copy.yaml",
        "check ok.yaml -o json=made.onnx",
    ],
)
def test_what_is_no_clash_can_be_repeated(arguments: str) -> None:
    for _ in range(2):
        ran = convlint(*arguments.split())
        assert (ran.code in (0, 1, 3), "error:" in ran.err) == (True, False)
        if "made.onnx" in arguments:
            break


@slow_contract
def test_the_shells_own_file_is_an_output_too() -> None:
    with open("all.txt", "w") as file:
        command = [sys.executable, "-m", "convlint", "check", "ok.yaml", "-o", "text", "-o", "json=here/all.txt"]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, "standard output and json write to the same file" in done.stderr) == (2, True)
    assert Path("all.txt").read_text() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *, seconds: float, quiet: bool = False) -> str:
    with Progress(stream, quiet=quiet) as bar:
        bar.start(3)
        time.sleep(seconds)
        bar.done("a\x1b[31m.yaml")
        time.sleep(seconds / 2)
    return stream.getvalue()


def test_a_long_run_on_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "DELAY_S", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    text = shown(Terminal(), seconds=0.5)
    assert "checking" in text
    assert "1/3" in text
    assert "a.yaml" in text
    assert "\x1b[31m.yaml" not in text


@pytest.mark.parametrize(
    ("stream", "quiet", "delay"), [(io.StringIO(), False, 0.01), (Terminal(), True, 0.01), (Terminal(), False, 60.0)]
)
def test_otherwise_nothing_is_shown(
    stream: io.StringIO, quiet: bool, delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "DELAY_S", delay)
    assert shown(stream, seconds=0.1, quiet=quiet) == ""


def test_rich_is_loaded_only_for_the_bar() -> None:
    code = (
        "import sys\nfrom convlint.__main__ import _run\nimport convlint.cli.commands.check\n"
        "_run(['check', '-', '--isolated', '-o', 'concise'])\nassert 'rich.progress' not in sys.modules\n"
    )
    spec = "version: 1\nlayers:\n  - { C: 64, K: 64, R: 1, S: 1 }\n"
    subprocess.run([sys.executable, "-c", code], input=spec, text=True, check=True, capture_output=True)
