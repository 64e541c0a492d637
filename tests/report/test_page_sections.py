"""An error in one section of the report: it is named, and the others are written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from costly_runs import with_records
from few_fast import every_nth_fast, few_fast
from report_browser import IN_BROWSER, opened_page
from scored_runs import World, small_world, speaking
from stored_reproductions import NAME, reproduced

from vlmeval_findit.cli import main
from vlmeval_findit.core import EXIT_SOME_FAILED
from vlmeval_findit.leaderboard import Board, make_board
from vlmeval_findit.report import (
    SECTIONS,
    PageSource,
    Section,
    SectionFailure,
    make_page,
    page_section,
)
from vlmeval_findit.report import page as page_module
from vlmeval_findit.reproduction import REPRODUCTION
from vlmeval_findit.scoring import RunError, load_runs

NOW = datetime(2026, 1, 2, tzinfo=UTC)
KEYS = [section.key for section in SECTIONS]
Capture = pytest.CaptureFixture[str]


class BrokenError(RuntimeError):
    """What no section expects."""


def broken(*_: object, **__: object) -> Any:
    raise BrokenError("<b>a wire</b> is loose")


def without_any(key: str) -> tuple[Section[PageSource], ...]:
    """Return the sections, one of which cannot be made."""
    return tuple(
        replace(section, make=broken) if section.key == key else section for section in SECTIONS
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return runs whose page has all sections."""
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(tmp_path_factory.mktemp("sections"), patch)
        reproduced(world)
        for model, chance in (("Good", 0.9), ("Poor", 0.3)):
            for name in (NAME, NAME.replace("xyxy", "xywh")):
                path = world.predict(model, name, speaking(name, chance, 9))
                with_records(
                    path, lambda index: {"tokens": {"prompt": 700, "completion": 30 + index}}
                )
    return world


@pytest.fixture
def board(world: World, monkeypatch: pytest.MonkeyPatch) -> Board:
    world.at_hand(monkeypatch)
    return make_board(load_runs([world.runs]))


@pytest.fixture(scope="module")
def whole(world: World) -> str:
    """Return the page without an error."""
    with pytest.MonkeyPatch.context() as patch:
        world.at_hand(patch)
        return make_page(make_board(load_runs([world.runs])), NOW)


def sections_of(page: str) -> dict[str, str]:
    """Return the sections of a page as HTML, by their keys."""
    main_ = page.partition("<main>")[2].partition("</main>")[0]
    found = re.findall(r'<(section|dl) id="(\w+)"(.*?)</\1>', main_, re.DOTALL)
    return {key: text for _, key, text in found if key in KEYS}


def page_of(board: Board) -> tuple[str, list[SectionFailure]]:
    failures: list[SectionFailure] = []
    return make_page(board, NOW, report_failure=failures.append), failures


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_a_whole_page_has_all_sections(whole: str) -> None:
    assert list(sections_of(whole)) == KEYS
    assert "This section could not be made" not in whole


@pytest.mark.parametrize("key", every_nth_fast(KEYS, 4))
@pytest.mark.parametrize(
    "part",
    [
        "values",
        pytest.param("template", marks=pytest.mark.slow),
        pytest.param("script", marks=pytest.mark.slow),
    ],
)
def test_one_broken_section_is_named_and_the_others_stay(
    key: str, part: str, whole: str, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    (section,) = (each for each in SECTIONS if each.key == key)
    if part == "values":
        monkeypatch.setattr(page_module, "SECTIONS", without_any(key))
    elif part == "template":

        def fill(template: str, values: object) -> Any:
            return broken() if template == section.template else rendered(template, values)

        rendered: Callable[..., Any] = page_section.fill
        monkeypatch.setattr(page_section, "fill", fill)
    else:  # What JSON does not have

        def with_nan(page: PageSource) -> Any:
            contents = section.make(page)
            return replace(contents, script={**contents.script, "more": float("nan")})

        others = without_any(key)
        changed = [replace(each, make=with_nan) if each.key == key else each for each in others]
        monkeypatch.setattr(page_module, "SECTIONS", changed)
    page, failures = page_of(board)
    shown = sections_of(page)
    assert [failure.title for failure in failures] == [section.title]
    assert list(shown) == KEYS
    assert "This section could not be made:" in shown[key]
    if part != "script":
        assert "BrokenError: &lt;b&gt;a wire&lt;/b&gt; is loose" in shown[key]
    without_it = {name: text for name, text in sections_of(whole).items() if name != key}
    assert {name: text for name, text in shown.items() if name != key} == without_it
    assert data_of(page)["runs"]


def parts_of_sections() -> list[str]:
    """Return the names of the functions that the page gets from other modules of ours."""
    ours = ("vlmeval_findit.report", "vlmeval_findit.leaderboard")
    glue = ("vlmeval_findit.report.rendering", page_section.__name__)
    return [
        name
        for name, value in vars(page_module).items()
        if callable(value)
        and getattr(value, "__module__", "").startswith(ours)
        and value.__module__ not in (*glue, page_module.__name__)
        and not name[0].isupper()
        and name not in ("chart_script", "page_key")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", parts_of_sections())
def test_no_function_of_a_section_costs_the_page(
    name: str, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_cards(*arguments: Any, **options: Any) -> Any:
        return empty(*arguments, **options) if not arguments[0] else broken()

    empty: Callable[..., Any] = page_module.gallery_data
    monkeypatch.setattr(page_module, name, without_cards if name == "gallery_data" else broken)
    page, failures = page_of(board)
    assert 1 <= len(failures) <= 5
    assert list(sections_of(page)) == KEYS
    assert data_of(page)["runs"]


@pytest.mark.parametrize(
    ("name", "lost"),
    [("doubts_of", "Doubtful labels"), ("losses_of", "What was lost?")],
)
def test_what_a_section_can_do_without_costs_only_its_own(
    name: str, lost: str, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, name, broken)
    page, failures = page_of(board)
    assert [failure.title for failure in failures] == [lost]
    assert data_of(page)["cards"]


def test_a_run_whose_details_are_gone_is_refused(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: PageSource) -> Any:
        raise RunError("no details: score it again")

    changed = tuple(replace(section, make=gone) for section in SECTIONS)
    monkeypatch.setattr(page_module, "SECTIONS", changed)
    with pytest.raises(RunError, match="score it again"):
        page_of(board)


def test_the_caller_of_a_page_gets_the_error(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "SECTIONS", without_any("best"))
    with pytest.raises(BrokenError):
        make_page(board, NOW)


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", few_fast(["headlines", "labels"], 1))
def test_the_command_names_the_section_and_says_so(
    key: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    world.at_hand(monkeypatch)
    monkeypatch.setattr(page_module, "SECTIONS", without_any(key))
    page = tmp_path / "report.html"
    assert main(["report", str(world.runs), "--out", str(page)]) == EXIT_SOME_FAILED
    printed = capsys.readouterr()
    assert f"{page}: 5 runs, 3 models" in printed.out
    (title,) = (section.title for section in SECTIONS if section.key == key)
    (line,) = printed.err.splitlines()
    assert line.startswith(
        f'error: {page}: the section "{title}" could not be made, all others are there: '
        "BrokenError: <b>a wire</b> is loose (page_section.py, line "
    )
    assert line.endswith("; --verbose shows where")
    assert list(sections_of(page.read_text(encoding="utf-8"))) == KEYS
    assert main(["report", str(world.runs), "--out", str(page), "--verbose"]) == EXIT_SOME_FAILED
    assert "in broken\n" in capsys.readouterr().err


def test_a_damaged_reproduction_costs_its_section_only(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    world.at_hand(monkeypatch)
    stored = world.runs / REPRODUCTION
    before = stored.read_text(encoding="utf-8")
    stored.write_text("{}", encoding="utf-8")
    page = tmp_path / "report.html"
    try:
        assert main(["report", str(world.runs), "--out", str(page)]) == EXIT_SOME_FAILED
    finally:
        stored.write_text(before, encoding="utf-8")
    assert re.search(r'"Setup" .*format is missing\. Delete it, or type', capsys.readouterr().err)
    assert "format is missing. Delete it" in sections_of(page.read_text(encoding="utf-8"))["setup"]


# --- in a browser ---------------------------------------------------------------------------------


class TestInABrowser:
    pytestmark = IN_BROWSER

    @pytest.mark.parametrize("key", KEYS)
    def test_the_script_runs_without_a_section(
        self,
        key: str,
        browser: Any,
        board: Board,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """It logs no error; the theme is set first, and labels and linked answers last."""
        monkeypatch.setattr(page_module, "SECTIONS", without_any(key))
        page = tmp_path / "report.html"
        page.write_text(page_of(board)[0], encoding="utf-8")
        with opened_page(browser, page, "#answer=0"):
            if key != "lost":
                browser.execute_script("document.querySelector('#losses .parts button').click()")
            cards = browser.execute_script("return document.querySelectorAll('#cards > *').length")
            assert bool(cards) is (key != "gallery")
