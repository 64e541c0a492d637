"""Scoring one run: replies and a task in, a score out.  Needs neither torch nor vlmeval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from .. import benchmarks
from ..boxes.spaces import SpaceError
from ..core.benchmark import Benchmark, Scorer
from ..core.contradictions import Contradiction, overruled
from ..core.files import file_sha256
from ..core.identity import Identity, IdentityError
from ..core.identity_file import read_identity
from ..core.metric import figures
from ..core.prediction_reader import XLSX_CELL_LIMIT, PredictionError, read_predictions
from ..core.question import AnyTask
from ..core.replies import Reply
from ..core.row_ranges import rows_text
from ..core.scored_row import ScoredRow, add_up, totals
from ..core.settings import Settings, settings_from
from ..doctor import check
from ..doctor.evidence import Query
from ..models.dual_encoder.encoder import EncoderError
from .plugins import otherwise
from .prediction_names import how_to_score, split_name


@dataclass(frozen=True, slots=True)
class AboutReplies:
    """What a score's provenance says of replies, which it does not hold.

    ``with_sizes`` counts those that recorded the sizes of their images, ``with_logprobs`` those
    that recorded how probable their tokens were, ``long`` those that are as long as a cell of a
    sheet can be; ``answered_by`` are the models that recorded themselves.
    """

    with_sizes: int = 0
    with_logprobs: int = 0
    long: int = 0
    answered_by: frozenset[tuple[tuple[str, str], ...]] = frozenset()

    def __add__(self, other: AboutReplies) -> AboutReplies:
        return AboutReplies(
            self.with_sizes + other.with_sizes,
            self.with_logprobs + other.with_logprobs,
            self.long + other.long,
            self.answered_by | other.answered_by,
        )


def _about(replies: Sequence[Reply]) -> AboutReplies:
    who = {tuple(reply.recorded.model.items()) for reply in replies}
    return AboutReplies(
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
    decided beside the benchmark's own code.  ``sample`` are answers for the doctor to look at,
    ``doctor`` what it said of them (:func:`looked_at`): no figure depends on either.
    """

    model: str
    task: AnyTask
    rows: tuple[ScoredRow, ...]
    sums: Mapping[str, float]
    spaces: tuple[Mapping[str, Any], ...]
    identity: Identity | None
    replies: AboutReplies
    forced: tuple[str, ...] = ()
    scorer: Scorer | None = None
    sample: tuple[Query, ...] = ()
    doctor: str | None = None

    @property
    def benchmark(self) -> Benchmark:
        return benchmarks.benchmark_of(self.task.question)

    @property
    def figures(self) -> Mapping[str, float | None]:
        """The figures in percent, by the names of metrics."""
        return figures(self.benchmark.metrics, self.sums)

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(row.failed for row in self.rows)

    @property
    def reasons(self) -> Counter[str]:
        """How often each reason stands against a reply."""
        return Counter(row.reason for row in self.rows if row.reason is not None)


def score(
    model: str,
    task: AnyTask,
    replies: Sequence[Reply],
    settings: Settings | None = None,
    run: Identity | None = None,
) -> RunScore:
    """Score the replies of a model to a task.

    Args:
        model: its name.
        task: what was asked.
        replies: what came of it.
        settings: what the user says (default: what the environment says).
        run: what the run recorded.

    Raises:
        ValueError: the benchmark cannot score them: no coordinate space is known, for example.
        PredictionError: a reply to a row that the table does not have.
        IdentityError: the task, a reply or a setting contradicts what the run recorded.
    """
    settings, forced = checked(model, task, replies, settings or settings_from({}), run)
    benchmark = benchmarks.benchmark_of(task.question)
    at_a_time = benchmark.at_a_time or max(1, len(replies))
    parts = [
        _part(benchmark, model, task, replies[start : start + at_a_time], settings, run)
        for start in range(0, max(1, len(replies)), at_a_time)
    ]
    return replace(joined(parts), forced=forced)


def checked(
    model: str,
    task: AnyTask,
    replies: Sequence[Reply],
    settings: Settings,
    run: Identity | None,
) -> tuple[Settings, tuple[str, ...]]:
    """The settings of a scoring that nothing contradicts, and what ``--force`` overruled."""
    for reply in replies:
        if reply.index not in task.queries:
            raise PredictionError(
                f"{task.name}: index {reply.index} is not in {task.table} "
                f"({len(task.queries)} rows): the predictions are of another table"
            )
    forced = _overruled(model, task, replies, settings, run)
    if run is not None and settings.reads_like is None:
        settings = replace(settings, reads_like=run.reads_like)
    return settings, forced


def _part(
    benchmark: Benchmark,
    model: str,
    task: AnyTask,
    replies: Sequence[Reply],
    settings: Settings,
    run: Identity | None,
) -> RunScore:
    made = benchmark.score(model, task, replies, settings, run)
    rows = tuple(
        replace(row, details={**row.details, **_recorded(reply)})
        if reply.recorded.tokens or reply.recorded.images
        else row
        for row, reply in zip(made.rows, replies, strict=True)
    )
    sums = totals(rows)
    about = _about(replies)
    seen = check.sample(task, rows)
    return RunScore(
        model, task, rows, sums, made.spaces, run, about, scorer=made.scorer, sample=seen
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
        sample=check.joined_samples([run.sample for run in runs]),
    )


def looked_at(run: RunScore) -> RunScore:
    """A run's score with what the doctor says of its convention; without the sample."""
    said = check.warning(run.task, run.sample, run.spaces)
    return replace(run, doctor=said, sample=())


def without_details(run: RunScore) -> RunScore:
    """What a run's summary needs: no boxes, no texts."""
    rows = tuple(
        ScoredRow(row.index, row.source, row.sums, row.failed, row.reason, row.slices)
        for row in run.rows
    )
    return replace(run, rows=rows)


# --- what contradicts -----------------------------------------------------------------------------


def _overruled(
    model: str, task: AnyTask, replies: Sequence[Reply], settings: Settings, run: Identity | None
) -> tuple[str, ...]:
    """What of a scoring contradicts its run, where that is forced.

    Raises:
        IdentityError: something contradicts and is not forced.
    """
    benchmark = benchmarks.benchmark_of(task.question)
    own = benchmark.contradictions(task, replies, settings, run)
    where = f"{model} on {task.name}: the predictions are of something else than is scored now"
    refuse_variable(settings, [one for one in own if one.is_space], where)
    against = [*_against_run(task, replies, settings, run), *_against_table(task, replies), *own]
    return tuple(overruled(against, settings.force, where, "Score what was asked."))


def refuse_variable(settings: Settings, spaces: Sequence[Contradiction], where: str) -> None:
    """Refuse a space of the environment that contradicts a record, forced or not.

    Raises:
        IdentityError: it does.
    """
    if spaces and settings.space is not None and settings.source != "setting":
        raise IdentityError(
            f"{where}:\n  {spaces[0]} ({settings.source})\nAn environment variable does not go "
            "before what a run recorded: unset it, or say the space in so many words, with --force."
        )


def _against_run(
    task: AnyTask, replies: Sequence[Reply], settings: Settings, run: Identity | None
) -> Iterator[Contradiction]:
    if run is None:
        return
    name = task.question.name
    if run.dataset != name and benchmarks.parse(run.dataset) != task.question:
        yield Contradiction("dataset", run.dataset, name)
    table = file_sha256(task.table)
    if run.table_sha256 not in (None, table):
        yield Contradiction("SHA-256 of the table", run.table_sha256, f"{table} ({task.table})")
    foreign = {reply.index for reply in replies} - set(run.rows or task.queries)
    if foreign:
        yield Contradiction("rows", rows_text(run.rows or ()), f"also {rows_text(foreign)}")
    if None not in (run.reads_like, settings.reads_like) and run.reads_like != settings.reads_like:
        yield Contradiction("reads_like", run.reads_like, settings.reads_like)


def _against_table(task: AnyTask, replies: Sequence[Reply]) -> Iterator[Contradiction]:
    """Rows of a prediction file that say another label or size than the table does."""
    for reply in replies:
        query = task.queries[reply.index]
        for name, said in reply.stated.items():
            true = getattr(query, name)
            if _as_stated(said) != _as_stated(true):
                yield Contradiction(f"{name} of row {reply.index}", said, f"{true} ({task.table})")


def _as_stated(value: object) -> str:
    """A label or a size as any format of prediction files writes it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = " ".join(str(value).split())
    return text.removesuffix(".0") if text.removesuffix(".0").isdigit() else text


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Predictions:
    """A prediction file with what is to be scored of it.

    ``forced`` says where its name contradicts its run or the user, and was overruled.
    """

    model: str
    task: AnyTask
    replies: Sequence[Reply]
    identity: Identity | None
    forced: tuple[str, ...]


def open_predictions(path: Path, settings: Settings, dataset: str | None = None) -> Predictions:
    """Read a prediction file and find what it is of.

    The file may have any name where its run recorded what it is, or ``dataset`` is given.

    Raises:
        PredictionError, QuestionError: the file cannot be read, or says of no question.
        IdentityError: its name contradicts what its run recorded.
    """
    run = read_identity(path)
    others = overruled(
        otherwise(run.plugins if run else {}),
        settings.force,
        f"{path} was made with other plug-ins than there are here",
        "Score it with those.",
    )
    model, name, renamed = _named(path, dataset, run)
    replies = read_predictions(path)
    notes = overruled(renamed, settings.force, f"{path}", "Give it back its name.")
    task = benchmarks.load(name)
    if run is not None and run.chosen:
        task = benchmarks.benchmark_of(name).for_model(task, model, run.chosen)
    return Predictions(model, task, replies, run, (*others, *notes))


def score_file(
    path: Path, settings: Settings | None = None, dataset: str | None = None
) -> RunScore:
    """Score a prediction file; see :func:`score` and :func:`open_predictions` for errors."""
    settings = settings or settings_from({})
    found = open_predictions(path, settings, dataset)
    try:
        done = score(found.model, found.task, found.replies, settings, found.identity)
    except SpaceError as error:
        raise SpaceError(_are_safe(error, path, dataset, "--space", "SPACE")) from None
    except EncoderError as error:
        raise EncoderError(_are_safe(error, path, dataset, "--encoder", "ENCODER")) from None
    return looked_at(replace(done, forced=(*found.forced, *done.forced)))


def _are_safe(error: Exception, path: Path, dataset: str | None, *flags: str) -> str:
    return (
        f"{error}\nThe predictions are safe in {path}; score them without running the model "
        f"again:\n  {how_to_score(path, dataset, *flags)}"
    )


def _named(
    path: Path, dataset: str | None, run: Identity | None
) -> tuple[str, str, list[Contradiction]]:
    """(model, dataset) of a prediction file, and where its name contradicts its run or the user."""
    try:
        model, named = split_name(path)
    except PredictionError:
        if run is not None:
            model, named = run.model, run.dataset
        elif dataset is not None:
            model, named = path.stem.removesuffix(f"_{dataset}"), dataset
        else:
            raise
    name = dataset or named
    recorded = (run.model, run.dataset) if run is not None else (model, named)
    against = [Contradiction("model", recorded[0], model)] * (model != recorded[0])
    if benchmarks.parse(name) != benchmarks.parse(recorded[1]):
        against.append(Contradiction("dataset", recorded[1], name))
    return model, name, against
