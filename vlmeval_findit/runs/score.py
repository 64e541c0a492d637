"""Score a run in straight steps: open, score rows, check coordinates; ``results`` writes.

Needs neither torch nor VLMEvalKit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from .. import benchmarks
from ..boxes.spaces import SpaceError
from ..coords import score_check
from ..coords.run_arrays import AnsweredQuery
from ..core.benchmark import Benchmark, Scorer
from ..core.identity import GIVEN, Identity
from ..core.metric import metric_values
from ..core.predictions import XLSX_CELL_LIMIT
from ..core.question import AnyTask
from ..core.replies import Reply
from ..core.run_files import OTHER_SPACE
from ..core.scored_row import ScoredRow, add_up, totals
from ..core.settings import Settings, settings_from
from ..models.dual_encoder.encoder import EncoderError
from .open_predictions import Predictions, open_predictions
from .prediction_names import score_command


@dataclass(frozen=True, slots=True)
class ReplyCounts:
    """What a score's provenance says of replies, which it does not hold.

    ``with_sizes`` counts those that recorded the sizes of their images, ``with_logprobs`` those
    that recorded how probable their tokens were, ``long`` those that are as long as a cell of a
    sheet can be; ``answered_by`` are the models that recorded themselves.
    """

    with_sizes: int = 0
    with_logprobs: int = 0
    long: int = 0
    answered_by: frozenset[tuple[tuple[str, str], ...]] = frozenset()

    def __add__(self, other: ReplyCounts) -> ReplyCounts:
        return ReplyCounts(
            self.with_sizes + other.with_sizes,
            self.with_logprobs + other.with_logprobs,
            self.long + other.long,
            self.answered_by | other.answered_by,
        )


def _about(replies: Sequence[Reply]) -> ReplyCounts:
    who = {tuple(reply.recorded.model.items()) for reply in replies}
    return ReplyCounts(
        with_sizes=sum(bool(reply.recorded.images) for reply in replies),
        with_logprobs=sum(reply.recorded.token_logprobs is not None for reply in replies),
        long=sum(len(reply.text) >= XLSX_CELL_LIMIT for reply in replies),
        answered_by=frozenset(filter(None, who)),
    )


@dataclass(frozen=True, slots=True)
class RunScore:
    """The score of one run and all that it rests on.

    ``sums`` are those of all rows, of their slices too; ``spaces`` the coordinate spaces in force,
    as settings with a ``source``; ``forced`` what of a contradiction was overruled; ``scorer`` what
    decided beside the benchmark's own code.  ``sample`` are answers for the coordinate check,
    ``coords_doubt`` what it said of them (:func:`check_coordinates`): no figure depends on either.
    """

    model: str
    task: AnyTask
    rows: tuple[ScoredRow, ...]
    sums: Mapping[str, float]
    spaces: tuple[Mapping[str, Any], ...]
    identity: Identity | None
    replies: ReplyCounts
    forced: tuple[str, ...] = ()
    scorer: Scorer | None = None
    sample: tuple[AnsweredQuery, ...] = ()
    coords_doubt: str | None = None

    @property
    def benchmark(self) -> Benchmark:
        return benchmarks.benchmark_of(self.task.question)

    @property
    def metric_values(self) -> Mapping[str, float | None]:
        """The figures in percent, by the names of metrics."""
        return metric_values(self.benchmark.metrics, self.sums)

    @property
    def mark(self) -> str:
        """What the names of its files have where its space is not the recorded one, else empty."""
        for space in self.spaces:
            if space["source"].startswith(GIVEN):
                more = {k: v for k, v in space.items() if k not in ("kind", "source")}
                return "-".join(
                    [f"{OTHER_SPACE}{space['kind']}", *(f"{k}={more[k]}" for k in more)]
                )
        return ""

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(row.failed for row in self.rows)

    @property
    def reasons(self) -> Counter[str]:
        """How often each reason stands against a reply."""
        return Counter(row.reason for row in self.rows if row.reason is not None)


def score_file(
    path: Path, settings: Settings | None = None, dataset: str | None = None
) -> RunScore:
    """Score a prediction file: open it, score its rows, look at their coordinates.

    Raises:
        PredictionError, QuestionError, IdentityError: as of :func:`.open_predictions`.
        ValueError: the benchmark cannot score them; the message says how it can.
    """
    opened = open_predictions(path, settings or settings_from({}), dataset)
    try:
        return check_coordinates(score_rows(opened))
    except SpaceError as error:
        raise SpaceError(_are_safe(error, path, dataset, "--space", "SPACE")) from None
    except EncoderError as error:
        raise EncoderError(_are_safe(error, path, dataset, "--encoder", "ENCODER")) from None


def _are_safe(error: Exception, path: Path, dataset: str | None, *flags: str) -> str:
    return (
        f"{error}\nThe predictions are safe in {path}; score them without running the model "
        f"again:\n  {score_command(path, dataset, *flags)}"
    )


def score_rows(opened: Predictions) -> RunScore:
    """Score the replies of a run, a batch at a time.

    Raises:
        ValueError: the benchmark cannot score them: no coordinate space is known, for example.
    """
    benchmark = benchmarks.benchmark_of(opened.task.question)
    at_a_time = benchmark.at_a_time or max(1, len(opened.replies))
    starts = range(0, max(1, len(opened.replies)), at_a_time)
    return joined(_part(benchmark, opened, slice(at, at + at_a_time)) for at in starts)


def _part(benchmark: Benchmark, opened: Predictions, part: slice) -> RunScore:
    model, task, replies = opened.model, opened.task, opened.replies[part]
    made = benchmark.score_batch(model, task, replies, opened.settings, opened.identity)
    benchmark.check_sums(made.rows)
    rows = tuple(
        replace(row, details={**row.details, **_recorded(reply)})
        if reply.recorded.tokens or reply.recorded.images
        else row
        for row, reply in zip(made.rows, replies, strict=True)
    )
    return RunScore(
        model=model,
        task=task,
        rows=rows,
        sums=totals(rows),
        spaces=made.spaces,
        identity=opened.identity,
        replies=_about(replies),
        forced=opened.forced,
        scorer=made.scorer,
        sample=score_check.sample(task, rows),
    )


def _recorded(reply: Reply) -> dict[str, Any]:
    """What of a reply's record stands in its details."""
    found: dict[str, Any] = {}
    if reply.recorded.tokens:
        found["finish_reason"] = reply.recorded.finish_reason
        found["tokens"] = dict(reply.recorded.tokens)
    if reply.recorded.images:
        found["images"] = list(reply.recorded.images)
    return found


def joined(parts: Iterable[RunScore]) -> RunScore:
    """The score of a run whose rows were scored in parts, in their order; at least one part."""
    first, *others = parts
    if not others:
        return first
    runs = (first, *others)
    spaces = {repr(sorted(space.items())): space for run in runs for space in run.spaces}
    return replace(
        first,
        rows=tuple(chain.from_iterable(run.rows for run in runs)),
        sums=add_up(run.sums for run in runs),
        spaces=tuple(spaces.values()),
        replies=sum((run.replies for run in others), first.replies),
        forced=tuple(dict.fromkeys(chain.from_iterable(run.forced for run in runs))),
        sample=score_check.join_samples([run.sample for run in runs]),
    )


def check_coordinates(run: RunScore) -> RunScore:
    """A run's score with what the coordinate check says of its convention; without the sample."""
    said = score_check.warning(run.task, run.sample, run.spaces)
    return replace(run, coords_doubt=said, sample=())


def without_details(run: RunScore) -> RunScore:
    """What a run's summary needs: no boxes, no texts."""
    rows = tuple(replace(row, details={}) for row in run.rows)
    return replace(run, rows=rows)
