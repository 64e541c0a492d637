"""Where a run's results go, what run they are of, and what lies there already.

What contradicts the run that lies there is refused before the first call.  Answers that nobody but
the prediction file has are taken into the journal; replies of another run are never written over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

from ..benchmarks import benchmark_of
from ..core.contradictions import Contradiction, continued, contradictions, overruled
from ..core.identity import Answering, Described, Identity
from ..core.identity_file import read_identity, write_identity
from ..core.prediction_reader import PREDICTION_FORMATS, PredictionError, read_predictions
from ..core.redaction import scrubbed
from ..core.replies import NOTHING_RECORDED, Reply
from ..core.run_files import RunFiles
from ..core.settings import Settings
from ..core.work import Answer, refused_if_it_quotes
from ..models.model_asker import as_json_value
from ..runs.new_identity import run_identity
from ..runs.score import refuse_variable
from .calls import Cell, ImageHash, Keyed, Keying
from .journal.lookup import JournalView
from .journal.writer import Journal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a cell's results go, what run they are of, and how they are scored."""

    path: Path
    """The prediction file."""
    cell: Cell
    settings: Settings
    identity: Identity


def prediction_path(work_dir: Path, cell: Cell) -> Path:
    """Where VLMEvalKit would put the predictions of a cell."""
    return work_dir / cell.model / f"{cell.model}_{cell.task.name}.json"


def prepare_output(
    path: Path,
    cell: Cell,
    settings: Settings,
    found: Described,
    host: Mapping[str, str],
    prompt_hash: str | None = None,
) -> Output:
    """Where a cell's results go, once it is sure that they can be scored and replace nothing.

    Args:
        path: the prediction file.
        cell: what is asked of whom.
        settings: of scoring; a space goes before that of the model's row.
        found: who answers, as far as it is known.
        host: the program that the model is of, with its version.
        prompt_hash: of the question's messages, where it is known already.

    Raises:
        SpaceError: nothing says the model's coordinate space.
        ValueError: the benchmark could not score with the settings.
        IdentityError: the predictions that lie there are of another run.
    """
    question = cell.question
    benchmark = benchmark_of(question)
    benchmark.check(question, settings)
    space = benchmark.space(cell.model, question, settings, found)
    now = run_identity(cell.task, cell.model, found.answering, cell.rows, space, prompt_hash)
    now = replace(now, left_out=cell.left_out, reads_like=settings.reads_like, host=host)
    if (recorded := read_identity(path)) is not None:
        against = [one for one in contradictions(recorded, now) if one.is_space]
        refuse_variable(settings, against, f"{path}")
    return Output(path, cell, settings, continued(recorded, now, settings.force, path))


def found_here(output: Output, answering: Answering) -> Output:
    """An output whose identity says what only the machine that makes the calls knows.

    Raises:
        IdentityError: it contradicts what was recorded.
    """
    now = replace(output.identity, answering=answering)
    recorded = read_identity(output.path)
    return replace(output, identity=continued(recorded, now, output.settings.force, output.path))


def made_before(output: Output, keys: Iterable[str], journal: JournalView) -> Output:
    """An output whose answers that the journal has were made as this run makes them.

    Raises:
        IdentityError: they were made otherwise.
    """
    if read_identity(output.path) is not None:
        return output  # it says so itself, and was asked
    against: dict[str, Contradiction] = {}
    for key in filter(journal.__contains__, keys):
        for what, before in (journal[key].get("made_by") or {}).items():
            now = output.identity.made_by.get(what)
            if None not in (before, now) and before != now:
                against.setdefault(what, Contradiction(f"{what} of answers", before, now))
    notes = overruled(
        list(against.values()),
        output.settings.force,
        f"{output.path}: the journal {journal.path} has answers that were made otherwise",
        "Use another journal.",
    )
    return replace(output, identity=replace(output.identity, forced=tuple(notes)))


def adopt(output: Output, keys: Sequence[str], journal: Journal, hashes: ImageHash) -> None:
    """Take answers into the journal that the prediction file has and the journal does not.

    So a run goes on under the engine that was begun under VLMEvalKit's runner, or before its
    journal was lost, and nothing is paid for twice.  A file of any format is looked for.  Answers
    that the journal has of other pictures stay what they are: they do not stand for those of now.

    Raises:
        PredictionError: the file has replies of which nothing says that they are of this run, or
            rows that this run does not ask.
    """
    recorded, forced = read_identity(output.path), output.identity.forced
    for path in filter(Path.is_file, map(output.path.with_suffix, PREDICTION_FORMATS)):
        if forced and (recorded is None or recorded.forced != forced):
            _set_aside(path)  # of another run than the one that was forced
            continue
        try:
            replies = [reply for reply in read_predictions(path) if not reply.failed]
        except PredictionError as error:
            log.warning("%s", error)
            _set_aside(path)
            continue
        journal.append(_adopted(path, replies, output, recorded, keys, journal, hashes))


def _adopted(
    path: Path,
    replies: Iterable[Reply],
    output: Output,
    recorded: Identity | None,
    keys: Sequence[str],
    journal: Journal,
    hashes: ImageHash,
) -> list[dict[str, Any]]:
    """The records of what a file has and the journal does not."""
    cell, keying, found, changed = output.cell, Keying(output.cell, hashes), [], 0
    known = dict(zip(cell.rows, keys, strict=True))
    asked_before = cache(partial(_asked_before, cell, journal))
    elsewhere = "Use another work_dir, or move them away."
    for reply in replies:
        if (key := known.get(reply.index)) is None:
            raise PredictionError(
                f"{path} holds row {reply.index}, which is not among the {len(known)} rows of this "
                f"run. {elsewhere}"
            )
        with_logprobs = reply.recorded.token_logprobs is not None
        is_same = reply.text in journal.replies(key)
        says_more = with_logprobs and not journal.serves(key, confidences=True)
        # Formats but JSON cannot hold every reply.
        if key in journal and not (is_same and says_more) and (is_same or path.suffix != ".json"):
            continue
        if (key in journal and not is_same) or recorded is None or not _is_of(reply, output):
            raise PredictionError(
                f"{path} holds a reply to row {reply.index} that is not in the journal "
                f"{journal.path}. {elsewhere}"
            )
        made = keying(reply.index)
        if key not in journal and (reply.index, made.prompt_sha256, reply.text) in asked_before():
            changed += 1
            continue
        extra = reply.recorded.as_json() if reply.recorded != NOTHING_RECORDED else None
        answer = Answer(reply.text, extra)
        found.append(record_of(cell, reply.index, answer, made, recorded, with_logprobs))
    if changed:
        log.warning("%s: %d pictures are not those that were asked about: again", path, changed)
    return found


def _asked_before(cell: Cell, journal: Journal) -> frozenset[tuple[int, str, str]]:
    """The row, the hash of the words and the reply of every call of a cell that the journal has.

    Where the key of a row's call is not among them, the call was about other pictures.
    """
    return frozenset(
        (one["row"], one["prompt_sha256"], one["reply"])
        for one in journal.answers_of(cell.model, cell.question.name)
        if one["settings"] == dict(cell.settings)
    )


def _is_of(reply: Reply, output: Output) -> bool:
    """Whether nothing says that a reply is of another checkpoint than its run's."""
    said, now = reply.recorded.model.get("revision"), output.identity.answering.revision
    return None in (said, now) or said == now


def _set_aside(path: Path) -> None:
    """Give a prediction file that is going to be replaced another name, and keep it."""
    names = (path.with_name(f"{path.stem}.replaced-{n}{path.suffix}") for n in count(1))
    aside = next(name for name in names if not name.exists())
    path.rename(aside)
    log.warning("%s is kept as %s", path, aside.name)


def record_of(
    cell: Cell, row: int, answer: Answer, made: Keyed, run: Identity, confidences: bool
) -> dict[str, Any]:
    """One line of the journal; ``confidences``: log-probabilities were asked for."""
    # Our own askers have done it; those of plug-ins have not.
    answer = refused_if_it_quotes(answer)
    record = answer.record
    extra, error = scrubbed([as_json_value(answer.extra), answer.error])
    return {
        "key": made.key,
        "model": cell.model,
        "settings": dict(cell.settings),
        "dataset": cell.question.name,
        "row": row,
        "prompt_sha256": made.prompt_sha256,
        "image_sha256": list(made.image_sha256),
        "reply": answer.text,
        "extra_records": extra,
        "tokens": as_json_value(record.get("tokens")),
        "finish_reason": as_json_value(record.get("finish_reason")) or None,
        "seconds": round(answer.seconds, 6),
        "made_by": run.made_by,
        # The last two: a journal is opened by looking at the ends of lines.
        "error": error,
        **({"confidences": True} if confidences else {}),
    }


def begin(output: Output) -> Output:
    """Write what the run is, before its first call."""
    output.path.parent.mkdir(parents=True, exist_ok=True)
    write_identity(RunFiles(output.path).identity, output.identity)
    return output
