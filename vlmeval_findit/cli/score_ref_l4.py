"""``run_findit.py score --protocol ref-l4``: Ref-L4's figures for runs over other datasets.

A file is a prediction file of a run over any dataset whose answers are one box each; with
--reviewed it is a list of results on RefCOCO, RefCOCO+ or RefCOCOg.  Everything is written to
<stem>_ref-l4.json beside the file.  Exit status 1 where a file is refused.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from ..benchmarks.refl4 import PROTOCOL, cleaned
from ..benchmarks.refl4.benchmark import BENCHMARK, refuse_unless_one_box
from ..core.evidence import clustered, evidence_of
from ..core.files import atomic_write, file_sha256
from ..core.redaction import scrub
from ..core.scored_row import totals
from ..core.settings import Settings
from ..core.statistics import figure_intervals
from ..runs.opening import open_predictions
from ..runs.prediction_names import prediction_files
from ..runs.provenance import versions


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Score every file; returns 1 if one is refused."""
    status = 0
    for path in prediction_files(args.predictions):
        try:
            if args.reviewed:
                values = _cleaned(path, args.reviewed)
            else:
                values = _scored(path, args.dataset, settings)
            _write(path, values)
        except (ValueError, OSError) as error:
            # What is refused of one file says nothing of the others.
            print(f"error: {scrub(str(error))}", file=sys.stderr)
            status = 1
    return status


def _scored(path: Path, dataset: str | None, settings: Settings) -> dict[str, Any]:
    opened = open_predictions(path, settings, dataset)
    task = opened.task
    refuse_unless_one_box(task)
    made = BENCHMARK.score_batch(
        opened.model, task, opened.replies, opened.settings, opened.identity
    )
    sums = totals(made.rows)
    figures = {metric.name: metric.value(sums) for metric in BENCHMARK.all_metrics}
    found = evidence_of(BENCHMARK.all_metrics, clustered(made.rows, task.question.images))
    intervals = {
        name: [one.low, one.high] if one else None for name, one in figure_intervals(found).items()
    }
    answered, asked = sums.get("asked", 0), len(task.queries)
    print(f"{path}\n  {task.question.name}: {answered} of {asked} expressions answered")
    for name, value in figures.items():
        between = intervals.get(name)
        said = "{:.2f} to {:.2f}".format(*between) if between else ""
        print(f"  {name:<34}{'–' if value is None else f'{value:.2f}':>7}  {said}".rstrip())
    return {
        "of": task.question.name,
        "expressions": asked,
        "answered": answered,
        "figures": figures,
        "intervals": intervals,
        "annotations": _named([task.table]),
    }


def _cleaned(path: Path, reviewed: Sequence[Path]) -> dict[str, Any]:
    reviews = list(chain.from_iterable(map(cleaned.read_reviews, reviewed)))
    found = cleaned.clean(cleaned.read_rows(path), reviews)
    print(path)
    for line in (*found.lines(), *_unlike(reviewed, reviews)):
        print(f"  {line}")
    return {"cleaned": asdict(found), "reviews": _named(reviewed)}


def _unlike(reviewed: Sequence[Path], reviews: Sequence[cleaned.Review]) -> Iterable[str]:
    """Where reviews of all splits of a dataset are not as many as were published."""
    names = {path.name for path in reviewed}
    for dataset, splits in cleaned.SPLITS.items():
        if names == set(map(cleaned.file_name, splits)):
            yield from cleaned.unlike_known(dataset, reviews)


def _named(files: Iterable[Path]) -> dict[str, str]:
    return {path.name: file_sha256(path) for path in files}


def _write(path: Path, values: dict[str, Any]) -> None:
    target = path.with_name(f"{path.stem}_{PROTOCOL}.json")
    whole = {
        "protocol": PROTOCOL,
        "predictions": _named([path]),
        **values,
        "scored_with": versions(),
        "scored_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with atomic_write(target) as f:
        json.dump(whole, f, indent=1, ensure_ascii=False)
    print(f"  all of it: {target}")
