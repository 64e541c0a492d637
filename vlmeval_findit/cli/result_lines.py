"""What runs and sweeps print: scores, doubts, the best format of every model."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis import (
    ELSEWHERE,
    ELSEWHERE_MEANING,
    INTERVAL_SUFFIX,
    AsGood,
    StatisticsError,
    dropped_formats,
    format_averages,
    formats_as_good,
    race_calls,
    reading_notes,
    search_outcome,
    write_formats,
)
from ..benchmarks import benchmark_of
from ..core import agreeing, as_called, counted, first_few
from ..data import load_dataset
from ..engine import Deployment, Local
from ..models import ModelEntry, words_of_model
from ..protocol import Metric, prompt_set
from ..scoring import UNANSWERED, CellResult, load_run
from ..storage import RunFiles
from .command_base import print_note, say
from .printing import WHOLE_OUTPUT, print_folded, print_lines, print_rows


def print_results(results: Sequence[CellResult]) -> None:
    """Print the scores of cells; first, as an error, of which no call was answered."""
    for result in results:
        if result.is_unanswered:
            name = f"{result.model} on {result.variant.name}"
            print_note(f"error: {name}: {UNANSWERED}: {result.path}")
    print_rows(map(_row, results))


def print_readings(results: Iterable[CellResult]) -> None:
    """Say of each run why its score may be low, in the words of ``score``: replies not readable."""
    lines = []
    for result in results:
        # One after the other: their details do not fit into memory together.
        run = load_run(RunFiles(result.path).provenance)
        for note in reading_notes(run):
            lines.append(f"{result.model} {result.variant.name}: {note}")
    print_lines(lines, WHOLE_OUTPUT)


def print_unknown_words(results: Iterable[CellResult], deployments: Iterable[Deployment]) -> None:
    """Name the models here that have no word for what they were asked, and how many they know."""
    words = {}
    for each in deployments:
        if isinstance(each, Local):
            words[each.name] = words_of_model(each.name, each.entry.checkpoint)
    said = set()
    for result in results:
        known = words.get(result.model)
        table = result.model, result.variant.table
        if known is None or result.variant.has_references or table in said:
            continue
        said.add(table)
        queries = load_dataset(result.variant.name).queries.values()
        unknown = known.unknown(query.label for query in queries)
        if unknown:
            quoted = [repr(text) for text in unknown]
            are = agreeing(len(unknown), "is", "are")
            print_folded(
                as_called(
                    f"{result.model} knows {len(known.words)} words ({first_few(known.words)}), "
                    f"and no word of {first_few(quoted)}, which {are} asked for: its score says "
                    "nothing there. Ask another model: run_findit.py models"
                )
            )


def print_sampling(entries: Iterable[ModelEntry]) -> None:
    """Name the models whose replies were sampled."""
    for entry in entries:
        if temperature := entry.settings.get("temperature"):
            say(f"{entry.name}: replies were sampled at temperature {temperature:g}")


def print_doubts(results: Sequence[CellResult]) -> None:
    """Name the runs read otherwise than is known of their models, and those with odd answers."""
    _print_notes(results, lambda each: each.stated_note)
    _print_notes(results, lambda each: each.answered_note)
    _print_notes(results, lambda each: each.reply_note)
    _print_coordinate_checks(results)


def _print_notes(results: Sequence[CellResult], note: Callable[[CellResult], str | None]) -> None:
    """Print notes on runs, once for a model and what is said."""
    for (model, _), (first, *others) in _by_note(results, note).items():
        more = f" and {len(others)} more" if others else ""
        print_folded(f"{model} {first.variant.name}{more}: {note(first)}")


def _print_coordinate_checks(results: Sequence[CellResult]) -> None:
    """Name the runs whose answers do not follow the declared convention."""
    for (model, _), cells in _by_note(results, lambda each: each.coords_doubt).items():
        first, *others = cells
        more = f" and {len(others)} more" if others else ""
        print_folded(f"{model} {first.variant.name}{more}: {first.coords_doubt}")
        if others:
            folder = os.path.commonpath([each.path.parent for each in cells])
            print_folded(as_called(f"  each of them: python run_findit.py coords {folder}"))


_COUNTS = re.compile(r"\d[\d,]*( of \d[\d,]*| %)")  # Those of a run, in a note


def _by_note(
    results: Sequence[CellResult], note: Callable[[CellResult], str | None]
) -> dict[tuple[str, str], list[CellResult]]:
    """Group the results that have a note by their models, and by what it says but for counts."""
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for result in results:
        text = note(result)
        if text is not None:
            groups.setdefault((result.model, _COUNTS.sub("", text)), []).append(result)
    return groups


def report_formats(
    results: Sequence[CellResult],
    path: Path,
    race: bool = False,
    entries: Sequence[ModelEntry] = (),
) -> None:
    """Name the best format of every model and benchmark with several, and write them down.

    ``entries``: the models, of which it is said what to type next.
    """
    entry_of = {entry.name: entry for entry in entries}
    words = {name: entry.prompt for name, entry in entry_of.items()}
    outcomes: dict[str, dict[str, Mapping[str, Any]]] = {}
    contests: dict[tuple[str, str], list[CellResult]] = {}
    following: list[str] = []
    for result in filter(lambda result: result.compared, results):
        key = result.model, benchmark_of(result.variant).name
        contests.setdefault(key, []).append(result)
    for (model, name), contest in contests.items():
        ranked = format_averages(contest)
        benchmark = benchmark_of(contest[0].variant)
        if race and len({result.variant.format for result in contest}) > 1:
            _print_race(contest)
        several = len(ranked) > 1 or any(result.dropped is not None for result in contest)
        if not several or any(not each.rows or each.is_unanswered for each in contest):
            continue
        any_failed = any(result.failed for result in contest)
        metric = benchmark.headline_counting_failures if any_failed else benchmark.metrics[0]
        prompts = prompt_set(benchmark, words.get(model)).name
        try:
            found = search_outcome(contest, prompts, race)
        except StatisticsError as error:
            print_folded(f"{model}: no best format on {name}: {as_called(str(error))}")
            continue
        best = ranked[0]
        headline = metric.title
        value = next(iter(best.metric_values.values()))
        if not benchmark.ranking[0].can_be_best(value):
            say(f"{model}: no best format: {headline} is {value:g} in every format")
            continue
        in_best = [result for result in contest if result.variant.format == best.format]
        formats = len({result.variant.format for result in contest})
        print_folded(
            f"{model}: best format of {formats} on {_asked(in_best)}: {best.format} "
            f"({headline} {value:.1f})"
        )
        for line in _as_good_lines(formats_as_good(contest)):
            print_folded(f"  {line}")
        say(f"  {ELSEWHERE}: {_value_elsewhere(found, benchmark.metrics[0])}")
        outcomes.setdefault(model, {})[name] = found
        if model in entry_of:
            following.append(_next_step(entry_of[model], contest, in_best))
    if outcomes:
        write_formats(path, outcomes)
        sweep = f"run_findit.py sweep FILE.yaml --formats {shlex.quote(str(path))}"
        print_folded(as_called(f"Formats with intervals: {path} (in a sweep of yours: {sweep})"))
        print_folded(
            "The best of many formats is optimistic on the rows that it was chosen on. "
            f"{ELSEWHERE.capitalize()}: {ELSEWHERE_MEANING}."
        )
    for line in dict.fromkeys(following):
        say(line)


def _as_good_lines(formats: AsGood) -> Iterator[str]:
    """Say which formats may be named best as well."""
    if formats.equal:
        have = agreeing(len(formats.equal), "has the same values", "have the same values")
        yield f"a tie, of which it is the first: {first_few(formats.equal)} {have}"
    if formats.untold:
        are = agreeing(len(formats.untold), "is", "are")
        yield f"within noise: {first_few(formats.untold)} {are} not told apart from it"


_NAMED_TABLES = 3  # Tables that a sentence names


def _asked(results: Sequence[CellResult]) -> str:
    """Say what a format was asked: ``Scenes_mini (20 queries)``, or a mean over several tables."""
    names = [result.variant.board_dataset for result in results]
    queries = counted(sum(result.rows for result in results), "query", "queries")
    if len(names) == 1:
        return f"{names[0]} ({queries})"
    more = f" and {len(names) - _NAMED_TABLES} more" if len(names) > _NAMED_TABLES else ""
    return f"average over {len(names)} tables ({', '.join(names[:_NAMED_TABLES])}{more}; {queries})"


def _next_step(
    entry: ModelEntry, contest: Sequence[CellResult], in_best: Sequence[CellResult]
) -> str:
    """Return what to type next: ask the rest in the best format; else look at all formats.

    A model that more than its name and checkpoint say is not asked by a line that we can write.
    """
    named = ModelEntry(entry.name, checkpoint=entry.checkpoint, like=entry.like)
    if entry == named and any(result.rows < result.table_rows for result in in_best):
        model = entry.name if entry.checkpoint is None else f"{entry.name}={entry.checkpoint}"
        like = [] if entry.like is None else ["--like", entry.like]
        datasets = [result.variant.name for result in in_best]
        words = ["run", "--data", *datasets, "--model", model, *like]
        what = f"Next, all queries of {entry.name} in it:"
    else:
        words = ["report", os.path.commonpath([result.path.parent for result in contest])]
        what = "Next, every format and its answers:"
    return as_called(f"{what}\n  python run_findit.py {shlex.join(words)}")


def _value_elsewhere(found: Mapping[str, Any], metric: Metric) -> str:
    """Format the value elsewhere of an outcome: ``F1@0.5 48.3 (35.8–61.1)``."""
    elsewhere = found[ELSEWHERE]
    if metric.name not in elsewhere:
        return f"not known: {elsewhere.get('not known', f'{metric.name} has no value')}"
    ends = elsewhere[f"{metric.name}{INTERVAL_SUFFIX}"]
    interval = f" ({ends[0]:.1f}–{ends[1]:.1f})" if ends else ""
    return f"{metric.name} {elsewhere[metric.name]:.1f}{interval}"


def _print_race(results: Sequence[CellResult]) -> None:
    asked, total = race_calls(results)
    saved = f"{counted(total - asked, 'call')} saved ({100 * (total - asked) / total:.0f} %)"
    say(f"{results[0].model}: the race asked {asked:,} of {total:,} queries; {saved}")
    for name, why in dropped_formats(results).items():
        say(
            f"  dropped after {why.queries} of {why.all_queries} queries: {name} "
            f"({why.points:+.1f} to {why.leader}; chance {100 * why.chance:.1g} %)"
        )


def _row(result: CellResult) -> dict[str, Any]:
    """Return a result as :func:`.printing.print_rows` takes it."""
    return {
        "dataset": result.variant.name,
        "model": result.model,
        **result.metric_values,
        "scored": result.rows,
        "rows": result.table_rows,
        "failed calls": result.failed,
    }
