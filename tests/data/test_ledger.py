"""What an import says of everything that it was given."""

from __future__ import annotations

from vlmeval_findit.data import Fate, Ledger


def test_every_fate_is_said_once_what_was_read_first() -> None:
    ledger = Ledger()
    ledger.note("boxes that are turned", "a.json, annotations[1]")
    ledger.keys("images", ["license", "split", "coco_url"], frozenset({"license"}), "images[0]")
    ledger.keys("images", ["license", "split"], frozenset({"license"}), "images[1]")
    ledger.leave_out("boxes without an area", "", 1200)
    ledger.not_needed("info", "a.json")
    ledger.read("files")
    ledger.read("images", 2)
    ledger.read("boxes", 0)
    assert ledger.lines() == [
        "read: files (1), images (2)",
        "left out: boxes without an area (1,200)",
        "not read: images: split (2), the first: images[0]",
        "not read: images: coco_url (1), the first: images[0]",
        "note: boxes that are turned (1), the first: a.json, annotations[1]",
        "not needed: images: license, info",
    ]
    assert [ledger.count(fate) for fate in Fate] == [3, 1200, 3, 3, 1]
    assert ledger.as_json()[2] == {
        "fate": "left out", "what": "boxes without an area", "count": 1200, "first": "",
    }  # fmt: skip


def test_an_empty_ledger_says_nothing() -> None:
    assert Ledger().lines() == []
    only_known = Ledger()
    only_known.not_needed("info", "a.json")
    assert only_known.lines() == ["not needed: info"]
