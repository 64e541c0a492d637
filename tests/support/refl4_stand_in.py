"""A few invented annotations in the layout and column types of Ref-L4's Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from vlmeval_findit.cli import main

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("caption", pa.string()),
        ("bbox", pa.list_(pa.float64())),
        ("bbox_area", pa.float64()),
        ("bbox_id", pa.int64()),
        ("ori_category_id", pa.string()),
        ("image_id", pa.string()),
        ("height", pa.int64()),
        ("width", pa.int64()),
        ("file_name", pa.string()),
        ("is_rewrite", pa.bool_()),
        ("split", pa.string()),
    ]
)
WIDTH, HEIGHT = 640, 480
CATEGORIES = ("refcoco_16", "refcoco_1", "o365_57", "o365_300")
BOXES = (
    [10.5, 20.25, 60.0, 70.5],
    [100.0, 100.0, 200.0, 180.0],
    [0.0, 0.0, 600.0, 470.0],
    [300.0, 50.0, 100.0, 100.0],
)


def rows(split: str, first: int, count: int) -> list[dict[str, Any]]:
    """``count`` expressions; every picture has two."""
    annotations = []
    for number in range(first, first + count):
        box = BOXES[number % 4]
        picture = number // 2
        source = "COCO_train2014" if picture % 2 else "objects365_v1"
        annotations.append(
            {
                "id": number,
                "caption": f"the {'very ' * (number % 3 * 9)}long way to say what number "
                f'{number} is, "quoted" and\twith a tab',
                "bbox": box,
                "bbox_area": box[2] * box[3],
                "bbox_id": number,
                "ori_category_id": CATEGORIES[number % 4],
                "image_id": f"{'coco' if picture % 2 else 'o365'}_{picture}",
                "height": HEIGHT,
                "width": WIDTH,
                "file_name": f"{source}_{picture:012d}.jpg",
                "is_rewrite": number % 2 == 0,
                "split": split,
            }
        )
    return annotations


VAL = rows("val", 1000, 8)
TEST = rows("test", 3000, 12)


def write_parquet(folder: Path, **splits: list[dict[str, Any]]) -> Path:
    """``ref-l4-<split>.parquet`` in a folder (default: both)."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, given in (splits or {"val": VAL, "test": TEST}).items():
        pq.write_table(pa.Table.from_pylist(given, SCHEMA), folder / f"ref-l4-{split}.parquet")
    return folder


def write_images(folder: Path) -> Path:
    """Return every picture that the rows name."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in (*VAL, *TEST):
        path = folder / row["file_name"]
        if not path.exists():
            number = int(row["image_id"].partition("_")[2])
            Image.new("RGB", (WIDTH, HEIGHT), (number * 7 % 256, 90, 120)).save(path)
    return folder


def prepared(lmu: Path, parquet: Path) -> Path:
    """LMUData with the pictures and the tables that ``data get`` makes of the Parquet files."""
    write_images(lmu / "images" / "RefL4")
    write_parquet(parquet)
    names = [f"RefL4Full_{split}" for split in ("val", "test", "all")]
    arguments = ["data", "get", *names, "--from", str(parquet), "--no-images", "--force"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(parquet)
        patch.setenv("LMUData", str(lmu))
        assert main(arguments) == 0
    return lmu
