"""Open a run's predictions: what they are of, and all that contradicts it.

Files of other programs are converted first.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import benchmarks
from ..core.files import file_sha256, suffix_of
from ..data.loading import load_dataset
from ..models.model_table import find_model
from ..protocol.dataset_variant import AnyDataset, rows_text
from ..protocol.identity import Identity, IdentityConflict, IdentityError, apply_force
from ..protocol.replies import Reply
from ..protocol.settings import Settings, settings_from
from ..protocol.thoughts import USUAL, ThoughtRule, rule_of
from ..storage.identity_file import read_identity
from ..storage.predictions import (
    PREDICTION_FORMATS,
    PredictionError,
    holds_rows,
    read_predictions,
    write_rows,
)
from ..storage.run_files import RunFiles, files_below
from ..storage.sheet_cells import XLSX_CELL_LIMIT, cut_by_sheet
from .new_identity import plugin_conflicts


@dataclass(frozen=True, slots=True)
class Predictions:
    """Replies with all that decides their score; nothing in it contradicts the rest."""

    model: str
    dataset: AnyDataset
    replies: Sequence[Reply]
    settings: Settings
    """What the user says of scoring, and what the run recorded where the user says nothing."""
    identity: Identity | None  # What the run recorded; None: nothing
    forced: tuple[str, ...]  # The contradictions that ``--force`` overruled


def open_predictions(path: Path, settings: Settings, named: str | None = None) -> Predictions:
    """Read a prediction file and find what it is of.

    The file may have any name where its run recorded what it is, or ``named`` is its dataset.

    Raises:
        PredictionError, DatasetNameError: the file cannot be read, or says of no question.
        IdentityError: something contradicts what the run recorded, and is not forced.
    """
    identity = read_identity(path)
    against = plugin_conflicts(identity.plugins if identity else {})
    # Without a plug-in neither dataset nor space may be known here, and be blamed instead.
    _overruled(against, settings, str(path))
    model, name = _named(path, named, identity)
    dataset = load_dataset(name)
    if identity is not None:
        recorded = identity.dataset
        if model != identity.model:
            against.append(IdentityConflict("model", identity.model, model))
        if name != recorded and benchmarks.parse(name) != benchmarks.parse(recorded):
            against.append(IdentityConflict("dataset", recorded, name))
        if identity.resolved_options:
            dataset = benchmarks.benchmark_of(name).for_model(
                dataset, model, identity.resolved_options
            )
    replies = read_predictions(path)
    opened = check_replies(model, dataset, replies, settings, identity, against, path)
    return replace(opened, forced=(*opened.forced, *_cut(path, replies, settings)))


def _cut(path: Path, replies: Sequence[Reply], settings: Settings) -> list[str]:
    """Return the replies that a sheet cut, as results say it; a PredictionError unless forced."""
    cut = cut_by_sheet(path, replies)
    if not cut:
        return []
    what = (
        f"column prediction of index {rows_text(cut)} is cut at {XLSX_CELL_LIMIT:,} characters, "
        "which is all that a cell of xlsx holds"
    )
    if not settings.force:
        raise PredictionError(
            f"{path}: {what}, and no journal ({RunFiles(path).calls.name}) beside it has the whole "
            "reply: a score would be another model's. Put the journal beside it, or ask again: "
            "type PRED_FORMAT=json before the command. --force scores what is left; the result "
            "says so"
        )
    return [what]


def check_replies(
    model: str,
    dataset: AnyDataset,
    replies: Sequence[Reply],
    settings: Settings | None = None,
    identity: Identity | None = None,
    against: Sequence[IdentityConflict] = (),
    path: Path | None = None,
) -> Predictions:
    """Refuse replies that contradict their table, their run or the user's settings.

    Settings are by default those of the environment. ``against`` are earlier conflicts, ``path`` is
    the prediction file for messages.

    Raises:
        PredictionError: a reply to a row that the table does not have.
        IdentityError: the task, a reply or a setting contradicts what the run recorded.
    """
    settings = settings or settings_from({})
    rule = _thought_rule(model, settings, identity)
    if rule != USUAL:
        replies = [replace(reply, thoughts=rule) for reply in replies]
    where = str(path) if path else f"{model} on {dataset.name}"
    for reply in replies:
        if reply.index not in dataset.queries:
            raise PredictionError(
                f"{where}: index {reply.index} is not in {dataset.table} "
                f"({len(dataset.queries)} rows): the predictions are of another table"
            )
    benchmark = benchmarks.benchmark_of(dataset.variant)
    of_benchmark = benchmark.identity_conflicts(dataset, replies, settings, identity)
    refuse_variable(settings, [conflict for conflict in of_benchmark if conflict.is_space], where)
    of_run = _against_run(dataset, replies, settings, identity) if identity else ()
    against = [*against, *of_run, *_against_table(dataset, replies), *of_benchmark]
    spaces = [each for each in against if each.is_space and settings.separately]
    others = [each for each in against if each not in spaces]
    forced = (*_overruled(others, settings, where), *map(str, spaces))
    if identity is not None and settings.reads_like is None:
        settings = replace(settings, reads_like=identity.reads_like)
    return Predictions(model, dataset, replies, settings, identity, forced)


def _thought_rule(model: str, settings: Settings, identity: Identity | None) -> ThoughtRule:
    """Return how a model's thoughts are marked: as the user says, else as its row."""
    row = find_model((identity.answering.row if identity else None) or model)
    rule = row.thoughts if row is not None else USUAL
    if settings.thought_marks is None:
        return rule
    return rule_of(settings.thought_marks, rule.opened)


def _overruled(
    against: Sequence[IdentityConflict], settings: Settings, where: str
) -> tuple[str, ...]:
    """Return the contradictions that are forced; others are refused."""
    where = f"{where}: the predictions are of something else than is scored now"
    return tuple(apply_force(against, settings.force, where, "Score what was asked."))


def refuse_variable(settings: Settings, spaces: Sequence[IdentityConflict], where: str) -> None:
    """Raise IdentityError if the space of the environment contradicts a record, even if forced."""
    if spaces and settings.space is not None and settings.source != "setting":
        raise IdentityError(
            f"{where}:\n  {spaces[0]} ({settings.source})\nAn environment variable does not "
            "override what a run recorded: unset it, or name the space with --space."
        )


# --- what contradicts -----------------------------------------------------------------------------


def _named(path: Path, dataset: str | None, identity: Identity | None) -> tuple[str, str]:
    try:
        model, named = parse_prediction_name(path)
    except PredictionError:
        if identity is not None:
            model, named = identity.model, identity.dataset
        elif dataset is not None:
            model = path.stem.removesuffix(f"_{dataset}")
            named = dataset
        else:
            raise
    return model, dataset or named


def _against_run(
    dataset: AnyDataset, replies: Sequence[Reply], settings: Settings, identity: Identity
) -> Iterator[IdentityConflict]:
    table = file_sha256(dataset.table)
    if identity.table_sha256 not in (None, table):
        now = f"{table} ({dataset.table})"
        yield IdentityConflict("SHA-256 of the table", identity.table_sha256, now)
    foreign = {reply.index for reply in replies} - set(identity.rows or dataset.queries)
    if foreign:
        yield IdentityConflict("rows", rows_text(identity.rows or ()), f"also {rows_text(foreign)}")
    yield from _elsewhere(replies, identity)
    given = settings.reads_like
    if None not in (identity.reads_like, given) and identity.reads_like != given:
        yield IdentityConflict("reads_like", identity.reads_like, given)


def _elsewhere(replies: Sequence[Reply], identity: Identity) -> Iterator[IdentityConflict]:
    """Return the servers of answers that are none of the run's, unless the run was forced."""
    who = identity.answering
    answered = [reply for reply in replies if not reply.recorded.call.get("error")]
    named = [(reply.index, reply.recorded.call.get("server")) for reply in answered]
    others: dict[str, list[int]] = {}
    for index, server in named:
        if who.is_elsewhere(server):
            others.setdefault(str(server), []).append(index)
    for server, rows in others.items():
        if not any(server in note for note in identity.forced):
            what = f"server of {len(rows)} of {len(replies)} answers"
            yield IdentityConflict(what, who.endpoint, f"{server} (rows {rows_text(rows)})")


def _against_table(dataset: AnyDataset, replies: Sequence[Reply]) -> Iterator[IdentityConflict]:
    """Return the rows of a prediction file with another label or size than the table."""
    for reply in replies:
        query = dataset.queries[reply.index]
        for name, stated in reply.stated.items():
            true = getattr(query, name)
            if _as_stated(stated) != _as_stated(true):
                what = f"{name} of row {reply.index}"
                yield IdentityConflict(what, stated, f"{true} ({dataset.table})")


def _as_stated(value: object) -> str:
    """Return a label or a size as any format of prediction files writes it."""
    text = " ".join(str(value).split())
    return text.removesuffix(".0") if text.removesuffix(".0").isdigit() else text


def convert_file(path: Path, named: str | None) -> Path:
    """Make ``<model>_<dataset>.json`` next to a file, which is then scored like any run.

    Raises:
        PredictionError: no dataset is named, or a file of that name with other replies is there.
        ValueError: the file is in no layout that the benchmark knows.
    """
    if named is None:
        raise PredictionError(f"{path}: say with --data what it is about")
    dataset = load_dataset(named)
    variant = dataset.variant
    replies = benchmarks.benchmark_of(variant).convert(path, dataset)
    target = path.with_name(f"{path.stem}_{variant.name}.json")
    rows = [
        {"index": reply.index, "prediction": reply.text, "extra_records": reply.recorded.as_json()}
        for reply in replies
    ]
    if target.exists() and not holds_rows(target, rows):
        raise PredictionError(
            f"{target}: is there with other replies, and may be a run's; to score it: "
            f"{score_command(target)}; to convert {path.name} again, move it away first"
        )
    write_rows(target, lambda: rows)
    return target


# --- prediction files by their names --------------------------------------------------------------


def parse_prediction_name(path: Path) -> tuple[str, str]:
    """Return (model, dataset) of the name of a prediction file; PredictionError if it has none."""
    named = benchmarks.name_after_model(path.stem)
    if named is not None:
        return named
    raise PredictionError(
        f"{path}: the name of a prediction file is {_pattern(path.suffix)}; "
        "of a file with another name say --data"
    )


def _pattern(suffix: str) -> str:
    return " or ".join(f"<model>_{prefix}…{suffix}" for prefix in benchmarks.begins())


def prediction_files(paths: Iterable[Path]) -> list[Path]:
    """Return the prediction files at or below paths, each once.

    Raises:
        PredictionError: a folder without any.
        FileNotFoundError: a path is not there.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        inside = [path]
        if path.is_dir():
            inside = [file for file in sorted(files_below(path)) if _is_predictions(file)]
            if not inside:
                raise PredictionError(f"{path}: no prediction file in it ({_pattern('.json')})")
        for file in inside:
            # VLMEvalKit links the files of a run's folder into the model's.
            files.setdefault(file.resolve(), file)
    return list(files.values())


def _is_predictions(path: Path) -> bool:
    is_format = suffix_of(path) in PREDICTION_FORMATS
    if not is_format or path.name.startswith(".") or not path.is_file():
        return False
    if RunFiles(path).identity.is_file() or benchmarks.name_after_model(path.stem) is not None:
        return True
    # Without a model it is refused by name: left out in silence, it would not be missed.
    return benchmarks.is_dataset_name(path.stem)


def score_command(path: Path, dataset: str | None = None, *flags: str) -> str:
    """Return the command that scores a prediction file, with the dataset if its name lacks it."""
    words = ["score", *flags]
    if benchmarks.name_after_model(path.stem) is None and not RunFiles(path).identity.is_file():
        words += ["--data", dataset or "DATASET"]
    return f"python run_findit.py {shlex.join([*words, str(path)])}"
