"""Which format is the best: search, sweep, leaderboard and report name the same format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from few_fast import few_fast
from grids import grid
from scored_runs import CallResult, World, query, saying, speaking, with_facts

from vlmeval_findit.analysis import BestFormats, FormatAverage, choose_best_format, rank_formats
from vlmeval_findit.benchmarks.findit import BENCHMARK, parse
from vlmeval_findit.cli import print_doubts, report_formats
from vlmeval_findit.leaderboard import make_board
from vlmeval_findit.protocol import FAILED_ANSWER
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import CellResult, Run, load_runs


def saying_at(text: str, digits: str, answer: CallResult) -> CallResult:
    """Return a model that says a text on rows whose index ends with one of the digits."""
    return lambda item, rng: text if str(item.index)[-1] in digits else answer(item, rng)


def results_of(runs: Iterable[Run]) -> list[CellResult]:
    return [CellResult("M", r.variant, r.sums, len(r.rows), r.failed, r.path, 100) for r in runs]


def model(written: str, loose: float = 0) -> CallResult:
    return speaking(f"FindIt_Pascal_{written}", 1.0, loose)


def but_for_the_first(answer: CallResult) -> CallResult:
    return lambda item, rng: answer(item, rng) if item.index else "[]"


# What each format answers, and which is the best.
CASES = {
    # Of 100 calls 40 failed; the rest is perfect: 100 % of what was answered, but 75 % of all.
    "failures": (
        {
            "xyxy_text": lambda name: saying_at(f"{FAILED_ANSWER} via API.", "0123", model(name)),
            "xywh_json": lambda name: saying_at("[]", "0", model(name)),
        },
        "xywh_json",
    ),
    "mIoU decides": (
        {"xyxy_text": lambda name: model(name, 8), "yxhw_json": lambda name: model(name, 2)},
        "yxhw_json",
    ),
    # By name cxcywh would be first.
    "the grid decides": (
        {"cxcywh_json": model, "xyxy_json_bbox_2d": model, "yxyx_text": model},
        "xyxy_json_bbox_2d",
    ),
}


@pytest.mark.parametrize("case", few_fast(CASES, 1))
def test_everything_names_the_same_format(
    case: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers, expected = CASES[case]
    world.table("Pascal", [query(i, picture=f"{i // 2}.jpg") for i in range(100)])
    for written, answer in answers.items():
        world.predict("M", f"FindIt_Pascal_{written}", answer(written))
    runs = load_runs([world.runs])
    results = results_of(runs)
    assert choose_best_format(results).format == expected
    report_formats(results, tmp_path / "formats.yaml")
    # The value that formats are ranked by has one name, and that name one meaning.
    whole = "F1@0.5 (failed calls as misses)"
    headline = whole if any(result.failed for result in results) else "F1@0.5"
    said = " ".join(capsys.readouterr().out.split())
    best = f"M: best format of {len(answers)} on Pascal (100 queries): {expected}"
    assert f"{best} ({headline} " in said
    written = yaml.safe_load((tmp_path / "formats.yaml").read_text(encoding="utf-8"))
    of_model = written["models"]["M"]["FindIt"]
    ranked_by = {each["format"]: each[headline] for each in of_model["averages"]}
    for cell in of_model["cells"]:
        value = cell.get(whole, cell["F1@0.5"])
        assert ranked_by[parse(cell["dataset"]).format] == pytest.approx(value)
    assert BestFormats(tmp_path / "formats.yaml").models == {"M": {"FindIt": expected}}
    board = make_board(runs)
    assert board.cells["M", "Pascal"].run.variant.format == expected
    page = make_page(board, datetime(2026, 1, 2, tzinfo=UTC))
    assert f"<code>{expected}</code> on Pascal: <b>M</b>" in page
    [label] = re.findall(r'"description":"F1@0.5[^"]* by rep[^"]*; reported: M ([^"]+)"', page)
    assert label.removesuffix(" bbox").replace(" ", "_") == expected


# The formats that answer all of 40 queries, all but one, and none; and what is said
AS_GOOD = {
    "one alone": ({"xyxy_json"}, set(), ()),
    "a tie": (
        {"xyxy_text", "xyxy_json", "xywh_json"},
        set(),
        ("a tie, of which it is the first: xyxy_json, xywh_json have the same values",),
    ),
    "noise": (
        {"xyxy_json"},
        {"xywh_json"},
        ("within noise: xywh_json is not told apart from it",),
    ),
    "both": (
        {"xyxy_json", "xyxy_text"},
        {"xywh_json"},
        ("a tie, of which it is the first: ", "within noise: xywh_json is not told apart"),
    ),
}


@pytest.mark.parametrize("case", few_fast(AS_GOOD, 4))
def test_formats_as_good_as_the_best_are_named(
    case: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, nearly, expected = AS_GOOD[case]
    world.table("Pascal", [query(i, picture=f"{i // 2}.jpg") for i in range(40)])
    for written in ("xyxy_json", "xyxy_text", "xywh_json"):
        answer = saying("[]")
        if written in right:
            answer = model(written)
        elif written in nearly:
            answer = but_for_the_first(model(written))
        world.predict("M", f"FindIt_Pascal_{written}", answer)
    report_formats(results_of(load_runs([world.runs])), tmp_path / "formats.yaml")
    said = " ".join(capsys.readouterr().out.split())
    assert ("a tie" in said, "within noise" in said) == (
        any("a tie" in each for each in expected),
        any("within noise" in each for each in expected),
    )
    for each in expected:
        assert each in said


# What is said of runs, by the field, with its counts
DOUBTS = {
    "coords_doubt": "declared {}, but the answers follow pixels ({} of 12 agree)",
    "reply_note": "{1} of 12 replies are empty, {0}",
    "stated_note": "read in {}, as stated, {}",
}


@pytest.mark.parametrize("field", DOUBTS)
def test_a_doubt_is_said_of_its_runs_alone(
    field: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of xywh is not said of "xyxy and 3 more"; counts make no other doubt."""
    results = []
    for at, written in enumerate(("xyxy_json", "xyxy_text", "xywh_json", "xywh_text")):
        run = world.run("M", f"FindIt_Pascal_{written}", saying("[]"))
        count = at if field != "stated_note" else "x"
        text = DOUBTS[field].format(written.partition("_")[0], count)
        results += [replace(each, **{field: text}) for each in results_of([run])]
    print_doubts(results)
    said = " ".join(capsys.readouterr().out.split())
    for order in ("xyxy", "xywh"):
        assert f"M FindIt_Pascal_{order}_json and 1 more: " in said
        line = said.partition(f"M FindIt_Pascal_{order}_json and 1 more: ")[2].partition(" M ")[0]
        assert order in line
        assert {"xyxy": "xywh", "xywh": "xyxy"}[order] not in line


def test_no_format_is_the_best_of_formats_without_a_hit(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FindIt_Pascal_xyxy_json", "FindIt_Pascal_xyxy_text"):
        world.predict("M", name, saying("[]"))
    report_formats(results_of(load_runs([world.runs])), tmp_path / "formats.yaml")
    assert capsys.readouterr().out == "M: no best format: F1@0.5 is 0 in every format\n"
    assert not (tmp_path / "formats.yaml").exists()


# What makes a run one that no board compares with the others, and what is said of it
APART = {
    "scored_with": ({"vlmeval_findit": "0.9"}, "were scored by two scorers"),
    "table_sha256": ("0" * 64, "were asked about two versions of the table"),
    "prompts": ("others-1", "was asked in the prompts "),
}


@pytest.mark.parametrize("key", APART)
@pytest.mark.parametrize("race", [False, True])
def test_runs_that_no_board_compares_choose_no_format(
    key: str, race: bool, world: World, tmp_path: Path, capsys, monkeypatch
) -> None:
    names = [f"FindIt_Pascal_{name}" for name in ("xyxy_json", "xyxy_text", "xywh_json")]
    runs = [world.run("M", name, speaking(name, 0.5 + at / 10)) for at, name in enumerate(names)]
    value, why = APART[key]
    runs[-1] = with_facts(runs[-1], **{key: value})
    assert len(make_board(runs).excluded) == 1
    loaded = {run.files.provenance: run for run in runs}
    monkeypatch.setattr("vlmeval_findit.analysis.format_file.load_run", loaded.__getitem__)
    report_formats(results_of(runs), tmp_path / "formats.yaml", race)
    printed = " ".join(capsys.readouterr().out.split())
    assert "M: no best format on FindIt: " in printed
    assert why in printed
    assert not (tmp_path / "formats.yaml").exists()


# --- the rule -------------------------------------------------------------------------------------

Sums = Mapping[str, float]


def sums_of(f1: float, miou: float = 40, adherence: float = 100) -> Sums:
    """Return the sums of a run with these metrics, failed calls counted as misses."""
    sums = {"n_pred": 100, "n_gt": 100, "responses": 100, "n_gt_failed": 0}
    return {**sums, "tp": f1, "iou_sum": miou, "adherent": adherence}


def ranked_in(scored: Iterable[tuple[str, Sums]]) -> list[FormatAverage]:
    return rank_formats(BENCHMARK, ((parse(name), sums) for name, sums in scored))


def test_formats_of_the_most_columns_go_first() -> None:
    scored = [
        ("FindIt_Pascal_xyxy_text", sums_of(10)),
        ("FindIt_SVG_xyxy_text", sums_of(20)),
        ("FindIt_Pascal_yxyx_text", sums_of(99)),
        ("FindIt_iGround_f8_xywh_text", sums_of(30)),
        ("FindIt_iGround_f1_xywh_text", sums_of(10)),
        ("FindIt_iGround_caption_f1_xywh_text", sums_of(20)),
    ]
    first = BENCHMARK.ranking[0].name
    actual = [(item.format, item.datasets, item.metric_values[first]) for item in ranked_in(scored)]
    assert actual == [("xywh_text", 3, 20), ("xyxy_text", 2, 15), ("yxyx_text", 1, 99)]


def test_a_format_with_more_datasets_takes_none_from_others() -> None:
    """Formats are compared over what those of as many datasets share."""
    scored = [(f"FindIt_{name}_xyxy_text", sums_of(10)) for name in ("Pascal", "D3", "SVG")]
    scored += [
        ("FindIt_Pascal_yxyx_text", sums_of(20)),
        ("FindIt_PhraseCut_yxyx_text", sums_of(40)),
    ]
    first = BENCHMARK.ranking[0].name
    actual = [(item.format, item.metric_values[first]) for item in ranked_in(scored)]
    assert actual == [("xyxy_text", 10), ("yxyx_text", 30)]


@pytest.mark.parametrize("other", ["SVG", "RefCOCO", "Pascal_multilabel"])
@pytest.mark.parametrize("shared", [["Pascal"], ["Pascal", "D3"]])
@pytest.mark.parametrize(
    ("better", "worse"), [("xyxy_text", "yxyx_text"), ("yxyx_text", "xyxy_text")]
)
def test_formats_are_compared_over_shared_datasets(
    other: str, shared: list[str], better: str, worse: str
) -> None:
    """An easy dataset that only one of them has makes no format better."""
    scored = [(f"FindIt_PhraseCut_{better}", sums_of(0)), (f"FindIt_{other}_{worse}", sums_of(95))]
    for name in shared:
        scored += [(f"FindIt_{name}_{better}", sums_of(60))]
        scored += [(f"FindIt_{name}_{worse}", sums_of(50))]
    order = ranked_in(scored)
    assert [item.format for item in order] == [better, worse]
    assert [item.datasets for item in order] == [len(shared) + 1] * 2


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (sums_of(50.1), sums_of(50.0, miou=99, adherence=100)),
        (sums_of(50.04, miou=40.1), sums_of(50.0, miou=40.0)),
        (sums_of(50, 40, 90.1), sums_of(50, 40.04, 90.0)),
    ],
)
def test_ties_are_broken_in_order(better: Sums, worse: Sums) -> None:
    late = "FindIt_Pascal_yxhw_json"
    early = "FindIt_Pascal_xyxy_text"
    assert ranked_in([(early, worse), (late, better)])[0].format == "yxhw_json"
    assert ranked_in([(early, better), (late, worse)])[0].format == "xyxy_text"


def test_the_grids_order_decides_last() -> None:
    names = [v.name for v in grid() if v.table == "Pascal_multilabel"]
    actual = ranked_in((n, sums_of(50 + at % 2 / 25)) for at, n in enumerate(reversed(names)))
    places = [item.variant.format_place for item in actual]
    assert places == sorted(places)
    assert len(places) == len({parse(name).format for name in names})
    assert actual[0].format == "xyxy_text"
