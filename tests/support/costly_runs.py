"""Scored runs whose replies have records of what they cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vlmeval_findit.protocol import RunCosts, Settings
from vlmeval_findit.scoring import Run, load_run, score_file, write_score
from vlmeval_findit.storage import RunFiles


def with_records(
    path: Path,
    record: Callable[[int], Mapping[str, Any]],
    time: Callable[[int], Mapping[str, Any]] = lambda index: {},
) -> Run:
    """Write a record and a time with each reply of a prediction file, and score it again.

    Both are made from the index of a row.
    """
    rows = json.loads(path.read_text(encoding="utf-8"))
    for row in rows:
        row["extra_records"] = json.dumps({"findit": dict(record(row["index"]))})
        row["call_time"] = json.dumps(dict(time(row["index"])))
    path.write_text(json.dumps(rows), encoding="utf-8")
    write_score(score_file(path, Settings(force=True)), path)
    return load_run(RunFiles(path).provenance)


def costing(run: Run, **costs: Any) -> Run:
    """Return the run with these fields of :class:`.RunCosts`, known of all its queries."""
    queries = costs.setdefault("queries", len(run.rows))
    names = ("seconds", "tokens_in", "tokens_out", "usd", "gpu_seconds", "cpu_seconds", "pixels")
    known = {f"{name}_known": queries for name in names}
    provenance = replace(run.provenance, costs=RunCosts(**{**known, **costs}))
    return replace(run, provenance=provenance)


def partly_failed(path: Path, fails: Container[int], tokens: Sequence[int]) -> Run:
    """Let the calls of some rows of a prediction file fail; the others have these tokens out."""

    def record(index: int) -> Mapping[str, Any]:
        if index in fails:
            return {"call": {"error": "HTTP 503"}}
        return {"tokens": {"prompt": 9, "completion": tokens[index]}}

    return with_records(path, record)
