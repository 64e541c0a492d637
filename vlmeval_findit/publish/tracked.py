"""What a tracker is given of a scored run, and each run once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.files import sha256_of
from ..core.spelling import counted
from ..leaderboard.slices import run_slices_table
from ..report.transcripts import gather
from ..runs.scored_run import Run
from .copies import check_whole, private_of
from .private import Private
from .tables import run_rows
from .worst import Answer, worst_answers

KEY = "findit.run"
"""The tag by which a logged run is known again."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """A run as a tracker takes it, without secrets and paths of this machine.

    ``figures`` are in percent, with their intervals and those of slices, beside counts; ``params``
    are what the run was; ``worst`` its worst answers, the worst first.
    """

    run: Run
    key: str
    name: str
    params: Mapping[str, str]
    figures: Mapping[str, float]
    worst: Sequence[Answer]
    private: Private


def log_each(
    runs: Sequence[Run],
    pictures: int,
    known: Callable[[str], bool],
    log: Callable[[Tracked], None],
) -> Iterator[str]:
    """Log those runs that a tracker does not know.

    Args:
        runs: scored ones.
        pictures: how many of a run's worst answers are logged.
        known: whether a run of this key is there, whole; removes what was left of it if not.
        log: logs one run.

    Raises:
        RunError: a run is not whole; nothing is logged.
    """
    for run in runs:
        check_whole(run)
    private = private_of(runs)
    new = 0
    without: dict[str, int] = {}
    for run in runs:
        key = key_of(run)
        if known(key):
            continue
        (row,) = run_rows([run], [run.path.stem])
        found, missing = gather([run])
        for one in missing:
            without[one.reason] = without.get(one.reason, 0) + 1
        worst = [answer for one in found for answer in worst_answers(one, pictures, private)]
        figures = dict(_figures(row)) | dict(_of_slices(run_slices_table(run).records()))
        name = private.ours(f"{run.model} {run.question.name}")
        params = {name: private.ours(text) for name, text in _params(row)}
        log(Tracked(run, key, name, params, figures, worst, private))
        new += 1
    before = "" if new == len(runs) else "; the others were there before, and stay as they are"
    yield f"{new:,} of {counted(len(runs), 'run')} logged now{before}"
    for reason, count in list(without.items())[:3]:
        yield f"{counted(count, 'run')} without answers: {reason}"


def key_of(run: Run) -> str:
    """What a run is known by: who was asked what, what was answered, and how that was scored."""
    basis = run.basis
    sums = sorted((name, round(value, 6)) for name, value in run.sums.items())
    said = [run.model, run.question.name, basis.digest, basis.predictions_sha256, sums]
    return sha256_of(json.dumps([*said, basis.spaces], sort_keys=True).encode())[:32]


def plain_name(text: str) -> str:
    """A name as every tracker takes it.

    >>> plain_name("F1@0.5 (failed calls as misses)")
    'F1 at 0.5 - failed calls as misses'
    """
    text = re.sub(r"\s*\((.*?)\)", r" - \1", text.replace("@", " at "))
    return re.sub(r"[^\w\-. :/]", "_", text)


def _figures(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield plain_name(name), float(value)


def _of_slices(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    for row in rows:
        before = plain_name(f"{row['slice']}={row['value']}".replace("/", "_").replace("=", ": "))
        for name, value in row.items():
            if name not in ("slice", "value") and isinstance(value, int | float):
                yield f"{before}/{plain_name(name)}", float(value)


def _params(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if isinstance(value, str) and value:
            yield plain_name(name), value
        elif isinstance(value, dict | list) and value:
            yield plain_name(name), json.dumps(value, ensure_ascii=False)
