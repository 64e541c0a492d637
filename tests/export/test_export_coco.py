"""Runs as COCO files: an imported dataset is exported unchanged, and COCO's tools can read it."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from custom_data import coco_values, data_folder, make_images, write_coco
from jsonl_data import import_lines
from PIL import Image, ImageOps

from vlmeval_findit.benchmarks.findit import LoadedFindIt
from vlmeval_findit.benchmarks.vpbench import VPQuery, write_table
from vlmeval_findit.boxes import BoxToWrite, write
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.storage import image_folder

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
    images = make_images(tmp_path / "pictures")
    instances = write_coco(tmp_path)
    arguments = [str(instances), "--image-root", str(images), "--name", "MyData"]
    assert main(["data", "import", *arguments]) == 0
    return instances


def perfect(dataset: LoadedFindIt, index: int) -> str:
    truth = dataset.queries[index].truth
    labels = truth.labels or ("",) * len(truth.boxes)
    boxes = [BoxToWrite(box, label, 0) for box, label in zip(truth.boxes, labels, strict=True)]
    return write(boxes, dataset.variant.reply, digits=4)


def to_coco(path: object) -> int:
    return main(["export", str(path), "--to", "coco", "--out", "coco"])


def export(name: str, replies: dict[int, str] | None = None) -> tuple[Any, Any]:
    """Return (truth, results) of a run with these answers (perfect, if not set)."""
    dataset = load_dataset(name)
    rows = [
        {"index": index, "prediction": (replies or {}).get(index, perfect(dataset, index))}
        for index in dataset.queries
    ]
    path = Path(f"Model_{name}.json")
    path.write_text(json.dumps(rows))
    assert main(["score", "--space", "pixels", str(path)]) == 0
    assert to_coco(path) == 0
    return written("truth", name), written("results", name)


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
        boxes = ((row, [round(n, 3) for n in row["bbox"]]) for row in rows)
        return sorted((row["image_id"], row["category_id"], box) for row, box in boxes)

    assert plain(truth["annotations"]) == plain(source["annotations"]) == plain(results)
    names = {row["id"]: row["file_name"] for row in source["images"]}
    assert {row["id"]: row["file_name"] for row in truth["images"]} == names
    categories = [sorted(x["categories"], key=lambda row: row["id"]) for x in (truth, source)]
    assert categories[0] == categories[1]
    assert all(row["score"] == 1.0 for row in results)
    coco = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    with contextlib.redirect_stdout(io.StringIO()):
        # Against the exported file, and against the imported file.
        for path in (f"coco/Model_{dataset}_coco_truth.json", str(imported)):
            known = coco.COCO(path)
            loaded = known.loadRes(f"coco/Model_{dataset}_coco_results.json")
            run = evaluation.COCOeval(known, loaded, "bbox")
            run.evaluate()
            run.accumulate()
            run.summarize()
            assert run.stats[0] == pytest.approx(1.0)


def test_what_cannot_be_exported_is_counted(capsys) -> None:
    """A box with swapped corners stays a false box."""
    replies = {
        0: "cat: [10, 5, 40, 25]\ncat: [40, 25, 10, 5]\nunicorn: [1, 2, 3, 4]",
        1: "Failed to obtain answer via API.",
    }
    truth, results = export("FindIt_MyData_multilabel_xyxy_text", replies)
    output = capsys.readouterr().out
    assert "boxes left out, of a label that is no category: 1" in output
    assert "failed calls, in no file: 1" in output
    missed = "objects of failed calls, in no file, which ap counts as missed: its mAP is lower: 1"
    assert missed in " ".join(output.split())
    assert truth["info"]["failed calls, not in here"] == 1
    assert len(truth["images"]) == 2
    assert [row["category_id"] for row in results] == [7, 7]
    assert results[1]["bbox"][2:] == [0.0, 0.0]


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
    assert main(["score", str(runs), "--space", "grid1000"]) == 0
    assert to_coco(runs) == 2
    assert "no run has boxes for COCO" in capsys.readouterr().err
    assert not Path("coco").exists()
    (runs / "Model_FindIt_MyData_xyxy_json.json").write_text(json.dumps(rows))
    assert main(["score", str(runs), "--space", "grid1000"]) == 0
    assert to_coco(runs) == 0
    output = " ".join(capsys.readouterr().out.split())
    left_out = "left out, their answers are no boxes: 2 runs (Model_FindIt_MyData_point_json, "
    assert left_out in output
    names = sorted(path.name.split("_coco_")[-1] for path in Path("coco").iterdir())
    assert names == ["checksums.json", "croissant.json", "results.json", "truth.json"]


def test_boxes_are_those_of_the_scoring(tmp_path, capsys) -> None:
    """A table that changed after the scoring is named."""
    dataset = DATASETS[0]
    path = Path(f"Model_{dataset}.json")
    _, results = export(dataset)
    assert main(["score", "--space", "unit", str(path)]) == 0
    assert to_coco(path) == 0
    other = written("results", dataset)
    assert other != results
    assert len(other) == len(results)
    values = coco_values()
    values["annotations"][0]["bbox"][0] += 1
    arguments = [str(write_coco(tmp_path, values)), "--image-root", str(tmp_path / "pictures")]
    assert main(["data", "import", *arguments, "--name", "MyData", "--replace"]) == 0
    assert to_coco(path) == 2
    assert f"Score it again: python run_findit.py score {path}" in capsys.readouterr().err
    Path(f"Model_{dataset}_provenance.json").unlink()
    assert to_coco(path) == 2
    assert "not scored yet" in capsys.readouterr().err
    assert written("results", dataset) == other


def write_turned(folder: Path, orientation: int) -> Path:
    """Write a COCO file whose boxes refer to the image as viewers turn it."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    folder.mkdir()
    Image.new("RGB", (200, 120)).save(folder / "x.jpg", exif=exif)
    values = {
        "images": [{"id": 5, "file_name": "x.jpg", "width": 120, "height": 200}],
        "categories": [{"id": 9, "name": "box"}],
        "annotations": [
            {
                "id": 1,
                "image_id": 5,
                "category_id": 9,
                "bbox": [10, 20, 40, 60],
                "area": 1234.5,
                "segmentation": [[10, 20, 50, 20, 50, 80, 10, 80]],
            },
            {"id": 2, "image_id": 5, "category_id": 9, "bbox": [70, 100, 30, 20], "iscrowd": 1},
        ],
    }
    path = folder / "turned.json"
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_exported_boxes_use_the_coordinates_of_the_original_file(
    tmp_path, orientation: int
) -> None:
    """Also with the areas that it states, which are its masks'."""
    source = write_turned(tmp_path / "turned", orientation)
    assert main(["data", "import", str(source), "--name", "Turned"]) == 0
    truth, results = export("FindIt_Turned_xyxy_json")
    assert truth["images"] == json.loads(source.read_text())["images"]
    found, crowd = truth["annotations"]
    assert [round(number, 3) for number in found["bbox"]] == [10, 20, 40, 60]
    assert found["area"] == 1234.5
    assert [round(number, 3) for number in crowd["bbox"]] == [70, 100, 30, 20]
    assert [round(number, 3) for number in results[0]["bbox"]] == [10, 20, 40, 60]
    assert (results[0]["image_id"], results[0]["category_id"]) == (5, 9)


def test_fractions_come_out_as_fractions(tmp_path) -> None:
    """Azure's data labelling writes them."""
    values = coco_values()
    sizes = {row["id"]: (row["width"], row["height"]) for row in values["images"]}
    for row in values["annotations"]:
        width, height = sizes[row["image_id"]]
        x, y, w, h = row["bbox"]
        row["bbox"] = [x / width, y / height, w / width, h / height]
    (tmp_path / "fractions").mkdir()
    source = write_coco(tmp_path / "fractions", values)
    images = ["--image-root", str(tmp_path / "pictures")]
    command = ["data", "import", str(source), *images, "--name", "Parts", "--units", "fractions"]
    assert main(command) == 0
    truth, results = export("FindIt_Parts_xyxy_json")
    expected = sorted(row["bbox"] for row in values["annotations"])
    for rows in (truth["annotations"], results):
        boxes = sorted(row["bbox"] for row in rows)
        assert [[round(number, 4) for number in box] for box in boxes] == [
            [round(number, 4) for number in box] for box in expected
        ]


def test_classes_that_differ_in_letter_case_stay_apart(tmp_path) -> None:
    values = coco_values()
    values["categories"] = [{"id": 7, "name": "A"}, {"id": 3, "name": "a"}]
    (tmp_path / "cases").mkdir()
    source = write_coco(tmp_path / "cases", values)
    images = ["--image-root", str(tmp_path / "pictures")]
    assert main(["data", "import", str(source), *images, "--name", "Cases"]) == 0
    truth, results = export("FindIt_Cases_xyxy_json")
    ids = [(row["image_id"], row["category_id"]) for row in values["annotations"]]
    assert sorted((row["image_id"], row["category_id"]) for row in results) == sorted(ids)
    assert truth["categories"] == values["categories"]


# --- turned images --------------------------------------------------------------------------------


def as_readers_load(path: Path) -> list[Image.Image]:
    """Load an image as torchvision does, which turns none, as Detectron2 does, and by OpenCV."""
    image = Image.open(path)
    loaded = [image.convert("RGB"), ImageOps.exif_transpose(image).convert("RGB")]
    cv2 = pytest.importorskip("cv2")
    return [*loaded, Image.fromarray(cv2.imread(str(path))[:, :, ::-1])]


def make_patch(path: Path, orientation: int) -> None:
    """Write a white image with a dark patch at (20, 24, 100, 72) of its stored pixels."""
    image = Image.new("RGB", (200, 120), "white")
    image.paste((20, 20, 20), (20, 24, 100, 72))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path.parent.mkdir(exist_ok=True)
    image.save(path, exif=exif)


@pytest.mark.parametrize("target", ["coco", "fiftyone"])
def test_boxes_lie_on_the_pixels_that_every_reader_loads(tmp_path: Path, target: str) -> None:
    names = [f"{turn}.{kind}" for kind in ("jpg", "png", "webp") for turn in range(1, 9)]
    for name in names:
        make_patch(Path("images", name), int(name[0]))
    lines = [{"image": name, "label": "cat", "boxes": [[20, 24, 100, 72]]} for name in names]
    assert import_lines(tmp_path, lines, "--exif", "stored") == 0
    dataset = load_dataset("FindIt_Mine_xyxy_json")
    path = Path("Model_FindIt_Mine_xyxy_json.json")
    rows = [{"index": at, "prediction": perfect(dataset, at)} for at in dataset.queries]
    path.write_text(json.dumps(rows))
    assert main(["score", "--space", "pixels", str(path)]) == 0
    for _ in range(2):  # Copies of an earlier export are replaced
        assert main(["export", str(path), "--to", target, "--out", "out"]) == 0
    root = image_folder(dataset.variant.images).path
    shown = shown_by_coco() if target == "coco" else shown_by_fiftyone()
    assert len(shown) == len(names)
    assert len(list(Path("out/images").iterdir())) == 21
    for name, size, boxes in shown:
        assert len(boxes) == 2, "the object, and the answer"
        for image in as_readers_load(root / name):
            assert image.size == size
            for x1, y1, x2, y2 in boxes:
                patch = image.point(lambda value: 255 * (value < 128)).getbbox()
                assert patch == pytest.approx((x1, y1, x2, y2), abs=2), name


def corners(x: float, y: float, width: float, height: float) -> tuple[float, ...]:
    return (x, y, x + width, y + height)


def shown_by_coco() -> list[Any]:
    """Return (file, size, boxes in pixels) of each image."""
    truth = json.loads(Path("out/Model_FindIt_Mine_xyxy_json_coco_truth.json").read_text())
    results = json.loads(Path("out/Model_FindIt_Mine_xyxy_json_coco_results.json").read_text())
    boxes = [*truth["annotations"], *results]
    return [
        (
            image["file_name"],
            (image["width"], image["height"]),
            [corners(*box["bbox"]) for box in boxes if box["image_id"] == image["id"]],
        )
        for image in truth["images"]
    ]


def shown_by_fiftyone() -> list[Any]:
    """Return (file, size, boxes in pixels) of each sample."""
    shown = []
    for sample in json.loads(Path("out/samples.json").read_text())["samples"]:
        size = (sample["metadata"]["width"], sample["metadata"]["height"])
        boxes = []
        for field in ("ground_truth_Mine", "Model_Mine_xyxy_json"):
            for box in sample[field]["detections"]:
                x1, y1, x2, y2 = corners(*box["bounding_box"])
                boxes.append((x1 * size[0], y1 * size[1], x2 * size[0], y2 * size[1]))
        shown.append((sample["filepath"], size, boxes))
    return shown
