"""The model card: ``python -m training.card --training FOLDER [--runs …]``.

Recipe, curve and validation come from the training's folder; with scored runs of the checkpoint
(VLMEvalKit's, through the normal command) their figures are added, with 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from training.architecture import COORDINATE_STEP
from training.saving import CHECKPOINT
from vlmeval_findit.benchmarks.findit.box_metrics import METRICS
from vlmeval_findit.core.files import atomic_write
from vlmeval_findit.runs.run_statistics import intervals
from vlmeval_findit.runs.scored_run import Run, load_runs

CURVE = "curve.jsonl"
VALIDATION = "validation.jsonl"
RECIPE = "recipe.yaml"
"""Names in the folder of a training."""

_MOST_LINES = 25

_HEAD = """\
---
license: apache-2.0
pipeline_tag: image-text-to-text
library_name: transformers
---
# {model}

A vision-language model of the Qwen3-VL architecture, small enough to ship with a package. {origin}
It answers where the shapes in scenes are that `vlmeval_findit` renders. It is there to try the
benchmark with: it knows six shapes, six colours, three textures and two sizes, and nothing else of
the world.

    from transformers import AutoModelForImageTextToText, AutoProcessor

loads it as it would any Qwen3-VL. Weights are float16; run it in float32 on a CPU. Its coordinates
are {numbers}.
"""

_NUMBERS = {
    "thousandths": f"thousandths of the picture, in steps of {COORDINATE_STEP}",
    "pixels": "pixels of the image as its processor shows it",
}


def _head(recipe: Mapping[str, Any]) -> str:
    start = recipe["start"]
    return _HEAD.format(
        model=recipe["model"],
        origin=f"It was made of {start}." if start else "It was trained from nothing.",
        numbers=_NUMBERS[recipe["shares"]["numbers"]],
    )


def write_card(training: Path, runs: Sequence[Run] = ()) -> Path:
    """Write ``README.md`` beside the checkpoint of a training's folder."""
    recipe = (training / RECIPE).read_text(encoding="utf-8").strip()
    parts = [_head(yaml.safe_load(recipe))]
    if runs:
        rows = [_scored_row(run) for run in sorted(runs, key=lambda run: run.question.name)]
        parts.append(f"## Scores\n\nIn percent, with 95 % intervals.\n\n{table(rows)}\n")
    validation = read_lines(training / VALIDATION)
    if validation:
        parts.append(
            "## Validation while training\n\nF1@0.5 on `Scenes_mini`, in percent, by the package's "
            f"own scorer.\n\n{table(validation)}\n"
        )
    curve = thinned(read_lines(training / CURVE))
    if curve:
        parts.append(
            "## Curve\n\nMeans since the line before: the losses of reply tokens, of what lies "
            "under visual tokens, and of where coordinates look; the share of reply tokens that "
            "were foreseen; how far coordinates were off, in their units; the gradient's norm. "
            f"Seconds are of the process that was running.\n\n{table(curve)}\n"
        )
    parts.append(f"## Recipe\n\n```yaml\n{recipe}\n```\n")
    card = training / CHECKPOINT / "README.md"
    with atomic_write(card) as f:
        f.write("\n".join(parts))
    return card


def _scored_row(run: Run) -> dict[str, str]:
    found = intervals(run)
    row = {"dataset": run.question.name, "queries": str(len(run.rows))}
    for name in (metric.name for metric in METRICS if metric.in_short_tables):
        spread = found[name]
        bounds = f" ({spread.low:.1f} to {spread.high:.1f})" if spread else ""
        row[name] = f"{run.metric_values[name]:.1f}{bounds}"
    return row


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The figures of a JSON-lines file, none where there is no such file."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def thinned(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line in so many, so that a card stays short."""
    every = max(1, -(-len(lines) // _MOST_LINES))
    return lines[every - 1 :: every]


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """A Markdown table of rows that have the same keys."""
    rows = list(rows)
    names = list(rows[0])
    cells = [[_text(row[name]) for name in names] for row in rows]
    lines = [names, ["---"] * len(names), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the card."""
    parser = argparse.ArgumentParser(prog="python -m training.card")
    parser.add_argument("--training", type=Path, required=True, help="folder of the training")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="its scored runs")
    chosen = parser.parse_args(arguments)
    print(write_card(chosen.training, load_runs(chosen.runs) if chosen.runs else ()))


if __name__ == "__main__":
    main()
