"""The model card: ``python -m training.dual_encoder.card --training FOLDER``.

Recipe, curve and validation come from the training's folder; the figures of the test split are
measured here.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from training.card import read_lines, table, thinned
from training.dual_encoder.evaluate import evaluate
from training.dual_encoder.recipe import RECIPE
from training.dual_encoder.train import CURVE, VALIDATION
from training.saving import CHECKPOINT
from vlmeval_findit.core.files import atomic_write

PAIRS = 1000

_HEAD = """\
---
license: apache-2.0
pipeline_tag: zero-shot-image-classification
library_name: transformers
---
# FindIt-Nano-SigLIP

A dual encoder of the SigLIP architecture, small enough to ship with a package. It was trained from
nothing on pairs of scenes that `vlmeval_findit` renders, with captions made from their description.
It is there to try self-retrieval with: it knows six shapes, six colours, three textures, two sizes
and nine places, says nothing of photographs, and stands in for no published encoder.

    from transformers import AutoModel, AutoProcessor

loads it as it would any SigLIP. Weights are float16; run it in float32. Captions are padded to 64
tokens and not masked, as SigLIP's are.
"""


def write_card(training: Path) -> Path:
    """Write ``README.md`` beside the checkpoint of a training's folder."""
    checkpoint = training / CHECKPOINT
    rows = evaluate(str(checkpoint), "test", PAIRS).rows()
    parts = [
        _HEAD,
        f"## Scores\n\nPercent of the first {PAIRS:,} pairs of the test split "
        "(`training/pairs.py`), two scenes alike but for one attribute of one object, whose two "
        "captions are both at least as near to their own picture. Chance is 25. The column of "
        "captions that are not padded shows what SigLIP's features are worth without the padding "
        f"they were trained with.\n\n{table(rows)}\n\n"
        "    python -m training.dual_encoder.evaluate\n",
    ]
    validation = read_lines(training / VALIDATION)
    if validation:
        parts.append(
            f"## Validation while training\n\nThe same, of 300 pairs.\n\n{table(validation)}\n"
        )
    curve = thinned(read_lines(training / CURVE))
    if curve:
        parts.append(
            "## Curve\n\nMeans since the line before: SigLIP's own loss, that within pairs, those "
            "of what lies under patches and of what a scene has, the share of pairs that were "
            "right, the gradient's norm. Seconds are of the process that was running.\n\n"
            f"{table(curve)}\n"
        )
    recipe = (training / RECIPE.name).read_text(encoding="utf-8").strip()
    parts.append(f"## Recipe\n\n```yaml\n{recipe}\n```\n")
    card = checkpoint / "README.md"
    with atomic_write(card) as f:
        f.write("\n".join(parts))
    return card


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the card."""
    parser = argparse.ArgumentParser(prog="python -m training.dual_encoder.card")
    parser.add_argument("--training", type=Path, required=True, help="folder of the training")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print(write_card(chosen.training))


if __name__ == "__main__":
    main()
