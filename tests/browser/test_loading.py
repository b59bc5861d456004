"""A page loads from one file, asks for nothing, lets nothing else run, and is soon there."""

import re
from collections.abc import Callable

import pytest
from report_pages import MIXED_NAMES, Made
from watched_pages import Watch

Makes = Callable[[str], Made]
PARTS = ("verdict", "time", "roofline", "findings", "missing")


@pytest.mark.parametrize("name", ["mixed", "two targets", "resnet50"])
def test_a_page_has_all_that_the_report_has(watch: Watch, made: Makes, name: str) -> None:
    file, report = made(name)
    page = watch.open(file)
    for part in PARTS:
        assert page.locator(f"main section#{part}").is_visible(), part
    assert page.locator("tr.layer").count() == len(report["layers"])
    findings = page.locator("article.finding")
    assert findings.count() == len(report["findings"])
    assert sorted(one.get_attribute("data-code") for one in findings.all()) == sorted(
        one["code"] for one in report["findings"]
    )
    gpus = {one.get_attribute("data-gpu") for one in page.locator("#verdict .target").all()}
    assert gpus == {one["gpu"] for one in report["totals"]}


def test_layers_are_in_network_order_with_their_names(watch: Watch, made: Makes) -> None:
    rows = watch.open(made("mixed").page).locator("#layers tr.layer")
    for number, (row, name) in enumerate(zip(rows.all(), MIXED_NAMES, strict=True)):
        assert row.get_attribute("id") == f"layer-{number}"
        assert row.get_attribute("data-layer") == str(number)
        assert name in row.inner_text()


def test_the_policy_lets_nothing_run_that_the_page_did_not_bring(watch: Watch, made: Makes) -> None:
    page = watch.open(made("mixed").page)
    policy = page.locator("meta[http-equiv='Content-Security-Policy']").get_attribute("content") or ""
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:|\*", policy)
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = 1";
        document.body.append(script);
        document.body.setAttribute("onclick", "window.ran = 1");
        document.body.click();
        document.body.insertAdjacentHTML("beforeend", "<img src=http://127.0.0.1:9/x.png onerror='window.ran = 1'>");
    }""")
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    trouble = watch.trouble()
    assert [one for one in trouble if one.startswith("refused by the policy: script-src")] != []
    assert [one for one in trouble if one.startswith("refused by the policy: img-src")] != []


def test_without_script_everything_but_charts_and_filters_is_there(watch: Watch, made: Makes) -> None:
    file, report = made("mixed")
    page = watch.open(file, script=False)
    assert [one.is_visible() for one in page.locator("article.finding").all()] == [True] * len(report["findings"])
    assert [one.is_visible() for one in page.locator("tr.layer").all()] == [True] * len(MIXED_NAMES)
    assert page.locator("svg.bar").first.is_visible()


def test_resnet50_is_small_and_draws_its_roofline(watch: Watch, made: Makes) -> None:
    file = made("resnet50").page
    assert file.stat().st_size <= 1_500_000
    page = watch.open(file)
    page.wait_for_selector("#roofline-chart svg")
