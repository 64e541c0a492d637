"""Files of real exporters: imported, answered perfectly, exported, and judged by pycocotools."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import exporters
import pytest
from custom_data import data_folder
from host_runs import metric_values

from vlmeval_findit.benchmarks.findit import LoadedFindIt
from vlmeval_findit.boxes import BoxToWrite, write
from vlmeval_findit.cli import main
from vlmeval_findit.data import decode_name, load_dataset

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _own_data(tmp_path, monkeypatch) -> None:
    for package in ("supervision", "globox", "label_studio_converter", "labelformat"):
        pytest.importorskip(package)
    data_folder(tmp_path, monkeypatch)


def perfect(dataset: LoadedFindIt, index: int) -> str:
    boxes = [BoxToWrite(box, "", 0) for box in dataset.queries[index].truth.boxes]
    return write(boxes, dataset.variant.reply, digits=4)


def predict(model: str, dataset: LoadedFindIt, answer: Callable[[LoadedFindIt, int], str]) -> Path:
    rows = [{"index": index, "prediction": answer(dataset, index)} for index in dataset.queries]
    path = Path(f"{model}_FindIt_Set_xyxy_json.json")
    path.write_text(json.dumps(rows))
    return path


def score(path: Path) -> float:
    assert main(["score", "--space", "pixels", str(path)]) == 0
    return metric_values(path)["f1"]


def results_with_ids_of(reference: Path, results: Path, truth: Path) -> list[dict[str, Any]]:
    """Return results with the ids that the exporter's COCO file gives to images and classes."""
    own = json.loads(truth.read_text())
    other = json.loads(reference.read_text())
    images = {Path(decode_name(row["file_name"])).name: row["id"] for row in other["images"]}
    classes = {row["name"]: row["id"] for row in other["categories"]}
    image_names = {
        row["id"]: Path(row.get("copy_of", row["file_name"])).name for row in own["images"]
    }
    class_names = {row["id"]: row["name"] for row in own["categories"]}
    rows = json.loads(results.read_text())
    for row in rows:
        row["image_id"] = images[image_names[row["image_id"]]]
        row["category_id"] = classes[class_names[row["category_id"]]]
    return rows  # type: ignore[no-any-return]


def full_image_miou() -> float:
    """Return the mean IoU of one box that is the whole image, over all objects, in percent."""
    shares = []
    for (width, height), objects in exporters.IMAGES.values():
        for label in sorted({label for label, _ in objects}):
            boxes = [box for other, box in objects if other == label]
            areas = [(x2 - x1) * (y2 - y1) / (width * height) for x1, y1, x2, y2 in boxes]
            shares.append(max(areas))
            shares += [0.0] * (len(boxes) - 1)
    return 100 * sum(shares) / len(shares)


def turn_back(rows: list[dict[str, Any]], image_id: object) -> None:
    """Turn the boxes of the image that EXIF turns by half: only COCO's ids keep coordinates."""
    width, height = exporters.IMAGES["turned.jpg"][0]
    for row in rows:
        if row["image_id"] == image_id:
            x, y, w, h = row["bbox"]
            row["bbox"] = [width - x - w, height - y - h, w, h]


def average_precision(reference: Path, results: list[dict[str, Any]]) -> float:
    coco = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    with contextlib.redirect_stdout(io.StringIO()):
        known = coco.COCO()
        known.dataset = json.loads(reference.read_text())
        # pycocotools takes the id 0 for "not matched", and labelformat writes none.
        for number, row in enumerate(known.dataset["annotations"], 1):
            row["id"] = number
            row.setdefault("iscrowd", 0)
            row.setdefault("area", row["bbox"][2] * row["bbox"][3])
        known.dataset.setdefault("info", {})
        known.createIndex()
        run = evaluation.COCOeval(known, known.loadRes(results), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return float(run.stats[0])


@pytest.mark.parametrize("export", exporters.EXPORTERS)
def test_files_of_an_exporter_come_back_to_it(
    tmp_path, export: Callable[[Path], exporters.Exported], capsys
) -> None:
    exported = export(tmp_path)
    arguments = [*exported.arguments, "--name", "Set", "--exif", "turned"]
    assert main(["data", "import", *arguments]) == 0, capsys.readouterr()
    dataset = load_dataset("FindIt_Set_xyxy_json")
    counted = sum(len(query.truth.boxes) for query in dataset.queries.values())
    assert counted == sum(len(objects) for _, objects in exporters.IMAGES.values())
    without = [query for query in dataset.queries.values() if not query.truth.boxes]
    assert len(without) == int(exported.empty)
    asked = {image for query in dataset.queries.values() for image in query.images}
    if exported.folders:
        assert "cam 1/b c.png" in asked
    assert main(["run", "--data", "FindIt_Set_xyxy_json", "--model", "FullImage"]) == 0
    (full,) = Path().rglob("FullImage_FindIt_Set_xyxy_json.json")
    assert metric_values(full)["miou"] == pytest.approx(full_image_miou(), abs=0.5)
    # Perfect answers, in pixels of the stored image
    path = predict("Perfect", dataset, perfect)
    assert score(path) == 100
    assert main(["export", str(path), "--to", "coco", "--out", "out"]) == 0
    stem = Path("out") / f"{path.stem}_coco"
    results = results_with_ids_of(
        exported.coco, Path(f"{stem}_results.json"), Path(f"{stem}_truth.json")
    )
    if "coco" not in export.__name__:
        images = json.loads(exported.coco.read_text())["images"]
        (turned,) = [row["id"] for row in images if row["file_name"].endswith("turned.jpg")]
        turn_back(results, turned)
    assert average_precision(exported.coco, results) == pytest.approx(1.0)
