"""Notes for the reader of a leaderboard: a line for each model and cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ..analysis import (
    ELSEWHERE,
    ELSEWHERE_MEANING,
    UNEVEN_DATASETS,
    adherence_note,
    nothing_found_note,
    ranking_rule,
    transparent_rows,
)
from ..benchmarks.findit import FALSE_ALARM_RATE, REJECTION_ACCURACY, mask_line, rejection_line
from ..core import counted
from ..protocol import add_up
from ..scoring import (
    PACKAGE_KEY,
    SCORE_AGAIN,
    Run,
    errata_lines,
    facts_of,
    is_present,
    keys_of,
    part_in_words,
    score_again,
)
from ..statistics import TOO_FEW_IMAGES, WHICH_IMAGES_COUNT, FamilyOfTests
from .board import OVERALL, Board, BoardCell
from .comparable import ComparableRuns, group_by
from .legends import (
    BOLD,
    INTERVAL,
    ITALIC,
    NO_INTERVAL,
    RANKS,
    RANKS_BESIDE,
    UNTESTED_SIGN,
    VOTED,
    without_value,
)
from .published_rows import other_annotations
from .result_table import NONE, Note

MOST = 12  # Most models that notes name; the tables have all
SPACE_IN_DOUBT = "Coordinate space in doubt"  # Title of a remark
FORMAT_NOT_FOLLOWED = "Format not followed"  # Title of a remark
NOTHING_FOUND = "Nothing found"  # Title of a remark
ODD_REPLIES = "Odd replies"  # Title of a remark
_MOST_ALIKE = 3  # Most lines that differ in their numbers only
_FEWEST_ALL = 3  # "All 2 models" says no more than their names


def signs_of(board: Board) -> dict[str, str]:
    """Return what the signs of ranks and values mean, by sign; :func:`.legend_of` has those met."""
    untested = f"not tested against any other model, as {TOO_FEW_IMAGES}"
    if any(answers.unknown for answers in board.elsewhere.values()):
        untested += f", or a value {ELSEWHERE} is not known"
    return {
        RANKS: "the ranks that the tests allow",
        RANKS_BESIDE: "the ranks that the tests of its column allow",
        UNTESTED_SIGN: untested,
        without_value(UNTESTED_SIGN): f"ranked by its value where {ELSEWHERE} is not known",
        VOTED: "reviewers of its labels saw the answers of the model",
        ELSEWHERE: f"{ELSEWHERE_MEANING}; ranks, tests and intervals are of it",
        BOLD: "the best of the ranked values of its column, and those printed alike",
        ITALIC: "published values, not ranked",
        INTERVAL: "95 % interval over images",
        NO_INTERVAL: f"{TOO_FEW_IMAGES}, or do in a dataset of the mean",
        NONE: "not asked or not known. A mean needs a value of each of its datasets, and a rank "
        "needs a mean; a metric over answered calls ranks no model with a failed call",
    }


def how_to_read(board: Board) -> str:
    """Say what the values of a board are, and how they are ranked and tested."""
    over = "Intervals are" if len(board.models) == 1 else "Intervals and tests are"
    text = (
        f"Values in percent. {over} over images: queries of one image count "
        f"together, and so does an image that datasets share ({WHICH_IMAGES_COUNT})."
    )
    if len(board.models) == 1:
        return text  # It is in no contest.
    return (
        f"{text} Tests are paired t-tests at 5 %, {FamilyOfTests.MODELS.value}: with 95 % all true "
        "ranks of a column lie in their ranges. "
        "Models are ordered by the headline metric with failed calls as misses; other metrics are "
        "over answered calls only, and rank no model that has failed calls. "
        "Means are given for models that have every dataset in them."
    )


def format_note(board: Board) -> str:
    """Return a note on the choice of the reported format."""
    return (
        f"A model is reported in one format {UNEVEN_DATASETS}, unless --format says otherwise, "
        f"chosen by the {ranking_rule(board.benchmark)}."
    )


def formats_used(board: Board) -> list[tuple[str, str, list[str]]]:
    """Return (model, format, datasets) of reported formats.

    Empty if the benchmark has a single format without a name.
    """
    used = group_by(cells_on_datasets(board), lambda cell: (cell.model, cell.format))
    named = any(name for _, name in used)
    return [(*key, [cell.dataset for cell in group]) for key, group in used.items() if named]


def cells_on_datasets(board: Board) -> list[BoardCell]:
    """Return the cells that values rest on: reported formats, of each counted dataset."""
    counted = board.counted_datasets
    return [cell for cell in board.ordered_cells() if cell.dataset in counted]


def formats_chosen(board: Board) -> list[str]:
    """Return every model with its reported format, or numbers of models if they are many.

    Empty if there was nothing to choose.
    """
    if all(row.reported for row in board.runs):
        return []
    chosen = formats_used(board)
    everywhere = all(len(datasets) == len(board.counted_datasets) for *_, datasets in chosen)
    if len(chosen) > 1 and everywhere and len({name for _, name, _ in chosen}) == 1:
        return [f"{chosen[0][1]} (all {len(chosen)} models)"]
    if len(chosen) > MOST:
        by_format = sorted(group_by(chosen, itemgetter(1)).items(), key=lambda item: -len(item[1]))
        return [f"{name} ({counted(len(models), 'model')})" for name, models in by_format]
    lines = []
    for model, name, datasets in chosen:
        line = f"{model} {name}"
        if len(datasets) < len(board.counted_datasets):
            line += f" ({counted(len(datasets), 'dataset')})"
        lines.append(line)
    return lines


def formats_tried(board: Board) -> dict[str, int]:
    """Return the largest number of formats that each model's reported one was chosen from.

    It counts itself, and no run that is not compared. Empty if no format was chosen.
    """
    cells = group_by(board.ordered_cells(), lambda cell: cell.model)
    tried = {model: max(cell.tried for cell in group) for model, group in cells.items()}
    return tried if any(number > 1 for number in tried.values()) else {}


def formats_compared(board: Board) -> dict[str, int]:
    """Return how many formats each model's reported one was compared with by value, and itself.

    1, where it was named. Else they are the formats on as many datasets: of one format alone on
    most datasets, or on all, no value decided.
    """
    counts = {}
    for model, rows in group_by(board.runs, lambda row: row.run.model).items():
        # Reviewed labels count only where a board has no others.
        labelled = [row for row in rows if row.dataset in board.counted_datasets] or rows
        datasets = Counter(row.run.variant.format for row in labelled)
        most = max(datasets[row.run.variant.format] for row in labelled if row.reported)
        rivals = sum(number >= most for number in datasets.values())
        counts[model] = 1 if model in board.named else rivals
    return counts


# Of each board: its tables, some thirty of them, have the same notes, which ask every run
_NOTES: WeakKeyDictionary[Board, dict[bool, list[Note]]] = WeakKeyDictionary()


def notes_of(board: Board, only_reported: bool = False) -> list[Note]:
    """Return all notes, first how to read the values.

    ``only_reported``: of doubts about runs those of reported formats, which tables of models have.
    """
    known = _NOTES.setdefault(board, {})
    if only_reported not in known:
        known[only_reported] = _all_notes(board, only_reported)
    return list(known[only_reported])


def _all_notes(board: Board, only_reported: bool) -> list[Note]:
    sources = group_by(board.published, lambda each: each.where)
    published = [
        f"{where}: {', '.join(dict.fromkeys(each.model for each in group))}"
        for where, group in sources.items()
    ]
    notes = [Note("", [how_to_read(board)]), *remarks(board, only_reported)]
    notes.append(Note("Published values, not ranked", published))
    return [note for note in notes if note.lines]


def remarks(board: Board, only_reported: bool = False) -> list[Note]:
    """Return the doubts about values, by kind; every output shows them."""
    counted_runs = [row for row in board.runs if row.dataset in board.counted_datasets]
    shown = [row.run for row in counted_runs if row.reported or not only_reported]
    # A search asks formats that a model does not know: that is no doubt
    reported = [row.run for row in counted_runs if row.reported]
    datasets = [each for each in board.datasets if each.name in board.counted_datasets]

    def by_dataset(remark_of: Callable[[ComparableRuns], object]) -> list[str]:
        named = [(dataset.name, remark_of(dataset)) for dataset in datasets]
        lines = [(name, f": {remark}") for name, remark in named if remark]
        return _together(lines, _datasets(board))

    def by_run(
        remark_of: Callable[[Run], str | None], of: Sequence[Run] = tuple(shown)
    ) -> list[str]:
        named = [(run.model, run.variant.name, remark_of(run) or "") for run in of]
        return condensed((each for each in named if each[2]), board.models)

    lines = {
        "Reviewed labels": _review_lines(board),
        "Failed calls": _failure_lines(board),
        "Answered by": [
            *by_run(lambda run: run.provenance.answered_note),
            *_answering_lines(board),
        ],
        ODD_REPLIES: by_run(lambda run: run.provenance.reply_note),
        FORMAT_NOT_FOLLOWED: by_run(adherence_note, reported),
        NOTHING_FOUND: by_run(nothing_found_note, reported),
        "Stated by the user": by_run(lambda run: run.provenance.stated_note),
        SPACE_IN_DOUBT: by_run(_doubt),
        "Formats tried": _tried_lines(board),
        "Formats named beforehand": _named_lines(board),
        ELSEWHERE.capitalize(): _unknown_lines(board),
        "Part of a table": by_dataset(partial(_part, board)),
        "Other annotations": by_dataset(_other_annotations),
        "Transparent images": by_dataset(_transparent),
        "Intervals": by_dataset(lambda d: board.benchmark.interval_note(d.runs[0].variant)),
        "Scored earlier": by_dataset(_scored_earlier),
        "Errata": errata_lines(map(facts_of, shown)),
        "Scored by": by_dataset(lambda dataset: dataset.runs[0].provenance.scorer),
        "Masks": by_run(lambda run: mask_line(run.sums)),
        "Queries with nothing to find": _rejection_lines(board),
        "Sampled": by_run(_sampled),
        "Custom prompts": by_run(lambda run: run.provenance.custom_words),
        "Forced": by_run(_forced),
    }
    return [Note(title, texts) for title, texts in lines.items() if texts]


def condensed(remarks: Iterable[tuple[str, str, str]], models: Collection[str] = ()) -> list[str]:
    """Write (model, name of a run, remark) as a line for each cause; ``models``: all there are.

    >>> condensed([("A", "x", "sampled"), ("A", "y", "sampled"), ("B", "x", "forced")])
    ['A (2 runs): sampled', 'B on x: forced']
    """
    lines = []
    for (model, remark), runs in group_by(remarks, itemgetter(0, 2)).items():
        where = f" ({len(runs)} runs)" if len(runs) > 1 else f" on {runs[0][1]}"
        lines.append((model, f"{where}: {remark}"))
    return _together(lines, _Everyone("models", models))


class _Everyone(NamedTuple):
    """All of whom a remark may be: a remark on all of them names none."""

    what: str
    names: Collection[str]

    def every(self, remarked: Sequence[str]) -> str:
        """Write ``all 3 models``; empty if some are not among them, or all are few."""
        if len(remarked) >= _FEWEST_ALL and {*remarked} == {*self.names}:
            return f"all {len(remarked):,} {self.what}"
        return ""

    def name(self, remarked: Sequence[str]) -> str:
        """Write the names of a remark, of very many the first.

        >>> _Everyone("models", "ABC").name("ABC"), _Everyone("models", "ABC").name("AC")
        ('all 3 models', 'A, C')
        """
        if every := self.every(remarked):
            return every
        more = f" and {len(remarked) - MOST:,} more" if len(remarked) > MOST else ""
        return f"{', '.join(remarked[:MOST])}{more}"


def _together(remarks: Iterable[tuple[str, str]], everyone: _Everyone) -> list[str]:
    """Write (name, remark), equal remarks once.

    >>> models = _Everyone("models", "ABC")
    >>> _together([("A", ": failed"), ("B", " is forced"), ("C", ": failed")], models)
    ['A, C: failed', 'B is forced']
    """
    lines = []
    for remark, group in group_by(dict.fromkeys(remarks), itemgetter(1)).items():
        lines.append(f"{everyone.name([name for name, _ in group])}{remark}")
    return lines


def datasets_in_words(board: Board, names: Sequence[str]) -> str:
    """Name datasets of a board; all of several by their number."""
    return _datasets(board).every(names) or ", ".join(names)


def _models(board: Board) -> _Everyone:
    return _Everyone("models", board.models)


def _datasets(board: Board) -> _Everyone:
    return _Everyone("datasets", board.counted_datasets)


# --- of a dataset or a run ------------------------------------------------------------------------

# The counts of a run at the end of a doubt of coords.score_check.warning_line
_AGREE = re.compile(r" \([^()]+ agree\)$")


def _doubt(run: Run) -> str:
    return _AGREE.sub("", run.provenance.coords_doubt or "")


_BESIDE_NONE = "no published value stands beside these"


def _other_annotations(dataset: ComparableRuns) -> str:
    """Say that published values are of other annotations, and therefore not shown."""
    if unlike := other_annotations(dataset):
        return f"not the published ones ({unlike}): {_BESIDE_NONE}"
    return ""


def _part(board: Board, dataset: ComparableRuns) -> str:
    """Return a remark if only some of a table's queries were asked, as after ``--limit``."""
    provenance = dataset.runs[0].provenance
    asked = len(provenance.rows)
    missing = len(provenance.missing)
    if not missing:
        return ""
    words = f"{asked} of the {asked + missing} queries of its table"
    if dataset.name in board.published_in_part:
        words += f": {_BESIDE_NONE}"
    return words


def _scored_earlier(dataset: ComparableRuns) -> str:
    """Return a remark on runs that another scorer than the present one scored."""
    runs = [run for run in dataset.runs if not is_present(run)]
    if not runs:
        return ""
    by = part_in_words(runs[0].provenance.scored_with, PACKAGE_KEY)
    count = counted(len(runs), "run")
    return f"{count} by {by}, not by the present scorer{SCORE_AGAIN}{score_again(runs)}"


def _transparent(dataset: ComparableRuns) -> str:
    """Return a remark on images that FindIt's models were shown on white."""
    known = next((run for run in dataset.runs if run.provenance.shown), dataset.runs[0])
    rows = transparent_rows(known.provenance)
    if not rows:
        return ""
    return f"{len(rows)} of {dataset.queries} queries show transparent images, laid on white"


def _sampled(run: Run) -> str | None:
    return run.provenance.identity.answering.sampling_note if run.provenance.identity else None


def _forced(run: Run) -> str:
    forced = "; ".join(run.provenance.forced)
    return f"contradicts the record: {forced}" if forced else ""


# --- of labels ------------------------------------------------------------------------------------


def _review_lines(board: Board) -> list[str]:
    """Return lines on datasets with reviews: what was reviewed, and who cannot be ranked."""
    lines: list[tuple[str, str]] = []
    for dataset in board.datasets:
        if dataset.reviews is None:
            continue
        lines.append((dataset.name, f": {dataset.reviews.counts}"))
        voters = sorted({run.model for run in dataset.runs if run.voted})
        if not voters:
            continue
        text = f": {VOTED} reviewers saw the answers of {', '.join(voters)}"
        if dataset.reviews.favours_voters:
            text += (
                ", which gain by that; they have no rank among others, as no random rows were "
                "reviewed"
            )
        lines.append((dataset.name, text))
    return _together(lines, _datasets(board))


# --- by model -------------------------------------------------------------------------------------


def _answering_lines(board: Board) -> list[str]:
    """Return lines on models whose runs other models answered: a mean over them mixes these."""
    runs = [row.run for row in board.runs if row.run.provenance.models]
    lines = []
    for model, its_runs in group_by(runs, lambda run: run.model).items():
        if len({keys_of(run.provenance.models) for run in its_runs}) < 2:
            continue
        by_name: dict[str, int] = {}
        for run in its_runs:
            for name in dict.fromkeys(each.name for each in run.provenance.models):
                by_name[name] = by_name.get(name, 0) + 1
        named = [f"{name} ({counted(count, 'run')})" for name, count in by_name.items()]
        lines.append((model, f": its runs were answered by {', '.join(named)}"))
    return _together(lines, _models(board))


def _tried_lines(board: Board) -> list[str]:
    chosen = {model for model, _ in board.elsewhere}
    optimistic = "on the queries that it is reported on: the best of many is optimistic"
    lines = []
    compared = formats_compared(board)
    for model, tried in formats_tried(board).items():
        if model in chosen or (tried > 1 and compared[model] > 1):
            text = f": one of {tried} formats that were tried, {optimistic}"
            if model in chosen:
                text += f", its value {ELSEWHERE} is not"
            lines.append((model, text))
    for model, cells in group_by(board.ordered_cells(), lambda cell: cell.model).items():
        if more := max(cell.left_out for cell in cells):
            which = f"{counted(more, 'further format')} that {'was' if more == 1 else 'were'}"
            text = (
                f": {which} asked some of its queries and not compared: no value here counts them"
            )
            lines.append((model, f"{text}; if they chose its format, its value is optimistic"))
    return _together(lines, _models(board))


def _named_lines(board: Board) -> list[str]:
    """Return lines on models whose format the user named."""
    used = [each for each in formats_used(board) if each[0] in board.named]
    lines = [(model, f": {name} (--format)") for model, name, _ in used]
    return _together(lines, _models(board))


def _unknown_lines(board: Board) -> list[str]:
    """Return lines on models whose value elsewhere is not known."""
    lines = []
    for (model, dataset), answers in board.elsewhere.items():
        if answers.unknown:
            why = f"not known: {answers.unknown}; ranked by its value, untested"
            lines.append((model, f" on {dataset}: {why}"))
    return _together(lines, _models(board))


def _failure_lines(board: Board) -> list[str]:
    """Return lines on failed calls and their cost in the headline; of many models, the total."""

    def counts(cells: Sequence[BoardCell]) -> str:
        failures = sum(cell.failures for cell in cells)
        queries = sum(cell.queries for cell in cells)
        return f"{failures:,} of {queries:,} calls failed"

    failed = [cell for cell in cells_on_datasets(board) if cell.failures]
    by_model = group_by(failed, lambda cell: cell.model)
    if len(by_model) > MOST:
        return [
            f"{len(by_model):,} models: {counts(failed)}, which count as "
            f"misses in the ranking; the table {OVERALL} has each"
        ]
    lines = []
    for model, cells in by_model.items():
        where = cells[0].dataset
        whose = "its"
        place = cells[0].dataset
        if len(cells) > 1:
            where = f"{len(cells)} datasets"
            whose = "its mean"
            place = OVERALL
        line = f"{model}, {where}: {counts(cells)}"
        counting_failures, headline = board.metrics[:2]
        with_misses = board.entry(model, place, counting_failures.name)
        answered = board.entry(model, place, headline.name)
        if with_misses:
            line += f"; {whose} {headline.name} is {with_misses.value:.1f} with them as misses"
            if answered:
                line += f", {answered.value:.1f} without them"
        lines.append(line)
    return lines


def _rejection_lines(board: Board) -> list[str]:
    """Return lines on answers to queries with nothing to find; of more than a few the total."""
    runs: list[Run] = []
    lines: list[tuple[str, str, str]] = []
    for cell in cells_on_datasets(board):
        line = rejection_line(cell.run.sums) if cell.run is not None else None
        if cell.run is not None and line is not None:
            runs.append(cell.run)
            lines.append((cell.model, cell.dataset, line))
    every = condensed(lines, board.models)
    if len(every) <= _MOST_ALIKE:
        return every
    total = rejection_line(add_up(run.sums for run in runs))
    models = counted(len({run.model for run in runs}), "model")
    tables = " and ".join(metric.name for metric in (REJECTION_ACCURACY, FALSE_ALARM_RATE))
    return [f"{models}: {total}; {tables} have tables, and findit errors counts a run's"]
