"""Going on with a run that has failed calls, without losing what was recorded with the others.

The host goes on from its result file, of which it keeps the texts alone: sizes, tokens and costs of
the earlier replies would be lost.  It also goes on from a file of its own beside the result file,
which keeps whole replies; so a result file with failed calls is turned into that.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable
from pathlib import Path

from ..predictions import Reply, read_predictions
from .models import RecordedReply


def keep_records(work_dir: Path, models: Iterable[str], datasets: Iterable[str]) -> None:
    """Prepare the runs of these models and datasets in a work folder for going on.

    Raises:
        PredictionError: an earlier result file cannot be read.
    """
    datasets = list(datasets)
    for model in models:
        for dataset in datasets:
            for suffix in ("json", "tsv", "xlsx"):
                path = work_dir / model / f"{model}_{dataset}.{suffix}"
                if path.is_file():
                    _go_on_from(path)


def _go_on_from(result: Path) -> None:
    replies = read_predictions(result)
    answered = [reply for reply in replies if not reply.failed]
    if len(answered) == len(replies) or not any(map(_has_record, answered)):
        return
    whole = {reply.index: RecordedReply(reply.text, reply.recorded) for reply in answered}
    previous = result.with_name(f"{result.stem}_PREV.pkl")
    temporary = previous.with_suffix(".tmp")
    temporary.write_bytes(pickle.dumps(whole))
    os.replace(temporary, previous)
    # Only now: killed in between, the host finds both and goes on from the result file.
    result.unlink()


def _has_record(reply: Reply) -> bool:
    return reply.recorded.space is not None
