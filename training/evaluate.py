"""Score a checkpoint on rendered scenes: ``python -m training.evaluate FOLDER``.

Answers come from the package's own runner and are scored by its own scorer; only VLMEvalKit is left
out, which makes it quick enough to be called while a model trains.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from vlmeval_findit.benchmarks.findit import box_prompts as prompts
from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.core.folders import image_folder
from vlmeval_findit.core.messages import Message, PartKind
from vlmeval_findit.core.replies import Reply
from vlmeval_findit.core.settings import Settings
from vlmeval_findit.models.local.run_settings import RunSettings
from vlmeval_findit.models.local.runner import load_local
from vlmeval_findit.models.model_table import MODELS, NANO, SHIPPED
from vlmeval_findit.runs.open_predictions import check_replies
from vlmeval_findit.runs.score import RunScore, score_rows

FORMAT = "xyxy_json_bbox_2d"
"""The format that FindIt-Nano is asked most often in training."""
_VALIDATED = ("", "_multilabel", "_refexp", "_insdet", "_described", "_video_f4")


def validation(asked: str = FORMAT) -> tuple[str, ...]:
    """The datasets that a training looks at, in a format."""
    return tuple(f"FindIt_Scenes_mini{task}_{asked}" for task in _VALIDATED)


_AT_ONCE = 64


def evaluate(
    checkpoint: Path,
    names: Sequence[str],
    device: str,
    longest: int | None = None,
    model: str = NANO,
) -> list[RunScore]:
    """The scores of a checkpoint on datasets, by the variants' names.

    Args:
        checkpoint: a folder.
        names: variants of any dataset whose images are there.
        device: ``cpu``, ``cuda``.
        longest: the most new tokens of a reply (default: the protocol's).
        model: the row of the model table that says how it answers.
    """
    settings = RunSettings(device=device, max_new_tokens=longest)
    runner = load_local(str(checkpoint), MODELS[model], settings)
    done = []
    for name in names:
        task = load_task(name)
        folder = image_folder(task.question.data.images).path
        asked = [
            (index, _placed(prompts.message(query, task.question), folder))
            for index, query in task.queries.items()
        ]
        replies = []
        for first in range(0, len(asked), _AT_ONCE):
            part = asked[first : first + _AT_ONCE]
            answers = runner.answer_batch([message for _, message in part], task.question)
            replies += [
                Reply(index, answer.text, answer.recorded)
                for (index, _), answer in zip(part, answers, strict=True)
            ]
        done.append(score_rows(check_replies(model, task, replies, Settings())))
    return done


def _placed(message: Message, folder: Path) -> Message:
    return tuple(
        part._replace(value=str(folder / part.value)) if part.kind is PartKind.IMAGE else part
        for part in message
    )


def summary(run: RunScore) -> str:
    """One line of figures, in percent."""
    shown = [f"{name} {value:.1f}" for name, value in list(run.metric_values.items())[:3]]
    return f"{run.task.name}  {'  '.join(shown)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line of figures a dataset."""
    parser = argparse.ArgumentParser(prog="python -m training.evaluate")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--data", nargs="+", default=validation(), metavar="FindIt_…")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--row", choices=SHIPPED, default=NANO, help="the model that it becomes")
    chosen = parser.parse_args(arguments)
    for run in evaluate(chosen.checkpoint, chosen.data, chosen.device, model=chosen.row):
        print(summary(run), flush=True)


if __name__ == "__main__":
    main()
