"""The curve of rewards in a training, as a table that a terminal has room for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from ..sweeps import LoggedRewards
from .columns import Column, count_column, table_of
from .result_table import Note, Table

MOST_ROWS = 10


def reward_table(title: str, logged: Sequence[LoggedRewards]) -> Table:
    """Make at most :data:`MOST_ROWS` rows of rewards by step, each the mean of as many log lines.

    >>> steps = [LoggedRewards(step, {"f1": step / 100}) for step in range(1, 41)]
    >>> table = reward_table("ft", steps)
    >>> table.records()[0], len(table.records())
    ({'to step': 4, 'f1': '0.025'}, 10)
    """
    size = -(-len(logged) // MOST_ROWS)
    spans = [logged[at : at + size] for at in range(0, len(logged), size)] if logged else []
    names: dict[str, None] = {}
    for line in logged:
        names.update(dict.fromkeys(line.means))
    columns: list[Column[Sequence[LoggedRewards]]] = [
        count_column("to step", lambda span: span[-1].step),
        *(Column(name, partial(_mean, name)) for name in names),
    ]
    notes = [Note("", ["Rewards: means of what the trainer logged since the row above"])]
    return table_of(title, columns, spans, notes)


def _mean(name: str, span: Sequence[LoggedRewards]) -> str | None:
    values = [line.means[name] for line in span if name in line.means]
    return f"{fmean(values):.3f}" if values else None
