"""`convlint compare` and `convlint versions`: what changed, what fails, and what cannot be compared."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran
from command_line import convlint as run

NET = """\
version: 1
mode: inference
runtime: { framework: pytorch }
defaults: { N: 16, dtype: fp16, layout: NHWC }
layers:
  - { name: stem, C: 64, H: 56, W: 56, K: 128, kernel_size: 3, padding: 1 }
  - { name: body, K: 128, kernel_size: 3, padding: 1 }
  - { name: tail, K: 64, kernel_size: 1 }
"""
SLOW = NET.replace("name: body, K: 128", "name: body, K: 129")
VIDEO = """\
version: 1
mode: inference
runtime: { framework: pytorch }
layers:
  - { name: a, N: 1, C: 128, D: 16, H: 64, W: 64, K: 128, kernel_size: 3, padding: 1, dtype: bf16, layout: NCHW }
"""


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes both sides and compares them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def compared(old: str, new: str, *arguments: str) -> Ran:
        (tmp_path / "old.yaml").write_text(old, encoding="utf-8")
        (tmp_path / "new.yaml").write_text(new, encoding="utf-8")
        return run("compare", "old.yaml", "new.yaml", *arguments)

    return compared


def document(ran: Ran) -> dict[str, Any]:
    return json.loads(ran.out)


def test_a_network_that_gets_slower_fails_and_says_which_layer_and_why(sides: Any) -> None:
    ran = sides(NET, SLOW)
    assert ran.code == 1
    assert "old.yaml -> new.yaml on a100, inference, N=16" in ran.out
    (line,) = (line for line in ran.out.splitlines() if line.startswith("    body"))
    assert line.endswith("K 128 -> 129")
    assert "warning CL102 body: K=129 should be a multiple of 8" in ran.out
    assert ran.out.splitlines()[-1].endswith("; 5 % more is the limit")


def test_the_other_way_round_it_is_faster_and_passes(sides: Any) -> None:
    ran = sides(SLOW, NET)
    assert ran.code == 0
    assert ran.out.splitlines()[-1].endswith("% faster")
    assert "no longer said:" in ran.out


def test_times_are_those_of_check(sides: Any) -> None:
    found = document(sides(NET, SLOW, "-o", "json"))
    (network,) = found["networks"]
    for side in ("old", "new"):
        checked = json.loads(run("check", f"{side}.yaml", "-o", "json").out)
        assert network[side]["time_us"] == checked["summary"]["time_us"]
        assert network[side]["grade"] == checked["summary"]["grade"]
    assert network["change_percent"] == pytest.approx(
        100 * (network["new"]["time_us"] / network["old"]["time_us"] - 1), abs=1e-3
    )
    assert (network["slower"], found["slower"]) == (True, 1)


def test_the_limit_is_the_users(sides: Any) -> None:
    percent = document(sides(NET, SLOW, "-o", "json"))["networks"][0]["change_percent"]
    assert sides(NET, SLOW, "--tolerance", str(percent + 1)).code == 0
    assert sides(NET, SLOW, "--tolerance", str(percent - 1)).code == 1


def test_a_gpu_is_the_same_under_another_name(sides: Any) -> None:
    ran = sides(NET, NET.replace("a100", "A100 SXM4 40GB"))
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "as fast as before")
    spec = Path("new.yaml").read_text(encoding="utf-8")
    Path("new.yaml").write_text(spec.replace("A100 SXM4 40GB", "[a100, a100-40gb-sxm]"), encoding="utf-8")
    assert run("check", "new.yaml").out == run("check", "old.yaml").out.replace("old.yaml", "new.yaml")
    once, twice = (run("check", "old.yaml", *gpus) for gpus in ((), ("--gpu", "a100", "--gpu", "a100-40gb-sxm")))
    assert once.out == twice.out


def test_nothing_changed(sides: Any) -> None:
    ran = sides(NET, NET)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "as fast as before")
    assert document(sides(NET, NET, "-o", "json"))["networks"][0]["layers"] == []


def test_renamed_layers_are_the_same_and_others_are_added_or_removed(sides: Any) -> None:
    renamed = NET.replace("body", "trunk")
    assert document(sides(NET, renamed, "-o", "json"))["networks"][0]["layers"] == []
    more = NET + "  - { name: more, K: 64, kernel_size: 1 }\n"
    (added,) = document(sides(NET, more, "-o", "json"))["networks"][0]["layers"]
    assert (added["name"], added["kind"], added["old_us"]) == ("more", "added", None)
    (removed,) = document(sides(more, NET, "-o", "json"))["networks"][0]["layers"]
    assert (removed["name"], removed["kind"], removed["new_us"]) == ("more", "removed", None)


def test_another_batch_is_compared_by_image(sides: Any) -> None:
    (network,) = document(sides(NET, NET.replace("N: 16", "N: 32"), "-o", "json"))["networks"]
    assert network["per_image"] is True
    per_image = (network["new"]["time_us"] / 32) / (network["old"]["time_us"] / 16)
    assert network["change_percent"] == pytest.approx(100 * (per_image - 1), abs=1e-3)
    assert "of one image" in sides(NET, NET.replace("N: 16", "N: 32")).out


def test_reports_are_sides_too_from_standard_input_as_well(sides: Any, tmp_path: Path) -> None:
    direct = document(sides(NET, SLOW, "-o", "json"))
    for side in ("old", "new"):
        assert run("check", f"{side}.yaml", "-o", f"json={side}.json", "--fail-on", "never").code == 0
    by_report = document(run("compare", "old.json", "new.json", "-o", "json"))
    assert by_report["networks"] == direct["networks"]
    content = (tmp_path / "old.json").read_text(encoding="utf-8")
    piped = run("compare", "-", "new.yaml", "-o", "json", stdin=content)
    assert document(piped)["networks"] == direct["networks"]


def test_two_checkouts_are_matched_by_the_path_below_their_folders(here: Path) -> None:
    for side, text in (("base", NET), ("head", SLOW)):
        for name, content in (("a.yaml", NET), ("b.yaml", text), (f"only-{side}.yaml", NET)):
            (here / side / "nets").mkdir(parents=True, exist_ok=True)
            (here / side / "nets" / name).write_text(content, encoding="utf-8")
    ran = run("compare", "base", "head")
    assert ran.code == 1
    assert "1 network as before" in ran.out
    assert "no longer there: base/nets/only-base.yaml" in ran.out
    assert "new: head/nets/only-head.yaml" in ran.out
    assert "1 of 2 networks slower by more than 5 %" in ran.out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"schema_version": 2, "convlint": "0.2.0"}', "schema 2; only those of schema 3"),
        ('{"schema_version": 3, "convlint": 1}', "no JSON report of convlint's"),
        ('{"schema_version": 3, "convlint": "x", "networks": [{"path": "a"}]}', "no JSON report of convlint's"),
        ('{"schema_version": 3', "no JSON report of convlint's"),
        ('{"schema_version": 3, "x": ' + "[" * 100_000, "no JSON report of convlint's"),
    ],
    ids=["version", "type", "key", "cut", "deep"],
)
def test_what_is_no_report(here: Path, content: str, words: str) -> None:
    (here / "old.json").write_text(content, encoding="utf-8")
    (here / "new.yaml").write_text(NET, encoding="utf-8")
    ran = run("compare", "old.json", "new.yaml")
    assert ran.code == 3
    assert words in ran.out


def test_what_cannot_be_compared_is_incomplete(sides: Any) -> None:
    missing = sides(NET, NET, "--mode", "inference")
    assert missing.code == 0
    assert run("compare", "old.yaml", "nowhere.yaml").code == 3
    training = NET.replace("mode: inference", "mode: training")
    ran = sides(NET, training)
    assert ran.code == 3
    assert "nothing to compare: the old side has old.yaml on a100, inference" in ran.out
    unknown = sides(NET, NET.replace("H: 56, W: 56, ", ""))
    assert unknown.code == 3
    assert "no layer has the sizes that a time needs" in unknown.out
    assert unknown.out.splitlines()[-1] == "incomplete"
    assert run("compare", "-", "-").code == 2


def test_an_output_does_not_overwrite_a_side(sides: Any, tmp_path: Path) -> None:
    sides(NET, SLOW)
    for side in ("old", "new"):
        run("check", f"{side}.yaml", "-o", f"json={side}.json", "--fail-on", "never")
    before = (tmp_path / "old.json").read_bytes()
    assert run("compare", "old.json", "new.json", "-o", "json=old.json").code == 2
    assert (tmp_path / "old.json").read_bytes() == before
    assert run("compare", "old.yaml", "new.yaml", "-o", "json=new.yaml").code == 2


def test_names_from_reports_are_harmless(sides: Any, tmp_path: Path) -> None:
    sides(NET, NET)
    run("check", "old.yaml", "-o", "json=old.json")
    text = (tmp_path / "old.json").read_text(encoding="utf-8")
    (tmp_path / "old.json").write_text(text.replace('"body"', '"\\u001b[31mbody | <b>"'), encoding="utf-8")
    for output in ("text", "json", "markdown"):
        ran = run("compare", "old.json", "new.yaml", "-o", output)
        assert "\x1b" not in ran.out
        assert output != "markdown" or "<b>" not in ran.out


def test_markdown_for_a_pull_request(sides: Any) -> None:
    ran = sides(NET, SLOW, "-o", "markdown")
    assert ran.code == 1
    assert ran.out.startswith("**convlint**: ")
    assert "| network | old | new | change | grade |" in ran.out
    assert "- slower: <code>body</code>" in ran.out


@pytest.fixture
def video(here: Path) -> Path:
    (here / "vae.yaml").write_text(VIDEO, encoding="utf-8")
    return here


def test_a_release_that_is_slow_fails_before_anybody_installs_it(video: Path) -> None:
    ran = run("versions", "vae.yaml", "--from", "2.8.0", "--to", "2.9.0")
    assert ran.code == 1
    assert "framework 2.8.0 -> 2.9.0" in ran.out
    assert "CL811" in ran.out
    assert run("versions", "vae.yaml", "--from", "2.9.0", "--to", "2.8.0").code == 0
    (network,) = document(run("versions", "vae.yaml", "--from", "2.9.0", "--to", "2.10.0+cu130", "-o", "json"))[
        "networks"
    ]
    assert network["versions"]["cudnn"] == ["9.10.2", "9.15.1"]
    assert network["change_percent"] < 0


def test_a_release_counts_whatever_the_spec_states(video: Path) -> None:
    stated = VIDEO.replace("framework: pytorch", 'framework: pytorch, framework_version: "2.7.0"')
    (video / "vae.yaml").write_text(stated, encoding="utf-8")
    assert run("versions", "vae.yaml", "--from", "2.8.0", "--to", "2.9.0").code == 1


def test_a_release_of_unknown_wheels_does_not_have_what_the_spec_states(video: Path) -> None:
    stated = VIDEO.replace("framework: pytorch", 'framework: pytorch, cuda: "12.4", cudnn: "9.1.0"')
    (video / "vae.yaml").write_text(stated, encoding="utf-8")
    assert "framework 2.3 -> 2.4, CUDA ? -> 12.1, cuDNN ? -> 9.1.0" in run(
        "versions", "vae.yaml", "--from", "2.3", "--to", "2.4"
    ).out  # fmt: skip


def test_two_lock_files_and_the_present_one(video: Path) -> None:
    (video / "requirements.txt").write_text("torch==2.8.0\n", encoding="utf-8")
    (video / "next.txt").write_text("torch==2.9.0\n", encoding="utf-8")
    assert run("versions", "vae.yaml", "--from", "requirements.txt", "--to", "next.txt").code == 1
    assert run("versions", "vae.yaml", "--to", "next.txt").code == 1
    assert run("versions", "vae.yaml", "--from", "next.txt", "--to", "requirements.txt").code == 0


def test_versions_need_a_framework_and_a_goal(video: Path) -> None:
    assert run("versions", "vae.yaml", "--from", "2.8.0").code == 2
    ran = run("versions", "vae.yaml", "--to", "latest")
    assert (ran.code, "neither a version" in ran.err) == (2, True)
    (video / "vae.yaml").write_text(VIDEO.replace("runtime: { framework: pytorch }\n", ""), encoding="utf-8")
    unnamed = run("versions", "vae.yaml", "--from", "2.8.0", "--to", "2.9.0")
    assert unnamed.code == 3
    assert "nobody says which" in unnamed.out
    assert unnamed.out.splitlines()[-1] == "incomplete"
    named = run("versions", "vae.yaml", "--from", "2.8.0", "--to", "2.9.0", "--runtime", "framework=pytorch")
    assert named.code == 1


def test_a_new_error_fails_whatever_the_times_are(video: Path) -> None:
    ran = run("versions", "vae.yaml", "--gpu", "v100", "--dtype", "fp16", "--from", "2.10.0", "--to", "2.11.0")
    assert ran.code == 1
    assert ran.out.splitlines()[-1].startswith("1 new error; ")
    assert (
        document(
            run("versions", "vae.yaml", "--gpu", "v100", "--from", "2.10.0", "--to", "2.11.0+cu128", "-o", "json")
        )["new_errors"]
        == 1
    )


@pytest.mark.parametrize(
    "content",
    ["", "torch>=2.9\n", "torch==2.9.0\ntorch==2.8.0\n", "hello world\n", "numpy==1.26\n", "\0\0\0"],
)
@pytest.mark.parametrize("name", ["next.txt", "uv.lock"])
def test_a_file_without_a_version_is_no_comparison(video: Path, content: str, name: str) -> None:
    (video / name).write_text(content, encoding="utf-8")
    ran = run("versions", "vae.yaml", "--from", "2.8.0", "--to", name)
    assert ran.code == 3
    assert f"{name} names no version of its framework" in " ".join(ran.out.split())
    assert ran.out.splitlines()[-1] == "incomplete"


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("99.0", "convlint knows releases up to"), ("2.9.0+cu999", "no wheel for CUDA 99.9 is known"),
        ("2.9.0+cpu", "no build for NVIDIA GPUs"), ("2.9.*", "is neither a version"), ("2", "is no release"),
        ("2.10.0.dev20251001", "a nightly"), ("2.11.0rc1", "a nightly"), ("nowhere/uv.lock", "there is no file"),
    ],
)  # fmt: skip
def test_releases_of_which_nothing_is_known_are_refused(video: Path, release: str, words: str) -> None:
    ran = run("versions", "vae.yaml", "--from", "2.8.0", "--to", release)
    assert (ran.code, words in ran.err) == (2, True)


def test_a_lock_file_counts_whatever_the_spec_states(video: Path) -> None:
    stated = VIDEO.replace("framework: pytorch", 'framework: pytorch, framework_version: "2.9.1"')
    (video / "vae.yaml").write_text(stated, encoding="utf-8")
    (video / "a.txt").write_text("torch==2.9.1\n", encoding="utf-8")
    (video / "b.txt").write_text("torch==2.10.0\n", encoding="utf-8")
    (network,) = document(run("versions", "vae.yaml", "--from", "a.txt", "--to", "b.txt", "-o", "json"))["networks"]
    assert network["change_percent"] < -50
    tensorrt = VIDEO.replace("framework: pytorch", 'framework: tensorrt, tensorrt: "8.6.1"')
    (video / "vae.yaml").write_text(tensorrt, encoding="utf-8")
    (network,) = document(run("versions", "vae.yaml", "--to", "10.0", "-o", "json"))["networks"]
    assert network["versions"] == {"tensorrt": ["8.6.1", "10.0"]}


def test_folders_are_compared_by_their_own_paths(here: Path) -> None:
    for path in ("o/a/net.yaml", "n/a/net.yaml", "n/b/more.yaml"):
        (here / path).parent.mkdir(parents=True, exist_ok=True)
        (here / path).write_text(NET, encoding="utf-8")
    found = document(run("compare", "o", "n", "-o", "json"))
    assert [network["new"]["path"] for network in found["networks"]] == ["n/a/net.yaml"]
    assert (found["only_old"], found["only_new"]) == ([], ["n/b/more.yaml"])


def test_a_report_of_before_that_counts_no_layers(sides: Any, tmp_path: Path) -> None:
    sides(NET, SLOW)
    run("check", "old.yaml", "-o", "json=old.json")
    report = json.loads((tmp_path / "old.json").read_text(encoding="utf-8"))
    for network in report["networks"]:
        del network["layers"]
    (tmp_path / "old.json").write_text(json.dumps(report), encoding="utf-8")
    (network,) = document(run("compare", "old.json", "new.yaml", "-o", "json"))["networks"]
    assert {layer["kind"] for layer in network["layers"]} == {"kept"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("batch", 10**400), ("batch", -4), ("layers", -(10**30)), ("time_us", 1e308), ("time_us", -1.0),
        ("grade", "<img src=x>"), ("parameters", "many"),
    ],
)  # fmt: skip
def test_numbers_that_no_check_writes_are_refused(sides: Any, tmp_path: Path, key: str, value: object) -> None:
    sides(NET, SLOW)
    run("check", "old.yaml", "-o", "json=old.json")
    report = json.loads((tmp_path / "old.json").read_text(encoding="utf-8"))
    report["networks"][0][key] = value
    (tmp_path / "old.json").write_text(json.dumps(report), encoding="utf-8")
    for output in ("text", "json", "markdown"):
        ran = run("compare", "old.json", "new.yaml", "-o", output)
        assert (ran.code, output == "markdown" and "<img" in ran.out) == (3, False)


def test_two_reports_are_compared_as_they_are(sides: Any) -> None:
    sides(NET, SLOW)
    for side in ("old", "new"):
        run("check", f"{side}.yaml", "-o", f"json={side}.json", "--fail-on", "never", "--gpu", "h100")
    ran = run("compare", "old.json", "new.json", "--gpu", "a100")
    assert (ran.code, "leave out --gpu" in ran.err) == (2, True)
    (network,) = document(run("compare", "old.json", "new.yaml", "-o", "json"))["networks"]
    assert network["gpu"] == "h100"


@pytest.mark.parametrize("limit", ["nan", "inf", "-1"])
def test_what_is_no_limit(sides: Any, limit: str) -> None:
    assert sides(NET, SLOW, "--tolerance", limit).code == 2


def test_what_is_said_without_a_price_is_named(video: Path) -> None:
    (video / "vae.yaml").write_text(
        "version: 1\nmode: training\nruntime: { framework: pytorch, compile: true }\nlayers:\n"
        "  - { name: a, N: 8, C: 64, H: 56, W: 56, K: 64, groups: 64, kernel_size: 3, padding: 1, dtype: fp16 }\n",
        encoding="utf-8",
    )
    ran = run("versions", "vae.yaml", "--from", "2.12.0", "--to", "2.13.0")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "as fast as before; now said without a price: CL817")
