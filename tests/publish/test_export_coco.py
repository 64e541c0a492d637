"""Runs as COCO files: an imported dataset is exported unchanged, and COCO's tools can read it."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from custom_data import ANNOTATIONS, IMAGE_IDS, coco_values, data_folder, make_images, write_coco

from vlmeval_findit.benchmarks.findit.annotation_tables import FindItTask as Task
from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.vpbench.question_tables import write_table
from vlmeval_findit.benchmarks.vpbench.vp_query import VPQuery
from vlmeval_findit.boxes.writing import BoxToWrite, write
from vlmeval_findit.cli import main

LETTERS = VPQuery(
    index=1,
    images=("a.png",),
    cluster="a.jpg",
    question="Which?",
    options=(("A", "a cat"), ("B", "a dog")),
    answer="A",
)


@pytest.fixture(autouse=True)
def imported(tmp_path, monkeypatch) -> Path:
    data_folder(tmp_path, monkeypatch)
    images, instances = make_images(tmp_path / "pictures"), write_coco(tmp_path)
    arguments = [str(instances), "--image-root", str(images), "--name", "MyData"]
    assert main(["data", "import", *arguments]) == 0
    return instances


def perfect(task: Task, index: int) -> str:
    truth = task.queries[index].truth
    labels = truth.labels or ("",) * len(truth.boxes)
    boxes = [BoxToWrite(box, label, 0) for box, label in zip(truth.boxes, labels, strict=True)]
    return write(boxes, task.question.reply, digits=4)


def export(dataset: str, replies: dict[int, str] | None = None) -> tuple[Any, Any]:
    """Return (truth, results) of a run with these answers (perfect, if not set)."""
    task = load_task(dataset)
    rows = [
        {"index": index, "prediction": (replies or {}).get(index, perfect(task, index))}
        for index in task.queries
    ]
    path = Path(f"Model_{dataset}.json")
    path.write_text(json.dumps(rows))
    assert main(["score", "--space", "pixels", str(path)]) == 0
    assert main(["export", str(path), "--to", "coco", "--out", "coco"]) == 0
    return written("truth", dataset), written("results", dataset)


def written(what: str, dataset: str) -> Any:
    return json.loads(Path(f"coco/Model_{dataset}_coco_{what}.json").read_text())


DATASETS = ("FindIt_MyData_xyxy_json", "FindIt_MyData_multilabel_cxcywh_text")


@pytest.mark.parametrize("dataset", DATASETS)
def test_what_was_imported_comes_out_again(imported: Path, dataset: str, capsys) -> None:
    source = json.loads(imported.read_text())
    truth, results = export(dataset)
    assert "score 1" in truth["info"]["note"]
    assert "score 1" in capsys.readouterr().out

    def plain(rows: Any) -> list[Any]:
        return sorted(
            (row["image_id"], row["category_id"], [round(n, 3) for n in row["bbox"]])
            for row in rows
        )

    assert plain(truth["annotations"]) == plain(source["annotations"]) == plain(results)
    with_boxes = {IMAGE_IDS[image] for _, image, _, _ in ANNOTATIONS}
    assert {row["id"]: row["file_name"] for row in truth["images"]} == {
        row["id"]: row["file_name"] for row in source["images"] if row["id"] in with_boxes
    }
    assert sorted(truth["categories"], key=lambda row: row["id"]) == sorted(
        source["categories"], key=lambda row: row["id"]
    )
    assert all(row["score"] == 1.0 for row in results)


@pytest.mark.parametrize("dataset", DATASETS)
def test_coco_tools_read_it(imported: Path, dataset: str) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    export(dataset)
    with contextlib.redirect_stdout(io.StringIO()):
        # Against the exported file, and against the imported file.
        for truth in (f"coco/Model_{dataset}_coco_truth.json", str(imported)):
            known = coco.COCO(truth)
            results = known.loadRes(f"coco/Model_{dataset}_coco_results.json")
            run = evaluation.COCOeval(known, results, "bbox")
            run.evaluate()
            run.accumulate()
            run.summarize()
            assert run.stats[0] == pytest.approx(1.0)


def test_what_cannot_be_exported_is_counted(capsys) -> None:
    replies = {
        0: "cat: [10, 5, 40, 25]\nunicorn: [1, 2, 3, 4]",
        1: "Failed to obtain answer via API.",
    }
    truth, results = export("FindIt_MyData_multilabel_xyxy_text", replies)
    output = capsys.readouterr().out
    assert "1 boxes have a label that is no category" in output
    assert "1 failed calls are in no file" in output
    assert truth["info"]["failed calls, not in here"] == 1
    assert len(truth["images"]) == 1
    assert [row["category_id"] for row in results] == [7]


def test_runs_whose_answers_are_no_boxes_are_left_out(capsys, tmp_path) -> None:
    """Letters, and points: named, and the other runs of the folder are done."""
    runs = tmp_path / "runs"
    runs.mkdir()
    write_table(tmp_path / "lmu", "VPBench_Mine", [LETTERS], {})
    rows = [{"index": 1, "prediction": "A"}]
    for dataset in ("VPBench_Mine", "FindIt_MyData_point_json"):
        (runs / f"Model_{dataset}.json").write_text(json.dumps(rows))
    assert main(["calibration", str(runs), "--space", "grid1000"]) == 1
    assert capsys.readouterr().err.count("left out: ") == 2
    export = ["export", str(runs), "--to", "coco", "--out", "coco"]
    assert main(["score", str(runs), "--space", "grid1000"]) == 0
    assert main(export) == 2
    assert "no run's answers are boxes for COCO" in capsys.readouterr().err
    assert not Path("coco").exists()
    (runs / "Model_FindIt_MyData_xyxy_json.json").write_text(json.dumps(rows))
    assert main(["score", str(runs), "--space", "grid1000"]) == 0
    assert main(export) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert (
        "left out, their answers are no boxes: 2 runs (Model_FindIt_MyData_point_json, " in output
    )
    assert sorted(path.name.split("_coco_")[-1] for path in Path("coco").iterdir()) == [
        "checksums.json", "results.json", "truth.json",
    ]  # fmt: skip


def test_a_box_with_swapped_corners_stays_a_false_box() -> None:
    _, results = export("FindIt_MyData_xyxy_text", {0: "[40, 25, 10, 5]", 1: "", 2: ""})
    assert [row["bbox"][2:] for row in results] == [[0.0, 0.0]]


def test_boxes_are_those_of_the_scoring(capsys) -> None:
    dataset = DATASETS[0]
    _, results = export(dataset)
    path = f"Model_{dataset}.json"
    again = ["export", path, "--to", "coco", "--out", "coco"]
    assert main(["score", "--space", "unit", path]) == 0
    assert main(again) == 0
    other = written("results", dataset)
    assert other != results
    assert len(other) == len(results)
    Path("Model_FindIt_MyData_xyxy_json_provenance.json").unlink()
    assert main(again) == 2
    assert "not scored yet" in capsys.readouterr().err
    assert written("results", dataset) == other


def test_a_table_that_changed_after_the_scoring_is_named(tmp_path, capsys) -> None:
    export(DATASETS[0])
    values = coco_values()
    values["annotations"][0]["bbox"][0] += 1
    arguments = [str(write_coco(tmp_path, values)), "--image-root", str(tmp_path / "pictures")]
    assert main(["data", "import", *arguments, "--name", "MyData", "--replace"]) == 0
    again = ["export", f"Model_{DATASETS[0]}.json", "--to", "coco", "--out", "coco"]
    assert main(again) == 2
    assert "is not the table that" in capsys.readouterr().err
