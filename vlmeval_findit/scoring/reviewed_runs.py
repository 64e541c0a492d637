"""The scores of runs with reviews of labels: read where they are, made where they are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from ..data import load_dataset
from ..protocol import Reviews, ReviewsError, Settings, settings_from
from ..storage import REVIEWED, RunFiles, read_identity, space_mark, table_hash
from .pipeline import open_predictions, score_file
from .prediction_names import names_of
from .reviewed_score import FoundDecisions, decisions_of, find_decisions, score_reviewed
from .row_scoring import RunScore, check_coordinates, say_how_to_score
from .score_writing import open_score, settings_of_score, write_score
from .stored_runs import RowData, Run, RunError, load_run


@dataclass(frozen=True, slots=True)
class ScoreBeside:
    """The score of a prediction file with reviews, or why it has none."""

    run: RunScore
    why_without: str = ""  # Its table is another version of a reviewed one; "": with reviews


def score_beside(
    path: Path,
    settings: Settings,
    dataset: str | None,
    reviews: Reviews,
    at_hand: Collection[str],
) -> ScoreBeside:
    """Score a prediction file with reviews, as it is scored without them; raises as score_file.

    Where it is not scored without them yet, that score is made and written first. A file over a
    corrected copy of a reviewed table ``at_hand`` (hashes) is scored without reviews.
    """
    settings = settings_of_score(path, settings)
    opened = open_predictions(path, settings, dataset)
    why = find_decisions(opened.dataset, opened.benchmark, reviews, at_hand).why_none
    if why:
        return ScoreBeside(score_file(path, settings, dataset), why)
    run = score_file_reviewed(path, settings, dataset, reviews, at_hand)
    if not RunFiles(path, space_mark(run.mark)).provenance.is_file():
        write_score(score_file(path, settings, dataset), path)
    return ScoreBeside(run)


def tables_of(paths: Iterable[Path], dataset: str | None) -> set[str]:
    """Return the hashes of the tables of prediction files; those that cannot be read have none."""
    names = set()
    for path in paths:
        try:
            file, _ = open_score(path, settings_from({}))
            names.add(names_of(file, dataset, read_identity(file))[1])
        except (ValueError, OSError):
            continue  # The scoring says what is wrong with the file.
    hashes = set()
    for name in sorted(names):
        try:
            hashes.add(table_hash(load_dataset(name).shared_dataset.table))
        except (ValueError, OSError):
            continue
    return hashes


@dataclass(frozen=True, slots=True)
class ReviewedRuns:
    """Runs with reviews, and which of them were scored for it."""

    runs: tuple[Run, ...]
    scored: tuple[Path, ...]  # Their new provenances
    left_out: tuple[str, ...] = ()  # Datasets like a reviewed one, and how they differ


def reviewed_runs(
    runs: Iterable[Run], reviews: Reviews, keep: RowData = RowData.DETAILS
) -> ReviewedRuns:
    """Return the scores with reviews of runs whose table was reviewed; no model is asked.

    A score that is missing, or older than that without reviews, is made and written next to it.
    Reviews belong to the table whose hash they name. Where its runs are among these, a dataset that
    has some reviewed rows otherwise, as a corrected copy, is left out.

    Raises:
        ReviewsError: no run is over a table that was reviewed; or a row has changed, and no run is
            over the table that was reviewed.
        ValueError, OSError: as of :func:`.score_file` and :func:`.load_run`.
    """
    runs = list(runs)
    if not reviews.reviews:
        raise ReviewsError("the files of reviews hold none: leave out --reviews, or name others")
    at_hand = {f"sha256:{run.provenance.table_sha256}" for run in runs}
    decided: dict[tuple[object, ...], FoundDecisions] = {}
    result: list[Run] = []
    scored: list[Path] = []
    for run in runs:
        if run.provenance.reviews is not None:
            continue
        key = (run.benchmark.name, *run.benchmark.query_set_key(run.variant))
        if key not in decided:
            dataset = load_dataset(run.variant.name)
            decided[key] = find_decisions(dataset, run.benchmark, reviews, at_hand)
        of_table = decided[key].decisions
        if of_table is None:
            continue
        files = RunFiles(run.path, f"{space_mark(run.mark)}{REVIEWED}{of_table.digest}")
        reviewed = _stored(files, run, keep)
        if reviewed is None:
            write_score(_score(run, reviews, at_hand), run.path)
            scored.append(files.provenance)
            reviewed = load_run(files.provenance, keep)
        result.append(reviewed)
    left_out = sorted({each.why_none for each in decided.values() if each.why_none})
    if not result:
        names = sorted({run.variant.board_dataset for run in runs})
        raise ReviewsError(
            f"no run is over a table that was reviewed: these are over {', '.join(names)}"
            f"{''.join(f'; {why}' for why in left_out)}. Name other reviews, or leave out --reviews"
        )
    return ReviewedRuns(tuple(result), tuple(scored), tuple(left_out))


# What a score with reviews shares with that without them
_RESTS_ON = attrgetter(
    "predictions_sha256",
    "table_sha256",
    "spaces",
    "forced",
    "thought_marks",
    "reads_like",
    "scored_with",
    "plugins",
)


def _stored(files: RunFiles, run: Run, keep: RowData) -> Run | None:
    """Load a score with reviews; None if there is none of this run as it is scored now."""
    if not files.provenance.is_file():
        return None
    try:
        reviewed = load_run(files.provenance, keep)
    except RunError:
        return None
    its, other = reviewed.provenance, run.provenance
    is_like = _RESTS_ON(its) == _RESTS_ON(other) and its.scored_at >= other.scored_at
    return reviewed if is_like else None


def _score(run: Run, reviews: Reviews, at_hand: Collection[str]) -> RunScore:
    settings = settings_from({})
    if run.mark:
        _, settings = open_score(run.files.provenance, settings)
    else:
        settings = settings_of_score(run.path, settings)
    return score_file_reviewed(run.path, settings, run.variant.name, reviews, at_hand)


def score_file_reviewed(
    path: Path,
    settings: Settings,
    dataset: str | None,
    reviews: Reviews,
    at_hand: Collection[str] = (),
) -> RunScore:
    """Score a prediction file as :func:`.score_file`, with reviews of its table.

    Raises:
        ReviewsError: no review is of a row of its table, or a row has changed.
        ValueError: as :func:`.score_file`; or an accepted answer cannot be a row's label.
    """
    opened = open_predictions(path, settings, dataset)
    decided = decisions_of(opened.dataset, opened.benchmark, reviews, at_hand)
    with say_how_to_score(path, dataset):
        run = score_reviewed(opened, decided)
    return check_coordinates(run)
