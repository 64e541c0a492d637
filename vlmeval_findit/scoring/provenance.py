"""The provenance of a score: what a run's score rests on, as values for its file and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core import file_sha256, read_json
from ..models import find_model
from ..protocol import (
    DatasetVariant,
    Identity,
    Scorer,
    SumName,
    sum_rows,
)
from ..storage import Shown, identity_values
from . import answered_by
from .answered_by import AnsweringModel
from .new_identity import plugins_used
from .query_costs import RunCosts, sum_up
from .recorded_reviews import ScoreReviews
from .reply_note import reply_note
from .run_score import RunScore
from .score_reading import StoredProvenance, StoredScorer
from .scored_with import scored_with_now
from .stated_values import note_on_stated

UNKNOWN_PROMPTS = "unknown"  # The prompt set of a run that did not record what it asked


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
    stated_note: str | None = None  # What was stated in place of what is known
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
        # Of the rows as the details have them, each once
        "totals": {key: total for key, total in _totals(run).items() if isinstance(key, str)},
        "metrics": {metric.key or metric.name: values[metric.name] for metric in metrics},
        "reasons": dict(run.reasons),
        # Versions of inference are in the run's identity.
        "scored_with": scored_with_now(run.dataset.variant, _row_of(run), _kinds(run)),
        **({"plugins": plugins} if plugins else {}),
        "scored_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _totals(run: RunScore) -> Mapping[SumName, float]:
    return run.sums if run.reviews is None else sum_rows(run.rows)


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
        stated_note=note_on_stated(
            stored.model, run, stored.spaces, stored.thought_marks, stored.reads_like
        ),
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
