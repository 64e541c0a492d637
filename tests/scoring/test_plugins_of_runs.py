"""Replies of a run whose plug-in is installed, missing, or another version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import Answering, IdentityError, Reply, Settings
from vlmeval_findit.scoring import pipeline, run_identity

NAME = "FindIt_Scenes_mini_xyxy_json"


@pytest.mark.parametrize(
    ("installed", "message"),
    [
        ({"plates": ["0.1"]}, None),
        ({"plates": ["0.2", "0.1"], "other": ["1"]}, None),
        ({}, "plug-in plates: recorded 0.1, now not here: pip install plates"),
        ({"plates": ["0.2"]}, "plug-in plates: recorded 0.1, now 0.2"),
    ],
)
def test_replies_of_a_run_need_its_plugins(
    installed: Mapping[str, Sequence[str]], message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "installed_plugins", lambda: installed)
    dataset = load_dataset(NAME)
    run = run_identity(dataset, "M", Answering("Test"), list(dataset.queries), {"kind": "pixels"})
    run = replace(run, plugins={"plates": "0.1"})
    replies = [Reply(index, "[]") for index in dataset.queries]
    if message is None:
        assert pipeline.check_replies("M", dataset, replies, Settings(), run).identity == run
        return
    with pytest.raises(IdentityError, match=message):
        pipeline.check_replies("M", dataset, replies, Settings(), run)
