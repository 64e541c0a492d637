"""``python -m findit_plates DIR``: four pictures, their table, and boxes, to try it all with."""

import json
import sys
from pathlib import Path

from PIL import Image, ImageDraw

from vlmeval_findit.storage import write_table

from .plates.benchmark import Query

PLATES = ("ABC", "XYZ", "FUN", "LOW")


def main(folder: Path) -> None:
    """Write ``Plates_Few.tsv``, the folder ``Plates``, and ``plates.json`` for the data source."""
    (folder / "Plates").mkdir(parents=True, exist_ok=True)
    images, boxes = [], []
    queries = []
    for index, plate in enumerate(PLATES):
        picture = Image.new("RGB", (120, 60), "white")
        name = f"{index}.png"
        ImageDraw.Draw(picture).rectangle((30, 15, 90, 35), outline="black")
        ImageDraw.Draw(picture).text((50, 20), plate, fill="black")
        picture.save(folder / "Plates" / name)
        queries.append(Query(index=index, images=(name,), cluster=name, plate=plate))
        images.append({"id": index, "file_name": name, "width": 120, "height": 60})
        box = {"id": index, "image_id": index, "category_id": 1, "bbox": [30, 15, 60, 20]}
        boxes.append({**box, "area": 1200, "iscrowd": 0})
    write_table(folder / "Plates_Few.tsv", Query, queries, {"source": "drawn"})
    whole = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "plate"}]}
    (folder / "plates.json").write_text(json.dumps(whole), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
