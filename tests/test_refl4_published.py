"""Ref-L4: the published rows agree with the paper's counts, and with what lies beside the clone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.refl4.annotations import RELEASE, SIZES, Split
from vlmeval_findit.benchmarks.refl4.categories import COCO, OBJECTS365
from vlmeval_findit.benchmarks.refl4.classes import AUTHORS, CORRECTED
from vlmeval_findit.benchmarks.refl4.figures import NAMES
from vlmeval_findit.benchmarks.refl4.published import (
    PUBLISHED,
    PUBLISHED_CLEANED,
    OutputKind,
    PublishedRow,
)

TOTAL = sum(RELEASE.rows.values())


def test_there_are_24_rows_of_18_box_and_6_mask_models() -> None:
    assert len({row.model for row in PUBLISHED}) == len(PUBLISHED) == 24
    assert [row.output for row in PUBLISHED] == [OutputKind.BOX] * 18 + [OutputKind.MASK] * 6
    assert [row.model for row in PUBLISHED if row.class_acc is not None] == ["CogVLM-Grounding"]
    assert all("2406.16866" in row.source for row in (*PUBLISHED, *PUBLISHED_CLEANED))


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.model)
def test_rows_agree_with_the_sizes_of_their_parts(row: PublishedRow) -> None:
    named = row.named
    assert list(named) == list(NAMES)
    for whole, part in (("acc_0.5", "acc"), ("macc", "macc")):
        parts = [(named[f"{size}_{part}"], RELEASE.sizes[size]) for size in SIZES]
        weighted = sum((value or 0) * count for value, count in parts) / TOTAL
        assert weighted == pytest.approx(named[whole], abs=0.0101)
    splits = row.macc_val * RELEASE.rows[Split.VAL] + row.macc_test * RELEASE.rows[Split.TEST]
    assert splits / TOTAL == pytest.approx(row.macc, abs=0.0101)
    assert row.acc_050 > row.acc_075 > row.acc_090


def test_gains_of_cleaning_are_the_published_ones() -> None:
    gains = [round(pair.kept - pair.original, 2) for pair in PUBLISHED_CLEANED]
    assert (min(gains), max(gains), len(gains)) == (1.57, 3.08, 15)
    assert {pair.model for pair in PUBLISHED_CLEANED if pair.fine_tuned} == {"ONE-PEACE", "OFA-L"}
    assert len({(p.model, p.fine_tuned, p.dataset) for p in PUBLISHED_CLEANED}) == 15


def test_names_of_categories() -> None:
    assert list(OBJECTS365) == list(range(1, 366))
    assert len(COCO) == 80
    assert (OBJECTS365[1], OBJECTS365[206], COCO[1], COCO[90]) == (
        "Person", OBJECTS365[206], "person", "toothbrush",
    )  # fmt: skip
    assert all(name and name == name.strip() for name in (*OBJECTS365.values(), *COCO.values()))


@pytest.mark.shared
def test_names_and_tables_are_those_beside_the_clone(shared: Path) -> None:
    path = shared / "ref_l4_categories.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    known = json.loads(path.read_text(encoding="utf-8"))
    assert OBJECTS365 == {int(number): name for number, name in known["objects365"].items()}
    assert COCO == {int(number): name for number, name in known["coco"].items()}

    def table(entries: dict[str, int]) -> dict[str, str]:
        return {f"refcoco_{coco}": f"o365_{o365}" for coco, o365 in entries.items()}

    assert table(known["authors_class"]) == AUTHORS
    assert table({**known["authors_class"], **known["corrected_class"]}) == CORRECTED


@pytest.mark.shared
def test_rows_are_those_beside_the_clone(shared: Path) -> None:
    path = shared / "published_results.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    known = json.loads(path.read_text(encoding="utf-8"))
    ours = {
        row.model: {
            **{name: value for name, value in row.named.items() if value is not None},
            "macc_val": row.macc_val,
            "macc_test": row.macc_test,
            "output": row.output.value,
        }
        for row in PUBLISHED
    }
    assert ours == known["ref_l4"]["rows"]
    pairs: dict[str, dict[str, float]] = {}
    for pair in PUBLISHED_CLEANED:
        row = pairs.setdefault(f"{pair.model}{'*' * pair.fine_tuned}", {})
        row |= {pair.dataset: pair.original, f"{pair.dataset} cleaned": pair.kept}
    assert pairs == known["cleaned_refcoco"]["rows"]
