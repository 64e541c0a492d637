"""Ref-L4: the published rows agree with the paper's counts, and with the shared file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.refl4.benchmark import published
from vlmeval_findit.benchmarks.refl4.expression_tables import table_name
from vlmeval_findit.benchmarks.refl4.refl4_annotations import RefL4Split

MASKS = " (tight boxes of masks)"


def metrics_of_split(split: RefL4Split) -> dict[str, dict[str, float]]:
    return {
        each.model: dict(each.values) for each in published() if each.dataset == table_name(split)
    }


WHOLE = metrics_of_split(RefL4Split.ALL)


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
                f"macc_{each.value}": metrics_of_split(each)[model]["macc"]
                for each in RefL4Split.ALL.parts
            },
            "output": "mask" if model.endswith(MASKS) else "box",
        }
        for model, result in WHOLE.items()
    }
    assert actual == known["ref_l4"]["rows"]
