"""``--reviews``: scores with reviews beside the others: on boards, in comparisons, in reports."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few_fast import every_nth_fast
from review_files import Reviewer, write
from scored_runs import World, grid, query, speaking, with_facts

from vlmeval_findit.benchmarks.findit import FindItQuery, parse
from vlmeval_findit.boxes import BoxToWrite
from vlmeval_findit.boxes import write as write_boxes
from vlmeval_findit.cli import main
from vlmeval_findit.protocol import Answer, ReviewVerdict, RowChoice
from vlmeval_findit.scoring import load_runs, reviewed_runs
from vlmeval_findit.storage import (
    RunFiles,
    read_reviews,
    scores_in_other_spaces,
    scores_with_reviews,
)

NAME = "FindIt_RefCOCO_xyxy_json"
TEXT = "FindIt_RefCOCO_xyxy_text"
CUT = "FindIt_PhraseCut_xyxy_json"
ROWS = 40
TRUE = (20.0, 20.0, 80.0, 80.0)
WRONG = (110.0, 20.0, 170.0, 80.0)  # What every fourth row is labelled with
WRONG_ROWS = range(0, ROWS, 4)

CallResult = Callable[[Any, np.random.Generator], str]


def finding(share: int) -> CallResult:
    """Return a model that misses the true object in every ``share``-th row."""

    def answer(asked: FindItQuery, generator: np.random.Generator) -> str:
        box = (0.0, 85.0, 10.0, 95.0) if asked.index % share == 1 else TRUE
        return write_boxes([BoxToWrite(grid(box), "", 0)], parse(NAME).reply)

    return answer


@pytest.fixture
def audited(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world in which two of three models voted, and every fourth label is wrong."""
    labels = [WRONG if i in WRONG_ROWS else TRUE for i in range(ROWS)]
    rows = [query(i, f"{i}.jpg", f"object {i}", [box]) for i, box in enumerate(labels)]
    world.table("RefCOCO", rows)
    for model, share in {"First": 5, "Second": 7, "Other": 3}.items():
        world.run(model, NAME, finding(share))
    monkeypatch.chdir(world.folder)
    return world


def digest_of(world: World, model: str) -> str:
    (run,) = (run for run in load_runs([world.runs]) if run.model == model)
    return run.provenance.digest


def reviews_of(world: World, name: str = "reviews.jsonl", random: Sequence[int] = ()) -> Path:
    """Write the reviews of all rows whose label is wrong, and of random ones."""
    reviewer = Reviewer(NAME, tuple(digest_of(world, model) for model in ("First", "Second")))
    reviews = [reviewer.review(at, ReviewVerdict.MODEL, Answer((TRUE,))) for at in WRONG_ROWS]
    reviews += [reviewer.review(at, ReviewVerdict.LABEL, drawn=RowChoice.RANDOM) for at in random]
    return write(world.folder / name, *reviews, audits=[reviewer.audit(list(WRONG_ROWS))])


def contents(world: World) -> dict[str, bytes]:
    """Return the files of scores without reviews."""
    return {
        path.name: path.read_bytes()
        for path in sorted(world.runs.iterdir())
        if ".reviewed-" not in path.name
    }


def board(world: World, *flags: str) -> list[dict[str, str]]:
    out = world.folder / "board"
    assert main(["leaderboard", str(world.runs), "--out", str(out), *flags]) == 0
    with (out / "leaderboard.csv").open() as lines:
        return list(csv.DictReader(lines))


def value(rows: Sequence[dict[str, str]], model: str, dataset: str) -> float:
    (row,) = (row for row in rows if (row["model"], row["dataset"]) == (model, dataset))
    return float(row["F1@0.5"])


# --- files ----------------------------------------------------------------------------------------


def test_scores_with_reviews_lie_beside_the_others_in_any_order(
    audited: World, capsys: pytest.CaptureFixture[str]
) -> None:
    reviews = reviews_of(audited)
    before = contents(audited)
    command = ["score", str(audited.runs), "--reviews", str(reviews)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert contents(audited) == before
    assert "10 of 40 rows reviewed: 10 changed, 0 excluded" in printed
    lines = [line for line in printed.splitlines() if " First " in line and NAME in line]
    assert "[reviewed " not in lines[0]
    assert "[reviewed " in lines[1]
    assert main(command) == 0, "once more"
    assert contents(audited) == before
    made = sorted(audited.runs.glob("*.reviewed-*"))
    assert len(made) == 9
    # The default score afterwards is of the original alone.
    assert main(["score", str(audited.runs)]) == 0
    assert "[reviewed" not in capsys.readouterr().out.split("--", maxsplit=1)[0].split(NAME)[-1]
    score = RunFiles(audited.runs / f"First_{NAME}.json").score
    assert score.read_bytes() == before[score.name]
    assert sorted(audited.runs.glob("*.reviewed-*")) == made


def test_the_score_without_reviews_is_made_where_it_is_missing(audited: World) -> None:
    reviews = reviews_of(audited)
    before = contents(audited)
    files = RunFiles(audited.runs / f"First_{NAME}.json")
    for path in (files.score, files.details, files.provenance):
        path.unlink()
    assert main(["score", str(files.predictions), "--reviews", str(reviews)]) == 0
    assert files.score.read_bytes() == before[files.score.name]
    assert files.details.read_bytes() == before[files.details.name]


def test_reviews_and_another_space_are_two_marks(audited: World) -> None:
    reviews = reviews_of(audited)
    before = contents(audited)
    path = str(audited.runs / f"First_{NAME}.json")
    assert main(["score", path, "--reviews", str(reviews), "--space", "pixels"]) == 0
    made = {file.name for file in audited.runs.glob("*_score.*")}
    (both,) = (name for name in made if ".space-pixels.reviewed-" in name)
    assert both.replace(f".reviewed-{both.split('.reviewed-')[1]}", ".csv") in made
    assert {name: content for name, content in contents(audited).items() if name in before} == (
        before
    )
    loaded = load_runs([audited.runs / both])[0]
    assert loaded.model == "First (space-pixels)"
    assert len(scores_in_other_spaces(audited.runs)) == 1
    assert len(scores_with_reviews(audited.runs)) == 1
    assert "[reviewed" in loaded.board_dataset


# --- boards ---------------------------------------------------------------------------------------


def test_a_board_has_both_columns_and_one_mean(
    audited: World, capsys: pytest.CaptureFixture[str]
) -> None:
    reviews = reviews_of(audited)
    before = board(audited)
    rows = board(audited, "--reviews", str(reviews))
    assert "scored with reviews: 3 runs" in capsys.readouterr().err
    (column,) = {row["dataset"] for row in rows if "[reviewed " in row["dataset"]}
    expected = {"First": (60, 80), "Second": (65, 85), "Other": (50, 67.5)}
    for model, (as_labelled, reviewed) in expected.items():
        assert value(rows, model, "RefCOCO") == as_labelled
        assert value(rows, model, column) == reviewed
        assert value(rows, model, "mean: Overall") == as_labelled
    seen = "answers seen by reviewers"
    others = [row for row in rows if row["dataset"] != column]
    assert [{name: row[name] for name in row if name != seen} for row in others] == before
    assert {row["model"] for row in rows if row[seen]} == {"First", "Second"}
    # Once more nothing is scored; without the flag nothing is shown.
    assert board(audited, "--reviews", str(reviews)) == rows
    assert "scored with reviews" not in capsys.readouterr().err
    assert board(audited) == before
    assert "not shown: 3 scores with reviews" in capsys.readouterr().err


CORRECTED = "FindIt_RefCOCO_testA_xyxy_json"


def with_corrected_copy(world: World) -> None:
    """Add a corrected copy of the table, with runs over it."""
    labels = [TRUE if i == 4 or i not in WRONG_ROWS else WRONG for i in range(ROWS)]
    rows = [query(i, f"{i}.jpg", f"object {i}", [box]) for i, box in enumerate(labels)]
    world.table("RefCOCO_testA", rows)
    for model, share in {"First": 5, "Second": 7}.items():
        world.run(model, CORRECTED, finding(share))


def test_a_corrected_copy_on_the_board_has_no_reviews(
    audited: World, capsys: pytest.CaptureFixture[str]
) -> None:
    reviews = reviews_of(audited)
    alone = board(audited, "--reviews", str(reviews))
    with_corrected_copy(audited)
    capsys.readouterr()
    rows = board(audited, "--reviews", str(reviews))
    columns = {row["dataset"] for row in rows if "[reviewed " in row["dataset"]}
    assert columns == {row["dataset"] for row in alone if "[reviewed " in row["dataset"]}
    note = "RefCOCO_testA is another table: 1 of 10 reviewed rows differ"
    assert f"without reviews: {note}" in capsys.readouterr().err
    page = str(audited.folder / "page.html")
    command = ["report", str(audited.runs), "--out", page, "--reviews", str(reviews)]
    assert main(command) == 0
    assert note in capsys.readouterr().err
    command = ["audit", str(audited.runs), "--data", "RefCOCO_testA", "--reviews", str(reviews)]
    assert main(command) == 0


def test_a_folder_with_a_corrected_copy_is_scored_whole(
    audited: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """In whatever order its files come; the copy has its score, without reviews."""
    reviews = reviews_of(audited)
    with_corrected_copy(audited)
    capsys.readouterr()
    assert main(["score", str(audited.runs), "--reviews", str(reviews)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    note = "without reviews: RefCOCO_testA is another table: 1 of 10 reviewed rows differ"
    assert printed.count(note) == 1
    assert f"{CORRECTED} First" in printed
    reviewed = {path.name.split(".")[0] for path in audited.runs.glob("*.reviewed-*")}
    assert not [name for name in reviewed if CORRECTED in name]
    assert len(reviewed) == 9  # Three files of each of three models
    # Beside no run of the table that was reviewed its rows have changed.
    copy = str(audited.runs / f"First_{CORRECTED}.json")
    assert main(["score", copy, "--reviews", str(reviews)]) == 2
    assert "row 4 of RefCOCO_testA has another image" in capsys.readouterr().err


def test_a_copy_of_a_table_that_is_gone_is_named(
    audited: World, capsys: pytest.CaptureFixture[str]
) -> None:
    reviews = reviews_of(audited)
    with_corrected_copy(audited)
    for path in audited.runs.glob(f"*_{NAME}*"):
        path.unlink()
    capsys.readouterr()
    assert main(["leaderboard", str(audited.runs), "--reviews", str(reviews)]) == 2
    assert "row 4 of RefCOCO_testA has another image" in capsys.readouterr().err


def test_voters_have_a_sign_and_no_rank_among_others(audited: World) -> None:
    rows = board(audited, "--reviews", str(reviews_of(audited)))
    ranks = {row["model"]: row["F1@0.5 rank"] for row in rows if "[reviewed " in row["dataset"]}
    assert ranks == {"First": "", "Second": "", "Other": "1"}
    out = audited.folder / "board"
    for name in ("leaderboard.md", "leaderboard.tex"):
        text = (out / name).read_text()
        assert "80.0 †" in text or r"80.0\,†" in text, name
        assert "67.5 †" not in text
        assert "reviewers saw the answers of First, Second, which gain by that" in text
    assert "[reviewed " in (out / "leaderboard.json").read_text()


def test_another_format_of_a_voters_model_votes_too(audited: World) -> None:
    audited.run("First", TEXT, finding(5))
    reviewer = Reviewer(NAME, (digest_of(audited, "Second"),))
    reviews = [reviewer.review(at, ReviewVerdict.MODEL, Answer((TRUE,))) for at in WRONG_ROWS]
    audit = reviewer.audit(list(WRONG_ROWS), models=["First", "Second"])
    path = write(audited.folder / "reviews.jsonl", *reviews, audits=[audit])
    scored = reviewed_runs(load_runs([audited.runs]), read_reviews([path]))
    voted = {(run.model, run.variant.format): run.voted for run in scored.runs}
    assert voted == {
        ("First", "xyxy_json"): True,
        ("First", "xyxy_text"): True,
        ("Second", "xyxy_json"): True,
        ("Other", "xyxy_json"): False,
    }


def test_random_rows_let_voters_be_ranked(audited: World) -> None:
    reviews = reviews_of(audited, random=[1, 2, 3, 5, 6, 7, 9, 10, 11])
    rows = board(audited, "--reviews", str(reviews))
    ranks = {row["model"]: row["F1@0.5 rank"] for row in rows if "[reviewed " in row["dataset"]}
    assert ranks == {"Second": "1", "First": "2", "Other": "3"}
    text = (audited.folder / "board" / "leaderboard.md").read_text()
    assert "9 random rows stand for 30 unlisted ones" in text
    assert "no rank" not in text


def test_reviews_with_another_hash_are_another_column(audited: World) -> None:
    first = reviews_of(audited)
    second = reviews_of(audited, "more.jsonl", random=[1, 2, 3])
    assert main(["score", str(audited.runs), "--reviews", str(first)]) == 0
    assert main(["score", str(audited.runs), "--reviews", str(second)]) == 0
    named = [str(path) for path in audited.runs.glob("*_score.reviewed-*.csv")]
    out = audited.folder / "board"
    assert main(["leaderboard", *named, "--out", str(out)]) == 0
    with (out / "leaderboard.csv").open() as lines:
        columns = {row["dataset"] for row in csv.DictReader(lines)}
    assert len([name for name in columns if name.startswith("RefCOCO [reviewed ")]) == 2


def test_scores_with_reviews_follow_runs_scored_again(audited: World) -> None:
    """More replies were added, and the run scored: its score with reviews is made again."""
    reviews = reviews_of(audited)
    board(audited, "--reviews", str(reviews))
    path = audited.runs / f"First_{NAME}.json"
    replies = json.loads(path.read_text())
    for reply in replies:
        reply["prediction"] = "[]"
    path.write_text(json.dumps(replies))
    assert main(["score", str(path)]) == 0
    rows = board(audited, "--reviews", str(reviews))
    (column,) = {row["dataset"] for row in rows if "[reviewed " in row["dataset"]}
    assert value(rows, "First", column) == 0


@pytest.mark.parametrize(
    "fact",
    every_nth_fast(
        [
            {"predictions_sha256": "0" * 64},
            {"table_sha256": "0" * 64},
            {"spaces": ({"kind": "unit", "source": "model table"},)},
            {"forced": ("something",)},
            {"thought_marks": ("<a>", "</a>")},
            {"reads_like": "Gemma 4"},
            {"scored_with": {"vlmeval_findit": "0"}},
            {"plugins": {"one": "1"}},
            {"scored_at": "2999-01-01T00:00:00+00:00"},
        ],
        3,
    ),
    ids=lambda fact: next(iter(fact)),
)
def test_a_score_with_reviews_shares_what_the_other_rests_on(
    fact: dict[str, Any], audited: World
) -> None:
    """Where the other says anything else now, or was made later, it is made again."""
    reviews = read_reviews([reviews_of(audited)])
    (run,) = load_runs([audited.runs / f"First_{NAME}.json"])
    (made,) = reviewed_runs([run], reviews).runs
    for when in (made.provenance.scored_at, "2001-01-01T00:00:00+00:00"):
        assert not reviewed_runs([with_facts(run, scored_at=when)], reviews).scored
    assert reviewed_runs([with_facts(run, **fact)], reviews).scored


def test_scores_with_reviews_force_what_the_others_forced(
    audited: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reviews change no run: what somebody went over once is gone over again."""
    path = audited.predict(
        "Forced", NAME, finding(3), change=lambda run: replace(run, rows=tuple(range(1, ROWS)))
    )
    reviews = str(reviews_of(audited))
    assert main(["score", str(path)]) != 0
    assert "--force" in capsys.readouterr().err
    assert main(["score", str(path), "--reviews", reviews]) == 0
    both = [run.provenance for run in load_runs([path, *audited.runs.glob("*_score.rev*.csv")])]
    assert [bool(each.reviews) for each in both] == [False, True]
    assert both[0].forced == both[1].forced != ()


@pytest.mark.parametrize("told", [("--thought-marks", "<a> </a>"), ("--reads-like", "Gemma 4")])
@pytest.mark.parametrize("space", [(), ("--space", "unit")], ids=["recorded", "another space"])
def test_scores_with_reviews_are_read_as_the_others(
    told: tuple[str, str], space: tuple[str, ...], audited: World
) -> None:
    name = "FindIt_RefCOCO_unconstrained_text"
    path = audited.predict("Free", name, lambda asked, generator: "[[0, 0, 5, 5]]")
    assert main(["score", str(path), *told, *space]) == 0
    (score,) = audited.runs.glob(f"*{name}_score{'.space-unit' if space else ''}.csv")
    for is_made in (True, False):
        scores = reviewed_runs(load_runs([score]), read_reviews([reviews_of(audited)]))
        assert bool(scores.scored) is is_made
        its = scores.runs[0].provenance
        assert [" ".join(its.thought_marks or ()), its.reads_like].count(told[1]) == 1


def test_scores_with_reviews_follow_the_space_of_the_others(audited: World) -> None:
    reviews = reviews_of(audited)
    files = RunFiles(audited.runs / f"First_{NAME}.json")
    files.identity.unlink()
    found = []
    for space in ("grid1000", "unit"):
        assert main(["score", str(files.predictions), "--space", space]) == 0
        (run,) = reviewed_runs(load_runs([files.predictions]), read_reviews([reviews])).runs
        found.append(run.metric_values["F1@0.5"])
    assert found == [80, 0]


def test_reviews_do_not_choose_the_reported_format(audited: World) -> None:
    """One format finds what is labelled, the other what is right."""

    def labelled(asked: FindItQuery, generator: np.random.Generator) -> str:
        boxes = [BoxToWrite(grid(asked.truth.boxes[0]), "", 0)]
        return write_boxes(boxes, parse(NAME).reply)

    def right(asked: FindItQuery, generator: np.random.Generator) -> str:
        return write_boxes([BoxToWrite(grid(TRUE), "", 0)], parse(TEXT).reply)

    audited.run("Both", NAME, labelled)
    audited.run("Both", TEXT, right)
    rows = board(audited, "--reviews", str(reviews_of(audited)))
    formats = {row["dataset"]: row["format"] for row in rows if row["model"] == "Both"}
    assert {name for dataset, name in formats.items() if "mean" not in dataset} == {"xyxy_json"}


def test_published_lists_have_no_voters_and_rank_all(audited: World) -> None:
    """As Ref-L4's lists: wrong expressions are left out, the other labels are right."""
    reviewer = Reviewer(NAME)
    reviews = [
        reviewer.review(
            at,
            ReviewVerdict.EXCLUDE if at in WRONG_ROWS else ReviewVerdict.LABEL,
            drawn=RowChoice.PUBLISHED,
        )
        for at in range(ROWS)
    ]
    path = write(audited.folder / "published.jsonl", *reviews)
    rows = board(audited, "--reviews", str(path))
    (column,) = {row["dataset"] for row in rows if "[reviewed " in row["dataset"]}
    assert value(rows, "First", "RefCOCO") == 60
    assert value(rows, "First", column) == pytest.approx(80)
    ranks = {row["model"]: row["F1@0.5 rank"] for row in rows if row["dataset"] == column}
    assert ranks == {"Second": "1", "First": "2", "Other": "3"}
    assert "†" not in (audited.folder / "board" / "leaderboard.md").read_text()
    pair = [str(audited.runs / f"{model}_{NAME}.json") for model in ("First", "Other")]
    assert main(["compare", *pair, "--reviews", str(path)]) == 0


# --- compare --------------------------------------------------------------------------------------


def compared(audited: World, *names: str, flags: Sequence[str] = ()) -> list[dict[str, Any]]:
    out = audited.folder / "differences.json"
    assert main(["compare", *names, *flags, "--json", str(out)]) == 0
    written: list[dict[str, Any]] = json.loads(out.read_text())
    return written


def test_compare_shows_both_differences(audited: World, capsys: pytest.CaptureFixture[str]) -> None:
    pair = [str(audited.runs / f"{model}_{NAME}.json") for model in ("First", "Other")]
    random = [at for at in range(ROWS) if at not in WRONG_ROWS]
    reviews = reviews_of(audited, random=random)
    alone = compared(audited, *pair)
    both = compared(audited, *pair, flags=["--reviews", str(reviews)])
    assert both[:1] == alone
    reviewed = {row["metric"]: row for row in both[1]["metrics"]["rows"]}["F1@0.5"]
    assert reviewed["A - B"]["value"] == pytest.approx(80 - 67.5)
    assert both[1]["a"]["reviews"]["voted"] is True
    assert both[1]["b"]["reviews"] | {"voted": True} == both[1]["a"]["reviews"]
    printed = capsys.readouterr().out
    assert f"A: First on {NAME} [reviewed " in printed
    assert "reviewers saw its answers" in printed


def test_folders_are_compared_by_dataset_with_and_without(audited: World) -> None:
    reviews = reviews_of(audited)
    audited.table("PhraseCut", [query(i, f"{i}.jpg") for i in range(6)])
    sides = []
    for model in ("First", "Second"):
        audited.run(model, CUT, speaking(CUT, 1.0))
        folder = audited.folder / model
        folder.mkdir()
        sides.append(str(folder))
        for path in audited.runs.glob(f"{model}_*"):
            path.rename(folder / path.name)
    alone = compared(audited, *sides)
    both = compared(audited, *sides, flags=["--reviews", str(reviews)])
    *datasets, mean = alone
    assert both[:2] == datasets
    assert (len(both), both[-1]) == (4, mean), "reviews are no further question of the mean"
    assert "reviews" in both[2]["a"]


@pytest.mark.parametrize(
    ("models", "random", "says"),
    [
        (("First", "Other"), (), "reviewers saw the answers of First, not those of Other"),
        (("First", "Other"), (1, 2, 3), None),
        (("First", "Second"), (), None),
    ],
    ids=["voter and other", "random rows", "two voters"],
)
def test_a_voter_is_compared_with_another_only_with_random_rows(
    models: tuple[str, str],
    random: Sequence[int],
    says: str | None,
    audited: World,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reviews = reviews_of(audited, random=random)
    pair = [str(audited.runs / f"{model}_{NAME}.json") for model in models]
    status = main(["compare", *pair, "--reviews", str(reviews)])
    if says is None:
        assert status == 0
    else:
        assert status == 2
        assert says in capsys.readouterr().err


def test_scores_with_other_reviews_are_not_compared(
    audited: World, capsys: pytest.CaptureFixture[str]
) -> None:
    first = reviews_of(audited)
    second = reviews_of(audited, "more.jsonl", random=[1, 2, 3])
    named = {}
    for reviews in (first, second):
        known = set(audited.runs.glob("*_score.reviewed-*.csv"))
        assert main(["score", str(audited.runs), "--reviews", str(reviews)]) == 0
        named[reviews] = set(audited.runs.glob("*_score.reviewed-*.csv")) - known
    (one,) = (path for path in named[first] if path.name.startswith("First"))
    (other,) = (path for path in named[second] if path.name.startswith("Second"))
    plain = audited.runs / f"Second_{NAME}.json"
    capsys.readouterr()
    for right, kind in ((other, "is reviewed "), (plain, "is not reviewed")):
        assert main(["compare", str(one), str(right)]) == 2
        error = capsys.readouterr().err
        assert kind in error
        assert "--reviews FILE" in error
    same = next(path for path in named[first] if path.name.startswith("Second"))
    assert main(["compare", str(one), str(same)]) == 0


def test_exports_and_audits_take_scores_without_reviews(
    audited: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", str(audited.runs), "--reviews", str(reviews_of(audited))]) == 0
    named = [str(path) for path in audited.runs.glob("*_score.reviewed-*.csv")]
    capsys.readouterr()
    out = str(audited.folder / "coco")
    assert main(["export", *named, "--to", "coco", "--out", out]) == 2
    assert f"Name its predictions: {audited.runs}" in capsys.readouterr().err
    assert main(["audit", *named]) == 2
    assert "a score with reviews" in capsys.readouterr().err


# --- report ---------------------------------------------------------------------------------------


def test_a_report_has_both_and_draws_the_accepted_answer(audited: World) -> None:
    page = audited.folder / "page.html"
    reviews = reviews_of(audited)
    assert main(["report", str(audited.runs), "--out", str(page), "--reviews", str(reviews)]) == 0
    text = page.read_text()
    assert "RefCOCO [reviewed " in text
    data = json.loads(text.split('id="data">', 1)[1].split("</script>", 1)[0])
    shown = {}
    for card in data["cards"]:
        run = data["runs"][card["run"]]
        if (run["model"], card["index"]) == ("First", 4):
            (truth,) = (box for box in card["frames"][0]["boxes"] if box[0] == "truth")
            shown["[reviewed" in run["dataset"]] = tuple(truth[1:5])
    assert shown == {False: WRONG, True: TRUE}
    # Voters are neither drawn as the best of the column, nor paired with another model.
    pairs = {
        (data["runs"][pair["left"]]["model"], data["runs"][pair["right"]]["model"])
        for pair in data["pairs"]
        if "[reviewed" in data["runs"][pair["left"]]["dataset"]
    }
    assert pairs in ({("First", "Second")}, {("Second", "First")})
