"""The provenance of a score: what it rests on, as a file and as a record."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import __version__
from ..core.benchmark_protocol import Scorer
from ..core.command import installed
from ..core.files import file_sha256
from ..core.identity import Identity, as_values, from_values
from ..core.metric import is_sliced
from ..core.question import Question
from ..core.scored_row import ScoredRow
from ..models.model_table import find_model
from .run_identity import plugins_used
from .run_score import RunScore

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
    left_out: tuple[int, ...]  # Those of them without a usable image
    spaces: tuple[str, ...]  # Coordinate spaces, each with its source
    scorer: Scorer | None  # What decided besides the benchmark's code
    versions: Mapping[str, str]  # At inference
    scored_with: Mapping[str, str]
    predictions_sha256: str
    scored_at: str
    plugins: Mapping[str, str] = field(default_factory=dict)
    coords_doubt: str | None = None  # Why the declared space is in doubt (None: it is not)

    @property
    def custom_words(self) -> str:
        """Say which words of the user's a run was asked in; "" for the benchmark's."""
        custom = self.identity.custom_prompt if self.identity else {}
        names = {"system": "a system text", "template": "a prompt template"}
        given = [name for key, name in names.items() if custom.get(key)]
        return f"asked with {' and '.join(given)} of its user ({self.prompts})" if given else ""

    @property
    def scored_under(self) -> frozenset[tuple[str, str]]:
        """The settings of the scorer: runs with others cannot be compared."""
        return frozenset(self.scorer.settings.items() if self.scorer else ())


def provenance_of(run: RunScore, predictions: Path) -> dict[str, Any]:
    """Return the values that a score depends on."""
    meta = run.task.table.with_suffix(".meta.json")
    question, benchmark, identity = run.task.question, run.benchmark, run.identity
    scored = {row.index for row in run.rows}
    metrics = (*benchmark.metrics, benchmark.with_failures)
    return {
        "model": run.model,
        "dataset": run.task.name,
        "benchmark": benchmark.name,
        "variant": {"name": question.name, **_fields(question)},
        "identity": identity and as_values(identity),
        "digest": identity and identity.digest,
        "forced": [*(identity.forced if identity else ()), *run.forced],
        "spaces": [dict(space) for space in run.spaces],
        "coords_doubt": run.coords_doubt,
        **({"scorer": asdict(run.scorer)} if run.scorer else {}),
        "answered_by": [dict(items) for items in sorted(run.answered_by)],
        "table": {
            "file": run.task.table.name,
            "sha256": file_sha256(run.task.table),
            "meta": json.loads(meta.read_text(encoding="utf-8")) if meta.is_file() else None,
        },
        "predictions": {
            "file": predictions.name,
            "sha256": file_sha256(predictions),
            "rows": len(run.rows),
            "rows_missing": sorted(set(run.task.queries) - scored),
        },
        "totals": {name: value for name, value in run.sums.items() if not is_sliced(name)},
        "metrics": {metric.key or metric.name: metric.value(run.sums) for metric in metrics},
        "reasons": dict(run.reasons),
        # Versions of inference are in the run's identity.
        "scored_with": {
            "vlmeval_findit": __version__,
            "python": sys.version.split()[0],
            **installed(("numpy", "scipy")),
        },
        **({"plugins": plugins} if (plugins := _plugins(run)) else {}),
        "scored_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _plugins(run: RunScore) -> dict[str, str]:
    """Return the plug-ins whose rows decided how it was asked or is scored."""
    row = run.identity.answering.row if run.identity else None
    if row is None and (known := find_model(run.model)) is not None:
        row = known.name
    used = plugins_used(run.task.question, row, [space["kind"] for space in run.spaces])
    return {**used, **(run.identity.plugins if run.identity else {})}


def _fields(question: Question) -> dict[str, Any]:
    """Return the fields of a question, where it is a record."""
    values: dict[str, Any] = asdict(question) if is_dataclass(question) else {}
    return {name: getattr(value, "value", value) for name, value in values.items()}


def provenance_from(values: Mapping[str, Any], rows: Iterable[ScoredRow]) -> Provenance:
    """Return the values that a score depends on, by its provenance and details.

    Raises:
        KeyError, TypeError, ValueError: the values are not those of a provenance.
    """
    run = values["identity"] and from_values(values["identity"])
    return Provenance(
        identity=run,
        digest=values["digest"] or UNKNOWN_PROMPTS,
        forced=tuple(values["forced"]),
        prompts=(run and run.prompts) or UNKNOWN_PROMPTS,
        prompt_hash=run.prompt_hash if run else None,
        table=values["table"]["file"],
        table_sha256=values["table"]["sha256"],
        rows=frozenset(row.index for row in rows),
        missing=tuple(values["predictions"]["rows_missing"]),
        left_out=run.left_out if run else (),
        spaces=tuple(_space_text(space) for space in values["spaces"]),
        scorer=_scorer(values["scorer"]) if "scorer" in values else None,
        versions={**run.host, **run.versions} if run else {},
        scored_with=dict(values["scored_with"]),
        predictions_sha256=values["predictions"]["sha256"],
        scored_at=values["scored_at"],
        plugins={name: str(version) for name, version in values.get("plugins", {}).items()},
        coords_doubt=values.get("coords_doubt"),
    )


def _scorer(values: Mapping[str, Any]) -> Scorer:
    settings = {name: str(value) for name, value in values["settings"].items()}
    return Scorer(values["name"], settings, values["source"], values["versions"])


def _space_text(space: Mapping[str, Any]) -> str:
    settings = " ".join(f"{k}={v}" for k, v in space.items() if k not in ("kind", "source") and v)
    return f"{space['kind']}{' ' if settings else ''}{settings} ({space['source']})"
