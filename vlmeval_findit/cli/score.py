"""``run_findit.py score``: score prediction files again, without a model."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..analysis import reading_notes
from ..benchmarks import benchmark_of
from ..boxes import SPACE_KINDS
from ..core import (
    EXIT_REFUSED,
    EXIT_SOME_FAILED,
    agreeing,
    as_called,
    counted,
    is_disk_full,
    open_text,
    remember_file,
)
from ..data import BoxForm
from ..models import check_stated
from ..protocol import Settings, settings_from
from ..scoring import (
    REPLY_LAYOUTS,
    UNANSWERED,
    ConversionChoices,
    RunFacts,
    RunScore,
    alike_but_for_time,
    convert_file,
    errata_lines,
    facts_of_score,
    names_of,
    open_score,
    prediction_files,
    refuse_yolo_folders,
    score_beside,
    score_file,
    score_row,
    tables_of,
    write_score,
)
from ..storage import PredictionError, RunFiles, read_identity, read_reviews, space_mark
from .access import without_effect
from .command_base import (
    Command,
    box_option,
    complete_models,
    data_name_option,
    error_text,
    force_option,
    option,
    print_note,
    reviews_option,
    runs_argument,
    space_option,
    switch,
)
from .printing import WHOLE_OUTPUT, print_lines, print_rows


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py score outputs",
        "python run_findit.py score --convert coco.json --data FindIt_MyData_xyxy_json  # yours",
    ],
    sections={
        "Coordinate spaces": lambda: [(row.name, row.means) for row in SPACE_KINDS.values()],
        "Files of other programs (--convert), JSON or JSON lines": lambda: _CONVERTED,
    },
)
@runs_argument
@data_name_option
@space_option
@switch(
    "--convert", "RUN is another program's file: make <model>_<dataset>.json of it, and score that."
)
@option("--min-score", "X", "A box of --convert counts from this score on.", type=float)
@box_option
@switch("--leave-out-unknown", "Leave out boxes of images and classes that are not in the set.")
@option(
    "--encoder",
    "NAME",
    "What scores captions: SigLIP, FindIt-Nano-SigLIP, any dual encoder of Hugging Face, or a "
    "folder (else the dataset's).",
)
@option(
    "--reads-like",
    "MODEL",
    "Read answers to `unconstrained` as this model's.",
    shell_complete=complete_models,
)
@option(
    "--thought-marks",
    "MARKS",
    "Marks around this model's thoughts: '<plan> </plan>'.",
)
@reviews_option
@force_option
def command(
    runs: tuple[Path, ...],
    dataset: str | None,
    space: str | None,
    convert: bool,
    min_score: float | None,
    box: BoxForm | None,
    leave_out_unknown: bool,
    encoder: str | None,
    reads_like: str | None,
    thought_marks: str | None,
    reviews: tuple[Path, ...],
    force: bool,
) -> int:
    """Score prediction files again, without the model.

    RUN is a file <model>_<dataset>.json, .jsonl, .tsv or .xlsx, a file of its score, or a folder.
    If a run recorded another space than --space, its score stays, and the new score is written to
    files with the space in their names. Leaderboard and report show it if that file is named. A
    score with --reviews has their digest in the names of its files: leaderboard, compare and report
    show it with the same --reviews.
    """
    given = {"space": space, "reads_like": reads_like, "thought_marks": thought_marks}
    settings = settings_from({**given, "force": force, "encoder": encoder})
    check_stated(settings)
    settings = replace(settings, separately=space is not None)
    choices = ConversionChoices(min_score, box, leave_out_unknown)
    if not convert and choices != ConversionChoices():
        raise ValueError("--min-score, --box and --leave-out-unknown are for --convert: add it")
    try:
        paths = prediction_files(runs)
    except PredictionError:
        if convert:
            refuse_yolo_folders(runs)
        raise
    if encoder is not None:
        _refuse_unused_encoder(paths, settings, dataset)
    decided = read_reviews(reviews) if reviews else None
    at_hand = tables_of(paths, dataset) if reviews else set()
    for path in paths:
        _remember(path)
    rows: list[Mapping[str, Any]] = []
    notes: list[str] = []
    runs_of: dict[str, list[str]] = {}  # By what is said of them
    facts: list[RunFacts] = []
    unscored: list[str] = []
    refused: list[ValueError | OSError] = []
    for path in paths:
        try:
            file = path
            if convert:
                made = convert_file(path, dataset, choices)
                file = made.path
                _remember(file)
                notes += made.notes
            file, as_before = open_score(file, settings)
            if decided is None:
                run = score_file(file, as_before, dataset)
            else:
                beside = score_beside(file, as_before, dataset, decided, at_hand)
                run = beside.run
                note = f"without reviews: {beside.why_without}"
                if beside.why_without and note not in notes:
                    notes.append(note)
            written = write_score(run, file)
        except (ValueError, OSError) as why:
            if is_disk_full(why):
                raise
            refused.append(why)
            continue
        # The answers of thousands of runs do not fit into memory.
        rows += _rows(run, written)
        _add_notes(run, runs_of)
        facts.append(facts_of_score(run, file))
        unscored += _unscored(run, path)
        if run.reviews is not None:
            notes.append(f"the score without reviews is unchanged; with them: {written.score}")
        elif written.mark:
            notes.append(f"the recorded score is unchanged; the new score is {written.score}")
    if not rows and len(refused) == 1:
        raise refused[0]
    print_rows(rows)
    notes = list(dict.fromkeys(notes))
    notes += [f"{', '.join(names)}: {note}" for note, names in runs_of.items()]
    notes += errata_lines(facts)
    print_lines(notes, WHOLE_OUTPUT)
    printed: set[str] = set()  # A list of spaces is the same for every file
    for error in refused[:_MOST_REFUSED]:
        first, *lines = error_text(error).splitlines()
        print_note("\n".join([f"error: not scored: {first}", *_new(lines, printed)]))
    if more := len(refused[_MOST_REFUSED:]):
        print_note(f"error: not scored: {more:,} more files")
    for line in unscored[:_MOST_REFUSED]:
        print_note(f"error: {line}")
    if not refused:
        return EXIT_SOME_FAILED if unscored else 0
    return EXIT_SOME_FAILED if rows else EXIT_REFUSED


def _remember(predictions: Path) -> None:
    """Remember the files of a score, so that another command's are not replaced."""
    files = RunFiles(predictions)
    remember_file(files.score)
    remember_file(files.details)
    remember_file(files.provenance, alike_but_for_time)


def _refuse_unused_encoder(paths: Iterable[Path], settings: Settings, dataset: str | None) -> None:
    """Refuse ``--encoder`` where no run has captions that an encoder scores."""
    for path in paths:
        try:
            file, _ = open_score(path, settings)
            _, name = names_of(file, dataset, read_identity(file))
            if benchmark_of(name).uses_encoder:
                return
        except ValueError:
            return  # The scoring says what is wrong with the file.
    raise without_effect("encoder", f"{name} has no captions that an encoder would score")


_CONVERTED: list[tuple[str, str]] = [
    ("COCO results", "boxes of images and classes; also gzip, with names in place of ids"),
    ("masks", "index or id of the row, and mask, pred_mask or segmentation: its tight box"),
    *((layout.program, ", ".join(layout.keys)) for layout in REPLY_LAYOUTS),
    ("Ref-L4's and D3's files", "for their datasets"),
]

_MOST_REFUSED = 12  # Files whose errors are printed


def _new(lines: Sequence[str], printed: set[str]) -> list[str]:
    """Return the lines that were not printed before, and note them."""
    new = [line for line in lines if line not in printed]
    printed.update(new)
    return new


def _rows(run: RunScore, written: RunFiles) -> Iterator[Mapping[str, Any]]:
    """Yield the score of a run as a row; one with reviews follows that without them."""
    if run.reviews is None:
        yield score_row(run)
        return
    without_reviews = replace(written, mark=space_mark(written.mark))
    with open_text(without_reviews.score) as lines:
        yield from csv.DictReader(lines)
    yield {**score_row(run), **run.metric_values, "column": run.reviews.column}


def _unscored(run: RunScore, path: Path) -> Iterator[str]:
    """Say of a file with few answers, or none, that its values say nothing of a model."""
    rows = len(run.rows)
    answered = rows - run.failed
    if not rows:
        yield f"{path}: it has no rows, so its values are of nothing"
    elif run.is_unanswered:
        yield f"{path}: {UNANSWERED}"
    elif answered < rows / 2:
        yield (
            f"{path}: {answered:,} of its {rows:,} rows have a reply; the others are failed calls: "
            "run its command again to ask them again"
        )


def _add_notes(run: RunScore, runs_of: dict[str, list[str]]) -> None:
    """Add what is said of a run: each note has the runs of which it is true."""
    for note in _notes(run):
        runs_of.setdefault(note, []).append(f"{run.model} {run.dataset.name}")


def _notes(run: RunScore) -> Iterator[str]:
    """Yield the notes on a run that are printed below the table."""
    if run.reviews is not None:
        yield str(run.reviews.counts)
    for note in run.forced:
        yield f"contradicts the record: {note}"
    if run.identity is not None and run.identity.answering.sampling_note:
        yield run.identity.answering.sampling_note
    for marks, number in run.unnamed_marks.items():
        count = round(number)
        yield (
            f"{counted(count, 'reply', 'replies')} {agreeing(count, 'begins', 'begin')} with a "
            f"part in {marks.replace(' ', '…')}, which was read as part of the answer. If it is a "
            f"thought: --thought-marks '{marks}'"
        )
    yield from filter(None, (run.stated_note, run.answered_note, run.reply_note))
    if run.coords_doubt is not None:
        yield f"{run.coords_doubt} {as_called('(see: run_findit.py coords)')}"
    yield from reading_notes(run)
