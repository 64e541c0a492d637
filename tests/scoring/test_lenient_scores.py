"""Strict and lenient side by side, and queries with nothing to find: from replies to tables."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from scored_runs import World, query, saying, two_labels

from vlmeval_findit.analysis import LenientGain, gain_by_repair, lenient_gain
from vlmeval_findit.benchmarks.findit import (
    FORMAT_FAILURES,
    NEGATIVE_OUTCOMES,
    LenientResult,
    NegativeOutcome,
    box_answer_kind,
)
from vlmeval_findit.boxes import MatchResult, ReplyFormat, Truth, parse_leniently, read
from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import (
    as_markdown,
    lenient_table,
    make_board,
    rejection_table,
    remarks,
)
from vlmeval_findit.protocol import FAILED_ANSWER, Reply, read_reply
from vlmeval_findit.scoring import Run
from vlmeval_findit.storage import RunFiles

NAME = "FindIt_Pascal_xyxy_json"
LABELS = "FindIt_Pascal_multilabel_xyxy_json"
# In thousandths of 200 x 100: the two objects of query 0.
FIRST = "[50, 100, 250, 600]"
SECOND = "[600, 200, 900, 900]"
BOTH = f'[{{"bbox": {FIRST}}}, {{"bbox": {SECOND}}}]'


def answered(world: World, replies: Sequence[str], name: str = NAME) -> Run:
    """Return a run in which query i is query 0 on an image of its own, and gets reply i."""
    make = two_labels if name == LABELS else query
    table = "Pascal_multilabel" if name == LABELS else "Pascal"
    world.table(table, [replace(make(0, f"{i}.jpg"), index=i) for i in range(len(replies))])
    return world.run("M", name, lambda item, _: replies[item.index])


# --- strict and lenient --------------------------------------------------------------------------

REPLIES = [
    BOTH,  # adherent
    f"[{{'bbox': {FIRST}}}, {{'bbox': {SECOND}}}]",  # single quotes: two more
    f'[{{"bbox": {FIRST}}}, {{"bbox": [600, 200, 90',  # cut off: one more
    f'[{{"bbox": {FIRST}}}, {{"box": {SECOND}}}]',  # one read, one more under another key
    '[{"bbox": [0, 0, 9, 9]},]',  # a box that finds nothing
    "There is nothing.",
    FAILED_ANSWER,
]


def test_the_lenient_score_does_not_change_the_strict_score(world: World) -> None:
    run = answered(world, REPLIES)
    sums = run.sums
    assert (sums["tp"], sums["n_pred"], sums["n_gt"], sums["responses"]) == (3, 3, 12, 6)
    assert (sums["lenient_tp"], sums["lenient_pred"]) == (4, 5)
    assert run.metric_values["F1@0.5"] == pytest.approx(200 * 3 / 15)
    assert run.metric_values["F1@0.5 (lenient)"] == pytest.approx(200 * 7 / 20)
    names = [" ".join(sorted(n[8:] for n in row.sums if "lenient" in n)) for row in run.rows]
    assert names == ["", "pred tp", "pred tp", "pred tp", "pred", "", ""]
    details = [row.details.get("lenient") for row in run.rows]
    assert [bool(each) for each in details] == [bool(each) for each in names]
    assert details[1] == {
        "repairs": ["quotes and words of Python"],
        "boxes": [[10.0, 10.0, 50.0, 60.0], [120.0, 20.0, 180.0, 90.0]],
        "hits": [True, True],
        "recoverable": [0, 1],
    }
    assert (details[2]["repairs"], details[2]["recoverable"]) == (["cut off"], [0])
    assert (details[3]["repairs"], details[3]["recoverable"]) == (["another key"], [1])
    assert len(details[3]["boxes"]) == 2


def test_repairs_are_counted_by_name(world: World) -> None:
    run = answered(world, [*REPLIES, f"[{{'bbox': {FIRST}}}"])
    assert gain_by_repair(run.rows) == {
        "cut off": LenientGain(2, 2, 2),
        "quotes and words of Python": LenientGain(2, 3, 3),
        "another key": LenientGain(1, 1, 1),
        "commas and brackets": LenientGain(1, 1, 0),
    }
    assert lenient_gain(run.rows) == LenientGain(5, 6, 5)
    table = lenient_table(run)
    assert table.title == "What lenient parsing would take of 6 replies that do not adhere"
    first, *_, every, strict, lenient = [list(row.values()) for row in table.records()]
    assert first[:4] == ["cut off", 2, 2, 2]
    assert every[1:4] == [5, 6, 5]
    assert (strict[0], round(strict[4], 1)) == ("F1@0.5", 35.3)
    assert (lenient[0], round(lenient[4], 1)) == ("F1@0.5 (lenient)", 69.6)


def test_labels_and_frames_decide_in_a_lenient_reading_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = answered(world, [f"cat: {FIRST}\ncat: {SECOND}", f"cat: {FIRST}"], LABELS)
    first, second = (row.details["lenient"] for row in run.rows)
    assert first["labels"] == ["cat", "cat"]
    assert (first["hits"], first["recoverable"]) == ([True, False], [0])
    assert second["repairs"] == ["JSON for text or text for JSON"]
    monkeypatch.setenv("FINDIT_IMAGES", f"iGround={world.folder / 'pictures'}")
    truth = Truth(((10.0, 10.0, 50.0, 60.0),) * 2, (0, 1))
    images = ("v/0.jpg", "v/1.jpg")
    world.table("iGround", [replace(query(0), images=images, truth=truth, frame_indices=(0, 1))])
    reply = saying(f'{{"1": {FIRST}, "2": [1, 2, 3, 4]}}')
    run = world.run("M", "FindIt_iGround_f2_xyxy_json", reply)
    lenient = run.rows[0].details["lenient"]
    assert (lenient["frames"], lenient["recoverable"]) == ([0, 1], [0])
    assert run.sums["lenient_tp"] == 1


def test_an_adherent_run_has_equal_strict_and_lenient_scores(world: World) -> None:
    run = answered(world, [BOTH, "[]", f'[{{"bbox": {FIRST}}}]'])
    assert run.metric_values["F1@0.5"] == pytest.approx(200 / 3)
    assert run.metric_values["F1@0.5 (lenient)"] == run.metric_values["F1@0.5"]
    assert not {name for name in run.sums if name.startswith(("lenient", "negatives"))}
    assert not lenient_table(run).rows


# --- queries with nothing to find -----------------------------------------------------------------

JSON = ReplyFormat("json", "xyxy")
TEXT = ReplyFormat("text", "xyxy")
VIDEO = ReplyFormat("json", "xyxy", frames=3)
VIDEO_TEXT = ReplyFormat("text", "xyxy", frames=3)
SAYS = NegativeOutcome

SAID = [
    (JSON, "[]", SAYS.REJECTED),
    (JSON, "There is none: []", SAYS.UNREADABLE),
    (JSON, '[{"bbox": [1, 2, 3, 4]}]', SAYS.FALSE_ALARM),
    (JSON, "[{'bbox': [1, 2, 3, 4]}]", SAYS.UNREADABLE),
    (JSON, '[{"bbox": []}]', SAYS.UNREADABLE),
    (JSON, "null", SAYS.UNREADABLE),
    (JSON, "The box is [x, y].", SAYS.UNREADABLE),
    (JSON, "There is no dog in this picture.", SAYS.REFUSED),
    (JSON, "I'm sorry, I can't help with that.", SAYS.REFUSED),
    (JSON, "The dog is at (1, 2, 3, 4).", SAYS.UNREADABLE),
    (JSON, "", SAYS.EMPTY),
    (JSON, FAILED_ANSWER, SAYS.FAILED),
    (TEXT, "[]", SAYS.REJECTED),
    (TEXT, "{}", SAYS.UNREADABLE),
    (TEXT, "There is no dog.", SAYS.REFUSED),
    (TEXT, "[1, 2, 3, 4]", SAYS.FALSE_ALARM),
    (VIDEO, "[]", SAYS.REJECTED),
    (VIDEO, '[{"frame_idx": 9, "bbox": [1, 2, 3, 4]}]', SAYS.UNREADABLE),
    (VIDEO_TEXT, "[]", SAYS.REJECTED),
    (VIDEO_TEXT, "1: []", SAYS.UNREADABLE),
    (VIDEO_TEXT, "There is no dog.", SAYS.REFUSED),
]


@pytest.mark.parametrize(("how", "text", "expected"), SAID)
def test_what_becomes_of_a_query_with_nothing_to_find(
    how: ReplyFormat, text: str, expected: NegativeOutcome
) -> None:
    reply = Reply(0, text)
    reading = read_reply(reply, lambda reported: read(reported, how), FORMAT_FAILURES)
    lenient = parse_leniently(text, how, reading)
    nothing = MatchResult((), (), (), (), ())
    kind = box_answer_kind(reply, reading, lenient and LenientResult(lenient, nothing))
    assert NEGATIVE_OUTCOMES[kind] is expected


NEGATIVES = ["[]", "[]", '[{"bbox": [1, 2, 3, 4]}]', "[", "I cannot.", "", FAILED_ANSWER, "[]"]


@pytest.fixture
def rejecting(world: World) -> Run:
    """Eight queries with nothing to find, and four with objects."""
    none = [replace(query(i, f"{i}.jpg"), truth=Truth((), ())) for i in range(8)]
    world.table("Pascal", [*none, *(query(i, f"{i}.jpg") for i in range(8, 12))])
    replies = [*NEGATIVES, BOTH, "[]", "I cannot.", FAILED_ANSWER]
    return world.run("M", NAME, lambda item, _: replies[item.index])


def test_rejection_is_measured_over_what_was_answered(
    rejecting: Run, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {name: n for name, n in rejecting.sums.items() if name.startswith("negatives")} == {
        "negatives_rejected": 3,
        "negatives_false_alarm": 1,
        "negatives_unreadable": 1,
        "negatives_refused": 1,
        "negatives_empty": 1,
        "negatives_failed": 1,
    }
    assert rejecting.metric_values["Rejection accuracy"] == pytest.approx(300 / 7)
    assert rejecting.metric_values["False-alarm rate"] == pytest.approx(100 / 7)
    of_rows = [sum(name.startswith("neg") for name in row.sums) for row in rejecting.rows]
    assert max(of_rows[:8]) == 1
    assert of_rows[8:] == [0] * 4
    # Only an answer that says so is right.
    for row in rejecting.rows[:8]:
        rejected = row.sums.get(NegativeOutcome.REJECTED.sum, 0)
        assert rejecting.benchmark.query_score(row) == 100 * rejected
    # Who alarms less is ranked first, among those without failed calls: who failed could not alarm.
    loud, quiet = (world.run(m, NAME, saying(s)) for m, s in (("Loud", BOTH), ("Quiet", "[]")))
    board = make_board([rejecting, loud, quiet])
    entries = {m: board.cells[m, "Pascal"].entries["False-alarm rate"] for m in board.models}
    assert {m: item.rank for m, item in entries.items()} == {"Quiet": 1, "Loud": 2, "M": None}
    page = as_markdown(board)
    assert "## Rejection accuracy" in page
    assert "## False-alarm rate (lower is better)" in page
    reported = (
        "8 with nothing to find: rejected rightly 3, false alarm 1, not readable 1, refused 1, "
        "empty reply 1, failed call 1"
    )
    assert f"* M on Pascal: {reported}" in page
    modest = world.run("Modest", NAME, saying("I cannot."))
    (line,) = dict(remarks(make_board([rejecting, loud, quiet, modest])))[
        "Queries with nothing to find"
    ]
    assert line.startswith("4 models: 32 with nothing to find: ")
    assert main(["score", str(rejecting.path)]) == 0
    assert f"M {NAME}: {reported}" in capsys.readouterr().out
    values = json.loads(RunFiles(rejecting.path).provenance.read_text())["metrics"]
    assert values["rejection_accuracy"] == pytest.approx(300 / 7)


def test_without_answers_about_nothing_there_is_no_rejection(world: World) -> None:
    with_objects = answered(world, [BOTH, "I cannot."])
    assert not rejection_table(with_objects).rows
    page = as_markdown(make_board([with_objects]))
    assert not re.findall("Rejection|alarm|nothing to find", page)
    world.table("Pascal", [replace(query(0), truth=Truth((), ()))])
    failed = world.run("M", NAME, saying(FAILED_ANSWER))
    assert [row["percent"] for row in rejection_table(failed).records()[-2:]] == [None, None]
    for run in (with_objects, failed):
        assert run.metric_values["Rejection accuracy"] is None
        assert run.metric_values["False-alarm rate"] is None
