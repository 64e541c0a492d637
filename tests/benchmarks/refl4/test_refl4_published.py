"""Ref-L4: the published rows are those of the shared file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.refl4 import published

MASKS = " (tight boxes of masks)"


@pytest.mark.shared
def test_rows_equal_the_shared_file(shared: Path) -> None:
    path = shared / "published_results.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    actual: dict[str, dict[str, object]] = {}
    for each in published():
        output = "mask" if each.model.endswith(MASKS) else "box"
        row = actual.setdefault(each.model.removesuffix(MASKS), {"output": output})
        split = each.dataset.removeprefix("RefL4Full_")
        row |= each.values if split == "all" else {f"macc_{split}": each.values["macc"]}
    assert actual == json.loads(path.read_text(encoding="utf-8"))["ref_l4"]["rows"]
