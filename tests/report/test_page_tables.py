"""The tables of the report's first section: columns that tell nothing are not there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest
from boards import JSON, LABELS_JSON, LABELS_TEXT, NOW, TEXT
from scored_runs import World, query, speaking

from vlmeval_findit.leaderboard import make_board
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import load_runs

BOTH = (JSON, TEXT)
FOUR = (*BOTH, LABELS_JSON, LABELS_TEXT)
FIRST = ("rank", "model")
IN_VIEW = ("Overall", "Pascal", "Pascal_multilabel")
ELSEWHERE = tuple(f"{name} elsewhere" for name in IN_VIEW)

TABLES: Mapping[str, tuple[Mapping[str, Sequence[str]], Sequence[str]]] = {
    "one model": ({"A": [JSON]}, ("model", "Pascal")),
    "one model, two formats": ({"A": BOTH}, ("model", "Pascal", "Pascal elsewhere")),
    "one format each": ({"A": [JSON], "B": [JSON]}, (*FIRST, "Pascal")),
    "formats of all": ({"A": FOUR, "B": FOUR}, (*FIRST, *IN_VIEW, *ELSEWHERE)),
    "formats of one": (
        {"A": BOTH, "B": [JSON]},
        (*FIRST, "formats tried", "Pascal", "Pascal elsewhere"),
    ),
}


def page_of(world: World, asked: Mapping[str, Sequence[str]]) -> str:
    world.table("Pascal", [query(at, f"{at}.jpg") for at in range(16)])
    for model, names in asked.items():
        for name in names:
            world.predict(model, name, speaking(name, 0.9 - 0.2 * (model == "B")))
    return make_page(make_board(load_runs([world.runs])), NOW)


@pytest.mark.parametrize("case", TABLES)
def test_a_column_tells_rows_apart(case: str, world: World) -> None:
    """Values elsewhere stand behind all others."""
    asked, columns = TABLES[case]
    table = page_of(world, asked).split('class="scores"')[1].split("</table>")[0]
    heads = re.findall(r"<th[^>]*scope=\"col\"[^>]*>(.*?)</th>", table, re.DOTALL)
    names = [re.sub(r"<small>.*?</small>|<[^>]+>", "", head).strip() for head in heads]
    names = [name for name in names if not name.startswith("Object detection")]  # A mean
    assert tuple(names) == tuple(columns)


@pytest.mark.parametrize("models", ["A", "AB"])
def test_a_model_alone_is_told_nothing_of_contests(models: str, world: World) -> None:
    page = page_of(world, {model: [JSON] for model in models})
    text = page.split('<script type="application/json"')[0]
    of_contests = ("rank", "t-tests", "Models are ordered", "A click in the legend")
    assert [word in text for word in of_contests] == [len(models) > 1] * len(of_contests)


@pytest.mark.parametrize("fails", [False, True])
def test_failed_calls_are_named_where_a_call_failed(fails: bool, world: World) -> None:
    def answer(row, chance):
        return "Failed to obtain answer via API." if fails and row.index == 3 else "[]"

    world.predict("A", JSON, answer)
    page = make_page(make_board(load_runs([world.runs])), NOW)
    lost = page.split('<section id="lost"')[1].split("</section>")[0]
    score = re.search(r'"score": ?"([^"]+)"', page)
    assert score is not None
    assert ("failed calls count as wrong here" in lost) == fails
    assert score[1] == ("F1@0.5 (failed calls as misses)" if fails else "F1@0.5")
