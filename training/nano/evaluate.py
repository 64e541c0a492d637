"""Score a checkpoint on rendered scenes: ``python -m training.nano.evaluate FOLDER``.

Replies come from the package's runner and are scored by its scorer, without VLMEvalKit, so it is
fast enough to be called during a training.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.core.replies import Reply
from vlmeval_findit.core.settings import Settings
from vlmeval_findit.engine.calls import prompts_of
from vlmeval_findit.models.local.run_settings import RunSettings
from vlmeval_findit.models.local.runner import load_local
from vlmeval_findit.models.model_table import MODELS, NANO, SHIPPED
from vlmeval_findit.runs.open_predictions import check_replies
from vlmeval_findit.runs.run_score import RunScore, score_rows

FORMAT = "xyxy_json_bbox_2d"
"""The format that FindIt-Nano is asked most often in training."""

VALIDATION_TASKS = ("", "_multilabel", "_refexp", "_insdet", "_described", "_video_f4")


def evaluate(
    checkpoint: Path,
    names: Sequence[str],
    device: str = "cpu",
    longest: int | None = None,
    model: str = NANO,
) -> list[RunScore]:
    """Return the scores of a checkpoint on datasets.

    Args:
        checkpoint: a folder.
        names: of datasets.
        device: ``cpu``, ``cuda``.
        longest: most new tokens of a reply (default: the protocol's).
        model: the row of the model table that says how it answers.
    """
    settings = RunSettings(device=device, max_new_tokens=longest)
    runner = load_local(str(checkpoint), MODELS[model], settings)
    scores = []
    for name in names:
        task = load_task(name)
        prompts = prompts_of(task)
        answers = runner.answer_batch([prompts.message(i) for i in task.queries], task.question)
        replies = [
            Reply(index, answer.text, answer.recorded)
            for index, answer in zip(task.queries, answers, strict=True)
        ]
        scores.append(score_rows(check_replies(model, task, replies, Settings())))
    return scores


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line of metrics for each dataset."""
    parser = argparse.ArgumentParser(prog="python -m training.nano.evaluate")
    parser.add_argument("checkpoint", type=Path)
    names = [f"FindIt_Scenes_mini{task}_{FORMAT}" for task in VALIDATION_TASKS]
    parser.add_argument("--data", nargs="+", default=names, metavar="FindIt_...")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--like", choices=SHIPPED, default=NANO, help="the shipped model that it becomes"
    )
    options = parser.parse_args(arguments)
    for run in evaluate(options.checkpoint, options.data, options.device, model=options.like):
        metrics = [f"{name} {value:.1f}" for name, value in list(run.metric_values.items())[:3]]
        print(f"{run.task.name}  {'  '.join(metrics)}", flush=True)


if __name__ == "__main__":
    main()
