"""Evaluation of checkpoints inside a training with transformers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..benchmarks import parse
from ..leaderboard.learning_curve import learning_curves
from ..runs.scored_run import RowData, load_runs
from ..sweeps.checkpoints import Checkpoint, evaluate

if TYPE_CHECKING:
    from transformers import TrainerCallback

_LOG = logging.getLogger(__name__)


def checkpoint_callback(
    data: str | Sequence[str],
    *,
    name: str,
    like: str | None = None,
    work_dir: str | Path = "outputs",
    flags: Sequence[str] = (),
) -> TrainerCallback:
    """Make a callback of ``transformers.Trainer`` that evaluates each checkpoint it saves.

    A checkpoint is evaluated by ``findit run`` in a separate process, as the model
    ``NAME-step-STEP``, while the training waits. Its score is added to ``state.log_history`` as
    ``findit/<dataset>``, in percent, and to the curve that ``findit report`` draws.  Processes but
    the first do nothing.

    Args:
        data: names of datasets, as of ``run --data``: queries that the training does not see.
        name: name of the training.
        like: the known model whose prompts and coordinates the checkpoints share.
        work_dir: folder of the results.
        flags: more flags of ``run``, as ``["--limit", "100", "--device", "cuda:1"]``.

    Raises:
        ValueError: a dataset is unknown.
    """
    from transformers import TrainerCallback

    datasets = [data] if isinstance(data, str) else list(data)
    words = [word for dataset in datasets for word in ("--data", parse(dataset).name)]
    words += ["--work-dir", str(work_dir), *(["--like", like] if like else []), *flags]

    class CheckpointCallback(TrainerCallback):  # type: ignore[misc]
        """Evaluates each checkpoint when it is saved."""

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not state.is_world_process_zero:
                return
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            checkpoint = Checkpoint(state.global_step, folder)
            if status := evaluate(checkpoint, name, words):
                # A failed evaluation must not end the training.
                _LOG.warning(
                    "%s: findit run ended with status %s; findit watch-checkpoints %s evaluates "
                    "it again", folder, status, args.output_dir,
                )  # fmt: skip
                return
            runs = load_runs([Path(work_dir) / checkpoint.model(name)], keep=RowData.SUMS)
            points = [point for curve in learning_curves(runs) for point in curve.points]
            values = {f"findit/{point.run.question.name}": point.value for point in points}
            state.log_history.append({"step": state.global_step, **values})

    return CheckpointCallback()
