"""Progress without a terminal: lines, also while nothing ends."""

from __future__ import annotations

import pytest
from waits import until

from vlmeval_findit.cli import SweepProgress
from vlmeval_findit.engine import PlannedCalls
from vlmeval_findit.protocol import CallResult, ReplyRecord


class Lines:
    """What was printed so far."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured
        self.all: list[str] = []

    def read(self) -> list[str]:
        self.all += self._captured.readouterr().err.splitlines()
        return self.all


def test_a_sweep_in_which_nothing_ends_goes_on_to_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines(capsys)
    with SweepProgress(every=0.01) as progress:
        progress.planned("M", PlannedCalls(cells=2, calls=12, finished=3))
        until(lambda: len(lines.read()) >= 4)
    assert all("M  cells 0/2  calls 3/12" in line for line in lines.all)
    told = len(lines.read())
    assert len(lines.read()) == told, "the thread has ended with the block"


def test_nothing_is_repeated_once_all_calls_have_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with SweepProgress(every=0.01) as progress:
        progress.planned("M", PlannedCalls(cells=1, calls=1, finished=0))
        progress.answered([CallResult("[]")])
        capsys.readouterr()
        progress._go_on()
        assert capsys.readouterr().err == ""


def test_tokens_of_all_answers_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    counted = [{}, {"prompt": 600}, {"prompt": 400, "completion": 20}]
    with SweepProgress() as progress:
        progress.planned("M", PlannedCalls(cells=1, calls=3, finished=0))
        progress.answered([CallResult("[]", ReplyRecord(tokens=tokens)) for tokens in counted])
        progress.print_tokens()
    assert "tokens: 1,000 in; 20 out" in capsys.readouterr().err
