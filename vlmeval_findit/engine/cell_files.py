"""Write prediction files in VLMEvalKit's layout and their scores from the journal; read them back.

Only the journal and the plan decide what is written: the same bytes after any number of kills.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from ..benchmarks import benchmark_of, prefixes
from ..core import file_sha256, known_secrets, left_behind, package_sha256, suffix_of
from ..models import thought_rule
from ..protocol import (
    NOT_TIMED,
    CallResult,
    CallTime,
    Identity,
    Reply,
    ThoughtRule,
    merge_for_resume,
    refused_if_it_quotes,
    text_of_failure,
)
from ..scoring import (
    CellResult,
    RunScore,
    ScoreBasis,
    check_coordinates,
    check_replies,
    details_line,
    join_scores,
    read_sealed,
    result_of,
    score_rows,
    versions_now,
    without_details,
    write_score,
)
from ..storage import (
    PREDICTION_FORMATS,
    PredictionError,
    RunFiles,
    Shown,
    call_time_column,
    changed_images,
    failed_column,
    holds_rows,
    identity_values,
    is_transparent,
    parse_call_time,
    parse_record,
    read_predictions,
    short_content,
    shown_column,
    shown_contents,
    write_rows,
)
from .calls import Call, Cell
from .journal.view import JournalView, Record
from .journal.writer import Journal
from .outputs import Output, binding_identity
from .sink import record_of

log = logging.getLogger(__name__)


def finished_cell(
    output: Output, journal: JournalView, digests: RowDigests | None = None
) -> CellResult:
    """Write and score a complete cell, a few rows in memory at a time.

    Its files stay where they hold the score already, by all that it rests on. After an OSError
    each file is complete or unchanged.
    """
    cell = output.cell
    path = output.path
    basis = basis_of(output, digests or RowDigests(journal))
    unchanged = unchanged_result(output, basis)
    if unchanged is not None:
        return unchanged
    keys = list(cell.call_keys())
    write_rows(path, partial(prediction_rows, cell, keys, journal))
    failed = count_failed(cell, keys, journal)
    with TemporaryFile(
        "w+", encoding="utf-8", errors="backslashreplace", dir=path.parent
    ) as details:
        run = check_coordinates(join_scores(_parts(output, keys, journal, details.writelines)))
        details.seek(0)
        write_score(run, path, details, basis, failed)
    return replace(result_of(run, path), failed=failed, sample=cell.sample)


def count_failed(cell: Cell, keys: Iterable[str], journal: JournalView) -> int:
    """Count rows without an answer, or without the log-probabilities that were requested."""
    return sum(not journal.serves(key, logprobs=cell.logprobs) for key in keys)


def score_in_memory(output: Output, journal: JournalView) -> RunScore:
    """Score a complete cell without writing its files."""
    keys = output.cell.call_keys()
    return join_scores(_parts(output, keys, journal, lambda details: None))


_NEVER_ASKED: Record = {"error": "never asked", "extra_records": None, "image_sha256": ()}


class _StoredAnswer(NamedTuple):
    """What the journal has for a row of a prediction file."""

    row: int  # in its table
    text: str
    record: Any  # ``extra_records`` as stored; None: nothing is recorded
    error: str | None
    shown: Shown
    time: CallTime


def _stored_answers(
    cell: Cell, keys: Iterable[str], journal: JournalView
) -> Iterator[_StoredAnswer]:
    names = cell.prompts.images.names
    numbers = cell.prompt_hashes.images
    for at, (index, key) in enumerate(zip(cell.rows, keys, strict=True)):
        record = journal.get(key) or _NEVER_ASKED
        error = record["error"]
        text = text_of_failure(error) if error else record["reply"]
        shown = shown_contents(names[numbers[at]], record["image_sha256"])
        time = NOT_TIMED if error else _call_time(record, cell, index)
        yield _StoredAnswer(index, text, record["extra_records"], error, shown, time)


def prediction_rows(
    cell: Cell, keys: Iterable[str], journal: JournalView
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a prediction file, with the columns of VLMEvalKit's runner.

    Records are those of the journal, with all that other programs put into them.
    """
    for stored in _stored_answers(cell, keys, journal):
        query = cell.dataset.queries[stored.row]
        record = stored.record
        if stored.error:
            record = failed_column(record, stored.error)
        row = {
            "index": stored.row,
            "label": query.label,
            "width": query.width,
            "height": query.height,
            "prediction": stored.text,
        }
        if record is not None:
            row["extra_records"] = record
        yield row | shown_column(stored.shown) | call_time_column(stored.time)


def _call_time(record: Record, cell: Cell, index: int) -> CallTime:
    """Return what is known of the time of an answer; nothing of a journal without times."""
    time = parse_call_time(record.get("time"))
    was_asked_for = record["dataset"], record["row"]
    if record.get("time") is None or was_asked_for == (cell.variant.name, index):
        return time
    return replace(time, shared=True)


def _parts(
    output: Output,
    keys: Iterable[str],
    journal: JournalView,
    write: Callable[[Iterable[str]], object],
) -> Iterator[RunScore]:
    """Yield the scores of a few rows at a time, at least one, and write their details."""
    cell = output.cell
    identity = output.identity
    rule = thought_rule(identity.answering.row or cell.model, output.settings.thought_marks)
    remaining = (_reply(stored, rule) for stored in _stored_answers(cell, keys, journal))
    most = benchmark_of(cell.variant).batch_size
    replies = list(islice(remaining, most))
    while True:
        run = score_rows(
            check_replies(cell.model, cell.dataset, replies, output.settings, identity)
        )
        write(map(details_line, run.rows))
        yield without_details(run)
        replies = list(islice(remaining, most))
        if not replies:
            return


def _reply(stored: _StoredAnswer, rule: ThoughtRule) -> Reply:
    record = parse_record(stored.record)
    if stored.error:
        record = record.with_error(stored.error)
    shown = stored.shown
    time = stored.time
    return Reply(stored.row, stored.text, record, thoughts=rule, shown=shown, time=time)


def clean_up(folder: Path) -> None:
    """Remove temporary files that a kill left behind."""
    benchmarks = "|".join(map(re.escape, prefixes()))
    written = re.compile(rf".*_({benchmarks}).*\.(json|jsonl|csv)")
    for path in folder.iterdir() if folder.is_dir() else ():
        if written.fullmatch(left_behind(path) or ""):
            path.unlink(missing_ok=True)


def merge_predictions(output: Output, journal: Journal, digests: RowDigests | None = None) -> None:
    """Add answers to the journal that only prediction files have.

    So a run that VLMEvalKit's runner began, or whose journal was lost, goes on without paying
    twice. All formats are read; a file written from this journal is not read row by row, and is
    not compared with it where a score's seal has both.

    Raises:
        PredictionError: a file has replies that may be of another run, or rows that this run
            does not ask.
        IdentityError: the files are of another run, also of one that was recorded since this one
            was prepared.
    """
    paths = [*filter(Path.is_file, map(output.path.with_suffix, PREDICTION_FORMATS))]
    if not paths or has_sealed_predictions(output, digests or RowDigests(journal)):
        return
    keys = list(output.cell.call_keys())
    if holds_rows(output.path, prediction_rows(output.cell, keys, journal)):
        return
    identity = binding_identity(output.path, output.identity)
    if not output.settings.force:
        merge_for_resume(
            identity, output.identity, forced=False, where=output.path
        )  # refuses another run's
    forced = output.identity.forced
    for path in paths:
        if forced and (identity is None or identity.forced != forced):
            _set_aside(path)  # not of the run that was forced
            continue
        try:
            whole = [reply for reply in read_predictions(path) if not reply.is_cut_by_sheet]
            replies = [reply for reply in whole if not reply.failed]
        except PredictionError as error:
            log.warning("%s", error)
            _set_aside(path)
            continue
        journal.append(_new_records(path, replies, output, identity, keys, journal))


def _new_records(
    path: Path,
    replies: Iterable[Reply],
    output: Output,
    identity: Identity | None,
    keys: Sequence[str],
    journal: Journal,
) -> list[dict[str, Any]]:
    cell = output.cell
    records = []
    replaced = 0
    transparent = 0
    places = {row: at for at, row in enumerate(cell.rows)}
    earlier = cache(partial(_earlier_answers, cell, journal))
    secrets = known_secrets()
    elsewhere = "Use another work_dir, or move them away."
    for reply in replies:
        at = places.get(reply.index)
        if at is None:
            raise PredictionError(
                f"{path} has row {reply.index}, which is not one of the {len(places)} rows of "
                f"this run. {elsewhere}"
            )
        call = Call(keys[at], cell, at)
        known = journal.get(call.key) if call.key in journal else None
        if known is not None and known["reply"] == reply.text:
            continue
        if _was_not_on_white(reply, call, output.identity):
            transparent += known is None
            continue
        is_earlier = (reply.index, call.prompt_sha256, reply.text) in earlier()
        if is_earlier or _showed_others(reply, call):
            replaced += known is None  # an answer about an image that was replaced
            continue
        if known is not None and suffix_of(path) != ".json":
            continue  # only JSON holds every reply unchanged
        if known is not None or identity is None or _is_of_another(reply, output.identity):
            raise PredictionError(
                f"{path} has a reply to row {reply.index} that is not in the journal "
                f"{journal.path}{_whose(reply, output.identity)}. {elsewhere}"
            )
        logprobs = reply.recorded.token_logprobs is not None
        told = CallResult(reply.text, reply.recorded, time=reply.time)
        answer = refused_if_it_quotes(told, secrets)
        records.append(record_of(call, answer, identity, logprobs, secrets))
    if replaced:
        log.warning(
            "%s: %d images were replaced since then: their calls are repeated", path, replaced
        )
    if transparent:
        why = "rows show transparent images, which are laid on white now: their calls are repeated"
        log.warning("%s: %d %s", path, transparent, why)
    return records


def _showed_others(reply: Reply, call: Call) -> bool:
    """Return whether a reply recorded other images than are there now."""
    now = dict(zip(call.image_names, map(short_content, call.image_sha256), strict=True))
    return bool(changed_images(reply.shown, now))


def _was_not_on_white(reply: Reply, call: Call, run: Identity) -> bool:
    """Return whether a reply is about a transparent image that was not laid on white.

    So did version 1.0, which recorded no images; VLMEvalKit's models open images themselves.
    """
    is_ours = not reply.shown and not run.answering.in_vlmevalkit
    return is_ours and any(map(is_transparent, call.image_sha256))


def _is_of_another(reply: Reply, run: Identity) -> bool:
    revisions = reply.recorded.model.get("revision"), run.answering.revision
    if None not in revisions and revisions[0] != revisions[1]:
        return True
    return run.answering.is_elsewhere(reply.recorded.call.get("server"))


def _whose(reply: Reply, run: Identity) -> str:
    server = reply.recorded.call.get("server")
    if not run.answering.is_elsewhere(server):
        return ""
    return f" and that {server} gave, where this run asks {run.answering.endpoint}"


def _earlier_answers(cell: Cell, journal: Journal) -> frozenset[tuple[int, str, str]]:
    return frozenset(
        (record["row"], record["prompt_sha256"], record["reply"])
        for record in journal.records()
        if (record.get("model"), record.get("dataset")) == (cell.model, cell.variant.name)
        and record["settings"] == dict(cell.settings)
        and not record["error"]
    )


def _set_aside(path: Path) -> None:
    names = (path.with_name(f"{path.stem}.replaced-{n}{path.suffix}") for n in count(1))
    aside = next(name for name in names if not name.exists())
    path.rename(aside)
    log.warning("%s is now %s", path, aside.name)


# --- cells whose files hold their score already ---------------------------------------------------

# A score is used again only where everything is the same that its rows and it rest on; what is not
# known, is forced or differs is scored again.

_VARIABLES = "FINDIT_"  # How the environment's settings begin: any may decide how replies are read


class RowDigests:
    """Hashes of what the rows of prediction files are made of.

    Each is made once while the journal stays as it is.
    """

    def __init__(self, journal: JournalView) -> None:
        self._journal = journal
        self._known: dict[Cell, tuple[int, str]] = {}

    def digest(self, cell: Cell) -> str:
        """Return the SHA-256 over code, table, calls and what the journal has of each call.

        The key of a call hashes its model, settings, message and images.
        """
        size, known = self._known.get(cell, (-1, ""))
        if size != self._journal.size:
            size = self._journal.size
            known = self._digest(cell)
            self._known[cell] = (size, known)
        return known

    def _digest(self, cell: Cell) -> str:
        dataset = cell.dataset
        what = [
            package_sha256(),
            dataset.name,
            dataset.variant.name,
            file_sha256(dataset.table),
            cell.rows,
            cell.logprobs,
        ]
        digest = hashlib.sha256(json.dumps(what).encode())
        keys = list(cell.call_keys())
        for key, line in zip(keys, self._journal.lines(keys), strict=True):
            digest.update(b"\n%s %s" % (key.encode(), line))
        return digest.hexdigest()


def basis_of(output: Output, digests: RowDigests) -> ScoreBasis | None:
    """Return what the score of a cell rests on; None if it is always scored again."""
    cell = output.cell
    dataset = cell.dataset
    identity = output.identity
    settings = output.settings
    is_forced = settings.force or bool(identity.forced)
    # Only JSON is written to the same bytes; where queries depend on the model, so may their truth.
    is_known = suffix_of(output.path) == ".json" and dataset.base_dataset is None
    if is_forced or identity.plugins or not is_known:
        return None
    meta = dataset.table.with_suffix(".meta.json")
    what = {
        "identity": identity_values(identity),
        "settings": asdict(settings),
        "thoughts": asdict(thought_rule(identity.answering.row or cell.model, None)),
        "meta": file_sha256(meta) if meta.is_file() else None,
        "versions": versions_now(),
        "variables": {
            name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)
        },
    }
    text = json.dumps(what, sort_keys=True, default=str)
    return ScoreBasis(digests.digest(cell), hashlib.sha256(text.encode()).hexdigest())


def has_sealed_predictions(output: Output, digests: RowDigests) -> bool:
    """Return whether the prediction file has what the journal has, by the seal of its score."""
    sealed = read_sealed(RunFiles(output.path))
    if sealed is None or sealed.basis.rows != digests.digest(output.cell):
        return False
    return sealed.has_its_predictions()


def unchanged_result(output: Output, basis: ScoreBasis | None) -> CellResult | None:
    """Return the result that a cell's files hold, or None: it must be scored."""
    sealed = None if basis is None else read_sealed(RunFiles(output.path))
    if sealed is None or sealed.basis != basis:
        return None
    if not (sealed.has_its_predictions() and sealed.has_its_results()):
        return None
    cell = output.cell
    known = sealed.provenance
    return CellResult(
        cell.model,
        cell.variant,
        sealed.sums,
        len(cell.rows),
        sealed.failed,
        output.path,
        len(cell.dataset.queries),
        coords_doubt=known.coords_doubt,
        answered_note=known.answered_note,
        reply_note=known.reply_note,
        stated_note=known.stated_note,
        sample=cell.sample,
    )
