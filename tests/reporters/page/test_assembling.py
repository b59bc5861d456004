"""The page as a whole: what is in it, what may run in it, and that texts from outside are texts."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from reports import ALL_TIMES, NETWORK, full_report, priced, total

from convlint.cli.streams.gate import harmless
from convlint.model.layer import ConvLayer
from convlint.model.report import CalibrationUse, Fix, InputError, LayerReport
from convlint.reporters.page.assembling import PlanStep, PlanView, cards, grades, page, plan_command, plan_page
from convlint.reporters.words import verdicts


def test_each_target_has_its_verdict() -> None:
    (card,) = cards(full_report())
    assert (card.gpu, card.grade, card.device) == ("a100", "C", "NVIDIA A100 SXM4 40GB")
    assert len(card.costs.dearest) == 3


def test_the_page_has_the_order_of_the_text() -> None:
    text = page(full_report())
    sections = re.findall(r'<section id="(\w+)"', text)
    assert sections == ["verdict", "findings", "time", "roofline", "missing"]
    assert text.index('<ol id="first">') < text.index('<section id="findings"')
    infos = text.index('<details class="fold" id="infos" open>')
    assert all(infos < at.start() for at in re.finditer(r'<article class="finding info"', text))
    assert all(at.start() < infos for at in re.finditer(r'<article class="finding (error|warning)"', text))


@pytest.mark.parametrize("graver", [0, 1, 3, 9, 10, 11, 12])
@pytest.mark.parametrize("infos", [0, 1, 8, 30])
def test_folds_are_closed_and_count_what_is_in_them(graver: int, infos: int) -> None:
    one = priced(severity="warning")
    findings = (*[one] * graver, *[replace(one, severity="info")] * infos)
    text = page(full_report(findings=findings))
    section = text[text.index('<section id="findings"') : text.index('<section id="time"')]
    assert section.count("<details") == section.count("</details>")
    assert ("and 1 more" in section) is (graver == 11)
    assert ("and 2 more" in section) is (graver == 12)
    assert f"{infos} info" in section if infos else 'id="infos"' not in section
    assert "-" not in re.sub(r".*?<summary>(.*?)</summary>|.*", r"\1", section, flags=re.DOTALL)


def test_no_fix_is_advised_is_said_only_where_none_is() -> None:
    said = "No fix is advised."
    plain = priced(severity="warning")
    unpriced = replace(plain, lost_us=None, lost_alone_us=None, lost_percent=None)
    assert said not in page(full_report(findings=(unpriced,)))
    assert said not in page(full_report(findings=(plain,)))


def test_a_gpu_that_waits_for_its_host_is_said_on_the_card() -> None:
    report = full_report()
    assert cards(report)[0].pace == ""
    waiting = tuple(replace(each, host_us=4000.0) for each in report.networks)
    (card,) = cards(replace(report, networks=waiting))
    assert card.pace == "the host needs about 4 ms to start the kernels, the GPU 3.25 ms to run them"


def test_what_was_not_read_is_said_at_the_top() -> None:
    report = full_report()
    assert report.errors
    broken = page(replace(report, layers=(), findings=(), networks=(), total=None, totals=()))
    head = broken[: broken.index("</header>")]
    assert 'href="#missing"' in head
    assert "not read, or not whole" in head
    assert "Nothing found in what could be read." in broken
    whole = page(replace(report, errors=()))
    assert "not read, or not whole" not in whole


def test_the_card_says_what_the_text_report_says() -> None:
    batch = replace(priced(), gpu="a100", severity="warning", fix=Fix(describe="N=8", safety="unsafe", set={"N": 8}))
    for findings in ((), (batch,)):
        report = full_report(findings=findings)
        (card,) = cards(report)
        ((_, text),) = verdicts(report)
        assert card.time in text
        assert f"{card.after} with all of it" in text
        assert card.asks_for_a_batch == text.endswith("but another batch") == bool(findings)
        assert ("batch unchanged" in page(report)) is bool(findings)


def test_where_some_times_are_unknown_the_others_are_added_up() -> None:
    first, *others = full_report().layers
    unknown = total("a100", None)
    report = full_report(layers=(replace(first, times={"a100": None}), *others), total=unknown, totals=(unknown,))
    text = page(report)
    assert "<strong>2.44 ms</strong> for 3 of 4 layers that are priced" in text
    assert 'unseen">grade </span>?' in text


def test_what_the_times_rest_on_is_on_the_card() -> None:
    report = full_report()
    (card,) = cards(report)
    assert card.basis == "held against timings of this generation for 4 layers"
    use = CalibrationUse(path="gpu.json", gpu="a100", device="NVIDIA A100-SXM4-40GB", rows=120, cudnn=None)
    (card,) = cards(replace(report, calibrations=(use,)))
    assert card.basis == f"calibrated on {use.device}, 120 passes; held against timings of this generation for 4 layers"
    (card,) = cards(replace(report, calibrations=(replace(use, reason="another clock"),)))
    assert "calibrated" not in card.basis


def test_the_grade_is_read_out_as_text_and_explained() -> None:
    text = page(full_report())
    assert '<span class="unseen">grade </span>C' in text
    assert 'aria-label="grade' not in text
    assert grades() == "A from 0.90, B from 0.75, C from 0.60, D from 0.40, else F"
    assert grades() in text


@pytest.mark.parametrize(
    ("path", "gpus", "command"),
    [
        ("nets/spec.yaml", ("a100",), "convlint plan nets/spec.yaml --gpu a100"),
        ("nets/my net.yaml", ("a100",), "convlint plan 'nets/my net.yaml' --gpu a100"),
        ("<flags>", ("a100",), "convlint plan FILE --gpu a100"),
        ("nets/spec.yaml", ("a100", "t4"), "convlint plan nets/spec.yaml --gpu GPU"),
    ],
)
def test_the_command_of_the_plan(path: str, gpus: tuple[str, ...], command: str) -> None:
    layers = tuple(replace(each, layer=replace(each.layer, path=path)) for each in full_report().layers)
    report = full_report(layers=layers, networks=(replace(NETWORK, path=path),), targets=gpus)
    assert plan_command(report) == command


def test_the_plan_of_a_model_of_the_config_and_of_several_files() -> None:
    layers = tuple(replace(each, layer=replace(each.layer, model="segnet")) for each in full_report().layers)
    assert plan_command(full_report(layers=layers)) == "convlint plan --model segnet --gpu a100"
    other = replace(NETWORK, path="nets/other.yaml")
    assert plan_command(full_report(networks=(NETWORK, other))) == "convlint plan FILE --gpu a100"


def test_without_times_there_is_nothing_to_plan() -> None:
    unknown = total("a100", None)
    assert plan_command(full_report(total=unknown, totals=(unknown,))) == ""
    known = total("a100", ALL_TIMES)
    assert "convlint plan" not in page(full_report(total=known, totals=(known,)), judged=False)


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


class Read(HTMLParser):
    """The elements of a page with their attributes, and what its scripts and styles hold."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag in ("script", "style") and attributes.get("type") is None and data.strip():
            self.raw.append((tag, data))

    @property
    def policy(self) -> str:
        return next(a["content"] or "" for tag, a in self.elements if a.get("http-equiv") == "Content-Security-Policy")


def test_the_policy_lets_in_what_the_page_holds_and_nothing_else() -> None:
    read = Read(page(full_report()))
    assert read.policy.startswith("default-src 'none'; ")
    assert "unsafe" not in read.policy
    assert len(read.raw) == 9
    for tag, text in read.raw:
        found = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{found}'" in read.policy.partition(f"{tag}-src ")[2].partition(";")[0]


def test_nothing_is_asked_of_anybody_and_no_attribute_runs() -> None:
    for tag, attributes in Read(page(full_report())).elements:
        assert not {name for name in attributes if name.startswith("on") or name == "style"}
        assert tag not in ("iframe", "object", "embed", "base", "form") or attributes.get("id") == "filters"
        assert "src" not in attributes
        link = attributes.get("href", "#") or ""
        assert link.startswith(("#", "data:,", "https://")), link
        assert not (link.startswith("https://") and tag != "a")


def test_what_leaves_convlint_is_what_was_hashed() -> None:
    text = page(full_report())
    assert harmless(text) == text
    assert all(script.isascii() for tag, script in Read(text).raw if tag == "script")


def test_names_are_text() -> None:
    layer = LayerReport(layer=ConvLayer(name=HOSTILE, path=HOSTILE))
    report = full_report(layers=(layer,), errors=(InputError(path=HOSTILE, message=HOSTILE),), targets=("a100",))
    read = Read(page(report))
    assert [tag for tag, _ in read.elements].count("script") == 5
    assert "img" not in [tag for tag, _ in read.elements]
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page(report), re.DOTALL)
    assert json.loads(data[1])["names"] == [HOSTILE]


@pytest.mark.parametrize("targets", [(), ("a100",), ("a100", "h100"), ("no such GPU",)])
def test_pages_of_reports_of_all_kinds(targets: tuple[str, ...]) -> None:
    empty = full_report(findings=(), errors=(), skipped=(), suppressed=(), layers=(), targets=targets)
    assert "Nothing found." in page(empty)
    assert 'id="layers"' not in page(empty)
    assert page(full_report(targets=targets)).endswith("</html>\n")


def test_what_was_only_estimated_is_not_called_free_of_findings() -> None:
    text = page(full_report(findings=()), judged=False)
    assert "Nothing found" not in text
    assert 'id="findings"' not in text
    assert "errors" not in text.partition("<title>")[2].partition("</title>")[0]


def test_a_plan_has_its_steps_and_their_sum() -> None:
    step = PlanStep(change=HOSTILE, before="2 ms", after="1 ms", saved="-50.0 %", grade="A", parameters="-", flops="-",
                    width=500.0)  # fmt: skip
    whole = replace(step, change="all 2 steps", before="3 ms", saved="-66.7 %")
    plan = PlanView(title="Plan for x", says="3 ms; 1 ms after 2 steps", steps=(step, step), whole=whole)
    text = plan_page(plan, ["a note"], ())
    assert text.count("<img") == 0
    assert text.count('width="500.0"') == 3
    assert text.partition("<tfoot>")[2].count("3 ms") == 2
    assert text.count('data-label="before">2 ms') == 2
    assert "a note" in text
    assert 'id="verdict"' not in text
    assert "<tfoot>" not in plan_page(replace(plan, whole=None), [], ())


def test_sections_are_linked_from_the_top() -> None:
    for report in (full_report(), full_report(findings=(), layers=(), errors=(), skipped=(), suppressed=())):
        text = page(report)
        linked = re.findall(r'href="#(\w+)"', text.partition("<nav")[2].partition("</nav>")[0])
        assert linked == re.findall(r'<section id="(\w+)"', text)
