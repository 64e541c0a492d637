"""A page past its limit: what lies beside it is all that the one file would hold, and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scored_runs import World, failing, saying, small_world, speaking
from test_report import EVIL, JSON, LABELS, NOW, TEXT, data_of

from vlmeval_findit.cli import main
from vlmeval_findit.cli import report as command
from vlmeval_findit.leaderboard.board import Board, make_board
from vlmeval_findit.report import assets
from vlmeval_findit.report.assets import Written, write_page
from vlmeval_findit.report.page import make_page
from vlmeval_findit.runs.scored_run import load_runs

PAST = 1_000
"""Bytes that no page is below."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Five runs, one of which says what is no good in a page."""
    with pytest.MonkeyPatch.context() as patch:
        made = small_world(tmp_path_factory.mktemp("world"), patch)
        made.predict("A", JSON, speaking(JSON, 0.7))
        made.predict("A", TEXT, speaking(TEXT, 0.5))
        made.predict("A", LABELS, speaking(LABELS, 0.5))
        made.predict("Evil", JSON, saying(EVIL))
        made.predict("Fails", JSON, failing)
        yield made.runs


@pytest.fixture(autouse=True)
def at_hand(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    World(runs.parent).at_hand(monkeypatch)


@pytest.fixture(scope="module")
def board(runs: Path) -> Board:
    return make_board(load_runs([runs]))


@pytest.fixture(scope="module")
def fewer(runs: Path) -> Board:
    return make_board(load_runs([runs / f"{model}_{JSON}.json" for model in ("Evil", "Fails")]))


@pytest.fixture(scope="module")
def alone(runs: Path, board: Board) -> str:
    """The page of all as one file."""
    with pytest.MonkeyPatch.context() as patch:
        World(runs.parent).at_hand(patch)
        return make_page(board, NOW)


@pytest.fixture
def written(board: Board, tmp_path: Path) -> Written:
    return write_page(tmp_path / "my report.html", board, NOW, limit=PAST)


def values_of(file: Path) -> dict[str, Any]:
    """What a file beside a page hands over."""
    text = file.read_text(encoding="utf-8")
    assert text.startswith("addAssets(")
    values: dict[str, Any] = json.loads(text.removeprefix("addAssets(").removesuffix(");\n"))
    return values


def resolved(data: dict[str, Any]) -> dict[tuple[int, int], dict[str, Any]]:
    """The cards of a page by run and row, with what their places stand for."""
    found = {}
    for card in data["cards"]:
        texts = {key: data["texts"][card[key]] for key in ("prompt", "reply")}
        frames = [{**f, "picture": data["pictures"][f["picture"]]} for f in card["frames"]]
        parts = [data["parts"][part] for part in card["parts"]]
        found[card["run"], card["index"]] = {**card, **texts, "frames": frames, "parts": parts}
    assert len(found) == len(data["cards"])
    return found


def joined(page: Path) -> dict[str, Any]:
    """The data of a page with those of its files, as its script puts them together."""
    data = data_of(page.read_text(encoding="utf-8"))
    named = data["assets"]
    folder = page.parent / named["folder"]
    assert data["cards"] == []
    cards = {}
    for one in data["rows"]:
        for index, label, good, spread, found, failed, *texts, iou in json.loads(one["rows"]):
            reason, error_types, parts, sizes = (data["values"][place] for place in texts)
            cards[one["run"], index] = {
                **{"run": one["run"], "index": index, "label": data["values"][label]},
                **{"good": good, "spread": spread, "found": bool(found), "failed": bool(failed)},
                **{
                    "reason": reason,
                    "error_types": error_types,
                    "parts": parts,
                    "sizes": sizes,
                    "iou": iou,
                },
            }
    for run, name in named["answers"].items():
        values = values_of(folder / name)
        assert str(values["run"]) == run
        first = len(data["texts"])
        data["texts"] += values["texts"]
        for own in values["cards"]:
            places = {key: own[key] + first for key in ("prompt", "reply")}
            cards[values["run"], own["index"]].update({**own, **places})
    for at, name in enumerate(named["pictures"]):
        values = values_of(folder / name)
        assert values["start"] == at * named["each"] == len(data["pictures"])
        data["pictures"] += values["pictures"]
    return {**data, "cards": list(cards.values())}


def test_at_the_limit_it_is_one_file(board: Board, alone: str, tmp_path: Path) -> None:
    path, size = tmp_path / "report.html", len(alone.encode())
    assert write_page(path, board, NOW, limit=size) == Written(path, ())
    assert path.read_text(encoding="utf-8") == alone
    assert not (tmp_path / "report_files").exists()
    assert "strict-dynamic" not in alone
    assert "assets" not in data_of(alone)
    assert write_page(path, board, NOW, limit=size - 1).assets


def test_what_lies_beside_is_what_the_page_would_hold(
    board: Board, alone: str, written: Written
) -> None:
    held, apart = data_of(alone), joined(written.page)
    assert len(held["cards"]) == sum(len(one.run.rows) for one in board.runs) == 53
    assert resolved(apart) == resolved(held)
    boxes = (box for card in held["cards"] for frame in card["frames"] for box in frame["boxes"])
    assert apart["assets"]["roles"] == sorted({role for role, *_ in boxes})
    for key in ("figure", "runs", "error_types", "pairs"):
        assert apart[key] == held[key]


def test_every_file_is_named_in_the_page_and_no_other_is_there(written: Written) -> None:
    named = data_of(written.page.read_text(encoding="utf-8"))["assets"]
    folder = written.page.parent / named["folder"]
    assert named["folder"] == "my report_files"
    names = {*named["answers"].values(), *named["pictures"]}
    assert {file.name for file in folder.iterdir()} == names
    assert set(written.assets) == set(folder.iterdir())
    assert len(named["answers"]) == 5


def test_no_text_of_a_model_ends_a_file_or_a_page(written: Written) -> None:
    for file in (written.page, *written.assets):
        text = file.read_bytes().decode("utf-8")
        assert "alert(1)>" not in text
        assert "\u2028" not in text
    assert all(b"<" not in file.read_bytes() for file in written.assets)
    page = written.page.read_text(encoding="utf-8")
    assert page.count("<script") == 3
    assert "'strict-dynamic'" in page


def test_made_again_with_fewer_runs_nothing_old_is_left(fewer: Board, written: Written) -> None:
    folder = written.assets[0].parent
    for name in ("notes.txt", "answers-0000.js"):
        (folder / name).write_text("of somebody else")
    others = {folder / "notes.txt", folder / "answers-0000.js"}
    again = write_page(written.page, fewer, NOW, limit=PAST)
    assert len(again.assets) == 3
    assert set(folder.iterdir()) == others | set(again.assets)
    assert resolved(joined(again.page)) == resolved(data_of(make_page(fewer, NOW)))
    stamps = {file: file.stat().st_mtime_ns for file in again.assets}
    assert write_page(written.page, fewer, NOW, limit=PAST) == again
    assert {file: file.stat().st_mtime_ns for file in again.assets} == stamps
    write_page(written.page, fewer, NOW)
    assert set(folder.iterdir()) == others


def test_a_page_that_fails_leaves_the_old_one_whole(
    fewer: Board, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file: file.read_bytes() for file in (written.page, *written.assets)}

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(assets, "_write_pictures", full)
        with pytest.raises(OSError, match="no space"):
            write_page(written.page, fewer, NOW, limit=PAST)
    assert {file: file.read_bytes() for file in before} == before
    again = write_page(written.page, fewer, NOW, limit=PAST)
    assert set(written.assets[0].parent.iterdir()) == set(again.assets)


def test_the_command_says_what_belongs_together(
    runs: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(command, "write_page", partial(write_page, limit=PAST))
    out = tmp_path / "report.html"
    assert main(["report", str(runs), "--out", str(out)]) == 0
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{out}: 5 runs, 3 models, ")
    size = sum(file.stat().st_size for file in (tmp_path / "report_files").iterdir()) / 1e6
    said = f"its pictures and replies, {size:.1f} MB; keep it beside the page"
    assert second == f"{tmp_path / 'report_files'}/: {said}"
