"""The model card: ``python -m training.card --training FOLDER [--runs ...]``.

Recipe, curve and validation come from the training's folder. Scores come from scored runs of the
checkpoint through the normal command or, for a dual encoder, are measured here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from training.siglip.evaluate import evaluate
from vlmeval_findit.analysis import run_intervals
from vlmeval_findit.benchmarks.findit import METRICS
from vlmeval_findit.core import atomic_write
from vlmeval_findit.scoring import Run, load_runs

# Names in the folder of a training
CHECKPOINT = "checkpoint"
CURVE = "curve.jsonl"
VALIDATION = "validation.jsonl"
RECIPE = "recipe.yaml"

PAIRS = 1000  # Pairs of the test split on which a dual encoder is scored

_MOST_LINES = 25

_VISION_LANGUAGE = """\
---
license: apache-2.0
pipeline_tag: image-text-to-text
library_name: transformers
---
# {model}

A vision-language model of the Qwen3-VL architecture, small enough to ship with a package.
It finds the shapes in scenes that `vlmeval_findit` renders. It is there to try the benchmark with:
it knows six shapes, six colours, three textures and two sizes, and nothing else of the world.

    from transformers import AutoModelForImageTextToText, AutoProcessor

loads it like any Qwen3-VL. Weights are float16; run it in float32 on a CPU. Its coordinates are
{units}.
"""

_UNITS = {
    "thousandths": "thousandths of the image, in steps of 5",
    "pixels": "pixels of the image as its processor shows it",
}

_DUAL_ENCODER = """\
---
license: apache-2.0
pipeline_tag: zero-shot-image-classification
library_name: transformers
---
# {model}

A dual encoder of the SigLIP architecture, small enough to ship with a package. It was trained from
nothing on pairs of scenes that `vlmeval_findit` renders, with captions made from their description.
It is there to try self-retrieval with: it knows six shapes, six colours, three textures, two sizes
and nine places, knows nothing of photographs, and replaces no published encoder.

    from transformers import AutoModel, AutoProcessor

loads it like any SigLIP. Weights are float16; run it in float32. Captions are padded to 64 tokens
and not masked, as SigLIP's are.
"""

_PAIR_SCORES = f"""\
## Scores

Percent of the first {PAIRS:,} pairs of the test split: two scenes that differ in one attribute of
one object, whose captions are both at least as near to their image. Chance is 25. The last
column shows what features are worth without the padding that they were trained with.

{{table}}

    python -m training.siglip.evaluate
"""


def write_card(training: Path, runs: Sequence[Run] = (), *, scores: bool = False) -> Path:
    """Write ``README.md`` into the checkpoint of a training's folder.

    It has the scores of ``runs`` of a vision-language model; with ``scores`` a dual encoder is
    scored.
    """
    text = (training / RECIPE).read_text(encoding="utf-8").strip()
    recipe = yaml.safe_load(text)
    card = training / CHECKPOINT / "README.md"
    if "shares" in recipe:
        units = _UNITS[recipe["shares"]["units"]]
        parts = [_VISION_LANGUAGE.format(model=recipe["model"], units=units)]
    else:
        parts = [_DUAL_ENCODER.format(model=recipe["model"])]
    parts.append(f"## How it was made\n\n{_origin(recipe)}\n")
    if runs:
        rows = [_scored_row(run) for run in sorted(runs, key=lambda run: run.variant.name)]
        parts.append(f"## Scores\n\nIn percent, with 95 % intervals.\n\n{table(rows)}\n")
    if scores:
        rows = evaluate(str(card.parent), "test", PAIRS).rows()
        parts.append(_PAIR_SCORES.format(table=table(rows)))
    validation = read_lines(training / VALIDATION)
    if validation:
        parts.append(
            "## Validation while training\n\nIn percent: F1@0.5 on `Scenes_mini`, or pairs with "
            f"both captions right.\n\n{table(validation)}\n"
        )
    curve = thinned(read_lines(training / CURVE))
    if curve:
        parts.append(
            "## Curve\n\nMeans since the line before: the parts of the loss, the share of reply "
            "tokens (or of pairs) that were right, the error of coordinates in their units (`off`),"
            f" the gradient's norm. Seconds are of the running process.\n\n{table(curve)}\n"
        )
    parts.append(f"## Recipe\n\n```yaml\n{text}\n```\n")
    with atomic_write(card) as f:
        f.write("\n".join(parts))
    return card


def _origin(recipe: Mapping[str, Any]) -> str:
    start = recipe.get("start")
    start_text = f"Begun with the weights of {start}" if start else "From nothing"
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("torch", "transformers", "tokenizers")
    )
    return (
        f"{start_text}, by `python -m training.train` with the recipe below, run as it stands, "
        f"with {libraries}. Samples depend on the recipe only; weights also on the libraries, the "
        "processor, its precision (bfloat16 or float32) and the number of processes."
    )


def _scored_row(run: Run) -> dict[str, str]:
    intervals_by_metric = run_intervals(run)
    row = {"dataset": run.variant.name, "queries": str(len(run.rows))}
    for name in (metric.name for metric in METRICS if metric.in_short_tables):
        interval = intervals_by_metric[name]
        bounds = f" ({interval.low:.1f} to {interval.high:.1f})" if interval else ""
        row[name] = f"{run.metric_values[name]:.1f}{bounds}"
    return row


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a Markdown table of rows that have the same keys."""
    rows = list(rows)
    cells = [[_text(value) for value in row.values()] for row in rows]
    lines = [[*rows[0]], ["---"] * len(rows[0]), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the values of a JSON-lines file; none if it does not exist."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def thinned(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep every n-th line, so that a card stays short."""
    every = max(1, -(-len(lines) // _MOST_LINES))
    return lines[every - 1 :: every]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the card."""
    parser = argparse.ArgumentParser(prog="python -m training.card")
    parser.add_argument("--training", type=Path, required=True, help="folder of the training")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="its scored runs")
    parser.add_argument("--scores", action="store_true", help="score a dual encoder")
    options = parser.parse_args(arguments)
    runs = load_runs(options.runs) if options.runs else ()
    print(write_card(options.training, runs, scores=options.scores))


if __name__ == "__main__":
    main()
