"""Seconds of this process for one reply of ten megabytes, from the model to its score."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_large_replies import KINDS, ratio


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("table", "output"),
    [("Demo", "json"), ("Demo", "text"), ("Demo_multilabel", "text"), ("Demo_video", "text")],
)
def test_no_kind_of_reply_takes_a_second(
    kind: str, table: str, output: str, tmp_path: Path, measures: bool
) -> None:
    if not measures:
        pytest.skip("measures only with --benchmark-enable")
    took, times = ratio(kind, table, output, tmp_path)
    print(f"\n{kind}, {table}, {output}: {took:.2f} s, {times:.0f} times reading and writing it")
    assert took < 1.0
