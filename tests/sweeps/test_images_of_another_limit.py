"""Answers about images of one size limit are no answers about images of another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from engine_fakes import FakeDeployment, FakeModel, demo_sweep, go

from vlmeval_findit.protocol import IdentityError
from vlmeval_findit.sweeps import Sweep


def sweep(folder: Path, limit: int | None) -> Sweep:
    space = "{kind: grid1000}" if limit is None else f"{{kind: grid1000, scene_max_size: {limit}}}"
    text = f"{{models: [{{name: FullImage, space: {space}}}], datasets: [Demo], limit: 3,"
    return demo_sweep(folder, text + " representations: [xyxy], outputs: json}")


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (None, 64, "has answers for images sent whole"),
        (64, None, "has answers for images sent with at most 64 pixels a side"),
        (64, 48, "has answers for images sent with at most 64 pixels a side"),
    ],
)
def test_they_are_refused_before_anything_is_written(
    tmp_path: Path, before: int | None, now: int | None, words: str
) -> None:
    go(sweep(tmp_path, before), FakeDeployment(FakeModel()))
    again = replace(sweep(tmp_path, now), work_dir=tmp_path / "other")
    model = FakeModel()
    with pytest.raises(IdentityError, match=words):
        go(again, FakeDeployment(model))
    assert not list((tmp_path / "other").rglob("*_FindIt_*"))


def test_the_same_limit_goes_on_in_another_folder(tmp_path: Path) -> None:
    go(sweep(tmp_path, 64), FakeDeployment(FakeModel()))
    again = replace(sweep(tmp_path, 64), work_dir=tmp_path / "other")
    go(again, FakeDeployment(FakeModel()))
    assert list((tmp_path / "other").rglob("*_score.csv"))
