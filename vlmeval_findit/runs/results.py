"""What a score leaves beside its predictions; needs neither torch nor vlmeval.

``<stem>_score.csv`` is the row that goes into a leaderboard, ``<stem>_details.jsonl`` holds every
query (boxes read, IoUs, hits, reason), ``<stem>_provenance.json`` what the score rests on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

from .. import __version__
from ..benchmarks.findit.annotation_tables import meta_path
from ..benchmarks.findit.scoring import RunScore, Scored
from ..core.files import atomic_write, file_sha256
from ..core.identity import as_values, installed
from ..core.prediction_reader import XLSX_CELL_LIMIT
from ..core.settings import Settings
from ..core.visible import as_csv


def score_row(run: RunScore) -> dict[str, Any]:
    """The score as one flat row: figures in percent, counts, and what they rest on."""
    f, t = run.figures, run.totals
    return {
        "model": run.model,
        "dataset": run.task.name,
        **f.named,
        "F1@0.5 (failed calls as misses)": f.f1_failed_missed,
        "rows": len(run.task.queries),
        "scored": len(run.scored),
        "answered": t.responses,
        "failed calls": t.failed,
        "left out": len(run.identity.left_out) if run.identity else 0,
        "boxes": t.n_gt,
        "predicted": t.n_pred,
        "found": t.tp,
        "space": "; ".join(sorted({s.space.kind for s in run.spaces})),
        "prompts": (run.identity and run.identity.prompts) or "unknown",
        "run": run.identity.digest if run.identity else "unknown",
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
        "boxes": _finite(matched.boxes),
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
    if one.reply.recorded.tokens:
        row["finish_reason"] = one.reply.recorded.finish_reason
        row["tokens"] = dict(one.reply.recorded.tokens)
    if one.reply.recorded.images:
        row["images"] = list(one.reply.recorded.images)
    return row


def _finite(boxes: list[list[float]]) -> list[list[float]] | list[list[float | None]]:
    """Boxes as JSON may have them: null for what is no finite number."""
    if all(map(isfinite, chain.from_iterable(boxes))):
        return boxes
    return [[n if isfinite(n) else None for n in box] for box in boxes]


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
        "identity": as_values(run.identity) if run.identity else None,
        "digest": run.identity.digest if run.identity else None,
        "forced": [*(run.identity.forced if run.identity else ()), *run.forced],
        "spaces": [{**s.space.as_dict(), "source": s.source} for s in run.spaces],
        "sizes_recorded": sent,
        "answered_by": _answered_by(run),
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
        "scored_with": versions(),
        "scored_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def as_scored(predictions: Path, settings: Settings) -> Settings:
    """Settings, with those of the scoring beside a prediction file where they say no space.

    Raises:
        ResultError: the provenance beside it cannot be read.
    """
    path = provenance_path(predictions)
    if settings.space is not None or not path.is_file():
        return settings
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        said = [{k: v for k, v in one.items() if k != "source"} for one in values["spaces"]]
        known = all(one["source"].startswith(_KNOWN) for one in values["spaces"])
        forced = settings.force or bool(values["forced"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultError(f"{path}: not the provenance of a score: {error}") from None
    if len(said) != 1 or known:
        return replace(settings, force=forced)
    return replace(settings, space=said[0], source="setting", force=forced)


_KNOWN = ("recorded by the run", "model table")
"""How the sources of spaces begin that nobody said when it was scored."""


class ResultError(ValueError):
    """The files of a score cannot be read; the message names the file."""


def provenance_path(predictions: Path) -> Path:
    """Where the provenance of a prediction file's score lies."""
    return predictions.with_name(f"{predictions.stem}_provenance.json")


def _answered_by(run: RunScore) -> list[dict[str, str]]:
    """The models and revisions that the replies were recorded with, each once."""
    found = {tuple(one.reply.recorded.model.items()) for one in run.scored}
    return [dict(items) for items in sorted(found) if items]


def versions() -> dict[str, str]:
    """Versions of what a score depends on; those of inference are in the run's identity."""
    ours = {"vlmeval_findit": __version__, "python": sys.version.split()[0]}
    return {**ours, **installed(("numpy", "scipy"))}


@dataclass(frozen=True, slots=True)
class Written:
    """The files of one score."""

    score: Path
    details: Path
    provenance: Path


def detail_lines(run: RunScore) -> Iterator[str]:
    """The lines of the details file."""
    for one in run.scored:
        yield json.dumps(detail(one), ensure_ascii=False) + "\n"


def write_score(run: RunScore, predictions: Path, details: Iterable[str] | None = None) -> Written:
    """Leave score, details and provenance beside a prediction file, each whole or not at all.

    ``details`` are the lines of the details file where the run does not hold them any more.
    """

    def beside(ending: str) -> Path:
        return predictions.with_name(f"{predictions.stem}_{ending}")

    files = Written(beside("score.csv"), beside("details.jsonl"), beside("provenance.json"))
    with atomic_write(files.score) as f:
        f.write(as_csv([score_row(run)]))
    with atomic_write(files.details) as f:
        f.writelines(detail_lines(run) if details is None else details)
    with atomic_write(files.provenance) as f:
        json.dump(provenance(run, predictions), f, indent=1, ensure_ascii=False)
    return files
