"""The garbage collector of the process is as it was, after whoever wants it to look rarely."""

from __future__ import annotations

import gc

from vlmeval_findit.core import RARE_COLLECTIONS


def test_overlapping_runs_put_the_garbage_collector_back() -> None:
    """Runs of several threads end in any order; the last puts the process's thresholds back."""
    usual = gc.get_threshold()
    runs = [RARE_COLLECTIONS for _ in range(3)]
    for run in runs:
        run.__enter__()
        assert gc.get_threshold()[0] == 50_000
    for run in (runs[0], runs[2]):
        run.__exit__(None, None, None)
        assert gc.get_threshold()[0] == 50_000
    runs[1].__exit__(None, None, None)
    assert gc.get_threshold() == usual
    gc.set_threshold(600, *usual[1:])
    try:
        with RARE_COLLECTIONS:
            assert gc.get_threshold()[0] == 50_000
        assert gc.get_threshold()[0] == 600, "the thresholds of now, not of the first run"
    finally:
        gc.set_threshold(*usual)
    assert gc.get_freeze_count() == 0
