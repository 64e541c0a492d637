"""An honest describer of rendered scenes: what a right answer scores is seen beside a model's."""

from __future__ import annotations

import json
import os

from ...core.benchmark import Baseline
from ...core.messages import Message, PartKind
from ...core.places import image_folder
from ...core.question import PlainQuestion
from ...core.replies import Recorded
from .pairs import SETS, Pair, Side, load_task


def describe_scenes(message: Message, question: PlainQuestion) -> tuple[str, Recorded]:
    """The captions of the description that the two pictures were rendered from.

    Raises:
        ValueError: they are not the pictures of a pair of the table that has a description.
    """
    shown = tuple(part.value for part in message if part.kind is PartKind.IMAGE)
    folder = str(image_folder(question.images).path)
    pair = _pairs(question.name, folder).get(shown)
    if pair is None or pair.captions is None:
        raise ValueError(f"{question.name}: no description of {' and '.join(shown)}")
    said = {side.key: pair.captions.of(side) for side in Side}
    return json.dumps(said), Recorded(finish_reason="stop")


def _pairs(name: str, folder: str) -> dict[tuple[str, ...], Pair]:
    """The pairs of a table by the paths of their pictures as messages have them."""
    queries = load_task(name).queries.values()
    return {tuple(os.path.join(folder, image) for image in one.images): one for one in queries}


BASELINES = {
    "SceneDescriber": Baseline(
        describe_scenes, tables=frozenset(row.name for row in SETS.values() if row.maker)
    ),
}
"""By the names of their models."""
