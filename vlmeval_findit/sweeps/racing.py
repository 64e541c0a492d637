"""A race of a model's formats: stage by stage, round by round, from calls to files.

Decisions depend only on the answers to each round's queries, not on what else the journal or a file
has. So a resumed race, or one after a full search, drops the same formats after the same rounds and
repeats no call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from ..benchmarks import benchmark_of
from ..core.identity import read_identity
from ..core.question import Question
from ..engine.answering import Engine, ModelStoppedError
from ..engine.backend import Backend
from ..engine.cell_files import in_memory
from ..engine.outputs import Output, begin
from ..models.entry import ModelEntry
from ..runs.cell_results import CellResult, DroppedFormat, refuse_unanswered, result_of
from ..runs.race import ROUNDS, Elimination, allowance, rank_round, rounds_of
from ..runs.score import RunScore
from .config import Race


@dataclass(frozen=True, slots=True)
class Lane:
    """One cell of a format in the race."""

    whole: Output  # over all its rows
    rounds: tuple[tuple[int, ...], ...]  # cumulative rows of each round
    done: int = 0  # rounds

    @property
    def rows(self) -> tuple[int, ...]:
        return self.rounds[self.done - 1] if self.done else ()


Runners = dict[str, tuple[Lane, ...]]  # the cells of every format, one per table


@dataclass
class Racing:
    """The race of one model's formats."""

    engine: Engine
    entry: ModelEntry
    race: Race
    stages: int
    _done: int = field(default=0, init=False)  # stages
    _spent: float = field(default=0.0, init=False)
    _front: tuple[Lane, ...] = field(default=(), init=False)

    @property
    def front(self) -> tuple[Question, ...]:
        """The questions of the leading format, whose results come with the last stage."""
        return tuple(lane.whole.cell.question for lane in self._front)

    def stage(self, outputs: Sequence[Output]) -> list[CellResult]:
        """Race the formats of a stage against each other and the leading one.

        Returns the results of all formats but the new leader, which may have been asked only some
        rows; after the last stage it is asked the rest and included.

        Raises:
            SearchError: no call of a cell was answered.
            ModelStoppedError: the model must not be called any more.
            StoppedError: a stop was requested.
            JournalError: replies cannot be written any more.
        """
        new = [
            Lane(one, tuple(rounds_of(one.cell.task, one.cell.rows, self.race.seed)))
            for one in outputs
        ]
        runners, uneven = _by_format([*self._front, *new])
        results = self.engine.run_model(self.entry, uneven)
        backend = self.engine.factories[self.entry.name].backend(self.entry)
        for number in range(1, 1 + len(ROUNDS)):
            if len(runners) == 1:
                break
            runners = self._asked(runners, number, backend, results)
            runners, dropped = self._decided(runners, number)
            results += dropped
        self._front, *others = runners.values()
        self._done += 1
        for of in others:
            results += self._written(of, None)
        if self._done == self.stages:
            whole = self._asked({"": self._front}, len(ROUNDS), backend, results)
            results += self._written(whole[""], None)
        return results

    def _decided(self, runners: Runners, number: int) -> tuple[Runners, list[CellResult]]:
        """Return the formats that stay after a round, best first, and the others' results."""
        scores = {name: [self._score(lane) for lane in of] for name, of in runners.items()}
        for lane, score in zip(_lanes(runners), chain(*scores.values()), strict=True):
            if score.failed == len(score.rows):
                self._written([lane], None)
                refuse_unanswered([result_of(score, lane.whole.path)])
        share = _share(runners)
        now = rank_round(
            benchmark_of(next(_lanes(runners)).whole.cell.question),
            {name: {s.task.question: s.rows for s in of} for name, of in scores.items()},
            share,
            allowance(self._done, self.stages, share, self._spent),
        )
        dropped = []
        for out in now.out:
            self._spent += out.chance
            why = _why(out, number, runners[out.format], now.going[0].question)
            dropped += self._written(runners[out.format], why)
        return {one.format: runners[one.format] for one in now.going}, dropped

    def _asked(
        self, runners: Runners, number: int, backend: Backend, results: list[CellResult]
    ) -> Runners:
        """Ask the formats the further rows of a round; failed calls are left to the next run."""
        asking: list[Output] = []
        for lane in _lanes(runners):
            rows = set(lane.rounds[number - 1]) - set(lane.rows)
            if rows:
                asking.append(_narrowed(lane.whole, rows, {*rows, *lane.rows, *_recorded(lane)}))
        begun: dict[Path, Output] = {}
        if asking:
            found = self.engine.answer(self.entry, asking, backend)
            if found.last is not None:
                raise ModelStoppedError(self.entry.name, found.last, results)
            begun = {output.path: output for output in found.outputs.values()}
        return {
            name: tuple(_after(lane, number, begun.get(lane.whole.path)) for lane in of)
            for name, of in runners.items()
        }

    def _score(self, lane: Lane) -> RunScore:
        """Score the rows that the race has asked, whatever else was answered."""
        output = _narrowed(lane.whole, lane.rows, lane.whole.cell.rows)
        return in_memory(output, self.engine.journal)

    def _written(self, lanes: Iterable[Lane], why: DroppedFormat | None) -> list[CellResult]:
        """Write and return the results of a format, with all it was ever asked."""
        results, journal = [], self.engine.journal
        for lane in lanes:
            output = lane.whole
            known = zip(output.cell.rows, output.cell.call_keys(), strict=True)
            answered = {row for row, key in known if journal.get(key) is not None}
            rows = {*lane.rows, *(answered & _recorded(lane))}
            output = begin(_narrowed(output, rows, rows), None, (), journal, [output.path])
            result = self.engine.finish(output)
            self.engine.watcher.scored(result)
            results.append(replace(result, dropped=why))
        return results


def _by_format(lanes: Sequence[Lane]) -> tuple[Runners, list[Output]]:
    """Split cells into formats asked on every table, and others, which cannot win."""
    found: dict[str, list[Lane]] = {}
    for lane in lanes:
        found.setdefault(lane.whole.cell.question.format, []).append(lane)
    columns = {lane.whole.cell.question.column for lane in lanes}
    whole = {name: tuple(of) for name, of in found.items() if len(of) == len(columns)}
    return whole, [lane.whole for name, of in found.items() if name not in whole for lane in of]


def _lanes(runners: Runners) -> Iterator[Lane]:
    return chain.from_iterable(runners.values())


def _after(lane: Lane, number: int, begun: Output | None) -> Lane:
    whole = lane.whole
    if begun is not None:
        whole = replace(whole, identity=replace(begun.identity, rows=whole.identity.rows))
    return replace(lane, whole=whole, done=max(lane.done, number))


def _share(runners: Runners) -> float:
    of = next(iter(runners.values()))
    return sum(len(lane.rows) for lane in of) / sum(len(lane.rounds[-1]) for lane in of)


def _why(out: Elimination, number: int, of: Sequence[Lane], front: Question) -> DroppedFormat:
    queries = sum(len(lane.rows) for lane in of)
    of_all = sum(len(lane.rounds[-1]) for lane in of)
    return DroppedFormat(number, queries, of_all, front.format, out.points, out.chance)


def _recorded(lane: Lane) -> set[int]:
    recorded = read_identity(lane.whole.path)
    return set((recorded and recorded.rows) or ())


def _narrowed(output: Output, asked: Iterable[int], of: Iterable[int]) -> Output:
    """Restrict a cell to some rows, in a run over ``of``."""
    asked, of = frozenset(asked), frozenset(of)
    rows = output.cell.rows
    return replace(
        output,
        cell=replace(output.cell, rows=tuple(row for row in rows if row in asked)),
        identity=replace(output.identity, rows=tuple(row for row in rows if row in of)),
    )
