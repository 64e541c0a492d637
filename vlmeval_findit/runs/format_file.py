"""Which format a model answers best in (protocol section 6), and the file that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml

from ..benchmarks import benchmark_of
from ..benchmarks.findit.benchmark import BENCHMARK as FINDIT
from ..benchmarks.findit.formats import Format, format_of
from ..benchmarks.findit.grid import AXIS_FIELDS, NONE, axis_values
from ..benchmarks.findit.variant import Variant, problem
from ..boxes.reply_format import default_key
from ..core.config import Checked, Config, ConfigError, MisplacedError
from ..core.files import atomic_write
from ..core.question import Question
from ..core.run_files import RunFiles
from ..core.spelling import nearest
from ..core.statistics import INTERVALS, Interval
from ..core.yaml_text import YamlText
from .best_format import FormatAverage, ranked, rule
from .cell_result import Result, SearchError, refuse_unanswered
from .intervals import intervals
from .race import RULE
from .scored_run import load_run


def averages(results: Sequence[Result]) -> list[FormatAverage]:
    """The formats of one model that were run on every column of any, the best one first.

    Formats that a race dropped are not among them: they were asked less.
    """
    results = [result for result in results if result.dropped is None]
    columns = {result.question.column for result in results}
    benchmark = benchmark_of(results[0].question) if results else None
    if benchmark is None:
        return []
    found = ranked(benchmark, ((result.question, result.sums) for result in results))
    return [average for average in found if average.columns == len(columns)]


def best_format(results: Sequence[Result]) -> Format:
    """The winner among the results of one model.

    Raises:
        SearchError: no call of a cell was answered, or no format was run on every table.
    """
    refuse_unanswered(results)
    found = averages(results)
    if not found:
        raise SearchError("no format was run on every table: there is no average to choose by")
    return _format_of(found[0].question)


# --- the file -------------------------------------------------------------------------------------


def outcome(results: Sequence[Result], prompts: str, seed: int | None = None) -> dict[str, Any]:
    """What a file of formats says of one model: the winner, averages, every cell with intervals.

    ``seed`` is that of the race that they ran (None: they ran none).  Of formats that it dropped
    there are cells, with their rows, and no averages.
    """
    winner = best_format(results)
    benchmark = benchmark_of(results[0].question)
    own_rule = {} if benchmark is FINDIT else {"rule": rule(benchmark)}
    tables = sorted({result.question.table for result in results})
    return {
        "winner": format_fields(winner),
        "tables": tables,
        "prompts": prompts,
        **own_rule,
        **_raced(results, seed),
        "averages": [
            {"format": format_text(average), **_rounded(average)} for average in averages(results)
        ],
        "cells": [_cell(result) for result in results],
    }


class RaceCalls(NamedTuple):
    """How many queries a race asked, of how many in all: one call each where none are equal."""

    asked: int
    of: int


def race_calls(results: Iterable[Result]) -> RaceCalls:
    """What the results of one model say of its race."""
    results = list(results)
    finished = sum(result.rows for result in results if result.dropped is None)
    dropped = [result.dropped for result in dropped_formats(results) if result.dropped is not None]
    return RaceCalls(
        finished + sum(one.queries for one in dropped), finished + sum(one.of for one in dropped)
    )


def dropped_formats(results: Iterable[Result]) -> list[Result]:
    """One result of each format that a race dropped, in the order in which it did."""
    by_format = {result.question.format: result for result in results if result.dropped is not None}
    return list(by_format.values())


def _raced(results: Sequence[Result], seed: int | None) -> dict[str, Any]:
    """What a file of formats says of a race."""
    if seed is None:
        return {}
    asked, of = race_calls(results)
    return {
        "race": {
            "seed": seed,
            "rule": RULE,
            "calls": asked,
            "calls without a race": of,
            "dropped": [_dropped(result) for result in dropped_formats(results)],
        }
    }


def _dropped(result: Result) -> dict[str, Any]:
    why = result.dropped
    assert why is not None
    return {
        "format": format_text(result),
        "round": why.round,
        "queries": why.queries,
        "of": why.of,
        "behind": why.behind,
        "points": round(why.points, 4),
        "chance": round(why.chance, 6),
    }


def format_text(of: FormatAverage | Result) -> str:
    """A format as people read it."""
    return str(_format_of(of.question))


def _format_of(question: Question) -> Format:
    if not isinstance(question, Variant):
        raise SearchError(f"{question.name} is asked in one way: there is no format to choose")
    return format_of(question)


def _rounded(average: FormatAverage) -> dict[str, float]:
    """Averages by the names of figures; the headline counts failed calls as misses here."""
    benchmark = benchmark_of(average.question)
    headline = benchmark.with_failures.name
    return {
        benchmark.metrics[0].name if name == headline else name: round(value, 4)
        for name, value in average.figures.items()
    }


def _cell(result: Result) -> dict[str, Any]:
    benchmark, figures = benchmark_of(result.question), result.figures
    bounds = intervals_of(result)
    cell: dict[str, Any] = {"dataset": result.question.name, "rows": result.rows}
    for metric in benchmark.metrics:
        value = figures[metric.name]
        if not metric.in_short_tables or value is None:
            continue
        cell[metric.name] = round(value, 4)
        interval = bounds[metric.name]
        cell[f"{metric.name} 95 %"] = (
            None if interval is None else [round(interval.low, 4), round(interval.high, 4)]
        )
    if result.dropped is not None:
        cell["dropped in round"] = result.dropped.round
    if result.failed:
        cell["failed calls"] = result.failed
        missed = benchmark.with_failures
        cell[missed.name] = round(missed.value(result.sums) or 0.0, 4)
    return cell


def intervals_of(result: Result) -> dict[str, Interval | None]:
    """The 95 % intervals of a cell's figures, from the files that its score left."""
    return intervals(load_run(RunFiles(result.path).provenance))


def format_fields(made: Format) -> dict[str, str]:
    """A format as a file says it."""
    return {name: value or NONE for name, value in asdict(made).items()}


def write_formats(path: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what was found of some models; what the file says of others stays.

    Raises:
        ConfigError: the file is there and is none of these.
    """
    models = dict(_models_of(path)) if path.is_file() else {}
    models.update(found)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        f.write("# Best formats: python run_findit.py sweep CONFIG --formats THIS_FILE\n")
        known = {name: models[name] for name in sorted(models)}
        whole = {"rule": rule(FINDIT), "intervals": INTERVALS, "models": known}
        yaml.safe_dump(whole, f, sort_keys=False, allow_unicode=True, width=100)


def read_formats(path: Path) -> dict[str, Format]:
    """The winners of a file by model.

    Raises:
        ConfigError: it is none; the message names file, line and reason.
        OSError: it cannot be read.
    """
    text = YamlText(path.read_text(encoding="utf-8"), str(path))
    return {name: found.winner for name, found in text.read(_FormatsFile).models.items()}


def _winner(said: Any) -> Format:
    if not isinstance(said, Mapping):
        raise ValueError(f"should be a mapping with the keys {', '.join(AXIS_FIELDS.values())}")
    known = {field: axis for axis, field in AXIS_FIELDS.items()}
    for name, value in said.items():
        if name not in known:
            raise MisplacedError(f"no key {name!r}{nearest(name, known)}", name)
        if value not in (there := axis_values(known[name], value)):
            raise MisplacedError(f"no {name} {value!r} (there are: {', '.join(there)})", name)
    for name in ("representation", "output"):
        if name not in said:
            raise ValueError(f"{name} is missing")
    values: dict[str, Any] = {
        name: None if value == NONE else value for name, value in said.items()
    }
    values.setdefault("key", default_key(values["representation"]))
    made = Format(**values)
    # Every format but a mark fits this table.
    why = problem(Variant("Pascal", multilabel=True, **asdict(replace(made, mark=None))))
    if why is not None:
        raise ValueError(why)
    return made


@dataclass(frozen=True, slots=True)
class _FoundFile(Config):
    """What a file of formats says of a model; only its winner is read."""

    winner: Annotated[Format, Checked(_winner, before=True)]
    tables: Any = None
    prompts: Any = None
    rule: Any = None
    race: Any = None
    averages: Any = None
    cells: Any = None


@dataclass(frozen=True, slots=True)
class _FormatsFile(Config):
    """A file of formats: a winner for every model."""

    models: dict[str, _FoundFile]
    rule: Any = None
    intervals: Any = None


def _models_of(path: Path) -> Mapping[str, Any]:
    top = YamlText(path.read_text(encoding="utf-8"), str(path)).value
    models = top.get("models") if isinstance(top, dict) else None
    if not isinstance(models, dict):
        raise ConfigError(f"{path} is no file of formats; it is not written over")
    return models
