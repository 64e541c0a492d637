"""Ref-L4's lists of wrong expressions find the rows of RefCOCO in every copy that people have."""

from __future__ import annotations

from pathlib import Path

import pytest
import refcoco_stand_ins as copies
from published_lists import write_list
from published_stand_ins import known
from test_importing import import_set

from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.storage import read_reviews

pytestmark = pytest.mark.usefixtures("data_root")

WRONG = {"left man", "dog"}


def write_reviewed(path: Path) -> Path:
    """Write the list of the split val: an entry an expression, with COCO's number of its object."""
    entries = [
        {
            "ann_id": thing.id,
            "image_id": thing.image,
            "bbox": thing.sides,
            "caption": text,
            "caption_quality": int(text not in WRONG),
        }
        for thing in copies.of_split("val")
        for text in thing.texts
    ]
    return write_list(path, entries)


@pytest.mark.parametrize("copy", copies.COPIES)
def test_a_list_finds_its_rows_in_every_copy(
    copy: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    known(monkeypatch, "RefCOCOFull", parts=copies.COUNTS)
    assert import_set("RefCOCOFull", copies.COPIES[copy](tmp_path / "copy")) == 0
    path = write_reviewed(tmp_path / "refcoco_val_reviewed.json")
    out = tmp_path / "reviews.jsonl"
    capsys.readouterr()
    words = [str(path), "--data", "RefCOCOFull_val", "--out", str(out)]
    assert main(["data", "reviews", *words]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("5 of 5 rows of RefCOCOFull_val are in the list")
    queries = load_dataset("FindIt_RefCOCOFull_val_xyxy_json").queries
    verdicts = {review.index: review.verdict.value for review in read_reviews([out]).reviews}
    wrong = {index for index, query in queries.items() if query.label in WRONG}
    assert {index for index, verdict in verdicts.items() if verdict == "exclude"} == wrong
    assert len(verdicts) == 5
