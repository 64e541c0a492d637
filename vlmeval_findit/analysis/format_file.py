"""Which format a model answers best in (protocol section 6), and the file that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ..benchmarks import benchmark_of
from ..core import Config, ConfigError, Name, TextError, YamlText, atomic_write, read_text
from ..protocol import Benchmark, DatasetVariant
from ..scoring import CellResult, DroppedFormat, Run, SearchError, load_run, refuse_unanswered
from ..statistics import (
    INTERVALS_LEGEND,
    BestOf,
    Estimate,
    FamilyOfTests,
    Interval,
    mean_of_estimates,
    metric_intervals,
)
from ..storage import RunFiles
from .best_format import FormatAverage, rank_formats, ranking_rule
from .comparable_pairs import StatisticsError, check_one_measure
from .held_out_answers import ELSEWHERE, ELSEWHERE_MEANING, estimate_of_choice
from .race_rules import RULE
from .run_statistics import estimate_run, run_intervals


def format_averages(results: Sequence[CellResult]) -> list[FormatAverage]:
    """Return the formats of one model that were run on every dataset, the best first.

    Formats that a race dropped are not among them: they were asked less.
    """
    scored = [(result.variant, result.sums) for result in results if result.dropped is None]
    columns = {variant.board_dataset for variant, _ in scored}
    formats = rank_formats(benchmark_of(scored[0][0]), scored) if scored else []
    return [average for average in formats if average.datasets == len(columns)]


def check_formats(runs: Iterable[Run]) -> None:
    """Raise StatisticsError if runs of one model cannot be compared, as on a board.

    But their rows may differ: a race drops formats early.
    """
    firsts: dict[str, Run] = {}
    for run in runs:
        first = firsts.setdefault(run.board_dataset, run)
        its, others = run.provenance, first.provenance
        if its.table_sha256 != others.table_sha256:
            raise StatisticsError(
                f"{run.path} and {first.path} were asked about two versions of the table "
                f"{its.table.file}: ask both again, in a new --work-dir"
            )
        if its.prompts != others.prompts:
            raise StatisticsError(
                f"{run.path} was asked in the prompts {its.prompts}, {first.path} in "
                f"{others.prompts}: ask both again, in a new --work-dir"
            )
        check_one_measure(first, run)


def choose_best_format(results: Sequence[CellResult]) -> DatasetVariant:
    """Return a variant in the best format of one model and benchmark.

    Raises SearchError if a cell has no answer, or no format was run on every table.
    """
    refuse_unanswered(results)
    if formats := format_averages(results):
        return formats[0].variant
    raise SearchError("no format was run on every table, so there is no average to choose by")


# --- the file -------------------------------------------------------------------------------------


def search_outcome(
    results: Sequence[CellResult], prompts: str, raced: bool = False
) -> dict[str, Any]:
    """Return the entry of a model and a benchmark in a file of formats.

    ``raced``: the results are of a race; formats that it dropped have no averages.

    Raises:
        StatisticsError: runs that cannot be compared, as of two scorers or two versions of a table.
    """
    runs = [load_run(RunFiles(result.path).provenance) for result in results]
    check_formats(runs)
    winner = choose_best_format(results)
    benchmark = benchmark_of(winner)
    values: dict[str, Any] = {
        "winner": winner.format,
        "tables": sorted({result.variant.table for result in results}),
        "prompts": prompts,
        "rule": ranking_rule(benchmark),
    }
    if raced:
        values["race"] = _race(results)
    # Without failed calls the two headlines are one, and have the short name.
    names = {}
    if not any(result.failed for result in results):
        names[benchmark.headline_counting_failures.name] = benchmark.metrics[0].name
    elsewhere = elsewhere_of(winner, runs)
    if elsewhere is not None:
        values[ELSEWHERE] = _elsewhere(elsewhere, benchmark)
    values["averages"] = [_average(average, names) for average in format_averages(results)]
    values["cells"] = [
        _cell(result, run_intervals(run)) for result, run in zip(results, runs, strict=True)
    ]
    return values


class AsGood(NamedTuple):
    """Formats that are named no worse than the winner, in the order of the ranking."""

    equal: Sequence[str]  # Printed alike in every metric that ranks: the first of them won
    untold: Sequence[str]  # Others, that no test tells apart from it


def formats_as_good(results: Sequence[CellResult]) -> AsGood:
    """Return the formats of one model that may be as good as the best of them.

    Raises:
        StatisticsError: as :func:`search_outcome`.
    """
    best, *others = format_averages(results)
    metric = benchmark_of(best.variant).headline_counting_failures
    by_format: dict[str, list[Estimate]] = {}
    for result in sorted(results, key=lambda each: each.variant.board_dataset):
        if result.dropped is None:
            run = load_run(RunFiles(result.path).provenance)
            estimate = estimate_run(run, (metric,))
            by_format.setdefault(result.variant.format, []).append(estimate)
    means = {each.format: mean_of_estimates(by_format[each.format]) for each in (best, *others)}
    choice = BestOf(len(means), family=FamilyOfTests.FORMATS)
    equal = []
    untold = []
    for each in others:
        if _printed(each) == _printed(best):
            equal.append(each.format)
        elif not choice.difference(means[each.format], means[best.format], metric.name).significant:
            untold.append(each.format)
    return AsGood(equal, untold)


def _printed(average: FormatAverage) -> list[str]:
    return [f"{value:.1f}" for value in average.metric_values.values()]


def elsewhere_of(winner: DatasetVariant, runs: Sequence[Run]) -> Estimate | str | None:
    """Estimate the metrics of a chosen format on images that did not choose it.

    A text says why they are not known; None: there was no choice. ``runs`` are those of one model
    in all formats, those that a race dropped, too.
    """
    tried: dict[str, list[Run]] = {}
    for run in runs:
        tried.setdefault(run.board_dataset, []).append(run)
    reported = {}
    for run in runs:
        if run.variant.format == winner.format:
            reported[run.board_dataset] = run
    return estimate_of_choice(reported, tried, benchmark_of(winner).all_metrics)


def _elsewhere(estimate: Estimate | str, benchmark: Benchmark) -> dict[str, Any]:
    """Return the entry of the winner's values elsewhere, or why they are not known."""
    if isinstance(estimate, str):
        return {"is": ELSEWHERE_MEANING, "not known": estimate}
    bounds = metric_intervals(estimate)
    entry: dict[str, Any] = {"is": ELSEWHERE_MEANING}
    for metric in benchmark.metrics:
        value = estimate.value(metric.name)
        if metric.in_short_tables and value is not None:
            entry |= _with_ends(metric.name, value, bounds[metric.name])
    return entry


INTERVAL_SUFFIX = " 95 %"  # Ends the key of a metric's interval


def _with_ends(name: str, value: float, interval: Interval | None) -> dict[str, Any]:
    ends = interval and [round(interval.low, 4), round(interval.high, 4)]
    return {name: round(value, 4), f"{name}{INTERVAL_SUFFIX}": ends}


def _average(average: FormatAverage, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry of a format; ``names`` are other names of metrics."""
    entry: dict[str, Any] = {"format": average.format}
    for name, value in average.metric_values.items():
        entry[names.get(name, name)] = round(value, 4)
    return entry


def _race(results: Sequence[CellResult]) -> dict[str, Any]:
    calls = race_calls(results)
    dropped = []
    for name, why in dropped_formats(results).items():
        entry = {"format": name, **asdict(why)}
        entry["points"] = round(why.points, 4)
        entry["chance"] = round(why.chance, 6)
        dropped.append(entry)
    return {
        "rule": RULE,
        "calls": calls.asked,
        "calls without a race": calls.without_race,
        "dropped": dropped,
    }


class RaceCalls(NamedTuple):
    """How many queries a race asked, and a search would have: a call each where none are equal."""

    asked: int
    without_race: int


def race_calls(results: Iterable[CellResult]) -> RaceCalls:
    """Count the calls of a model's race."""
    results = list(results)
    finished = sum(result.rows for result in results if result.dropped is None)
    dropped = dropped_formats(results).values()
    asked = sum(each.queries for each in dropped)
    without_race = sum(each.all_queries for each in dropped)
    return RaceCalls(finished + asked, finished + without_race)


def dropped_formats(results: Iterable[CellResult]) -> dict[str, DroppedFormat]:
    """Return the formats that a race dropped, in order, and why."""
    return {result.variant.format: result.dropped for result in results if result.dropped}


def _cell(result: CellResult, bounds: Mapping[str, Interval | None]) -> dict[str, Any]:
    benchmark = benchmark_of(result.variant)
    metric_values = result.metric_values
    cell: dict[str, Any] = {"dataset": result.variant.name, "rows": result.rows}
    for metric in benchmark.metrics:
        value = metric_values[metric.name]
        if not metric.in_short_tables or value is None:
            continue
        cell |= _with_ends(metric.name, value, bounds[metric.name])
    if result.dropped is not None:
        cell["dropped in round"] = result.dropped.round
    if result.failed:
        cell["failed calls"] = result.failed
        missed = benchmark.headline_counting_failures
        cell[missed.name] = round(missed.value(result.sums) or 0.0, 4)
    return cell


def write_formats(path: Path, new: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Write outcomes by model and benchmark into a file of formats, or raise ConfigError."""
    models = _read(path) if path.is_file() else {}
    for model, outcomes in new.items():
        models[model] = {**models.get(model, {}), **outcomes}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        f.write("# Best formats: python run_findit.py sweep CONFIG --formats THIS_FILE\n")
        whole = {
            "intervals": INTERVALS_LEGEND,
            "models": {name: models[name] for name in sorted(models)},
        }
        yaml.safe_dump(whole, f, sort_keys=False, allow_unicode=True, width=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOutcome(Config):
    """What was found for a model and a benchmark: the winner, and for people how it was found."""

    winner: Name
    tables: Any = None
    prompts: Any = None
    rule: Any = None
    race: Any = None
    elsewhere: Any = None
    averages: Any = None
    cells: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatsFile(Config):
    """A file of best formats."""

    models: dict[Name, dict[Name, FormatOutcome]]
    intervals: Any = None  # What the intervals in it are, for people


# Benchmark whose winner is used where the first was not searched
_ASKED_LIKE = {"Ref-L4": "FindIt"}


class BestFormats:
    """The winners of a file.

    Raises:
        ConfigError: it is no file of formats.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.models = {
            model: {name: outcome["winner"] for name, outcome in outcomes.items()}
            for model, outcomes in _read(path).items()
        }

    def variant(self, model: str, variant: DatasetVariant) -> DatasetVariant:
        """Return a variant in the model's best format; itself if there are no others.

        Raises:
            ConfigError: the winner is no format of this table.
            ValueError: no format was chosen; the message says how to choose it.
        """
        if not variant.format:
            return variant
        benchmark = benchmark_of(variant)
        known = self.models.get(model, {})
        name = benchmark.name if benchmark.name in known else _ASKED_LIKE.get(benchmark.name)
        if name not in known:
            there = ", ".join(known) or ", ".join(self.models) or "none"
            raise ValueError(
                f"{self._path}: no format of {benchmark.name} was chosen for {model!r} (there are: "
                f"{there}). Find it: python run_findit.py search --model {model} --data "
                f"{variant.name}"
            )
        try:
            return benchmark.in_format(variant, known[name])
        except ValueError as error:
            raise ConfigError(f"{self._path}: winner of {model}: {error}") from None


def _read(path: Path) -> dict[str, Any]:
    """Return the outcomes by model and benchmark, as they are written; or raise ConfigError."""
    try:
        text = YamlText(read_text(path), str(path))
        text.read(FormatsFile)
    except (TextError, ConfigError) as error:
        why = error.message_for(path) if isinstance(error, TextError) else error
        raise ConfigError(f"{why}\nSearch and sweep write files of best formats") from None
    models: dict[str, Any] = text.value["models"]
    return models
