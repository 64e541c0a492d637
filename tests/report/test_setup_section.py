"""The section of a report about reproductions of published figures."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from report_browser import EVIL, IN_BROWSER, emulated, opened_page, write_report
from scored_runs import World, speaking
from stored_reproductions import (
    CHECKED,
    CONDITIONS,
    NAME,
    judgement,
    reproduced,
    stored,
    stored_run,
)

from vlmeval_findit.leaderboard import make_board
from vlmeval_findit.report import SetupReport, make_page, setups_of
from vlmeval_findit.reproduction import (
    REPRODUCTION,
    FigureVerdict,
    ReproductionFileError,
    reproductions_of,
    write_reproduction,
)
from vlmeval_findit.scoring import load_runs


def page_of(world: World) -> str:
    return make_page(make_board(load_runs([world.runs])), datetime.now(UTC))


def section_of(html: str) -> str:
    """Return the words of the section, without its tags."""
    found = re.search(r'<section id="setup".*?</section>', html, re.DOTALL)
    assert found is not None
    return " ".join(re.sub("<[^>]+>", " ", found[0]).split())


def test_values_conditions_and_causes_are_shown(world: World) -> None:
    reproduced(world)
    text = section_of(page_of(world))
    for part in (
        "Qwen3-VL on RefCOCO testA: lower than published",
        "Published 92.2 acc@0.5 for Qwen3-VL-8B-Instruct by the authors; measured 75.0 "
        "(95 % interval 71.0 to 78.5) over 12 rows of 6 pictures. Difference -17.2 points "
        "(-22.5 to -12.4: the interval, widened by 1.3 points, by which careful repetitions "
        "differ).",
        "coordinate space as published grid1000 grid1000",
        "size of images not told not told of the checkpoint",
        "engine cannot be set vllm sglang 0.5.15",
        "engine : the server is yours: findit serve --program vllm",
        "coordinates : 240 boxes fit grid1000, which is declared",
        "engine (perhaps): sglang 0.5.15 loses the rows and columns of image tokens To do: pip ",
        "space : replies are in pixels. Without this fault the value is 91.9 To do: --space pixels",
        "space : the same replies in pixels: 91.9",
        "For a model's card: lower than published on RefCOCO testA: 75.0 ± 4.0",
    ):
        assert part in text.replace("&gt;", ">").replace("&#39;", "'")


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (FigureVerdict.AGREES, "agrees with the published value"),
        (FigureVerdict.HIGHER, "higher than published"),
        (FigureVerdict.CANNOT_BE_TOLD, "cannot be told yet"),
    ],
)
def test_the_verdict_is_in_the_title(verdict: FigureVerdict, words: str) -> None:
    setup = SetupReport(stored(judgement=judgement(verdict, 90.0)), ())
    assert setup.title == f"Qwen3-VL on RefCOCO testA: {words}"
    assert ("800 pictures would do" in setup.difference) is (
        verdict is FigureVerdict.CANNOT_BE_TOLD
    )


def test_a_whole_set_has_no_more_pictures() -> None:
    run = stored_run()
    whole = replace(run, table=replace(run.table, rows=len(run.rows)))
    open_ = judgement(FigureVerdict.CANNOT_BE_TOLD, 90.0)
    assert "there are no more" not in SetupReport(stored([run], judgement=open_), ()).difference
    assert "there are no more" in SetupReport(stored([whole], judgement=open_), ()).difference


def test_without_causes_the_page_says_so(world: World) -> None:
    reproduced(world, checked=())
    assert "Causes are looked for where a value is lower." in section_of(page_of(world))
    reproduced(world, checked=CHECKED[:1])
    assert "What explains it Nothing that was looked at." in section_of(page_of(world))


def test_other_runs_have_no_section(world: World) -> None:
    reproduced(world)
    other = world.predict("Other", NAME, speaking(NAME, 0.8), folder="Other")
    assert reproductions_of({other: "00"}) == ()
    (world.runs / REPRODUCTION).unlink()
    assert "#setup" not in page_of(world)


def test_a_sample_of_another_size_has_its_section(world: World) -> None:
    """The run over fewer rows is excluded from the board."""
    reproduced(world)
    world.predict("Other", NAME, speaking(NAME, 0.8), folder="Other")
    path = world.predict("Mine", NAME, speaking(NAME, 0.8), folder="Mine", rows=5)
    board = make_board(load_runs([world.runs]))
    assert [each.run.path for each in board.excluded] == [path]
    assert len(setups_of(board)) == 1


def test_changed_replies_are_named(world: World) -> None:
    whole = reproduced(world)
    changed = replace(whole, runs=(replace(whole.runs[0], predictions_sha256="00" * 32),))
    write_reproduction(world.runs / REPRODUCTION, changed)
    (setup,) = setups_of(make_board(load_runs([world.runs])))
    assert setup.changed == ("Pascal",)
    assert "The replies have changed since: Pascal." in section_of(page_of(world))


def test_a_damaged_reproduction_is_refused(world: World) -> None:
    reproduced(world)
    (world.runs / REPRODUCTION).write_text("{}", encoding="utf-8")
    with pytest.raises(ReproductionFileError, match=r"format is missing\. Delete it, or type"):
        page_of(world)


def test_nothing_of_a_file_is_run(world: World) -> None:
    evil = replace(CONDITIONS[0], here=EVIL, advice=EVIL)
    whole = reproduced(world, conditions=(evil,), model=EVIL)
    assert whole.model == EVIL
    assert EVIL not in page_of(world)


# --- both values on a line ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("published", "measured"), [(92.2, 75.0), (92.2, 92.2), (100.0, 99.8), (0.5, 0.0), (3.0, 97.0)]
)
def test_labels_stay_on_the_line(published: float, measured: float) -> None:
    changed = replace(judgement(measured=measured), published=published, interval=None)
    svg = SetupReport(stored(judgement=changed), ()).picture
    labels = re.findall(r'class="label" x="([\d.]+)" .*?anchor="(\w+)">(.*?)<', svg)
    assert len(labels) == 2
    for x, anchor, text in labels:
        width = 8 * len(text)  # More than 13 pixels high letters need
        left = float(x) - {"start": 0, "middle": width / 2, "end": width}[anchor]
        assert 0 <= left <= left + width <= 360
    assert f'aria-label="published {published}, measured {measured}"' in svg


# --- in a browser ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
class TestInABrowser:
    pytestmark = IN_BROWSER

    def test_the_section_fits_the_window(
        self, browser: Any, world: World, width: int, scheme: str
    ) -> None:
        reproduced(world)
        with emulated(browser, width, color_scheme=scheme):
            page: Path = write_report(world.runs)
            with opened_page(browser, page):
                overflow = browser.execute_script(
                    "return document.documentElement.scrollWidth - innerWidth"
                )
                assert overflow <= 0
                inside = browser.execute_script(
                    "const b = e => e.getBoundingClientRect();"
                    "const strip = document.querySelector('.strip');"
                    "return [...strip.querySelectorAll('text, circle, rect')].every(e =>"
                    "  b(e).left >= b(strip).left - 1 && b(e).right <= b(strip).right + 1)"
                )
                assert inside
