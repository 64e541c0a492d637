"""A few invented expressions in the layouts of the copies of RefCOCO that people have."""

from __future__ import annotations

import base64
import csv
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from published_stand_ins import HEIGHT, WIDTH, picture, write_parquet

from vlmeval_findit.data import Counts


class Thing(NamedTuple):
    """An object with its expressions."""

    split: str
    image: int
    id: int
    sides: list[float]
    texts: list[str]


THINGS = (
    Thing("val", 1, 11, [10.0, 20.0, 50.0, 40.0], ["man on the left", "left man"]),
    Thing("val", 1, 12, [100.0, 10.0, 60.5, 80.0], ["woman"]),
    # Two people said the same.
    Thing("val", 2, 13, [0.0, 0.0, 30.0, 30.0], ["dog", "dog"]),
    Thing("testA", 3, 14, [5.0, 5.0, 100.0, 90.0], ["him", "tall one"]),
    Thing("testB", 4, 15, [50.0, 50.0, 20.0, 20.0], ["cup"]),
    Thing("train", 5, 16, [50.0, 50.0, 40.0, 40.0], ["bus"]),
)
COUNTS = {
    "val": Counts(images=2, queries=5),
    "testA": Counts(images=1, queries=2),
    "testB": Counts(images=1, queries=1),
}


def of_split(split: str) -> list[Thing]:
    return [thing for thing in THINGS if thing.split == split]


def file_name(image: int) -> str:
    return f"COCO_train2014_{image:012}.jpg"


def corners(thing: Thing) -> list[float]:
    x, y, w, h = thing.sides
    return [x, y, x + w, y + h]


def write_train2014(folder: Path) -> None:
    images = folder / "train2014"
    images.mkdir(parents=True, exist_ok=True)
    for thing in THINGS:
        (images / file_name(thing.image)).write_bytes(picture(thing.image))


# --- annotations ----------------------------------------------------------------------------------


def lines(split: str) -> Iterator[dict[str, Any]]:
    for thing in of_split(split):
        for text in thing.texts:
            image = f"data/coco/train2014/{file_name(thing.image)}"
            size = {"width": WIDTH, "height": HEIGHT}
            yield {"image": image, "sent": text, "bbox": corners(thing), **size}


def write_lines(folder: Path, stem: str = "refcoco") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split in COUNTS:
        text = "\n".join(map(json.dumps, lines(split)))
        (folder / f"{stem}_{split}.jsonl").write_text(text)
    return folder


def refs() -> list[dict[str, Any]]:
    return [
        {
            "sent_ids": list(range(len(thing.texts))),
            "file_name": f"COCO_train2014_{thing.image:012}_{thing.id}.jpg",
            "ann_id": thing.id,
            "ref_id": at,
            "image_id": thing.image,
            "split": thing.split,
            "sentences": [
                {"tokens": text.split(), "raw": f"{text}!", "sent_id": number, "sent": text}
                for number, text in enumerate(thing.texts)
            ],
            "category_id": 1,
        }
        for at, thing in enumerate(THINGS)
    ]


def write_refs(folder: Path, protocol: int = 2, instances: bool = True) -> Path:
    place = folder / "refcoco"
    place.mkdir(parents=True, exist_ok=True)
    (place / "refs(unc).p").write_bytes(pickle.dumps(refs(), protocol))
    if instances:
        size = {"width": WIDTH, "height": HEIGHT}
        images = {thing.image: file_name(thing.image) for thing in THINGS}
        values = {
            "images": [{"id": id, "file_name": name, **size} for id, name in images.items()],
            "annotations": [
                {"id": thing.id, "image_id": thing.image, "bbox": thing.sides} for thing in THINGS
            ],
        }
        (place / "instances.json").write_text(json.dumps(values))
    return folder


def write_objects(folder: Path) -> Path:
    """Write jxu124/refcoco."""
    for split, name in {"val": "validation", "testA": "test", "testB": "testB"}.items():
        rows = [
            {
                "image_path": f"coco/train2014/{file_name(thing.image)}",
                "bbox": corners(thing),
                "sentences": [{"raw": text.upper(), "sent": text} for text in thing.texts],
                "raw_image_info": "{}",
            }
            for thing in of_split(split)
        ]
        write_parquet(folder, name, rows)
    return folder


def write_lists(folder: Path) -> Path:
    """Write the lists of VLM-R1."""
    place = folder / "rec_jsons_processed"
    place.mkdir(parents=True)
    for split in COUNTS:
        entries = [
            {
                "image": f"coco/train2014/{file_name(thing.image)}",
                "normal_caption": text,
                "problem": f"Where is {text}?",
                "solution": corners(thing),
            }
            for thing in of_split(split)
            for text in thing.texts
        ]
        (place / f"refcoco_{split}.json").write_text(json.dumps(entries))
    return folder


def write_expressions(folder: Path) -> Path:
    """Write Kangheng/refcoco."""
    for split in COUNTS:
        rows = [
            {
                "question": text,
                "bbox": json.dumps(corners(thing)),
                "image": {"bytes": picture(thing.image, "PNG"), "path": None},
                "image_size": [WIDTH, HEIGHT],
            }
            for thing in of_split(split)
            for text in thing.texts
        ]
        write_parquet(folder, split, rows)
    return folder


def image_cell(image: int) -> dict[str, Any]:
    return {"bytes": picture(image), "path": None}


def write_image_rows(folder: Path) -> Path:
    """Write jxu124/refcoco-benchmark."""
    for split in COUNTS:
        rows = []
        for image in dict.fromkeys(thing.image for thing in of_split(split)):
            things = [thing for thing in of_split(split) if thing.image == image]
            info = {"file_name": file_name(image), "width": WIDTH, "height": HEIGHT}
            listed = [
                {
                    "ann_info": {"bbox": thing.sides, "id": thing.id},
                    "ref_info": {"sentences": [{"sent": text} for text in thing.texts]},
                }
                for thing in things
            ]
            rows.append({"ref_list": listed, "image_info": info, "image": image_cell(image)})
        write_parquet(folder, f"refcoco_unc_{split}", rows)
    return folder


def answers(split: str) -> list[dict[str, Any]]:
    return [
        {
            "question_id": str(thing.id),
            "image": image_cell(thing.image),
            "answer": thing.texts,
            "bbox": thing.sides,
            "file_name": f"COCO_train2014_{thing.image:012}_{thing.id}.jpg",
        }
        for thing in of_split(split)
    ]


def write_answers(folder: Path) -> Path:
    """Write lmms-lab/RefCOCO: Google's val, in val, has an object of UNC's val and of its train."""
    mixed = [*answers("val")[:2], *answers("train"), answers("val")[0], answers("val")[2]]
    write_parquet(folder, "val", mixed)
    for split in ("testA", "testB"):
        write_parquet(folder, split, answers(split))
    return write_parquet(folder, "test", answers("train"))


PROMPT = "Where is what is meant here? "


def tsv_rows() -> list[dict[str, str]]:
    rows = []
    names = {"val": "RefCOCO val", "testA": "RefCOCO test-A", "testB": "RefCOCO test-B"}
    names["train"] = "RefCOCO+ test-A"
    for thing in THINGS:
        x1, y1, x2, y2 = corners(thing)
        fractions = [x1 / WIDTH, y1 / HEIGHT, x2 / WIDTH, y2 / HEIGHT]
        for text in thing.texts:
            row = {"index": str(len(rows)), "category": names[thing.split]}
            row["image"] = base64.b64encode(picture(thing.image)).decode()
            row["question"] = f"{PROMPT}<ref>{text}</ref>"
            row["answer"] = f"[{', '.join(f'{part:.6f}' for part in fractions)}]"
            rows.append(row)
    return rows


def write_tsv(folder: Path, rows: list[dict[str, str]] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = rows or tsv_rows()
    with (folder / "RefCOCO.tsv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), delimiter="\t")
        table.writeheader()
        table.writerows(rows)
    return folder


def _with_images(write: Callable[[Path], Path]) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        write_train2014(folder)
        return write(folder)

    return written


# By what the reader calls them
COPIES: dict[str, Callable[[Path], Path]] = {
    "Qwen-VL's JSON lines": _with_images(write_lines),
    "the authors' refs(…).p": _with_images(write_refs),
    "jxu124/refcoco of the hub": _with_images(write_objects),
    "jxu124/refcoco-benchmark of the hub": write_image_rows,
    "VLM-R1's lists": _with_images(write_lists),
    "Kangheng's of the hub": write_expressions,
    "VLMEvalKit's RefCOCO.tsv": write_tsv,
}
