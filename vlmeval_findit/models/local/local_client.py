"""Local models as the engine asks them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ...protocol import Batch, CallResult, refused_if_it_quotes
from ..checkpoint_row import row_to_run
from ..model_client import TimedClient
from .local_runner import LocalRunner, load_local
from .refused_settings import refuse_settings
from .run_settings import run_settings

log = logging.getLogger(__name__)


class LocalClient(TimedClient):
    """A model on this machine: it can be cancelled, and encodes what comes next meanwhile."""

    def __init__(self, runner: LocalRunner) -> None:
        super().__init__()
        self.runner = runner

    def cancelled_by(self, told: Callable[[], bool]) -> None:
        self.runner.cancelled_by(told)

    def answers_together(self) -> bool:
        return True

    def parts(self, window: Batch) -> list[list[int]]:
        return self.runner.batches(window.messages, window.variants)

    def expect(self, batch: Batch) -> None:
        self.runner.expect(batch.messages, batch.variants[0])

    def replies(self, batch: Batch) -> list[CallResult]:
        answered = self.runner.answer_batch(
            batch.messages,
            batch.variants[0],  # Those of a part are run alike
            logprobs=batch.logprobs,
            seeds=batch.seeds,
        )
        return [*map(refused_if_it_quotes, answered)]


def load_local_client(
    like: str | None = None, model_path: str | None = None, **settings: Any
) -> LocalClient:
    """Load a model of this machine.

    Args:
        like: a row of the model table (default: the row that the checkpoint's files decide for).
        model_path: a folder or an identifier (default: the first checkpoint of the row).
        settings: the fields of :class:`.run_plan.RunSettings`.

    Raises:
        ValueError: an unknown row or setting, or no row is known to fit the checkpoint.
        OSError: the checkpoint does not exist.
    """
    row, checkpoint = row_to_run(like, model_path, settings.get("space"))
    stated = run_settings(settings)
    refuse_settings(row, checkpoint, stated)
    runner = load_local(checkpoint, row, stated)
    log.info("FindIt: %s", runner)
    return LocalClient(runner)
