"""Ref-L4: the published rows agree with the paper's counts, and with the shared file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.refl4.benchmark import published
from vlmeval_findit.benchmarks.refl4.expression_tables import table_name
from vlmeval_findit.benchmarks.refl4.refl4_annotations import RELEASE, SIZES, RefL4Split

MASKS = " (tight boxes of masks)"
TOTAL = RELEASE["expressions of val"] + RELEASE["expressions of test"]


def split_figures(split: RefL4Split) -> dict[str, dict[str, float]]:
    return {
        each.model: dict(each.values) for each in published() if each.dataset == table_name(split)
    }


WHOLE = split_figures(RefL4Split.ALL)


@pytest.mark.parametrize("model", WHOLE)
def test_rows_agree_with_the_sizes_of_their_parts(model: str) -> None:
    result = WHOLE[model]
    for whole, part in (("acc_0.5", "acc"), ("macc", "macc")):
        parts = [(result[f"{size}_{part}"], RELEASE[f"{size} boxes"]) for size in SIZES]
        assert sum(value * count for value, count in parts) / TOTAL == pytest.approx(
            result[whole], abs=0.0101
        )
    splits = sum(
        split_figures(split)[model]["macc"] * RELEASE[f"expressions of {split.value}"]
        for split in RefL4Split.ALL.parts
    )
    assert splits / TOTAL == pytest.approx(result["macc"], abs=0.0101)
    assert result["acc_0.5"] > result["acc_0.75"] > result["acc_0.9"]


@pytest.mark.shared
def test_rows_equal_the_shared_file(shared: Path) -> None:
    path = shared / "published_results.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    known = json.loads(path.read_text(encoding="utf-8"))
    actual = {
        model.removesuffix(MASKS): {
            **result,
            **{
                f"macc_{each.value}": split_figures(each)[model]["macc"]
                for each in RefL4Split.ALL.parts
            },
            "output": "mask" if model.endswith(MASKS) else "box",
        }
        for model, result in WHOLE.items()
    }
    assert actual == known["ref_l4"]["rows"]
