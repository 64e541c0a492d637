"""Files of a score next to its predictions; needs neither torch nor vlmeval.

``<stem>_score.csv`` is the row that goes into a leaderboard, ``<stem>_details.jsonl`` holds every
query (boxes, IoUs, hits, reason), ``<stem>_provenance.json`` what the score rests on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core import as_csv, atomic_write, file_sha256, read_json
from ..models import find_model
from ..protocol import (
    READS_LIKE,
    SPACE_SETTING,
    THOUGHT_MARKS,
    DatasetVariant,
    Identity,
    LastScore,
    ScoredRow,
    Scorer,
    Settings,
    in_words,
    is_stated,
    say,
    stated_note,
    stating_flag,
    thought_marks,
)
from ..storage import RunFiles, Shown, identity_values, marked, run_of, space_mark
from . import answered_by
from .answered_by import AnsweringModel
from .new_identity import plugins_used
from .query_costs import RunCosts, sum_up
from .reply_note import reply_note
from .run_score import RunScore
from .score_reviews import ScoreReviews
from .score_seal import SEAL, ScoreBasis, seal_of
from .scored_with import scored_with_now
from .stored_score import ScoreFileError, StoredProvenance, StoredScorer, read_provenance

UNKNOWN_PROMPTS = "unknown"  # The prompt set of a run that did not record what it asked


def write_score(
    run: RunScore,
    predictions: Path,
    details: Iterable[str] | None = None,
    basis: ScoreBasis | None = None,
    failed: int = 0,
) -> RunFiles:
    """Write score, details and provenance next to a prediction file, each whole or not at all.

    A score in another space than the recorded space, or with reviews, is written next to the
    recorded score.

    Args:
        details: the lines of the details file where the run does not hold them any more.
        basis: what the score rests on; None: that is not known, so the score is not sealed.
        failed: how many of its calls are to be made again.
    """
    files = RunFiles(predictions, run.mark)
    with atomic_write(files.score) as f:
        f.write(as_csv([score_row(run)]))
    with atomic_write(files.details) as f:
        f.writelines(map(details_line, run.rows) if details is None else details)
    values = provenance_of(run, predictions)
    if basis is not None and _is_known_by_hashes(run, values):
        values[SEAL] = seal_of(values, run, files, basis, failed)
    with atomic_write(files.provenance) as f:
        json.dump(values, f, indent=1, ensure_ascii=False)
    return files


def _is_known_by_hashes(run: RunScore, values: Mapping[str, Any]) -> bool:
    """Return whether nothing decided a score that may change in silence.

    An encoder and a plug-in can change under one version; what was forced is never settled.
    """
    return not (run.scorer or run.mark or values["forced"] or "plugins" in values)


def score_row(run: RunScore) -> dict[str, Any]:
    """Return the score as one flat row: metrics in percent, counts, and what they rest on."""
    benchmark = run.benchmark
    headline = benchmark.headline_counting_failures
    identity = run.identity
    prompts = identity.prompts if identity is not None else None
    counts = {name: run.sums.get(key, 0) for name, key in benchmark.counts.items()}
    scorer = {"scored by": run.scorer.name} if run.scorer else {}
    metrics = run.values((*benchmark.metrics, headline))
    if run.reviews:
        metrics = {f"{name} {run.reviews.column}": value for name, value in metrics.items()}
        counts |= {
            "reviewed": run.reviews.reviewed,
            "changed": run.reviews.changed,
            "excluded": run.reviews.excluded,
            "random": run.reviews.random,
        }
    return {
        "model": marked(run.model, run.mark),
        "dataset": run.dataset.name,
        **metrics,
        "rows": len(run.dataset.queries),
        "scored": len(run.rows),
        "answered": len(run.rows) - run.failed,
        "failed calls": run.failed,
        "left out": len(identity.left_out) if identity is not None else 0,
        **counts,
        "space": "; ".join(sorted({space["kind"] for space in run.spaces})),
        **scorer,
        "prompts": prompts or UNKNOWN_PROMPTS,
        "run": identity.digest if identity is not None else UNKNOWN_PROMPTS,
    }


def details_line(row: ScoredRow) -> str:
    """Write a row as one line; :func:`.read_details_line` reads it back."""
    values = {
        "index": row.index,
        "source": row.source,
        "failed": row.failed,
        "reason": row.reason,
        **row.details,
        "sums": row.sums,
    }
    if row.slices:
        values["slices"] = row.slices
    if row.parts:
        values["parts"] = [[*part, sums] for part, sums in row.parts.items()]
    return json.dumps(values, ensure_ascii=False) + "\n"


# --- provenance: what a score rests on ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a score rests on, as far as its run recorded it."""

    identity: Identity | None  # As recorded before the first call (None: not recorded)
    digest: str  # Short name of the identity
    forced: tuple[str, ...]  # Conflicts that ``--force`` went over, in the run or its scoring

    prompts: str  # Prompt set
    prompt_hash: str | None  # Over every row of the table
    table: str
    table_sha256: str
    rows: frozenset[int]  # Indices of the rows that were scored
    missing: tuple[int, ...]  # Rows that were not scored
    spaces: tuple[str, ...]  # Coordinate spaces, each with its source
    scorer: Scorer | None  # What decided besides the benchmark's code
    versions: Mapping[str, str]  # At inference
    scored_with: Mapping[str, str]  # Of :func:`.scored_with_now`
    predictions_sha256: str
    scored_at: str
    plugins: Mapping[str, str] = field(default_factory=dict)
    coords_doubt: str | None = None  # Why the declared space is in doubt (None: it is not)
    answered_by: tuple[AnsweringModel, ...] = ()  # Models that say they answered
    reply_note: str | None = None  # What is odd in the replies (None: nothing)
    space_note: str | None = None  # The space that was stated in place of the known one
    costs: RunCosts = field(default_factory=RunCosts)  # As far as they are known
    shown: Mapping[int, Shown] = field(default_factory=dict)  # Images of each row, where recorded
    reasons: frozenset[str] = frozenset()  # Why replies do not adhere, as far as any does not
    reviews: ScoreReviews | None = None  # Of labels, that it was scored with
    made_of: Mapping[str, Any] = field(default_factory=dict)  # The facts of the table's .meta.json

    @property
    def voter(self) -> str:
        """The name of the run among voters: its digest, else that of its predictions."""
        return self.digest if self.identity is not None else self.predictions_sha256[:12]

    @property
    def answered_note(self) -> str | None:
        """Say that several models answered, or another than was asked."""
        return answered_by.answered_note(self.answered_by, self.identity)

    @property
    def custom_words(self) -> str:
        """Say which words of the user's a run was asked in; "" for the benchmark's."""
        custom = self.identity.custom_prompt if self.identity else {}
        names = {"system": "a system text", "template": "a prompt template"}
        given = [name for key, name in names.items() if custom.get(key)]
        if not given:
            return ""
        return f"asked with {' and '.join(given)} of its user ({self.prompts})"

    @property
    def scored_under(self) -> frozenset[tuple[str, str]]:
        """The settings of the scorer and the reviews: runs with others cannot be compared."""
        settings = dict(self.scorer.settings) if self.scorer else {}
        if self.reviews is not None:
            settings["reviews"] = self.reviews.digest
        return frozenset(settings.items())


def provenance_of(run: RunScore, predictions: Path) -> dict[str, Any]:
    """Return the values that a score depends on."""
    meta = run.dataset.table.with_suffix(".meta.json")
    benchmark = run.benchmark
    identity = run.identity
    scored = {row.index for row in run.rows}
    metrics = (*benchmark.metrics, benchmark.headline_counting_failures)
    values = run.values(metrics)
    marks = run.thought_marks
    plugins = _plugins(run)
    return {
        "model": run.model,
        "dataset": run.dataset.name,
        "benchmark": benchmark.name,
        "variant": _variant_values(run.dataset.variant),
        "identity": identity and identity_values(identity),
        "digest": identity and identity.digest,
        "forced": [*(identity.forced if identity else ()), *run.forced],
        "spaces": [dict(space) for space in run.spaces],
        "coords_doubt": run.coords_doubt,
        **({"scorer": asdict(run.scorer)} if run.scorer else {}),
        **({"reviews": asdict(run.reviews)} if run.reviews else {}),
        **({"thought_marks": [marks.opens, marks.closes]} if marks else {}),
        **({"reads_like": run.reads_like} if run.reads_like else {}),
        "answered_by": answered_by.as_values(run.answered_by),
        "replies": dict(run.reply_counts),
        "costs": asdict(sum_up(run.costs)),
        "table": {
            "file": run.dataset.table.name,
            "sha256": file_sha256(run.dataset.table),
            "meta": read_json(meta) if meta.is_file() else None,
        },
        "predictions": {
            "file": predictions.name,
            "sha256": file_sha256(predictions),
            "rows": len(run.rows),
            "rows_missing": sorted(set(run.dataset.queries) - scored),
        },
        "totals": {key: total for key, total in run.sums.items() if isinstance(key, str)},
        "metrics": {metric.key or metric.name: values[metric.name] for metric in metrics},
        "reasons": dict(run.reasons),
        # Versions of inference are in the run's identity.
        "scored_with": scored_with_now(run.dataset.variant, _row_of(run), _kinds(run)),
        **({"plugins": plugins} if plugins else {}),
        "scored_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _variant_values(variant: DatasetVariant) -> dict[str, Any]:
    """Return a variant's name and fields; an enum as its value."""
    values: dict[str, Any] = {"name": variant.name}
    if is_dataclass(variant):
        for name, value in asdict(variant).items():
            values[name] = getattr(value, "value", value)
    return values


def _plugins(run: RunScore) -> dict[str, str]:
    """Return the versions of the plug-ins that the run and its scoring used."""
    recorded = run.identity.plugins if run.identity is not None else {}
    return {**plugins_used(run.dataset.variant, _row_of(run), _kinds(run)), **recorded}


def _row_of(run: RunScore) -> str | None:
    """Return the name of the model's row; None if no row is known."""
    if run.identity is not None and run.identity.answering.row:
        return run.identity.answering.row
    known = find_model(run.model)
    return known.name if known is not None else None


def _kinds(run: RunScore) -> list[str]:
    return [space["kind"] for space in run.spaces]


def provenance_from(
    stored: StoredProvenance, shown: Mapping[int, Shown], costs: RunCosts
) -> Provenance:
    """Return the values that a score depends on, by its provenance and details.

    ``shown`` are the images of every row, none where they were not recorded.
    """
    run = stored.identity
    return Provenance(
        identity=run,
        digest=stored.digest or UNKNOWN_PROMPTS,
        forced=stored.forced,
        prompts=(run and run.prompts) or UNKNOWN_PROMPTS,
        prompt_hash=run.prompt_hash if run else None,
        table=stored.table.file,
        table_sha256=stored.table.sha256,
        rows=frozenset(shown),
        missing=stored.predictions.rows_missing,
        spaces=tuple(_space_text(space) for space in stored.spaces),
        scorer=_scorer(stored.scorer) if stored.scorer else None,
        versions={**run.host, **run.versions} if run else {},
        scored_with=stored.scored_with,
        predictions_sha256=stored.predictions.sha256,
        scored_at=stored.scored_at,
        plugins=stored.plugins,
        coords_doubt=stored.coords_doubt,
        answered_by=answered_by.models_in(stored.answered_by),
        reply_note=reply_note(stored.replies),
        space_note=stated_note(stored.spaces),
        costs=costs,
        reasons=frozenset(stored.reasons),
        reviews=stored.reviews,
        shown={index: images for index, images in shown.items() if images},
        made_of=stored.table.meta or {},
    )


def _scorer(stored: StoredScorer) -> Scorer:
    settings = {name: str(value) for name, value in stored.settings.items()}
    return Scorer(stored.name, settings, stored.source, stored.versions)


def _space_text(space: Mapping[str, Any]) -> str:
    """Return a space in words: ``smart_resize patch=16 (model table: Qwen3-VL)``."""
    words = [space["kind"]]
    for name, value in space.items():
        if name not in ("kind", "source") and value:
            words.append(f"{name}={value}")
    return f"{' '.join(words)} ({space['source']})"


# --- the settings of a score ---------------------------------------------------------------------


def settings_of_score(predictions: Path, settings: Settings) -> Settings:
    """Force again what an earlier score forced; what else it was told, :func:`last_score` knows."""
    path = RunFiles(predictions).provenance
    if settings.space is not None or not path.is_file():
        return settings
    stored = _earlier(path)
    if not stored.forced:
        return settings
    return replace(settings, force=True, space=_told(stored, settings).space)


def last_score(predictions: Path, settings: Settings) -> LastScore:
    """Return what the last score of a prediction file was told and the settings do not say again.

    Nothing is taken where the file changed since, or its provenance is damaged; that is said.
    """
    provenance = RunFiles(predictions).provenance
    if not provenance.is_file():
        return LastScore()
    try:
        stored = read_provenance(provenance)
    except ScoreFileError as error:
        say(f"{error}: what this score was told is not known. State it again")
        return LastScore()
    told = _told(stored, settings)
    values = {
        SPACE_SETTING: told.space,
        THOUGHT_MARKS: told.thought_marks,
        READS_LIKE: told.reads_like,
    }
    stated = {setting: value for setting, value in values.items() if value is not None}
    if not stated or file_sha256(predictions) == stored.predictions.sha256:
        return told
    words = [f"{setting.noun} {in_words(value)}" for setting, value in stated.items()]
    flags = [stating_flag(setting, value) for setting, value in stated.items()]
    say(
        f"{predictions}: its last score was told {', '.join(words)}. The file changed since, so "
        f"that is not taken. Where it still holds type {' '.join(flags)}"
    )
    return LastScore()


def _told(stored: StoredProvenance, settings: Settings) -> LastScore:
    """Return what a score was told and the settings do not say."""
    spaces = [space for space in stored.spaces if is_stated(space["source"])]
    marks = stored.thought_marks
    told = LastScore(
        space=_plain(spaces[0]) if len(spaces) == 1 else None,
        reads_like=stored.reads_like,
        thought_marks=thought_marks(marks) if marks is not None else None,
    )
    again = {name: None for name in _OF_LAST if getattr(settings, name) is not None}
    return replace(told, **again)


_OF_LAST = tuple(each.name for each in fields(LastScore))


def open_score(path: Path, settings: Settings) -> tuple[Path, Settings]:
    """Return the predictions of a score, given one of its files, and how it was scored.

    Of a score in another space these are its space, unless the settings name one, and its marks of
    thoughts. Any other path is returned as it is, with the settings.
    """
    files = run_of(path)
    if files.predictions == path or not files.provenance.is_file():
        return path, settings
    stored = _earlier(files.provenance)
    predictions = files.provenance.with_name(stored.predictions.file)
    if not space_mark(files.mark):
        return predictions, settings
    settings = _with_marks(settings, stored)
    space = settings.space if settings.space is not None else _first_space(stored)
    return predictions, replace(settings, space=space, separately=True)


def _with_marks(settings: Settings, stored: StoredProvenance) -> Settings:
    """Complete settings without thought marks by those of a provenance."""
    if settings.thought_marks is not None or stored.thought_marks is None:
        return settings
    return replace(settings, thought_marks=thought_marks(stored.thought_marks))


def _first_space(stored: StoredProvenance) -> dict[str, Any]:
    return _plain(stored.spaces[0])


def _plain(space: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in space.items() if name != "source"}


def _earlier(provenance: Path) -> StoredProvenance:
    try:
        return read_provenance(provenance)
    except ScoreFileError as error:
        raise ScoreFileError(f"{error}; delete it to score without it") from None
