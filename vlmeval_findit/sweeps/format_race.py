"""A race of a model's formats: stage by stage, round by round, from calls to files.

Decisions depend only on the answers to each round's queries, not on other content of the journal or
a file. So a resumed race, or a race after a full search, drops the same formats after the same
rounds and repeats no call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from ..analysis import RACE_ROUNDS, rank_round, rounds_of
from ..benchmarks import benchmark_of
from ..engine import (
    Backend,
    Deployment,
    Engine,
    ModelStoppedError,
    Output,
    begin_output,
    score_in_memory,
)
from ..protocol import DatasetVariant, Identity
from ..scoring import CellResult, DroppedFormat, RunScore, refuse_unanswered, result_of
from ..statistics import drop_allowance
from ..storage import read_identity


@dataclass(frozen=True, slots=True)
class RaceCell:
    """One cell of a format in the race."""

    whole: Output  # over all its rows
    rounds: tuple[tuple[int, ...], ...]  # cumulative rows of each round
    done: int = 0  # rounds

    @property
    def rows(self) -> tuple[int, ...]:
        return self.rounds[self.done - 1] if self.done else ()


Formats = dict[str, tuple[RaceCell, ...]]  # the cells of every format, one per table


@dataclass
class FormatRace:
    """The race of one model's formats."""

    engine: Engine
    deployment: Deployment
    stages: int
    _done: int = field(default=0, init=False)  # stages
    _spent: float = field(default=0.0, init=False)
    _front: tuple[RaceCell, ...] = field(default=(), init=False)

    @property
    def front(self) -> tuple[DatasetVariant, ...]:
        """The variants of the leading format, whose results come with the last stage."""
        return tuple(cell.whole.cell.variant for cell in self._front)

    def stage(self, outputs: Sequence[Output]) -> list[CellResult]:
        """Race the formats of a stage against each other and the leading format.

        Returns the results of all formats but the new leader, which may have been asked only some
        rows; after the last stage it is asked the rest and included.

        Raises:
            SearchError: no call of a cell was answered.
            ModelStoppedError: the model must not be called any more.
            StoppedError: a stop was requested.
            JournalError: replies cannot be written any more.
        """
        rounds = (tuple(rounds_of(output.cell.dataset, output.cell.rows)) for output in outputs)
        new = map(RaceCell, outputs, rounds)
        formats, uneven = _by_format([*self._front, *new])
        results = self.engine.run_model(self.deployment, uneven)
        backend = self.deployment.backend()
        for number in range(1, 1 + len(RACE_ROUNDS)):
            if len(formats) == 1:
                break
            formats = self._ask(formats, number, backend, results)
            formats, dropped = self._decide(formats, number)
            results += dropped
        self._front, *others = formats.values()
        self._done += 1
        for cells in others:
            results += self._write(cells, None)
        if self._done == self.stages:
            whole = self._ask({"": self._front}, len(RACE_ROUNDS), backend, results)
            results += self._write(whole[""], None)
        return results

    def _decide(self, formats: Formats, number: int) -> tuple[Formats, list[CellResult]]:
        """Return the formats that stay after a round, best first, and the others' results."""
        scores = {name: [self._score(cell) for cell in of] for name, of in formats.items()}
        for cell, score in zip(_race_cells(formats), chain(*scores.values()), strict=True):
            if score.is_unanswered:
                self._write([cell], None)
                refuse_unanswered([result_of(score, cell.whole.path)])
        first = next(iter(formats.values()))
        asked, rows = _progress(first)
        share = asked / rows
        now = rank_round(
            benchmark_of(first[0].whole.cell.variant),
            {name: {s.dataset.variant: s.rows for s in of} for name, of in scores.items()},
            share,
            drop_allowance(self._done, self.stages, share, self._spent),
        )
        dropped = []
        front = now.going[0].variant.format
        for out in now.out:
            self._spent += out.chance
            cells = formats[out.format]
            why = DroppedFormat(number, *_progress(cells), front, out.points, out.chance)
            dropped += self._write(cells, why)
        return {standing.format: formats[standing.format] for standing in now.going}, dropped

    def _ask(
        self, formats: Formats, number: int, backend: Backend, results: list[CellResult]
    ) -> Formats:
        """Ask the formats the further rows of a round; failed calls are left to the next run."""
        asking: list[Output] = []
        for cell in _race_cells(formats):
            if rows := set(cell.rounds[number - 1]) - set(cell.rows):
                asking.append(_narrowed(cell.whole, rows, {*rows, *cell.rows, *_recorded(cell)}))
        begun: dict[Path, Identity] = {}
        if asking:
            answered = self.engine.answer(self.deployment, asking, backend)
            if answered.last is not None:
                raise ModelStoppedError(self.deployment.name, answered.last, results)
            begun = {output.path: output.identity for output in answered.outputs.values()}

        def after(cell: RaceCell) -> RaceCell:
            whole = cell.whole
            before = cell.whole.identity
            identity = replace(begun.get(whole.path, before), rows=before.rows)
            done = max(cell.done, number)
            return RaceCell(replace(whole, identity=identity), cell.rounds, done)

        return {name: tuple(map(after, of)) for name, of in formats.items()}

    def _score(self, cell: RaceCell) -> RunScore:
        """Score the rows that the race has asked, whatever else was answered."""
        output = _narrowed(cell.whole, cell.rows, cell.whole.cell.rows)
        return score_in_memory(output, self.engine.journal)

    def _write(self, cells: Iterable[RaceCell], why: DroppedFormat | None) -> list[CellResult]:
        """Write and return the results of a format, with all it was ever asked."""
        results = []
        journal = self.engine.journal
        for cell in cells:
            output = cell.whole
            known = zip(output.cell.rows, output.cell.call_keys(), strict=True)
            answered = {row for row, key in known if journal.get(key) is not None}
            rows = {*cell.rows, *(answered & _recorded(cell))}
            output = begin_output(_narrowed(output, rows, rows), None, (), journal, [output.path])
            result = self.engine.finish(output)
            self.engine.watcher.scored(result)
            results.append(replace(result, dropped=why))
        return results


def _by_format(cells: Sequence[RaceCell]) -> tuple[Formats, list[Output]]:
    """Split cells into formats asked on every table, and others, which cannot win."""
    by_name: dict[str, list[RaceCell]] = {}
    for cell in cells:
        by_name.setdefault(cell.whole.cell.variant.format, []).append(cell)
    tables = {cell.whole.cell.variant.board_dataset for cell in cells}
    whole = {name: tuple(of) for name, of in by_name.items() if len(of) == len(tables)}
    return whole, [cell.whole for name, of in by_name.items() if name not in whole for cell in of]


def _race_cells(formats: Formats) -> Iterator[RaceCell]:
    return chain.from_iterable(formats.values())


def _progress(of: Iterable[RaceCell]) -> tuple[int, int]:
    """Return the number of rows that were asked, and of all."""
    cells = list(of)
    asked = sum(len(cell.rows) for cell in cells)
    rows = sum(len(cell.rounds[-1]) for cell in cells)
    return asked, rows


def _recorded(cell: RaceCell) -> set[int]:
    recorded = read_identity(cell.whole.path)
    return set((recorded and recorded.rows) or ())


def _narrowed(output: Output, asked: Iterable[int], of: Iterable[int]) -> Output:
    """Restrict a cell to some rows, in a run over ``of``."""
    asked = frozenset(asked)
    of = frozenset(of)
    rows = output.cell.rows
    return replace(
        output,
        cell=replace(output.cell, rows=tuple(row for row in rows if row in asked)),
        identity=replace(output.identity, rows=tuple(row for row in rows if row in of)),
    )
