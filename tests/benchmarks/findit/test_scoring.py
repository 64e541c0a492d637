"""From a prediction file to a score: values by hand, coordinate spaces, the files it leaves."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.benchmarks.findit.annotation_tables import load_task, write_table
from vlmeval_findit.benchmarks.findit.box_metrics import F1_FAILED_MISSED, METRICS
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery
from vlmeval_findit.boxes.box_records import Truth
from vlmeval_findit.boxes.spaces import SpaceError
from vlmeval_findit.core.identity import Answering, Identity, IdentityError, write_identity
from vlmeval_findit.core.predictions import PredictionError
from vlmeval_findit.core.replies import FAILED, Recorded
from vlmeval_findit.core.run_files import RunFiles
from vlmeval_findit.core.settings import Settings, settings_from
from vlmeval_findit.runs.run_identity import run_identity
from vlmeval_findit.runs.run_score import RunScore, score_file
from vlmeval_findit.runs.score_files import write_score

WIDTH, HEIGHT = 200, 100
BOX = (20.0, 10.0, 120.0, 60.0)
"""The box of every query: [100, 100, 600, 600] in thousandths."""

SVG = "FindIt_SVG_xyxy_text"
PASCAL = "FindIt_Pascal_xyxy_json"


def query(index: int, *boxes: tuple[float, ...]) -> FindItQuery:
    truth = Truth(boxes, (0,) * len(boxes))  # type: ignore[arg-type]
    return FindItQuery(index, "dog", WIDTH, HEIGHT, (f"{index}.jpg",), truth)


TABLES = {
    "SVG": [query(i, BOX) for i in range(4)],
    "Pascal": [query(0, BOX), query(1, BOX, (150, 50, 190, 90)), query(2, BOX), query(3, BOX, BOX)],
}


@pytest.fixture(autouse=True)
def _tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, queries in TABLES.items():
        write_table(tmp_path / "tables", name, queries, {"source": "made up"})
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path / "tables"))


@pytest.fixture
def predicted(tmp_path: Path):
    """Writes a prediction file: texts by index, with what was recorded for each."""

    def write(
        dataset: str,
        texts: Sequence[str] | Mapping[int, str],
        model: str = "Qwen3-VL",
        spaces: Sequence[Any] = (),
    ) -> Path:
        texts = texts if isinstance(texts, Mapping) else dict(enumerate(texts))
        rows: list[dict[str, Any]] = [{"index": i, "prediction": t} for i, t in texts.items()]
        for row, space in zip(rows, spaces, strict=False):
            row["extra_records"] = Recorded(space=space).as_json()
        path = tmp_path / "run" / f"{model}_{dataset}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(rows))
        return path

    return write


RIGHT = "[100, 100, 600, 600]"
HALF = "[100, 100, 600, 350]"
WRONG = "[0, 0, 10, 10]"

# --- values ---------------------------------------------------------------------------------------


def test_values_by_hand(predicted) -> None:
    """Three of four say a box, two of them are right (IoU 1 and 0.5)."""
    run = score_file(predicted(SVG, [RIGHT, HALF, WRONG, "no dog"]))
    assert (run.sums["tp"], run.sums["n_pred"], run.sums["n_gt"]) == (2, 3, 4)
    assert run.metric_values["Precision"] == pytest.approx(200 / 3)
    assert run.metric_values["Recall"] == pytest.approx(50)
    assert run.metric_values["F1@0.5"] == pytest.approx(400 / 7)
    assert run.metric_values["mIoU"] == pytest.approx(37.5)
    assert run.metric_values["Adherence"] == pytest.approx(75)
    assert run.reasons == {"no box": 1}
    assert run.spaces[0]["source"] == "model table: Qwen3-VL"


def test_failed_calls_are_counted_apart(predicted) -> None:
    run = score_file(predicted(SVG, [RIGHT, FAILED, FAILED + " via API.", WRONG]))
    assert (run.sums["responses"], run.sums["failed"], run.sums["n_gt"]) == (2, 2, 2)
    assert run.metric_values["F1@0.5"] == 50
    assert run.metric_values["Adherence"] == 100
    assert F1_FAILED_MISSED.value(run.sums) == pytest.approx(100 / 3)
    assert run.reasons == {"failed call": 2}


# --- the coordinate space -------------------------------------------------------------------------

UNIT, PIXELS = {"kind": "unit"}, {"kind": "pixels"}


def sources(run: RunScore) -> list[tuple[str, str]]:
    return [(s["kind"], s["source"]) for s in run.spaces]


def record(path: Path, space: Mapping[str, Any] | None = None, **fields: Any) -> Identity:
    """Write the identity of a run next to its predictions."""
    model, _, rest = path.stem.partition("_FindIt_")
    task = load_task(f"FindIt_{rest}")
    built = run_identity(task, model, Answering("Test"), task.queries, space)
    built = replace(built, **fields)
    write_identity(RunFiles(path).identity, built)
    return built


def test_what_goes_before_what(predicted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of the run or with the reply, the user's setting, the environment, the table."""
    path = predicted(SVG, [RIGHT])
    assert sources(score_file(path)) == [("grid1000", "model table: Qwen3-VL")]
    monkeypatch.setenv("FINDIT_SPACE", "unit")
    assert sources(score_file(path)) == [("unit", "FINDIT_SPACE")]
    settings = settings_from({"space": {"kind": "claude_standard"}, "nproc": 4})
    assert sources(score_file(path, settings)) == [("claude_standard", "setting")]
    monkeypatch.delenv("FINDIT_SPACE")
    record(path, {"kind": "openai_high"})
    assert sources(score_file(path)) == [("openai_high", "recorded by the run")]
    path = predicted(PASCAL, ["[]"], spaces=[PIXELS])
    assert sources(score_file(path)) == [("pixels", "recorded by the run")]


@pytest.mark.parametrize("spaces", [[], [PIXELS, PIXELS]], ids=["of the run", "of the replies"])
def test_a_space_that_contradicts_the_record_is_refused(
    spaces: list[Any], predicted, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = predicted(SVG, ["[20, 10, 120, 60]"] * 2, spaces=spaces)
    if not spaces:
        record(path, PIXELS)
    assert score_file(path).metric_values["F1@0.5"] == 100
    with pytest.raises(IdentityError, match=r'recorded {"kind": "pixels"}, now {"kind": "unit"}'):
        score_file(path, Settings("unit"))
    forced = score_file(path, Settings("unit", force=True))
    assert forced.metric_values["F1@0.5"] == 0
    assert forced.forced == ('coordinate space: recorded {"kind": "pixels"}, now {"kind": "unit"}',)
    assert sources(forced) == [("unit", "setting")]
    monkeypatch.setenv("FINDIT_SPACE", "unit")
    for variable in ("FINDIT_SPACE", "FINDIT_FORCE"):
        # Forced or not: an environment variable never goes before a record.
        monkeypatch.setenv(variable, "unit" if variable == "FINDIT_SPACE" else "1")
        with pytest.raises(IdentityError, match=r"(?s)FINDIT_SPACE.*unset it"):
            score_file(path)
    monkeypatch.setenv("FINDIT_SPACE", "pixels")
    assert score_file(path).forced == ()


def test_a_reply_in_another_space_than_its_run_is_refused(predicted) -> None:
    path = predicted(SVG, ["[20, 10, 120, 60]", RIGHT], spaces=[PIXELS, {"kind": "grid1000"}])
    record(path, PIXELS)
    with pytest.raises(IdentityError, match="coordinate space of row 1: recorded"):
        score_file(path)


def test_another_table_than_was_asked_is_refused(predicted) -> None:
    path = predicted(SVG, [RIGHT])
    record(path, table_sha256="ab" * 32)
    with pytest.raises(IdentityError, match=r"SHA-256 of the table: recorded abab.*SVG\.tsv"):
        score_file(path)
    assert "SHA-256" in score_file(path, Settings(force=True)).forced[0]


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("label", "another", "label of row 0: recorded another, now thing 0"),
        ("width", WIDTH + 1, f"width of row 0: recorded {WIDTH + 1}, now {WIDTH}"),
    ],
)
def test_predictions_that_say_another_query_than_the_table(
    column: str, value: Any, says: str, predicted
) -> None:
    path = predicted(SVG, [RIGHT])
    query = load_task(SVG).queries[0]
    says = says.replace("thing 0", query.label)
    (row,) = json.loads(path.read_text())
    right = {"label": query.label, "width": float(WIDTH), "height": str(HEIGHT)}
    path.write_text(json.dumps([{**row, **right}]))
    assert score_file(path).metric_values["F1@0.5"] == 100
    path.write_text(json.dumps([{**row, **right, column: value}]))
    with pytest.raises(IdentityError) as error:
        score_file(path)
    assert says in str(error.value)


def test_a_file_of_any_name_is_scored_where_its_run_or_the_user_says_what_it_is(predicted) -> None:
    path = predicted(SVG, [RIGHT])
    free = path.rename(path.with_name("mine.json"))
    with pytest.raises(PredictionError, match="say --data"):
        score_file(free)
    with pytest.raises(SpaceError, match="'mine' is not known"):
        score_file(free, dataset=SVG)
    run = score_file(free, Settings("grid1000"), dataset=SVG)
    assert (run.model, run.task.name, run.metric_values["F1@0.5"]) == ("mine", SVG, 100)
    built = run_identity(run.task, "Qwen3-VL", Answering(), [0], {"kind": "grid1000"})
    write_identity(RunFiles(free).identity, built)
    run = score_file(free)
    assert (run.model, run.task.name, run.metric_values["F1@0.5"]) == ("Qwen3-VL", SVG, 100)


def test_every_reply_in_the_space_that_was_recorded_with_it(predicted) -> None:
    texts = ["[0.1, 0.1, 0.6, 0.6]", "[20, 10, 120, 60]", RIGHT]
    run = score_file(predicted(SVG, texts, spaces=[UNIT, PIXELS]))
    assert run.metric_values["F1@0.5"] == 100
    assert sources(run) == [
        ("unit", "recorded by the run"),
        ("pixels", "recorded by the run"),
        ("grid1000", "model table: Qwen3-VL"),
    ]


def test_an_unknown_model_is_refused_with_the_command_to_type(predicted) -> None:
    path = predicted(SVG, [RIGHT], model="Mystery-7B")
    with pytest.raises(SpaceError) as error:
        score_file(path)
    message = str(error.value)
    assert "'Mystery-7B' is not known, and it is not guessed" in message
    for kind in ("grid1000", "unit", "pixels", "openai_high", "smart_resize"):
        assert f"  {kind} " in message
    assert f"python run_findit.py score --space SPACE {path}" in message
    assert score_file(path, Settings(space="grid1000")).metric_values["F1@0.5"] == 100


# --- the files of a score -------------------------------------------------------------------------

BROKEN = '[{"bbox": [100, 100, 600, 600]}, {"box": []}]'


@pytest.fixture
def scored(predicted) -> tuple[RunScore, Path]:
    texts = ['[{"bbox": [100, 100, 600, 600]}]', BROKEN, FAILED]
    path = predicted(PASCAL, texts, spaces=[{"kind": "grid1000"}] * 3)
    record(path, {"kind": "grid1000"}, rows=(0, 1, 2), left_out=(3,))
    return score_file(path), path


def test_the_score_is_a_single_row(scored) -> None:
    run, path = scored
    files = write_score(run, path)
    assert files.score.name == f"Qwen3-VL_{PASCAL}_score.csv"
    with files.score.open(newline="") as f:
        (row,) = csv.DictReader(f)
    assert (row["model"], row["dataset"], row["space"]) == ("Qwen3-VL", PASCAL, "grid1000")
    assert [row[name] for name in (metric.name for metric in METRICS)] == [
        "80.0000", "66.6667", "50.0000", "100.0000", "66.6667", "80.0000", "", "",
    ]  # fmt: skip
    assert row["F1@0.5 (failed calls as misses)"] == "66.6667"
    counts = {"rows": 4, "scored": 3, "answered": 2, "failed calls": 1, "left out": 1, "boxes": 3}
    assert {name: int(row[name]) for name in counts} == counts
    assert (row["predicted"], row["found"]) == ("2", "2")
    assert row["prompts"].startswith("findit-own-")


def test_details_hold_every_query(scored) -> None:
    run, path = scored
    files = write_score(run, path)
    rows = [json.loads(line) for line in files.details.read_text().splitlines()]
    assert rows[1] == {
        "index": 1,
        "label": "dog",
        "image": "1.jpg",
        "failed": False,
        "adherent": False,
        "reason": "wrong key",
        "boxes": [[20.0, 10.0, 120.0, 60.0]],
        "ious": [1.0, 0.0],
        "hits": [True, False],
        "tp": 1,
        "n_pred": 1,
        "n_gt": 2,
        "assigned": [0, None],
        "source": "1.jpg",
        "sums": {
            "responses": 1,
            "adherent": 0,
            "failed": 0,
            "tp": 1,
            "n_pred": 1,
            "n_gt": 2,
            "n_gt_failed": 0,
            "iou_sum": 1.0,
            "lost: not readable": 1,
        },
        "errors": [{"kind": "not readable", "box": None, "object": 1, "size": "medium"}],
    }
    assert [row["index"] for row in rows] == [0, 1, 2]
    assert (rows[2]["reason"], rows[2]["adherent"]) == ("failed call", False)


@pytest.mark.filterwarnings("error")
def test_boxes_that_are_not_finite_are_null_in_the_details(predicted) -> None:
    """Every line is JSON by the standard, which knows no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = '[{"bbox": [1e308, 1, 1e308, 2]}]'
    path = predicted(PASCAL, [text], spaces=[UNIT])
    details = write_score(score_file(path), path).details.read_text()
    row = json.loads(details, parse_constant=refuse)
    assert row["boxes"] == [[None, 100.0, None, 200.0]]


def test_all_conflicts_are_listed_at_once(predicted) -> None:
    """The name, the rows and the space of a run in a single message."""
    path = predicted(SVG, [RIGHT, RIGHT])
    record(path, {"kind": "unit"}, rows=(0,), model="Another")
    with pytest.raises(IdentityError) as refused:
        score_file(path, Settings("pixels"))
    reply = str(refused.value)
    assert "model: recorded Another, now Qwen3-VL" in reply
    assert "rows: recorded 0, now also 1" in reply
    assert 'coordinate space: recorded {"kind": "unit"}, now {"kind": "pixels"}' in reply
    run = score_file(path, Settings("pixels", force=True))
    assert len(run.forced) == 3


def test_the_settings_of_a_space_are_applied(predicted) -> None:
    """200 x 100 within 28 * 28 to 40,000 pixels is 196 x 112."""
    space = {"kind": "smart_resize", "min_pixels": 784, "max_pixels": 40_000}
    x, y = 196 / WIDTH, 112 / HEIGHT
    text = f"[{20 * x:.3f}, {10 * y:.3f}, {120 * x:.3f}, {60 * y:.3f}]"
    run = score_file(predicted(SVG, [text], spaces=[space]))
    assert run.metric_values["mIoU"] == pytest.approx(100, abs=0.01)


def test_the_provenance_of_a_score(scored) -> None:
    run, path = scored
    facts = json.loads(write_score(run, path).provenance.read_text())
    assert facts["variant"]["name"] == PASCAL
    assert facts["spaces"] == [{"kind": "grid1000", "source": "recorded by the run"}]
    assert facts["table"]["file"] == "Pascal.tsv"
    assert facts["table"]["sha256"] == facts["identity"]["table_sha256"]
    assert facts["table"]["meta"]["source"] == "made up"
    assert facts["identity"]["left_out"] == "3"
    assert len(facts["identity"]["prompt_hash"]) == 64
    assert facts["digest"] == run.identity.digest
    assert facts["predictions"]["file"] == path.name
    assert facts["predictions"]["rows_missing"] == [3]
    assert facts["reasons"] == {"wrong key": 1, "failed call": 1}
    assert {"vlmeval_findit", "python", "numpy"} == set(facts["scored_with"]) - {"scipy"}
