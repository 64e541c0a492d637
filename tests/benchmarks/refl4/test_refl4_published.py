"""Ref-L4: the published rows agree with the paper's counts, and with what lies beside the clone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.refl4.accuracy_metrics import TWELVE
from vlmeval_findit.benchmarks.refl4.benchmark import published
from vlmeval_findit.benchmarks.refl4.classes import AUTHORS, CORRECTED, OBJECTS365
from vlmeval_findit.benchmarks.refl4.expression_tables import table_name
from vlmeval_findit.benchmarks.refl4.refl4_annotations import RELEASE, SIZES, RefL4Split

MASKS = " (tight boxes of masks)"
TOTAL = RELEASE["expressions of val"] + RELEASE["expressions of test"]


def split_figures(split: RefL4Split) -> dict[str, dict[str, float]]:
    return {one.model: dict(one.values) for one in published() if one.dataset == table_name(split)}


WHOLE = split_figures(RefL4Split.ALL)


def test_there_are_24_rows_of_18_box_and_6_mask_models() -> None:
    masks = [model.endswith(MASKS) for model in WHOLE]
    assert masks == [False] * 18 + [True] * 6
    assert [model for model in WHOLE if "class_acc" in WHOLE[model]] == ["CogVLM-Grounding"]
    for found in WHOLE.values():
        assert {*found, "class_acc"} == {metric.name for metric in TWELVE}
    assert all("2406.16866" in one.where for one in published())


@pytest.mark.parametrize("model", WHOLE)
def test_rows_agree_with_the_sizes_of_their_parts(model: str) -> None:
    found = WHOLE[model]
    for whole, part in (("acc_0.5", "acc"), ("macc", "macc")):
        parts = [(found[f"{size}_{part}"], RELEASE[f"{size} boxes"]) for size in SIZES]
        assert sum(value * count for value, count in parts) / TOTAL == pytest.approx(
            found[whole], abs=0.0101
        )
    splits = sum(
        split_figures(split)[model]["macc"] * RELEASE[f"expressions of {split.value}"]
        for split in RefL4Split.ALL.parts
    )
    assert splits / TOTAL == pytest.approx(found["macc"], abs=0.0101)
    assert found["acc_0.5"] > found["acc_0.75"] > found["acc_0.9"]


def test_names_of_categories() -> None:
    assert list(OBJECTS365) == list(range(1, 366))
    assert (OBJECTS365[1], OBJECTS365[365]) == ("Person", "Table Tennis")
    assert all(name and name == name.strip() for name in OBJECTS365.values())


@pytest.mark.shared
def test_names_and_tables_are_those_beside_the_clone(shared: Path) -> None:
    path = shared / "ref_l4_categories.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    known = json.loads(path.read_text(encoding="utf-8"))
    assert OBJECTS365 == {int(number): name for number, name in known["objects365"].items()}

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
        model.removesuffix(MASKS): {
            **found,
            **{
                f"macc_{one.value}": split_figures(one)[model]["macc"]
                for one in RefL4Split.ALL.parts
            },
            "output": "mask" if model.endswith(MASKS) else "box",
        }
        for model, found in WHOLE.items()
    }
    assert ours == known["ref_l4"]["rows"]
