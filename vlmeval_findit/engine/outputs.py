"""Where a run's results go, and what run they are of: what contradicts it is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..benchmarks import benchmark_of
from ..core.contradictions import Contradiction, continued, contradictions, overruled
from ..core.identity import Answering, Described, Identity
from ..core.identity_file import read_identity, write_identity
from ..core.redaction import scrubbed
from ..core.run_files import RunFiles
from ..core.settings import Settings
from ..core.work import Answer, refused_if_it_quotes
from ..models.model_asker import as_json_value
from ..runs.new_identity import run_identity
from ..runs.score import refuse_variable
from .calls import Cell, Keyed
from .journal.lookup import JournalView


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
