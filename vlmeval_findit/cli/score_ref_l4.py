"""``run_findit.py score --protocol ref-l4``: the twelve figures of Ref-L4 for prediction files.

A file is a list of {"id", "pred_bbox", "format": "xyxy" or "xywh"} in pixels, from whichever
program, or a prediction file of a run of ours over any dataset whose answers are one box each.  The
class figures by the corrected table always stand beside those by the authors'.  Everything is
written to <stem>_ref-l4.json beside the file.  Exit status 1 where a file is refused.
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

from ..benchmarks.refl4 import PROTOCOL, cleaned, rescoring
from ..benchmarks.refl4.annotations import Split
from ..benchmarks.refl4.replies import judge_replies, refuse_unless_one_box
from ..benchmarks.refl4.sums import By
from ..benchmarks.refl4.table import annotations_at
from ..core.files import atomic_write, file_sha256
from ..core.redaction import scrub
from ..core.settings import Settings
from ..runs.prediction_names import prediction_files
from ..runs.provenance import versions
from ..runs.score import checked, open_predictions
from .printing import console


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Score every file; returns 1 if one is refused."""
    status = 0
    for path in prediction_files(args.predictions):
        try:
            if args.reviewed:
                values = _cleaned(path, args.reviewed)
            else:
                values = _scored(path, args, settings)
            _write(path, values)
        except (ValueError, OSError) as error:
            # What is refused of one file says nothing of the others.
            print(f"error: {scrub(str(error))}", file=sys.stderr)
            status = 1
    return status


def _scored(path: Path, args: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    if rescoring.is_of_others(path):
        split = Split(args.split)
        annotations, files = annotations_at(args.annotations, split)
        where = " and ".join(file.name for file in files)
        found = rescoring.of_file(path, annotations, split, where)
    else:
        found, files = _of_run(path, args.dataset, settings)
    _print(path, found, args.per_class)
    return {**rescoring.as_values(found), "annotations": _named(files)}


def _of_run(
    path: Path, dataset: str | None, settings: Settings
) -> tuple[rescoring.Rescored, list[Path]]:
    opened = open_predictions(path, settings, dataset)
    task = opened.task
    refuse_unless_one_box(task)
    settings, _ = checked(opened.model, task, opened.replies, settings, opened.identity)
    judged, _ = judge_replies(opened.model, task, opened.replies, settings, opened.identity)
    return rescoring.of_replies(task, judged), [task.table]


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


# --- printing and writing -------------------------------------------------------------------------


def _print(path: Path, score: rescoring.Rescored, per_class: bool) -> None:
    print(f"{path}\n  {score.of}: {score.answered} of {score.asked} expressions answered")
    _table(
        ("", "", "corrected", "95 % by picture"),
        ((name, figure, other, between) for name, figure, other, between in rescoring.lines(score)),
    )
    if score.failed:
        print(
            f"  {score.failed} failed calls, in none of these; "
            f"acc_0.5 with them as misses: {rescoring.shown(score.with_failures)}"
        )
    for reason, count in sorted(score.misses.items()):
        print(f"  missed for want of a box: {count} {reason}")
    if score.unused:
        print(f"  {score.unused} predictions of no annotation, not used")
    if score.unlike:
        print(f"  not the authors' annotations: {'; '.join(score.unlike)}")
    for by, found in score.tables.items():
        if by in (By.CLASS, By.CORRECTED) and not per_class:
            continue
        _table(
            (by.value, "expressions", "acc_0.5", "acc_0.75", "acc_0.9", "macc"),
            (
                (
                    one.name,
                    str(one.count),
                    *map(rescoring.shown, (one.acc_050, one.acc_075, one.acc_090, one.macc)),
                )
                for one in found
            ),
        )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=True)
    table.add_column(header[0], no_wrap=True)
    for name in header[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console().print(table)


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
