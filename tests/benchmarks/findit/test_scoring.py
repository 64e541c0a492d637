"""From a prediction file to a score: values by hand, coordinate spaces, the files it leaves."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.benchmarks.findit import (
    F1_FAILED_MISSED,
    METRICS,
    FindItQuery,
    write_table,
)
from vlmeval_findit.boxes import SpaceError, Truth
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import (
    FAILED_ANSWER,
    Answering,
    DatasetNameError,
    Identity,
    IdentityError,
    ReplyRecord,
    Settings,
    settings_from,
)
from vlmeval_findit.scoring import RunScore, run_identity, score_file, write_score
from vlmeval_findit.storage import PredictionError, RunFiles, record_text, write_identity

WIDTH, HEIGHT = 200, 100
BOX = (20.0, 10.0, 120.0, 60.0)  # of every query: [100, 100, 600, 600] in thousandths
RIGHT = "[100, 100, 600, 600]"
HALF = "[100, 100, 600, 350]"
WRONG = "[0, 0, 10, 10]"
IN_PIXELS = "[20, 10, 120, 60]"
IN_UNITS = "[0.1, 0.1, 0.6, 0.6]"
GRID = {"kind": "grid1000"}
UNIT = {"kind": "unit"}
PIXELS = {"kind": "pixels"}
SVG = "FindIt_SVG_xyxy_text"
PASCAL = "FindIt_Pascal_xyxy_json"

Predict = Callable[..., Path]


def query(index: int, *boxes: tuple[float, ...]) -> FindItQuery:
    truth = Truth(boxes, (0,) * len(boxes))  # type: ignore[arg-type]
    return FindItQuery(index, "dog", WIDTH, HEIGHT, (f"{index}.jpg",), truth)


@pytest.fixture
def predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Predict:
    """Writes a prediction file: texts, and the space that was recorded with each."""
    tables = tmp_path / "tables"
    write_table(tables, "SVG", [query(i, BOX) for i in range(4)], {"source": "made up"})
    pascal = [(BOX,), (BOX, (150, 50, 190, 90)), (BOX,), (BOX, BOX)]
    queries = [query(i, *boxes) for i, boxes in enumerate(pascal)]
    write_table(tables, "Pascal", queries, {"source": "made up"})
    monkeypatch.setenv("FINDIT_TABLES", str(tables))

    def write(
        name: str, texts: Sequence[str], model: str = "Qwen3-VL", spaces: Sequence[Any] = ()
    ) -> Path:
        rows: list[dict[str, Any]] = [{"index": i, "prediction": t} for i, t in enumerate(texts)]
        for row, space in zip(rows, spaces, strict=False):
            row["extra_records"] = record_text(ReplyRecord(space=space))
        path = tmp_path / f"{model}_{name}.json"
        path.write_text(json.dumps(rows))
        return path

    return write


def record(path: Path, space: Any = None, **fields: Any) -> None:
    """Write the identity of a run next to its predictions."""
    model, _, rest = path.stem.partition("_FindIt_")
    dataset = load_dataset(f"FindIt_{rest}")
    built = run_identity(dataset, model, Answering("Test"), dataset.queries, space)
    write_identity(RunFiles(path).identity, replace(built, **fields))


def sources(run: RunScore) -> list[tuple[str, str]]:
    return [(s["kind"], s["source"]) for s in run.spaces]


def refusal(path: Path, settings: Settings | None = None) -> str:
    with pytest.raises(IdentityError) as error:
        score_file(path, settings or Settings())
    return str(error.value)


def f1(path: Path, *settings: Settings) -> float | None:
    return score_file(path, *settings).metric_values["F1@0.5"]


def test_values_by_hand(predicted: Predict) -> None:
    """Three of four say a box, two of them are right (IoU 1 and 0.5); then two calls fail."""
    run = score_file(predicted(SVG, [RIGHT, HALF, WRONG, "no dog"]))
    assert (run.sums["tp"], run.sums["n_pred"], run.sums["n_gt"]) == (2, 3, 4)
    values = {"Precision": 200 / 3, "Recall": 50, "F1@0.5": 400 / 7, "mIoU": 37.5, "Adherence": 75}
    assert {name: run.metric_values[name] for name in values} == pytest.approx(values)
    assert run.reasons == {"no box": 1}
    run = score_file(predicted(SVG, [RIGHT, FAILED_ANSWER, FAILED_ANSWER + " via API.", WRONG]))
    assert (run.sums["responses"], run.sums["failed"], run.sums["n_gt"]) == (2, 2, 2)
    assert (run.metric_values["F1@0.5"], run.metric_values["Adherence"]) == (50, 100)
    assert F1_FAILED_MISSED.value(run.sums) == pytest.approx(100 / 3)
    assert run.reasons == {"failed call": 2}


def test_what_goes_before_what(predicted: Predict, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of the run or with the reply, the user's setting, the environment, the table."""
    path = predicted(SVG, [RIGHT])
    assert sources(score_file(path)) == [("grid1000", "model table: Qwen3-VL")]
    monkeypatch.setenv("FINDIT_SPACE", "unit")
    assert sources(score_file(path)) == [("grid1000", "model table: Qwen3-VL")]
    settings = settings_from({"space": {"kind": "claude_standard"}, "nproc": 4})
    in_place = "setting, in place of grid1000 (model table: Qwen3-VL)"
    assert sources(score_file(path, settings)) == [("claude_standard", in_place)]
    monkeypatch.delenv("FINDIT_SPACE")
    record(path, {"kind": "openai_high"})
    assert sources(score_file(path)) == [("openai_high", "recorded by the run")]
    run = score_file(predicted(PASCAL, ["[]"], spaces=[PIXELS]))
    assert sources(run) == [("pixels", "recorded by the run")]
    # Every reply in the space that was recorded with it.
    RunFiles(path).identity.unlink()
    run = score_file(predicted(SVG, [IN_UNITS, IN_PIXELS, RIGHT], spaces=[UNIT, PIXELS]))
    assert run.metric_values["F1@0.5"] == 100
    assert [kind for kind, _ in sources(run)] == ["unit", "pixels", "grid1000"]


@pytest.mark.parametrize("spaces", [[], [PIXELS, PIXELS]], ids=["of the run", "of the replies"])
def test_a_space_that_contradicts_the_record_is_refused(
    spaces: list[Any], predicted: Predict, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = predicted(SVG, [IN_PIXELS] * 2, spaces=spaces)
    if not spaces:
        record(path, PIXELS)
    assert f1(path) == 100
    conflict = 'recorded {"kind": "pixels"}, now {"kind": "unit"}'
    assert conflict in refusal(path, Settings("unit"))
    forced = score_file(path, Settings("unit", force=True))
    assert forced.metric_values["F1@0.5"] == 0
    assert forced.forced == (f"coordinate space: {conflict}",)
    assert sources(forced) == [("unit", "setting")]
    # Forced or not: an environment variable never goes before a record.
    for name, value in (("FINDIT_SPACE", "unit"), ("FINDIT_FORCE", "1")):
        monkeypatch.setenv(name, value)
        assert sources(score_file(path)) == [("pixels", "recorded by the run")]
    monkeypatch.setenv("FINDIT_SPACE", "pixels")
    assert score_file(path).forced == ()


def test_an_unknown_model_is_refused_with_the_command_to_type(predicted: Predict) -> None:
    path = predicted(SVG, [RIGHT], model="Mystery-7B")
    with pytest.raises(SpaceError) as error:
        score_file(path)
    message = str(error.value)
    assert "'Mystery-7B' is not known, and it is not guessed" in message
    for kind in ("grid1000", "unit", "pixels", "openai_high", "smart_resize"):
        assert f"  {kind} " in message
    assert f"python run_findit.py score --space SPACE {path}" in message
    assert f1(path, Settings(space="grid1000")) == 100


def test_the_settings_of_a_space_are_applied(predicted: Predict) -> None:
    """200 x 100 within 28 * 28 to 40,000 pixels is 196 x 112."""
    space = {"kind": "smart_resize", "min_pixels": 784, "max_pixels": 40_000}
    x, y = 196 / WIDTH, 112 / HEIGHT
    text = f"[{20 * x:.3f}, {10 * y:.3f}, {120 * x:.3f}, {60 * y:.3f}]"
    run = score_file(predicted(SVG, [text], spaces=[space]))
    assert run.metric_values["mIoU"] == pytest.approx(100, abs=0.01)


def test_conflicts_with_the_record(predicted: Predict) -> None:
    """The name, the rows and the space in a single message; the table; the space of a reply."""
    path = predicted(SVG, [RIGHT, RIGHT])
    record(path, UNIT, rows=(0,), model="Another")
    says = refusal(path, Settings("pixels"))
    assert "model: recorded Another, now Qwen3-VL" in says
    assert "rows: recorded 0, now also 1" in says
    assert 'coordinate space: recorded {"kind": "unit"}, now {"kind": "pixels"}' in says
    assert len(score_file(path, Settings("pixels", force=True)).forced) == 3
    record(path, table_sha256="ab" * 32)
    assert "SHA-256 of the table: recorded abab" in refusal(path)
    assert "SHA-256" in score_file(path, Settings(force=True)).forced[0]
    path = predicted(SVG, [IN_PIXELS, RIGHT], spaces=[PIXELS, GRID])
    record(path, PIXELS)
    assert "coordinate space of row 1: recorded" in refusal(path)


def test_a_missing_plugin_is_listed_with_all_other_conflicts(predicted: Predict) -> None:
    path = predicted(SVG, [RIGHT])
    record(path, GRID, model="Another", plugins={"findit-plates": "0.1"})
    says = refusal(path)
    assert "plug-in findit-plates: recorded 0.1, now not here: pip install findit-plates" in says
    assert "model: recorded Another, now Qwen3-VL" in says
    assert len(score_file(path, Settings(force=True)).forced) == 2


def test_an_unknown_dataset_of_a_missing_plugin_names_it(tmp_path: Path) -> None:
    path = tmp_path / "M_Plates_Few.json"
    path.write_text('[{"index": 0, "prediction": "ABC"}]')
    known = Identity("M", "Plates_Few", plugins={"findit-plates": "0.1"})
    write_identity(RunFiles(path).identity, known)
    assert "plug-in findit-plates: recorded 0.1, now not here" in refusal(path)
    with pytest.raises(DatasetNameError, match="Plates_Few"):
        score_file(path, Settings(force=True))


def test_predictions_that_say_another_query_than_the_table(predicted: Predict) -> None:
    path = predicted(SVG, [RIGHT])
    (row,) = json.loads(path.read_text())
    row |= {"label": "dog", "width": float(WIDTH), "height": str(HEIGHT)}
    path.write_text(json.dumps([row]))
    assert f1(path) == 100
    for column, value, now in (("label", "another", "dog"), ("width", WIDTH + 1, WIDTH)):
        path.write_text(json.dumps([{**row, column: value}]))
        assert f"{column} of row 0: recorded {value}, now {now}" in refusal(path)


def test_a_file_of_any_name_is_scored_with_its_identity(
    predicted: Predict,
) -> None:
    path = predicted(SVG, [RIGHT])
    free = path.rename(path.with_name("mine.json"))
    with pytest.raises(PredictionError, match="type --data"):
        score_file(free)
    again = rf"(?s)'mine' is not known.*score --space SPACE --data {SVG} .*mine\.json"
    with pytest.raises(SpaceError, match=again):
        score_file(free, dataset=SVG)
    run = score_file(free, Settings("grid1000"), dataset=SVG)
    assert (run.model, run.dataset.name, run.metric_values["F1@0.5"]) == ("mine", SVG, 100)
    built = run_identity(run.dataset, "Qwen3-VL", Answering(), [0], GRID)
    write_identity(RunFiles(free).identity, built)
    run = score_file(free)
    assert (run.model, run.dataset.name, run.metric_values["F1@0.5"]) == ("Qwen3-VL", SVG, 100)


def test_the_files_of_a_score(predicted: Predict) -> None:
    broken = '[{"bbox": [100, 100, 600, 600]}, {"box": []}]'
    texts = ['[{"bbox": [100, 100, 600, 600]}]', broken, FAILED_ANSWER]
    path = predicted(PASCAL, texts, spaces=[GRID] * 3)
    record(path, GRID, rows=(0, 1, 2), left_out=(3,))
    run = score_file(path)
    files = write_score(run, path)

    assert files.score.name == f"Qwen3-VL_{PASCAL}_score.csv"
    with files.score.open(newline="") as f:
        (row,) = csv.DictReader(f)
    assert (row["model"], row["dataset"], row["space"]) == ("Qwen3-VL", PASCAL, "grid1000")
    values = {
        "F1@0.5": "80.0000",
        "mIoU": "66.6667",
        "Adherence": "50.0000",
        "Precision": "100.0000",
        "Recall": "66.6667",
        "F1@0.5 (lenient)": "80.0000",
        "F1@0.5 (failed calls as misses)": "66.6667",
        "Rejection accuracy": "",
        "False-alarm rate": "",
    }
    assert {name: row[name] for name in values} == values
    assert {metric.name for metric in METRICS} <= row.keys()
    counts = {"rows": 4, "scored": 3, "answered": 2, "failed calls": 1, "left out": 1, "boxes": 3,
              "predicted": 2, "found": 2}  # fmt: skip
    assert {name: int(row[name]) for name in counts} == counts
    assert row["prompts"].startswith("findit-own-")

    rows = [json.loads(line) for line in files.details.read_text().splitlines()]
    counted = {"tp": 1, "n_pred": 1, "n_gt": 2}
    answered = {"responses": 1, "adherent": 0, "failed": 0}
    assert rows[1] == {
        **{"index": 1, "label": "dog", "image": "1.jpg", "source": "1.jpg"},
        **{"failed": False, "adherent": False, "reason": "wrong key"},
        **{"boxes": [[20.0, 10.0, 120.0, 60.0]], "ious": [1.0, 0.0], "hits": [True, False]},
        **{"assigned": [0, None], **counted},
        "sums": {
            **answered, **counted, "n_gt_failed": 0, "iou_sum": 1.0, "lost: not readable": 1
        },
        "errors": [{"kind": "not readable", "box": None, "object": 1, "size": "medium"}],
    }  # fmt: skip
    assert [row["index"] for row in rows] == [0, 1, 2]
    assert (rows[2]["reason"], rows[2]["adherent"]) == ("failed call", False)

    facts = json.loads(files.provenance.read_text())
    assert facts["variant"]["name"] == PASCAL
    assert facts["spaces"] == [{"kind": "grid1000", "source": "recorded by the run"}]
    assert facts["table"]["file"] == "Pascal.tsv"
    assert facts["table"]["sha256"] == facts["identity"]["table_sha256"]
    assert facts["table"]["meta"]["source"] == "made up"
    assert facts["identity"]["left_out"] == "3"
    assert len(facts["identity"]["prompt_hash"]) == 64
    assert facts["digest"] == run.identity.digest
    assert (facts["predictions"]["file"], facts["predictions"]["rows_missing"]) == (path.name, [3])
    assert facts["reasons"] == {"wrong key": 1, "failed call": 1}
    assert set(facts["scored_with"]) == {"vlmeval_findit", "code", "python", "numpy", "scipy"}


@pytest.mark.filterwarnings("error")
def test_boxes_that_are_not_finite_are_null_in_the_details(predicted: Predict) -> None:
    """Every line is JSON by the standard, which knows no Infinity."""
    path = predicted(PASCAL, ['[{"bbox": [1e308, 1, 1e308, 2]}]'], spaces=[UNIT])
    details = write_score(score_file(path), path).details.read_text()
    assert "Infinity" not in details
    assert json.loads(details)["boxes"] == [[None, 100.0, None, 200.0]]
