"""``python -m findit_plates DIR``: a small table and its pictures, to try the benchmark with."""

import csv
import sys
from pathlib import Path

from PIL import Image, ImageDraw

PLATES = ("ABC", "XYZ", "FUN", "LOW")


def main(folder: Path) -> None:
    """Write ``Plates_Few.tsv`` and the folder ``Plates``."""
    (folder / "Plates").mkdir(parents=True, exist_ok=True)
    with (folder / "Plates_Few.tsv").open("w", encoding="utf-8", newline="") as f:
        rows = csv.writer(f, delimiter="\t")
        rows.writerow(("index", "picture", "plate"))
        for index, plate in enumerate(PLATES):
            picture = Image.new("RGB", (120, 60), "white")
            ImageDraw.Draw(picture).text((40, 20), plate, fill="black")
            picture.save(folder / "Plates" / f"{index}.png")
            rows.writerow((index, f"{index}.png", plate))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
