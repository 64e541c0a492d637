"""Charts without an interval, or without a point, in a browser: Vega has nothing to warn of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome
from costly_runs import costing
from report_browser import IN_BROWSER
from scored_runs import query, small_world, speaking

from vlmeval_findit.leaderboard import make_board
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import Run, load_runs

pytestmark = IN_BROWSER

FORMATS = ("FindIt_Pascal_xyxy_json", "FindIt_Pascal_xyxy_text", "FindIt_Pascal_xywh_json")
FIGURE = "figure[data-charts=format-costs]"


def with_cost(run: Run) -> Run:
    """Give Both-known all costs; of Seconds-only no tokens are known."""
    tokens = 40.0 + len(run.variant.format) if run.model == "Both-known" else None
    known = 0 if tokens is None else len(run.rows)
    return costing(run, seconds_median=0.5, tokens_out=tokens, tokens_out_known=known)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a report over three images: no value on it has an interval."""
    folder = tmp_path_factory.mktemp("few")
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(folder, patch)
        world.table("Pascal", [query(at, picture=f"{at % 3}.jpg") for at in range(12)])
        for at, model in enumerate(("Both-known", "Seconds-only", "T-step-10", "T-step-20")):
            for name in FORMATS:
                world.predict(model, name, speaking(name, 0.3 + at / 5))
        runs = list(map(with_cost, load_runs([world.runs])))
        path = folder / "report.html"
        path.write_text(make_page(make_board(runs), datetime.now(UTC)), encoding="utf-8")
        yield path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_chart_has_a_scale_without_ends(
    browser: Any, page: Path, width: int, scheme: str
) -> None:
    with (
        chrome.emulated(browser, width, color_scheme=scheme),
        chrome.opened_page(browser, page) as opened,
    ):
        opened.execute_script(
            "for (const one of document.querySelectorAll('details')) one.open = true"
        )
        figures = opened.execute_script(
            "return [...document.querySelectorAll('figure.chart')].map(one => one.dataset.charts)"
        )
        assert {"standings", "model-costs", "format-costs", "thresholds", "checkpoints"} <= set(
            figures
        )
        for figure in figures:
            place = f"figure[data-charts={figure}]"
            opened.execute_script(f"document.querySelector('{place}').scrollIntoView()")
            if opened.execute_script(f"return document.querySelector('{place}').clientWidth"):
                chrome.shown(opened, f"return document.querySelector('{place} .drawing > div svg')")
        for model, is_known in (("Seconds-only", False), ("Both-known", True)):
            _choose(opened, "panel", model)
            _choose(opened, "cost", "tokens out a query")
            what = "div svg" if is_known else "p.nothing"
            chrome.shown(opened, f"return document.querySelector('{FIGURE} .drawing > {what}')")
            saved = opened.find_element("css selector", f"{FIGURE} .save")
            assert saved.is_displayed() == is_known
            (front,) = chrome.texts(opened, f"{FIGURE} .front")
            assert (front != "none") == is_known
        assert opened.execute_script("return document.documentElement.scrollWidth") <= width


def _choose(browser: Any, name: str, text: str) -> None:
    browser.execute_script(
        "const select = document.querySelector(`${arguments[0]} [name=${arguments[1]}]`);"
        "select.value = [...select.options].find(o => o.textContent === arguments[2]).value;"
        "select.dispatchEvent(new Event('change'))",
        FIGURE,
        name,
        text,
    )
