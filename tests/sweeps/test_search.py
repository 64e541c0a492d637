"""The format search: two stages, a stated rule for ties, a file that sweeps take as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from engine_fakes import FakeBackends, FakeModel, Message, demo_sweep, go

from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.findit.grid import all_tables
from vlmeval_findit.boxes.writing import BoxToWrite, write
from vlmeval_findit.cli.sweep import report_formats
from vlmeval_findit.core.config import ConfigError
from vlmeval_findit.models.model_entry import ModelEntry
from vlmeval_findit.runs.format_file import (
    BestFormats,
    averages,
    best_format,
    outcome,
    write_formats,
)
from vlmeval_findit.runs.run_score import CellResult, SearchError
from vlmeval_findit.sweeps.format_search import search_sweep
from vlmeval_findit.sweeps.sweep_file import in_best_formats, parse_sweep

BEST = "FindIt_Demo_yxhw_json_bounding_box"


class Knowing(FakeModel):
    """Knows every answer of the demonstration, and says it right in some formats only."""

    def __init__(self, right: Sequence[str]) -> None:
        super().__init__()
        self._right = right
        self._truth = {
            str(query.images[0]) + query.label: query
            for query in load_task("FindIt_Demo_xyxy_json").queries.values()
        }

    def generate(self, message: Message, dataset: str) -> Any:
        self.calls += 1
        if dataset not in self._right:
            return "[]"
        image, text = message[0]["value"], message[-1]["value"]
        query = next(
            q for k, q in self._truth.items()
            if image.endswith(q.images[0]) and f'"{q.label}"' in text
        )  # fmt: skip
        scale = np.array([1000 / query.width, 1000 / query.height] * 2)
        boxes = [BoxToWrite(tuple(np.array(box) * scale)) for box in query.truth.boxes]
        return write(boxes, parse(dataset).reply)


def searched(
    folder: Path, right: Sequence[str], limit: int = 8
) -> tuple[list[CellResult], Knowing]:
    places = (folder / "search", folder / "calls.jsonl")
    sweep = search_sweep(ModelEntry("FullImage"), all_tables()["Demo"], limit, places)
    model = Knowing(right)
    return go(sweep, FakeBackends(model)), model


def test_the_second_stage_finds_the_key(tmp_path: Path) -> None:
    results, model = searched(tmp_path, [BEST, "FindIt_Demo_yxhw_text"])
    assert best_format(results).format == "yxhw_text", "text and the key tie: the grid's order"
    results, model = searched(tmp_path / "b", [BEST, "FindIt_Demo_yxhw_json_bbox_2d"])
    assert model.calls == (16 + 3) * 8, "bbox_2d at the winner was asked in the first stage"
    assert {r.question.representation for r in results[16:]} == {"yxhw"}
    assert best_format(results).format == "yxhw_json_bbox_2d"
    assert results[0].rows == 8
    (tmp_path / "c").mkdir()
    results, _ = searched(tmp_path / "c", [BEST])
    assert best_format(results).format.startswith("xyxy_"), "nothing in stage 1 led to it"


# --- the rule -------------------------------------------------------------------------------------


def result(name: str, f1: int = 50) -> CellResult:
    """Return a result with a given F1."""
    sums = {"responses": 100, "adherent": 100, "tp": f1, "n_pred": 100, "n_gt": 100}
    sums |= {"iou_sum": f1, "n_gt_failed": 0}
    return CellResult("M", parse(name), sums, 100, 0, Path("x.json"), 100)


def test_the_best_average_is_over_the_tables_of_all_formats() -> None:
    results = [
        result("FindIt_Pascal_xyxy_text", 80), result("FindIt_SVG_xyxy_text", 20),
        result("FindIt_Pascal_xywh_text", 60), result("FindIt_SVG_xywh_text", 50),
        result("FindIt_Pascal_yxyx_text", 99),
    ]  # fmt: skip
    ranked = averages(results)
    actual = [(item.format, next(iter(item.metric_values.values()))) for item in ranked]
    assert actual == [("xywh_text", 55), ("xyxy_text", 50)]
    with pytest.raises(SearchError, match="no format was run on every table"):
        best_format([results[0], results[3]])


# --- the file -------------------------------------------------------------------------------------


def test_sweeps_read_the_file_of_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, _ = searched(tmp_path, [BEST, "FindIt_Demo_yxhw_json_bbox_2d"], limit=19)
    path = tmp_path / "best_formats.yaml"
    report_formats(results, path)
    assert (
        "FullImage: best format on FindIt yxhw_json_bbox_2d (F1@0.5 100.0)"
        in capsys.readouterr().out
    )
    assert BestFormats(path).models == {"FullImage": {"FindIt": "yxhw_json_bbox_2d"}}
    reported = yaml.safe_load(path.read_text())["models"]["FullImage"]["FindIt"]
    assert len(reported["cells"]) == 19
    for cell in reported["cells"]:
        low, high = cell["F1@0.5 95 %"]
        assert low <= cell["F1@0.5"] <= high
        assert {"mIoU", "mIoU 95 %", "Adherence", "Adherence 95 %", "rows"} <= cell.keys()
    built = go(in_best_formats(demo_sweep(tmp_path), BestFormats(path)), FakeBackends(FakeModel()))
    assert [r.question.name for r in built] == [
        "FindIt_Demo_yxhw_json_bbox_2d", "FindIt_Demo_multilabel_yxhw_json_bbox_2d",
    ]  # fmt: skip


def test_models_of_earlier_searches_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = dict.fromkeys(("F1@0.5", "mIoU", "Adherence"))
    monkeypatch.setattr("vlmeval_findit.runs.format_file.intervals_of", lambda result: none)
    results = [result("FindIt_Demo_xyxy_text"), result("FindIt_Demo_xyxy_json")]
    path = tmp_path / "formats.yaml"
    both = {"FindIt": outcome(results, "p")}
    write_formats(path, {"A": both, "B": both})
    other = outcome([result("FindIt_Demo_cxcywh_json_cx-formula")], "p")
    write_formats(path, {"B": {"FindIt": other, "Letters": {"winner": "plain"}}})
    write_formats(path, {"A": {"Ref-L4": {"winner": "xyxy_json"}}})
    assert BestFormats(path).models == {
        "A": {"FindIt": "xyxy_text", "Ref-L4": "xyxy_json"},
        "B": {"FindIt": "cxcywh_json_cx-formula", "Letters": "plain"},
    }
    path.write_text("hello: world\n")
    with pytest.raises(ConfigError, match="should be a file that search or sweep wrote"):
        write_formats(path, {"A": both})
    assert path.read_text() == "hello: world\n"


def test_marks_are_asked_of_the_winner_alone(tmp_path: Path) -> None:
    """A third stage: the best format with the object marked in place of a crop."""
    places = (tmp_path / "search", tmp_path / "calls.jsonl")
    entry, table = ModelEntry("FullImage"), all_tables()["Demo_insdet"]
    sweep = search_sweep(entry, table, 2, places, marks=("box", "point"))
    results = go(sweep, FakeBackends(FakeModel()))
    asked = [result.question for result in results]
    assert [built.mark for built in asked[:19]] == [None] * 19
    winner = best_format([result for result in results if result.question.mark is None])
    assert asked[19:] == [replace(winner, mark=mark) for mark in ("box", "point")]
    with pytest.raises(ValueError, match="Demo shows no reference pictures: there is nothing"):
        search_sweep(entry, all_tables()["Demo"], 2, places, marks=("box",))


WINNER = "models:\n  FullImage:\n    FindIt:\n      winner: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("intervals: x", "formats.yaml: should be a file that search or sweep wrote"),
        (WINNER + "xyxy", "winner of FullImage: FindIt_Demo_insdet_xyxy: the output"),
        (WINNER + "xyxx_text", "no representation 'xyxx': did you mean"),
        (WINNER.replace("FindIt", "FindItt") + "all_json",
         "no format of FindIt was chosen for 'FullImage' (there are: FindItt)"),
        ("models: {Other: {FindIt: {winner: xyxy_text}}}",
         "search --model FullImage --data FindIt_Demo_insdet_xyxy_text"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "formats.yaml"
    path.write_text(text)
    sweep = parse_sweep("models: FullImage\ndatasets: Demo_insdet")
    with pytest.raises(ValueError, match=re.escape(message)):
        in_best_formats(sweep, BestFormats(path))
