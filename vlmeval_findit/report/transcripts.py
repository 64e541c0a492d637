"""What a run was asked and what it answered, as far as it is at hand.

Figures need neither table, pictures nor predictions; the gallery needs all three.  What is not
there, or is not what was scored, is left out with a reason that the page shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..benchmarks.findit import prompts
from ..benchmarks.findit.annotation_tables import TableError
from ..benchmarks.findit.prompts import MessageMaker
from ..benchmarks.findit.query import Query
from ..benchmarks.findit.release_prompts import prompt_set
from ..benchmarks.findit.task import Task, load_task
from ..benchmarks.findit.variant import Variant
from ..core.files import file_sha256
from ..core.messages import PartKind, prompt_hash
from ..core.places import PlaceError, image_folder
from ..core.prediction_reader import PredictionError, read_predictions
from ..runs.scored_run import Run


@dataclass(frozen=True, slots=True)
class Material:
    """One run with its queries, replies and words.

    ``replies`` is empty where the prediction file is gone, ``make`` None where the words of its
    prompts are not at hand; ``pictures`` is the folder that the paths of queries are relative to.
    """

    run: Run
    queries: Mapping[int, Query]
    replies: Mapping[int, str]
    make: MessageMaker | None
    pictures: Path

    def prompt(self, index: int) -> str:
        """The message of a query as text, ``[image: …]`` where it shows an image."""
        if self.make is None:
            return (
                f"Asked in {self.run.basis.prompts}, whose words are not at hand "
                "(FINDIT_PROMPTS names a clone of the release)."
            )
        parts = self.make(self.queries[index], self.run.variant)
        return "\n".join(
            f"[image: {part.value}]" if part.kind is PartKind.IMAGE else part.value
            for part in parts
        )


@dataclass(frozen=True, slots=True)
class Missing:
    """A run that has no gallery and no curve, and why."""

    run: Run
    reason: str


def gather(runs: Iterable[Run]) -> tuple[list[Material], list[Missing]]:
    """The material of runs, and the runs whose table is not at hand."""
    tasks: dict[tuple[str, int], Task] = {}
    found: list[Material] = []
    missing: list[Missing] = []
    for run in runs:
        key = (run.variant.table, run.variant.frames)
        try:
            if key not in tasks:
                tasks[key] = load_task(run.variant.name)
            found.append(_material(run, tasks[key]))
        except (FileNotFoundError, TableError, PlaceError, PredictionError) as error:
            missing.append(Missing(run, str(error)))
    return found, missing


def _material(run: Run, task: Task) -> Material:
    checksum = file_sha256(task.table)
    if checksum != run.basis.table_sha256:
        raise TableError(
            f"{task.table} has SHA-256 {checksum[:12]}…, but the run was scored over a table with "
            f"{run.basis.table_sha256[:12]}…"
        )
    for answer in run.answers:
        query = task.queries.get(answer.index)
        if query is None or len(query.truth.boxes) != len(answer.ious):
            raise TableError(f"{run.path}: row {answer.index} was not scored over {task.table}")
    replies = read_predictions(run.path) if run.path.is_file() else []
    return Material(
        run=run,
        queries=task.queries,
        replies={reply.index: reply.text for reply in replies},
        make=_words(run, task),
        pictures=image_folder(run.variant.row.images).path,
    )


def _words(run: Run, task: Task) -> MessageMaker | None:
    """The maker of the messages that a run was asked: the one that gives the hash it recorded."""
    in_force, make = prompt_set()
    for name, maker in ((prompts.NAME, prompts.message), (in_force, make)):
        if name == run.basis.prompts and _hash(maker, run.variant, task) == run.basis.prompt_hash:
            return maker
    return None


def _hash(make: MessageMaker, variant: Variant, task: Task) -> str:
    return prompt_hash(make(query, variant) for query in task.queries.values())
