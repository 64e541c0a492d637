"""``score --convert``, ``data get RefL4Full_…`` with and without files."""

from __future__ import annotations

import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refl4_stand_in import HEIGHT, TEST, VAL, WIDTH, write_images, write_parquet
from web import web_server

from vlmeval_findit.benchmarks.refl4 import refl4_annotations as known
from vlmeval_findit.cli import main
from vlmeval_findit.data.fetch import annotations as fetched
from vlmeval_findit.marks import packed_mask

Capture = pytest.CaptureFixture[str]
TABLES = ("RefL4Full_val", "RefL4Full_test", "RefL4Full_all")
ALL = "FindIt_RefL4Full_all_xyxy_json"


@pytest.fixture
def parquet(tmp_path: Path, lmu: Path) -> Path:
    """The stand-in's Parquet files."""
    return write_parquet(tmp_path / "parquet")


@pytest.mark.sees("data get --force")
def test_files_of_other_annotations_are_refused_unless_forced(
    parquet: Path, lmu: Path, capsys: Capture
) -> None:
    command = ["data", "get", *TABLES, "--from", str(parquet), "--no-images"]
    assert main(command) == 2
    output = capsys.readouterr().err
    assert "ref-l4-val.parquet: 8 expressions of val, the release has 13420" in output
    assert "(unlike_release)" in output
    assert not list(lmu.iterdir())
    assert main([*command, "--force"]) == 0
    assert "not the authors' annotations" in capsys.readouterr().out
    assert {path.stem for path in lmu.glob("*.tsv")} == set(TABLES)


def test_a_second_fetch_downloads_nothing(
    parquet: Path, tmp_path: Path, lmu: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for module in (known, fetched):  # as if the authors had published the stand-in
        monkeypatch.setattr(module, "RELEASE_COUNTS", {"expressions of val": 8})
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.add(write_images(tmp_path / "images"), "images")
    with web_server() as web:
        web.serve("refl4/images.tar.gz", content.getvalue())
        web.serve("refl4/ref-l4-val.parquet", (parquet / "ref-l4-val.parquet").read_bytes())
        config = tmp_path / "datasets.yaml"
        config.write_text(f"sources:\n  refl4: {web.url}refl4\n")
        monkeypatch.setenv("FINDIT_CONFIG", str(config))
        assert main(["data", "get", "RefL4Full_val"]) == 0
        output = capsys.readouterr().out
        assert "Ref-L4 by its authors" in output
        assert re.search(r"RefL4Full_val +4 +0 +4 +0", output)
        assert len(list((lmu / "images" / "RefL4").glob("*.jpg"))) == 4
        before = web.requests
        assert main(["data", "check", "RefL4Full_val"]) == 0
        assert main(["data", "get", "RefL4Full_val"]) == 0
        assert web.requests == before
    assert main(["data", "get", "RefL4Full_vall"]) == 2


# --- files of others ------------------------------------------------------------------------------


@pytest.fixture
def prepared(parquet: Path) -> None:
    flags = ["--from", str(parquet), "--no-images", "--force"]
    assert main(["data", "get", *TABLES, *flags]) == 0


def items(form: str = "xywh") -> list[dict[str, Any]]:
    """A prediction of every expression, every second right."""
    output = []
    for at, row in enumerate((*VAL, *TEST)):
        x, y, w, h = row["bbox"]
        share = 1.0 if at % 2 else 0.3
        box = [x, y, w * share, h] if form == "xywh" else [x, y, x + w * share, y + h]
        output.append({"id": row["id"], "pred_bbox": box, "format": form})
    return output


def convert(path: Path, values: object) -> int:
    path.write_text(json.dumps(values))
    return main(["score", "--convert", "--data", ALL, str(path)])


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("form", ["xywh", "xyxy"])
def test_a_converted_file_gets_published_and_corrected_metrics(form: str, tmp_path: Path) -> None:
    for _ in range(2):
        assert convert(tmp_path / "theirs.json", items(form)) == 0
    metrics = json.loads((tmp_path / f"theirs_{ALL}_provenance.json").read_text())["metrics"]
    assert [metrics[name] for name in ("acc_0.5", "macc", "class_acc")] == [50, 50, 50]
    assert metrics["class_acc_corrected"] == pytest.approx(200 / 3), "bird is a bus in the authors'"


def as_mask(box: list[float], kind: str, folder: Path, name: str) -> object:
    """Return a box of whole pixels as a mask whose tight box it is."""
    x, y, w, h = map(round, box)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[y : y + h, x + w // 2] = 1
    mask[y + h // 2, x : x + w] = 1
    packed = packed_mask(mask)
    if kind == "compressed":
        return {"size": [HEIGHT, WIDTH], "counts": packed.packed}
    if kind == "counts":
        return {"size": [HEIGHT, WIDTH], "counts": list(packed.counts)}
    if kind == "picture":
        Image.fromarray(255 * mask).save(folder / f"{name}.png")
        return f"{name}.png"
    return [[x, y, x + w, y, x + w, y + h]]


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("kind", ["compressed", "counts", "picture", "polygon"])
def test_masks_score_as_their_tight_boxes(kind: str, tmp_path: Path, capsys: Capture) -> None:
    """A record of no row is not used, a mask of nothing no box."""
    boxes = []
    masks: list[dict[str, Any]] = []
    for item in items():
        box = [*map(round, item["pred_bbox"])]
        boxes.append({"id": item["id"], "pred_bbox": box, "format": "xywh"})
        mask = as_mask(box, kind, tmp_path, str(item["id"]))
        masks.append({"id": item["id"], "pred_mask": mask})
    assert convert(tmp_path / "boxes.json", boxes) == 0
    capsys.readouterr()
    masks.append({"id": 10**6, "pred_mask": None})
    assert convert(tmp_path / "masks.json", masks) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{len(boxes)} boxes around masks" in shown
    assert "1 record of no row of the set: not used" in shown
    values = []
    for name in ("boxes", "masks"):
        score = json.loads((tmp_path / f"{name}_{ALL}_provenance.json").read_text())
        values.append(score["metrics"])
    assert values[0] == values[1]


@pytest.mark.usefixtures("prepared")
def test_rows_without_a_mask_are_misses(tmp_path: Path, capsys: Capture) -> None:
    nothing = {"size": [HEIGHT, WIDTH], "counts": [HEIGHT * WIDTH]}
    first, second, third, *_ = (item["id"] for item in items())
    mask = [[0, 0, 9, 0, 9, 9]]
    records = [
        {"id": first, "mask": nothing},
        {"id": second, "mask": None},
        {"id": float(third), "mask": mask},
    ]
    assert convert(tmp_path / "masks.json", records) == 0
    shown = " ".join(capsys.readouterr().out.split())
    rows = len(items())
    assert "1 box around masks" in shown
    assert "1 empty mask: no box" in shown
    assert f"{rows - 2} rows without a mask: no box" in shown


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize(
    ("mask", "says"),
    [
        ({"size": [8, 9], "counts": [8, 8, 56]}, "the mask is of 9 x 8 pixels, and its image of"),
        ({"size": [8, 9], "counts": "abc"}, "not run lengths of COCO"),
        ({"counts": [1, 2]}, "is neither"),
        ("gone.png", "gone.png"),
        ("../one.png", "../one.png"),
        ([[1, 2, 3]], "odd number of coordinates"),
        (7, "is neither"),
    ],
)
def test_masks_that_cannot_be_read_are_refused(
    mask: object, says: str, tmp_path: Path, capsys: Capture
) -> None:
    assert convert(tmp_path / "masks.json", [{"id": items()[0]["id"], "pred_mask": mask}]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "masks.json, entry 1, pred_mask" in error
    assert says in error
    assert not list(tmp_path.glob("masks_*"))


@pytest.mark.usefixtures("prepared")
def test_files_that_are_refused(tmp_path: Path, capsys: Capture) -> None:
    unknown = [{**each, "id": str(each["id"])} for each in items()]
    for values, code in (
        ([*items(), items()[0]], "duplicate_id"),
        (unknown, "no_prediction_id_matches"),
    ):
        assert convert(tmp_path / "bad.json", values) == 2
        result = capsys.readouterr().err
        assert f"({code})" in result
        assert "bad.json" in result
    assert not list(tmp_path.glob("bad_*"))

    run = tmp_path / f"theirs_{ALL}.json"
    run.write_text("[]")
    assert convert(tmp_path / "theirs.json", items()) == 2
    output = capsys.readouterr().err
    assert f"{run}: is there with other replies" in output
    assert f"run_findit.py score {run}" in output
    assert run.read_text() == "[]"
