"""The identity of a run that starts now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from ..benchmarks import benchmark_of
from ..core.command import installed
from ..core.files import file_sha256
from ..core.identity import ENGINES, Answering, Identity
from ..core.question import AnyTask
from .plugins import plugins_used


def run_identity(
    task: AnyTask,
    model: str,
    answering: Answering,
    rows: Iterable[int],
    space: Mapping[str, Any] | None,
    prompt_hash: str | None = None,
) -> Identity:
    """What a run over a task that starts now is, with the prompt set in force.

    Rows of the table that are not among ``rows`` are not said to be left out: the caller adds
    those without a usable image.  ``prompt_hash`` is that of the prompt set in force over the task,
    where it is known already: else every message is made.
    """
    words = benchmark_of(task.question).prompts()[0]
    return Identity(
        model=model,
        dataset=task.question.name,
        answering=answering,
        prompts=words.name,
        prompt_hash=prompt_hash or words.hash(task),
        resolved_options=task.resolved_options,
        table=task.table.name,
        table_sha256=file_sha256(task.table),
        rows=tuple(sorted(rows)),
        space=space,
        versions=installed(_AT_INFERENCE),
        plugins=plugins_used(
            task.question, answering.row, [space["kind"]] if space else (), answering.kind
        ),
        asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


_AT_INFERENCE = ("vlmeval-findit", *ENGINES, "pillow")
"""Packages whose version at inference a run records."""
