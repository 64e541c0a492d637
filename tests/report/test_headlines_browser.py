"""The cards of the first screen in a browser: all stand there, and no word is cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome
from report_browser import IN_BROWSER
from scored_runs import failing, query, saying, small_world, speaking

pytestmark = IN_BROWSER

JSON = "FindIt_Pascal_xyxy_json"
LONG = "tune-refcoco-lr1e5-long-name-of-a-training-step-1000"

_CARDS = "[...document.querySelectorAll('#headlines > div')]"
_CUT = f"return {_CARDS}.filter(card => card.scrollWidth > card.clientWidth).map(c => c.innerText)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a report of six models: calls of four of them failed."""
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(tmp_path_factory.mktemp("failed"), patch)
        world.table("Pascal", [query(at, picture=f"{at}.jpg") for at in range(12)])
        for model in (LONG, "B", "C", "D"):
            world.predict(model, JSON, failing)
        world.predict("E", JSON, speaking(JSON, 0.9))
        world.predict("F", JSON, saying("[]"))
        yield chrome.write_report(world.runs)


@pytest.mark.parametrize("width", [1280, 390])
def test_failed_calls_have_a_card_that_fits(browser: Any, page: Path, width: int) -> None:
    with chrome.emulated(browser, width), chrome.opened_page(browser, page) as opened:
        cards = opened.execute_script(f"return {_CARDS}.map(card => card.innerText)")
        (card,) = [text for text in cards if text.startswith("Was every call answered?")]
        assert "16 of 72 calls failed" in card
        assert "and 1 more model;" in card
        assert opened.execute_script(_CUT) == []
        assert opened.execute_script("return document.documentElement.scrollWidth") <= width
        bottom = f"return {_CARDS}[{cards.index(card)}].getBoundingClientRect().bottom"
        assert opened.execute_script(bottom) <= 900, "it is on the first screen"
