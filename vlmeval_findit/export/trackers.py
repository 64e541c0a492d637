"""Values and drawn worst answers of scored runs for a tracker, each run once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from PIL.Image import Image

from ..api import draw_boxes
from ..core import counted, sha256_of
from ..leaderboard import LearningCurve, group_comparable, learning_curves, run_slices_table
from ..protocol import ScoredRow
from ..report import Transcript, gather_transcripts
from ..scoring import Run
from ..storage import decode_image
from ..sweeps import name_and_step
from .export_folder import check_whole, private_of
from .hub import named_run_row
from .private import Private

RUN_TAG = "findit.run"  # The tag that identifies a logged run or curve

# The tag that all curves of a training on a dataset share, with any number of checkpoints
CURVE_TAG = "findit.curve"

SIDE = 1024  # Most pixels of the longer side of a picture


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """An answer with its prompt, reply and picture."""

    place: int  # Among the worst, from 1
    row: ScoredRow
    score: float
    prompt: str
    reply: str
    picture: Image | None  # With its boxes

    @property
    def file(self) -> str:
        return f"{self.place:02}_row_{self.row.index}.png"

    @property
    def caption(self) -> str:
        return f"row {self.row.index}, {self.row.reason or f'{self.score:.0f} %'}: {self.reply}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "index": self.row.index,
            "score": self.score,
            "reason": self.row.reason,
            "picture": self.file if self.picture else None,
            "prompt": self.prompt,
            "reply": self.reply,
        }


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A run for a tracker, without secrets and paths of this machine."""

    run: Run
    key: str
    name: str
    params: Mapping[str, str]  # Everything but numbers
    metric_values: Mapping[str, float]  # In percent, with intervals and slices; also counts
    worst: Sequence[LoggedAnswer]  # The worst first
    private: Private


@dataclass(frozen=True, slots=True)
class TrackedCurve:
    """A learning curve for a tracker: a run with metrics at every checkpoint's step."""

    curve: str  # Of the training, dataset and format
    key: str  # Of its checkpoints, too
    name: str
    points: Sequence[tuple[int, Mapping[str, float]]]  # By step, in percent, with intervals


class Tracker(Protocol):
    """A store of runs and curves."""

    def has(self, key: str) -> bool:
        """Tell whether a record of this key is complete; remove an incomplete record."""

    def log(self, tracked: TrackedRun) -> None:
        """Log a run."""

    def log_curve(self, curve: TrackedCurve) -> None:
        """Log a curve, and remove earlier records of the same curve."""


def log_new(runs: Sequence[Run], tracker: Tracker, pictures: int) -> Iterator[str]:
    """Log the runs that a tracker does not have, and the curves of trainings.

    Args:
        runs: scored runs.
        tracker: where they are logged.
        pictures: number of a run's worst answers that are logged.

    Raises:
        RunError: a run is not complete; nothing is logged.
    """
    for run in runs:
        check_whole(run)
    private = private_of(runs)
    yield from _log_runs(runs, tracker, pictures, private)
    yield from _log_curves(runs, tracker, private)


def _log_runs(
    runs: Sequence[Run], tracker: Tracker, pictures: int, private: Private
) -> Iterator[str]:
    new = 0
    reasons = Counter[str]()
    for run in runs:
        if tracker.has(tracker_key(run)):
            continue
        transcripts, missing = gather_transcripts([run])
        reasons.update(entry.reason for entry in missing)
        worst: list[LoggedAnswer] = []
        for transcript in transcripts:
            worst += worst_answers(transcript, pictures, private)
        tracker.log(_tracked_run(run, worst, private))
        new += 1
    before = "" if new == len(runs) else "; the others were logged before"
    yield f"{new:,} of {counted(len(runs), 'run')} logged now{before}"
    for reason, count in list(reasons.items())[:3]:
        yield f"{counted(count, 'run')} without answers: {reason}"


def _tracked_run(run: Run, worst: Sequence[LoggedAnswer], private: Private) -> TrackedRun:
    params: dict[str, str] = {}
    metric_values: dict[str, float] = {}
    for column, value in named_run_row(run, run.path.stem).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            metric_values[plain_name(column)] = float(value)
        elif isinstance(value, str | dict | list) and value:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            params[plain_name(column)] = private.in_record(text)
    metric_values |= _slice_values(run)
    name = private.in_record(f"{run.model} {run.dataset_name}")
    return TrackedRun(run, tracker_key(run), name, params, metric_values, worst, private)


def _log_curves(runs: Sequence[Run], tracker: Tracker, private: Private) -> Iterator[str]:
    datasets, excluded = group_comparable(runs)
    for each in excluded:
        if name_and_step(each.run.model) is not None:
            left_out = f"{each.run.model} on {each.run.dataset_name}: {each.reason}"
            yield f"not on the curve: {private.in_record(left_out)}"
    for curve in learning_curves(datasets):
        tracked = _tracked_curve(curve, private)
        if len(tracked.points) > 1 and not tracker.has(tracked.key):
            tracker.log_curve(tracked)
            yield f"curve of {len(tracked.points)} checkpoints logged: {tracked.name}"


def _tracked_curve(curve: LearningCurve, private: Private) -> TrackedCurve:
    points = []
    for point in curve.points:
        values = {plain_name(curve.title): point.value}
        if point.interval is not None:
            values[plain_name(f"{curve.title} low")] = point.interval.low
            values[plain_name(f"{curve.title} high")] = point.interval.high
        points.append((point.step, values))
    steps = [(point.step, tracker_key(point.run)) for point in curve.points]
    return TrackedCurve(
        curve=_digest([curve.name, curve.dataset]),
        key=_digest([curve.name, curve.dataset, steps]),
        name=private.in_record(f"{curve.name} {curve.dataset} by step"),
        points=points,
    )


def tracker_key(run: Run) -> str:
    """Return the key of a run: model, dataset, conditions, predictions, score and spaces."""
    provenance = run.provenance
    sums = sorted((str(key), round(total, 6)) for key, total in run.sums.items())
    parts = [run.model, run.dataset_name, provenance.digest, provenance.predictions_sha256, sums]
    return _digest([*parts, provenance.spaces_in_words])


def _digest(parts: Sequence[Any]) -> str:
    return sha256_of(json.dumps(parts, sort_keys=True).encode())[:32]


def plain_name(text: str) -> str:
    """Make a name that every tracker takes.

    >>> plain_name("F1@0.5 (failed calls as misses)")
    'F1 at 0.5 - failed calls as misses'
    """
    text = re.sub(r"\s*\((.*?)\)", r" - \1", text.replace("@", " at "))
    return re.sub(r"[^\w\-. :/]", "_", text)


def _slice_values(run: Run) -> dict[str, float]:
    """Return the values of slices by ``kind: value/column``."""
    values: dict[str, float] = {}
    for row in run_slices_table(run).records():
        place = f"{row.pop('slice')}={row.pop('value')}".replace("/", "_").replace("=", ": ")
        for column, value in row.items():
            if isinstance(value, int | float):
                values[f"{plain_name(place)}/{plain_name(column)}"] = float(value)
    return values


# --- the worst answers ----------------------------------------------------------------------------


def worst_answers(transcript: Transcript, most: int, private: Private) -> Iterator[LoggedAnswer]:
    """Yield the worst answers of a run, the worst first; failed calls are no answers."""
    score_of = transcript.run.benchmark.query_score
    answered = [row for row in transcript.run.rows if not row.failed]
    worst = sorted(answered, key=lambda row: (score_of(row), row.index))[:most]
    replies = transcript.read_replies([row.index for row in worst])
    for place, row in enumerate(worst, 1):
        texts = (transcript.prompt(row.index), replies.get(row.index, ""))
        prompt, reply = map(private.in_reply, texts)
        yield LoggedAnswer(place, row, score_of(row), prompt, reply, _drawn(transcript, row))


def _drawn(transcript: Transcript, row: ScoredRow) -> Image | None:
    pictures = transcript.draw(row).images
    # Of a video the first frame with boxes.
    shown = next((picture for picture in pictures if picture.boxes), next(iter(pictures), None))
    if shown is None:
        return None
    try:
        image = decode_image(transcript.images / shown.path, enough=(SIDE, SIDE)).convert("RGB")
    except OSError:
        return None
    original = (shown.width or image.width, shown.height or image.height)
    image.thumbnail((SIDE, SIDE))
    draw_boxes(image, shown.boxes, original)
    return image
