"""Scoring one run: predictions and a table in, a score, details and provenance out.

Needs neither torch nor vlmeval.  Three files are left beside the predictions ``<stem>.<suffix>``:
``<stem>_score.csv`` (the row that goes into a leaderboard), ``<stem>_details.jsonl`` (every query:
boxes read, IoUs, hits, reason) and ``<stem>_provenance.json`` (what the score rests on).
``<stem>_asked.json`` is written before inference and says what was asked.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from math import isfinite
from pathlib import Path
from typing import Any

from . import __version__
from .datasets import DEMO_IMAGES
from .matching import match
from .metrics import Figures, Totals, add_up, figures, totals
from .models.table import ModelRow, find_model, unknown_space
from .predictions import (
    XLSX_CELL_LIMIT,
    PredictionError,
    Reply,
    read_predictions,
    split_name,
)
from .prompts import prompt_hash
from .reading import reader
from .records import Matched, Query, Reading, Reason
from .release_prompts import prompt_set
from .spaces import Space, SpaceError, reference_size, space_from
from .tables import atomic_write, file_sha256, find_table, meta_path, read_table, thinned
from .variant import ReplyFormat, Variant, parse

# --- the questions of a run -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Task:
    """A variant over its table: every query of it, thinned to the variant's frames."""

    name: str
    variant: Variant
    table: Path
    queries: Mapping[int, Query]


def load_task(name: str) -> Task:
    """The task of a dataset name.

    Raises:
        VariantError: the name is not valid.
        FileNotFoundError: its table is nowhere.
        TableError: its table cannot be read.
    """
    variant = parse(name)
    if variant.row.images == DEMO_IMAGES:
        from .demo.tables import ensure_demo

        ensure_demo()
    table = find_table(variant.table)
    queries = (thinned(query, variant.frames) for query in read_table(table))
    return Task(name, variant, table, {query.index: query for query in queries})


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run asked, written before its first call.

    ``prompt_hash`` covers every row of the table, so that runs with other limits can be compared.
    ``left_out`` are rows without an image that the user left out; ``space`` the settings of the
    model's run where its configuration says them.
    """

    prompts: str
    prompt_hash: str
    table_sha256: str
    left_out: tuple[int, ...] = ()
    space: Mapping[str, Any] | None = None


def asked_now(
    task: Task, left_out: Iterable[int] = (), space: Mapping[str, Any] | None = None
) -> Asked:
    """What a run that starts now asks, with the prompt set in force."""
    name, make = prompt_set()
    hashed = prompt_hash(make(query, task.variant) for query in task.queries.values())
    return Asked(name, hashed, file_sha256(task.table), tuple(left_out), space)


def asked_path(predictions: Path) -> Path:
    """Where the record of what was asked lies."""
    return predictions.with_name(f"{predictions.stem}_asked.json")


def write_asked(path: Path, asked: Asked) -> None:
    """Write it, whole or not at all."""
    with atomic_write(path) as f:
        json.dump(asdict(asked), f, indent=1)


def read_asked(predictions: Path) -> Asked | None:
    """What the run of a prediction file asked; None for runs of others.

    VLMEvalKit puts predictions into the model's folder or into a folder of the run below it; the
    record lies beside them or one folder up.
    """
    beside = asked_path(predictions)
    for path in (beside, beside.parent.parent / beside.name):
        if path.is_file():
            try:
                values = json.loads(path.read_text(encoding="utf-8"))
                values["left_out"] = tuple(values["left_out"])
                return Asked(**values)
            except (ValueError, TypeError, KeyError) as error:
                raise PredictionError(f"{path}: {error}") from None
    return None


# --- the coordinate space of a run ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user says about the scoring of a run; all of it goes before what is known otherwise.

    ``space`` is a name or the fields of :class:`.Space`; ``reads_like`` a row of the model table
    whose way of answering ``unconstrained`` prompts the model shares.
    """

    space: str | Mapping[str, Any] | None = None
    reads_like: str | None = None


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Settings from ``--judge-args`` (other keys are the host's) or, where it has none, from
    ``FINDIT_SPACE`` (a name or a JSON object) and ``FINDIT_READS_LIKE``.
    """
    space = values.get("space") or os.environ.get("FINDIT_SPACE")
    if isinstance(space, str) and space.lstrip().startswith("{"):
        try:
            space = json.loads(space)
        except ValueError as error:
            raise SpaceError(f"FINDIT_SPACE={space}: {error}") from None
    return Settings(space, values.get("reads_like") or os.environ.get("FINDIT_READS_LIKE"))


@dataclass(frozen=True, slots=True)
class SpaceInForce:
    """The coordinate space of a run and where it is known from."""

    space: Space
    source: str


def run_space(
    model: str, variant: Variant, settings: Settings, asked: Asked | None
) -> SpaceInForce:
    """The space of a run: the user's setting, the run's record, or the model's row, in this order.

    Raises:
        SpaceError: none of them says it; the message lists the spaces.
    """
    if settings.space is not None:
        return SpaceInForce(space_from(settings.space), "setting")
    if asked is not None and asked.space is not None:
        return SpaceInForce(space_from(asked.space), "recorded by the run")
    row = find_model(model)
    if row is None:
        raise unknown_space(model)
    return SpaceInForce(row.space(variant.row), f"model table: {row.name}")


def _spaces(
    replies: Sequence[Reply], model: str, variant: Variant, settings: Settings, asked: Asked | None
) -> list[SpaceInForce]:
    """The space of every reply: what was recorded with it, unless the user says otherwise."""
    if settings.space is None and any(reply.recorded.space for reply in replies):
        return [
            SpaceInForce(space_from(reply.recorded.space), "recorded by the run")
            if reply.recorded.space
            else run_space(model, variant, settings, asked)
            for reply in replies
        ]
    return [run_space(model, variant, settings, asked)] * len(replies)


def reply_format(model: str, variant: Variant, settings: Settings) -> ReplyFormat:
    """How the replies of a model to a variant are read."""
    if settings.reads_like is not None:
        row = find_model(settings.reads_like)
        if row is None:
            raise SpaceError(f"reads_like: no model {settings.reads_like!r} in the model table")
    else:
        row = find_model(model)
    return _reads(row, variant)


def _reads(row: ModelRow | None, variant: Variant) -> ReplyFormat:
    return variant.reply if row is None else row.reads(variant)


# --- the score ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scored:
    """One query with its reply, reading and match."""

    query: Query
    reply: Reply
    reading: Reading
    matched: Matched


@dataclass(frozen=True, slots=True)
class RunScore:
    """The score of one run and all that it rests on."""

    model: str
    task: Task
    scored: tuple[Scored, ...]
    totals: Totals
    figures: Figures
    spaces: tuple[SpaceInForce, ...]
    asked: Asked | None

    @property
    def reasons(self) -> Counter[str]:
        """How often each reason stands against a reply."""
        found = (one.reading.reason for one in self.scored)
        return Counter(reason.value for reason in found if reason is not None)


_FAILED_READING = Reading([], [], [], Reason.FAILED_CALL)


def read_reply(reply: Reply, how: ReplyFormat) -> Reading:
    """The reading of one row: a failed call is no answer; one that was cut off says so."""
    if reply.failed:
        return _FAILED_READING
    reading = reader(how)(reply.text)
    if reply.cut and reading.reason is Reason.NOT_JSON:
        return reading._replace(reason=Reason.TRUNCATED)
    return reading


def score(
    model: str,
    task: Task,
    replies: Sequence[Reply],
    settings: Settings | None = None,
    asked: Asked | None = None,
) -> RunScore:
    """Score the replies of a model to a task.

    Raises:
        SpaceError: the coordinate space is not known.
        PredictionError: a reply to a row that the table does not have.
    """
    settings = settings or settings_from({})
    for reply in replies:
        if reply.index not in task.queries:
            raise PredictionError(
                f"{task.name}: index {reply.index} is not in {task.table} "
                f"({len(task.queries)} rows): the predictions are of another table"
            )
    spaces = _spaces(replies, model, task.variant, settings, asked)
    how = reply_format(model, task.variant, settings)
    queries = [task.queries[reply.index] for reply in replies]
    readings = [read_reply(reply, how) for reply in replies]
    matched = match(
        readings,
        [query.truth for query in queries],
        [_scale(s.space, query) for s, query in zip(spaces, queries, strict=True)],
    )
    scored = tuple(map(Scored, queries, replies, readings, matched))
    sums = add_up(totals(one.reading, one.matched) for one in scored)
    in_force = tuple(dict.fromkeys(spaces))
    return RunScore(model, task, scored, sums, figures(sums), in_force, asked)


def _scale(space: Space, query: Query) -> tuple[float, float]:
    w, h = reference_size(space, query.width, query.height)
    return query.width / w, query.height / h


def score_file(
    path: Path, settings: Settings | None = None, dataset: str | None = None
) -> RunScore:
    """Score a prediction file; see :func:`score` for what it raises."""
    model, name = split_name(path, dataset)
    replies = read_predictions(path)
    try:
        return score(model, load_task(name), replies, settings, read_asked(path))
    except SpaceError as error:
        raise SpaceError(
            f"{error}\nThe predictions are safe in {path}; score them without running the model "
            f"again:\n  python run_findit.py score --space SPACE {path}"
        ) from None


# --- the files ------------------------------------------------------------------------------------

FIGURES = ("F1@0.5", "mIoU", "Adherence", "Precision", "Recall")
"""Names of the figures in tables; F1@0.5 is the one that VLMEvalKit's summary shows."""


def score_row(run: RunScore) -> dict[str, Any]:
    """The score as one flat row: figures in percent, counts, and what they rest on."""
    f, t = run.figures, run.totals
    values = (f.f1, f.miou, f.adherence, f.precision, f.recall)
    return {
        "model": run.model,
        "dataset": run.task.name,
        **dict(zip(FIGURES, values, strict=True)),
        "F1@0.5 (failed calls as misses)": f.f1_failed_missed,
        "rows": len(run.task.queries),
        "scored": len(run.scored),
        "answered": t.responses,
        "failed calls": t.failed,
        "left out": len(run.asked.left_out) if run.asked else 0,
        "boxes": t.n_gt,
        "predicted": t.n_pred,
        "found": t.tp,
        "space": "; ".join(sorted({s.space.kind for s in run.spaces})),
        "prompts": run.asked.prompts if run.asked else "unknown",
    }


def detail(one: Scored) -> dict[str, Any]:
    """All that is known of one query, for the details file."""
    reading, matched = one.reading, one.matched
    row: dict[str, Any] = {
        "index": one.query.index,
        "label": one.query.label,
        "image": one.query.images[0],
        "failed": one.reply.failed,
        "adherent": reading.reason is None,
        "reason": reading.reason.value if reading.reason else None,
        "boxes": [[n if isfinite(n) else None for n in box] for box in matched.boxes],
        "ious": [round(value, 6) for value in matched.ious],
        "hits": matched.hits,
        "tp": matched.tp,
        "n_pred": len(matched.boxes),
        "n_gt": len(matched.ious),
    }
    if reading.labels:
        row["labels"] = reading.labels
    if reading.frames:
        row["frames"] = reading.frames
    if one.reply.recorded.images:
        row["images"] = list(one.reply.recorded.images)
    return row


def provenance(run: RunScore, predictions: Path) -> dict[str, Any]:
    """What a score rests on."""
    meta = meta_path(run.task.table)
    variant = run.task.variant
    scored = {one.query.index for one in run.scored}
    sent = sum(bool(one.reply.recorded.images) for one in run.scored)
    cut = sum(len(one.reply.text) >= XLSX_CELL_LIMIT for one in run.scored)
    return {
        "model": run.model,
        "dataset": run.task.name,
        "variant": {"name": variant.name, **asdict(variant)},
        "asked": asdict(run.asked) if run.asked else None,
        "spaces": [{**s.space.as_dict(), "source": s.source} for s in run.spaces],
        "sizes_recorded": sent,
        "table": {
            "file": run.task.table.name,
            "sha256": file_sha256(run.task.table),
            "meta": json.loads(meta.read_text(encoding="utf-8")) if meta.is_file() else None,
        },
        "predictions": {
            "file": predictions.name,
            "sha256": file_sha256(predictions),
            "rows": len(run.scored),
            "rows_missing": sorted(set(run.task.queries) - scored),
            "cut_by_xlsx": cut if predictions.suffix == ".xlsx" else 0,
        },
        "totals": asdict(run.totals),
        "figures": asdict(run.figures),
        "reasons": dict(run.reasons),
        "versions": versions(),
        "scored_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def versions() -> dict[str, str]:
    """Versions of what a score depends on, found without importing any of it."""
    found = {"vlmeval_findit": __version__, "python": sys.version.split()[0]}
    for package in ("numpy", "scipy", "ms-vlmeval", "torch", "transformers", "pillow"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True, slots=True)
class Written:
    """The files of one score."""

    score: Path
    details: Path
    provenance: Path


def write_score(run: RunScore, predictions: Path) -> Written:
    """Leave score, details and provenance beside a prediction file, each whole or not at all."""

    def beside(ending: str) -> Path:
        return predictions.with_name(f"{predictions.stem}_{ending}")

    files = Written(beside("score.csv"), beside("details.jsonl"), beside("provenance.json"))
    row = score_row(run)
    with atomic_write(files.score) as f:
        writer = csv.DictWriter(f, row)
        writer.writeheader()
        writer.writerow({k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()})
    with atomic_write(files.details) as f:
        f.writelines(json.dumps(detail(one), ensure_ascii=False) + "\n" for one in run.scored)
    with atomic_write(files.provenance) as f:
        json.dump(provenance(run, predictions), f, indent=1, ensure_ascii=False)
    return files
