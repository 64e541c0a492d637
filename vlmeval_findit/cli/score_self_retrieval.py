"""``run_findit.py score --protocol self-retrieval``: captions of others, by a dual encoder.

A file is {uid: {"left": text, "right": text}}, or with the keys of a reply.  Figures with the
encoder's own padding stand beside those without, as published.  Everything is written to
<stem>_self-retrieval.json beside the file.  Exit status 2 where a file cannot be scored.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..benchmarks.selfretrieval import PROTOCOL, rescoring
from ..benchmarks.selfretrieval.encoders import encoder_in_force
from ..core.files import atomic_write, file_sha256
from ..core.redaction import scrub
from ..core.settings import Settings
from ..core.statistics import Interval
from ..core.visible import short, visible
from ..runs.provenance import versions

_REFUSED = 2
_LISTED = 5
"""Missing and unknown uids that are printed; the file has all."""


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Score every file; returns 2 if one cannot be."""
    pairs = rescoring.pairs_of(args.data)
    chosen = encoder_in_force(pairs.table, settings)
    status = 0
    for path in args.predictions:
        try:
            found = rescoring.of_file(path, pairs, chosen)
        except (ValueError, OSError) as error:
            # What is refused of one file says nothing of the others.
            print(f"error: {scrub(str(error))}", file=sys.stderr)
            status = _REFUSED
        else:
            _print(path, found)
            _write(path, pairs, found)
    return status


def _print(path: Path, score: rescoring.Rescored) -> None:
    values = rescoring.as_values(score)
    print(f"{path}: {values['of']} pairs")
    print(f"  scored by {score.scorer}")
    for name, figure in values["rounded"].items():
        print(f"  {name:<24}{_shown(figure, score.intervals[name])}")
    print(f"  {', '.join(f'{count} {name}' for name, count in values['counts'].items())}")
    for what, uids in (
        ("missing captions", [f"{uid} {side}" for uid, side in values["missing"]]),
        ("uids of no pair, not used", values["unknown"]),
    ):
        if uids:
            first = ", ".join(short(visible(uid), 40) for uid in uids[:_LISTED])
            print(f"  {len(uids)} {what}: {first}{' …' * (len(uids) > _LISTED)}")


def _shown(figure: float | None, bounds: Interval | None) -> str:
    shown = "–" if figure is None else f"{figure:.2f}"
    return f"{shown} ({bounds.low:.2f} to {bounds.high:.2f})" if bounds else shown


def _write(path: Path, pairs: rescoring.Pairs, score: rescoring.Rescored) -> None:
    target = path.with_name(f"{path.stem}_{PROTOCOL}.json")
    whole: dict[str, Any] = {
        "protocol": PROTOCOL,
        "captions": {path.name: file_sha256(path)},
        "data": {pairs.file.name: file_sha256(pairs.file)},
        **rescoring.as_values(score),
        "scored_with": versions(),
        "scored_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with atomic_write(target) as f:
        json.dump(whole, f, indent=1, ensure_ascii=False)
    print(f"  all of it: {target}")
