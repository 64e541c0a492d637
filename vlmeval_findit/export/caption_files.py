"""The captions of self-retrieval in its authors' form, and how right each pair is.

::

    <run>_captions.json    {uid: {"left": caption, "right": caption}}
    <run>_uid2acc.json     {uid: 0, 0.5 or 1}: the share of a pair's captions that are right

A caption is right here as published: its text neither padded nor longer than 64 tokens. What was
not read is in no file of captions; :func:`..benchmarks.selfretrieval.replies_of` reads them back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..benchmarks.selfretrieval import BENCHMARK, PairSide
from ..core import atomic_write, counted
from ..protocol import ScoredRow
from ..scoring import Run
from .export_folder import check_whole, rewrite_folder, unique_names
from .targets import NotExportableError, left_out_lines


def to_captions(runs: Sequence[Run], out: Path) -> Iterator[str]:
    """Write captions and accuracies of the runs of self-retrieval, by the uids of pairs."""
    of_pairs = [run for run in runs if run.benchmark.name == BENCHMARK.name]
    if not of_pairs:
        raise NotExportableError(
            "no run has captions: name a run of SelfRetrieval or SelfRetrieval_Scenes"
        )
    for run in of_pairs:
        check_whole(run)
    counts: Counter[str] = Counter()
    with rewrite_folder(out, "captions") as folder:
        for run, name in zip(of_pairs, unique_names(of_pairs), strict=True):
            answered = [row for row in run.rows if not row.failed]
            captions = {row.source: _captions(row) for row in answered}
            read = {uid: sides for uid, sides in captions.items() if sides}
            accuracies = {row.source: row.sums["right_published"] / 2 for row in answered}
            _write(folder / f"{name}_captions.json", read)
            _write(folder / f"{name}_uid2acc.json", accuracies)
            counts["captions"] += sum(map(len, read.values()))
            counts["unread"] += 2 * len(answered) - sum(map(len, read.values()))
            counts["failed"] += len(run.rows) - len(answered)
    yield f"{out}/: {counted(len(of_pairs), 'run')}, {counted(counts['captions'], 'caption')}"
    yield "of each run: …_captions.json, and …_uid2acc.json, by the published reading"
    if counts["unread"]:
        yield f"{counted(counts['unread'], 'caption')} not read: wrong, and in no file of captions"
    if counts["failed"]:
        yield f"{counted(counts['failed'], 'failed call')}: these pairs are in no file"
    yield from left_out_lines(
        [run for run in runs if run.benchmark.name != BENCHMARK.name], "no captions"
    )


def _captions(row: ScoredRow) -> Mapping[str, str]:
    """Return the captions of a pair that were read, by side."""
    stated = {side.value: row.details[side.value]["caption"] for side in PairSide}
    return {side: caption for side, caption in stated.items() if caption is not None}


def _write(path: Path, values: Mapping[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path) as f:
        json.dump(values, f, indent=1, ensure_ascii=False)
