"""``run_findit.py compare``: the differences between two runs, or between two models' runs."""

from __future__ import annotations

import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..analysis import (
    ELSEWHERE,
    ELSEWHERE_MEANING,
    HIT_SCORE,
    SameAnswers,
    compare_costs,
    compare_hits,
    compare_means,
    compare_runs,
    detectable_differences,
    is_same_run,
    pair_runs,
    same_answers,
    scores_by_index,
)
from ..core import counted, printable, suggestion
from ..leaderboard import (
    SIGNS_OF_ONE_RUN,
    ExcludedRun,
    Table,
    comparison_table,
    cost_comparison_table,
    datasets_table,
    detection_table,
    group_by,
    group_comparable,
    headline_title,
    pairs_by_models,
    to_json,
)
from ..protocol import Reviews
from ..scoring import (
    RowData,
    Run,
    errata_lines,
    errata_of,
    facts_of,
    load_runs,
    prediction_files,
    refuse_missing_runs,
)
from ..statistics import INTERVALS_LEGEND, BestOf, Difference, FamilyOfTests
from ..storage import read_reviews
from .command_base import PATH, WRITTEN_FILE, Command, json_option, option, reviews_option, say
from .leaderboard import with_reviews
from .printing import print_folded, print_table, write_json

_PAGE = Path("outputs/compare.html")

_INDICES = 12
"""Most indices that are printed of the queries that a single run finds."""


@click.command(
    cls=Command,
    examples=["python run_findit.py compare outputs/FindIt-Nano outputs/FindIt-Nano-px"],
)
@click.argument("left", metavar="A", type=PATH)
@click.argument("right", metavar="B", type=PATH, required=False)
@option(
    "--show",
    "[FILE]",
    f"Write a report of both ({_PAGE}) and open it, the queries that differ most first.",
    type=WRITTEN_FILE,
    is_flag=False,
    flag_value=_PAGE,
)
@click.option(
    "--detect",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="POINTS",
    help="Also say how many images a difference of so many points needs, and which one these show.",
)
@reviews_option
@json_option
def command(
    left: Path,
    right: Path | None,
    show: Path | None,
    detect: float | None,
    reviews: tuple[Path, ...],
    json_file: Path | None,
) -> int:
    """Print the difference of every metric, A minus B, and the queries that a single run finds.

    A and B are scored prediction files, or folders, over the same rows: two models, two formats
    of a model (FOLDER=FORMAT), or the same run twice. Folders with several datasets are paired
    dataset by dataset. Failed calls are misses in the first metric; the others are over answered
    calls, and are tested only where both answered the same queries. Costs follow, where both runs
    recorded them. With --reviews the differences by the reviewed labels follow.
    """
    if right is None:
        raise ValueError(_what_is_there(left))
    refuse_missing_runs([_folder_and_format(side)[0] for side in (left, right)])
    loaded = [_runs_of(path) for path in (left, right)]
    sides = [side.runs for side in loaded]
    pairs = list(pair_runs(*sides))
    is_one_pair = len(pairs) == 1
    labelled = list(pairs)
    if reviews:
        pairs += _reviewed_pairs(pairs, read_reviews(reviews))
    choices = [_choice_of(pair, loaded) for pair in pairs]
    differences = []
    for pair, choice in zip(pairs, choices, strict=True):
        differences.append(compare_runs(*pair, choice))
    means: list[dict[str, Any]] = []
    if is_one_pair:
        for pair, difference in zip(pairs, differences, strict=True):
            if pair is not pairs[0]:
                say()
            _print_pair(*pair, difference)
    else:
        by_pair = dict(zip(map(_key, pairs), zip(differences, choices, strict=True), strict=True))
        for group in pairs_by_models(pairs):
            of_group, its_choices = zip(*(by_pair[_key(pair)] for pair in group), strict=True)
            # Tested like the datasets: one line says what p-values are corrected for.
            choice = max(filter(None, its_choices), key=lambda each: each.count, default=None)
            _print_datasets(group, of_group, choice)
            means += _means(group, of_group, choice)
        say("Every metric of one dataset, and its queries: name the files of two runs.")
    sizes = []
    if detect is not None:
        for group in pairs_by_models(labelled):
            choices_of_group = [_choice_of(pair, loaded) for pair in group]
            sizes.append(
                detection_table(detectable_differences(group, detect, choices_of_group), detect)
            )
            _print_sizes(sizes[-1])
    for name, side in zip("AB", loaded, strict=True):
        for left_out in side.left_out:
            print_folded(f"{name}: left out: {left_out.run.path}: {left_out.reason}")
        if side.most_formats > 1:
            print_folded(
                f"{name}: one of {side.most_formats} formats in its folder. If it was chosen for "
                "its score on these images, the difference is optimistic: leaderboard and report "
                f"test it {ELSEWHERE}, {ELSEWHERE_MEANING}"
            )
    each = {run.files.provenance: run for run in chain.from_iterable(pairs)}
    for line in errata_lines(map(facts_of, each.values())):
        print_folded(line)
    if json_file is not None:
        dicts = [_as_dict(*pair, each) for pair, each in zip(pairs, differences, strict=True)]
        write_json(json_file, [*dicts, *means, *({"detect": to_json(size)} for size in sizes)])
    if show is None:
        return 0
    from .report import write_report  # It brings the plots

    names = [
        f"{run.model}={run.variant.format}" if run.variant.format and len(side) == 1 else run.model
        for side in sides
        for run in side[:1]
    ]
    paths = [path for side in loaded for path in side.paths]
    status = write_report(paths, show, names, reviews=reviews)
    webbrowser.open(show.resolve().as_uri())
    return status


def _choice_of(pair: tuple[Run, Run], sides: Sequence[_Side]) -> BestOf | None:
    """Return how a pair is tested: two formats of a model as on a leaderboard of their folders.

    None: by itself, as two models are, two runs in one format, and two formats that stand alone; or
    of two datasets, which are refused.
    """
    left, right = pair
    if (left.model, left.board_dataset) != (right.model, right.board_dataset):
        return None
    if left.variant.format == right.variant.format:
        return None
    formats: dict[tuple[str, str], set[str]] = {}
    for place in chain.from_iterable(side.formats.items() for side in sides):
        formats.setdefault(place[0], set()).update(place[1])
    tables = sum(len(names) > 1 for names in formats.values())
    # Runs with reviews are no further table of the folders.
    count = len(formats.get((left.model, left.board_dataset), ())) or 2
    if (count, tables) == (2, 1):
        return None
    return BestOf(count, 1 / tables, FamilyOfTests.FORMATS)


def _key(pair: tuple[Run, Run]) -> tuple[Path, Path]:
    return pair[0].files.provenance, pair[1].files.provenance


def _reviewed_pairs(pairs: Sequence[tuple[Run, Run]], reviews: Reviews) -> list[tuple[Run, Run]]:
    """Return the pairs whose table was reviewed, scored with the reviews."""
    each = list({run.files.provenance: run for pair in pairs for run in pair}.values())
    scored = with_reviews(each, reviews, RowData.SUMS)
    by_path = {run.path: run for run in scored}
    reviewed = []
    for left, right in pairs:
        if left.path in by_path and right.path in by_path:
            reviewed.append((by_path[left.path], by_path[right.path]))
    return reviewed


class _Side(NamedTuple):
    """The runs that A or B names, and their paths.

    ``formats``: those that lie beside them, theirs too, by model and dataset.
    """

    runs: Sequence[Run]
    paths: Sequence[Path]
    formats: Mapping[tuple[str, str], set[str]]
    left_out: Sequence[ExcludedRun] = ()

    @property
    def most_formats(self) -> int:
        """The largest number of formats that one of them was named among."""
        return max(map(len, self.formats.values()))


def _what_is_there(left: Path) -> str:
    """Say that B is missing, and which runs could be compared."""
    files = prediction_files([left])
    folders = list(dict.fromkeys(path.parent for path in files))
    sides = folders if len(folders) > 1 else files
    if len(sides) < 2:
        return f"B is missing: type the run to compare {left} with, behind it"
    a, b, *others = sides
    more = f" (and {len(others)} more)" if others else ""
    return f"B is missing. In {left} there are {a} and {b}{more}: run_findit.py compare {a} {b}"


def _runs_of(side: Path) -> _Side:
    """Load the runs of a file, a folder, or of a format in a folder (``FOLDER=FORMAT``)."""
    folder, format_ = _folder_and_format(side)
    runs = load_runs([folder], keep=RowData.SUMS)
    if not format_:
        comparable, excluded = _comparable(runs)
        return _Side(comparable, [side], _formats_of(comparable, comparable), excluded)
    chosen = [run for run in runs if run.variant.format == format_]
    if not chosen:
        formats = sorted({run.variant.format for run in runs})
        raise ValueError(
            f"{side}: no run of {folder} is in this format{suggestion(format_, formats)}"
        )
    comparable, excluded = _comparable(chosen)
    beside = _formats_of(runs, comparable)
    return _Side(comparable, [run.path for run in comparable], beside, excluded)


def _folder_and_format(side: Path) -> tuple[Path, str]:
    """Split ``FOLDER=FORMAT``; the format is "" where none is named."""
    folder, _, format_ = str(side).rpartition("=")
    if not folder or side.exists():
        return side, ""
    return Path(folder), format_


def _formats_of(runs: Sequence[Run], chosen: Sequence[Run]) -> dict[tuple[str, str], set[str]]:
    """Return the formats of runs by model and dataset, of those of the chosen runs."""
    formats: dict[tuple[str, str], set[str]] = {}
    for run in chosen:
        formats[run.model, run.board_dataset] = set()
    for run in runs:
        if (place := (run.model, run.board_dataset)) in formats:
            formats[place].add(run.variant.format)
    return formats


def _comparable(runs: Sequence[Run]) -> tuple[list[Run], list[ExcludedRun]]:
    """Return the runs of a folder that a board compares; a run that is named alone is not judged.

    Raises:
        ValueError: none of several can be compared.
    """
    if len(runs) == 1:
        return list(runs), []
    comparable: list[Run] = []
    excluded: list[ExcludedRun] = []
    for of_benchmark in group_by(runs, lambda run: run.benchmark.name).values():
        datasets, others = group_comparable(of_benchmark)
        comparable += [run for dataset in datasets for run in dataset.runs]
        excluded += others
    if not comparable:
        first = excluded[0]
        raise ValueError(f"{first.run.path}: {first.reason}")
    return comparable, excluded


def _print_datasets(
    pairs: Sequence[tuple[Run, Run]],
    differences: Sequence[dict[str, Difference]],
    choice: BestOf | None,
) -> None:
    """Print the headline of two models on each of their datasets."""
    models = [run.model for run in pairs[0]]
    say(printable(f"A: {models[0]}; B: {models[1]}. {headline_title(pairs)}."))
    for name, runs in zip("AB", zip(*pairs, strict=True), strict=True):
        if failed := sum(run.failed for run in runs):
            queries = sum(len(run.rows) for run in runs)
            say(f"{name}: {failed:,} of {counted(queries, 'call')} failed")
        for words in dict.fromkeys(words for run in runs for words in _remarks(run)):
            say(printable(f"{name}: {words}"))
    same = {pair[0].board_dataset: same_answers(*pair) for pair in pairs}
    if {*same.values()} != {SameAnswers.RUN}:
        say(f"Intervals: {INTERVALS_LEGEND}.")
    print_table(datasets_table(pairs, differences, choice), "--json FILE")
    for dataset, answers in same.items():
        if answers is not None:
            say(f"{answers.value} ({dataset}).")


def _print_sizes(table: Table) -> None:
    """Print how many images differences need."""
    say(f"{table.title}:")
    print_table(table, "--json FILE")
    for note in table.notes:
        print_folded(note.text)


def _means(
    pairs: Sequence[tuple[Run, Run]],
    differences: Sequence[dict[str, Difference]],
    choice: BestOf | None,
) -> list[dict[str, Any]]:
    """Return the mean over the datasets of two models for JSON; none of a single dataset."""
    mean = compare_means(pairs, choice)
    if mean is None:
        return []
    sides = {}
    for at, name in enumerate("ab"):
        sides[name] = {
            "model": pairs[0][at].model,
            "dataset": f"mean of {len(mean.datasets)}",
            "datasets": mean.datasets,
            "failed calls": mean.failed[at],
        }
    table = datasets_table(pairs, differences, choice).first(1)
    return [{**sides, "metrics": to_json(table)}]


def _print_pair(left: Run, right: Run, differences: dict[str, Difference]) -> None:
    """Print the metrics of two runs, and the queries that each finds."""
    for name, run in (("A", left), ("B", right)):
        failed = [f"{counted(run.failed, 'call')} failed"] if run.failed else []
        whole = "; ".join([f"{run.model} on {run.dataset_name}", *failed, *_remarks(run)])
        say(printable(f"{name}: {whole}"))
    if left.provenance.reviews is not None:
        print_folded(left.provenance.reviews.counts)
    say(f"{counted(len(left.rows), 'query', 'queries')}")
    same = same_answers(left, right)
    if same is not None:
        say(f"{same.value}.")
    if same is not SameAnswers.RUN:
        say(f"Intervals: {INTERVALS_LEGEND}.")
    print_table(comparison_table(left, right, differences), "--json FILE")
    _print_costs(left, right)
    queries = compare_hits(scores_by_index(left), scores_by_index(right))
    say(
        f"Found (score from {HIT_SCORE:g} %): by both {len(queries.both)}, only by A "
        f"{len(queries.left)}, only by B {len(queries.right)}, by neither {len(queries.neither)}"
    )
    for name, indices in (("A", queries.left), ("B", queries.right)):
        if indices:
            more = f" … ({len(indices)})" if len(indices) > _INDICES else ""
            say(f"  only by {name}: index {', '.join(map(str, indices[:_INDICES]))}{more}")


def _print_costs(left: Run, right: Run) -> None:
    """Print the costs of which both runs know; those with reviews are of the same answers."""
    if left.provenance.reviews is not None:
        return
    table = _cost_table(left, right)
    if table.rows:
        say(f"{table.title}:")
        print_table(table, "--json FILE")
        for note in table.notes:
            print_folded(note.text)


def _cost_table(left: Run, right: Run) -> Table:
    costs = left.provenance.costs, right.provenance.costs
    table = cost_comparison_table(compare_costs(left, right), *costs)
    if is_same_run(left, right):
        return replace(table, signs=SIGNS_OF_ONE_RUN)
    return table


def _remarks(run: Run) -> list[str]:
    """Return what a reader of its values must know of a run."""
    provenance = run.provenance
    voted = "reviewers saw its answers" if run.voted else ""
    words = (provenance.custom_words, provenance.answered_note, voted)
    return [*filter(None, (*words, provenance.reply_note, provenance.coords_doubt))]


def _reviews_of(run: Run) -> dict[str, Any]:
    reviews = run.provenance.reviews
    if reviews is None:
        return {}
    counts = ("reviewed", "changed", "excluded", "unsure", "random", "unlisted")
    shown = {name: getattr(reviews, name) for name in counts}
    return {"reviews": {"digest": reviews.digest, **shown, "voted": run.voted}}


def _as_dict(left: Run, right: Run, differences: dict[str, Difference]) -> dict[str, Any]:
    queries = compare_hits(scores_by_index(left), scores_by_index(right))
    sides = {
        name: {
            "model": run.model,
            "dataset": run.variant.name,
            **_reviews_of(run),
            "prompts": run.provenance.prompts,
            "answered by": [model.name for model in run.provenance.models],
            "queries": len(run.rows),
            "failed calls": run.failed,
            "file": str(run.path),
            "errata": [erratum.name for erratum in errata_of(facts_of(run))],
        }
        for name, run in (("a", left), ("b", right))
    }
    same = same_answers(left, right)
    return {
        **sides,
        "same answers": None if same is None else same.value,
        "metrics": to_json(comparison_table(left, right, differences)),
        "costs": to_json(_cost_table(left, right)),
        "queries": {
            "found by both": queries.both,
            "found by a only": queries.left,
            "found by b only": queries.right,
            "found by neither": queries.neither,
        },
    }
