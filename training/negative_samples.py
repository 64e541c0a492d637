"""Negative samples: unknown images, words and instances, of which nothing is there.

FindIt-Nano knows rendered scenes only. Asked about anything else it must answer "nothing", in the
format of the request, and neither guess nor continue without end. Images are noise that looks like
photographs (:mod:`.negative_images`), in some samples scenes; words are never learned
(:mod:`.negative_words`), sometimes shapes that are not there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from training.negative_images import Size, negative_frames, negative_image
from training.negative_words import expression, label, labels, of_a_shape
from training.questions import PosedQuestion
from training.samples import (
    UNIT_ROWS,
    Sample,
    Shares,
    Turn,
    Units,
    draw,
    draw_variant,
    opening,
    turn_of,
)
from training.scenes import Scene, clip, scene, shot
from vlmeval_findit.benchmarks.findit import FindItVariant
from vlmeval_findit.boxes import PLURAL_KEYS, BoxToWrite, ReplyFormat, write
from vlmeval_findit.data import SHAPES, SHOT_SIZE, Look, Rng, draw_look, draw_name

_STREAM = 16  # The stream of random numbers of these samples; scenes use others

# Fewest and most objects of a scene: room for them in images that are long and narrow
_COUNT = (2, 4)

_DATASETS = {
    "detection": "Scenes",
    "multilabel": "Scenes",
    "refexp": "Scenes_refexp",
    "described": "Scenes_described",
}
_TASKS: Mapping[str, float] = {"detection": 3, "multilabel": 4, "refexp": 3, "described": 2}

# Shapes that no negative image contains: bars may cross there, or show a square part.
_NOT_IN_NOISE = ("circle", "ring", "triangle", "diamond")

_MOST_LABELS = 12


def nothing(reply_format: ReplyFormat) -> str:
    """Return the reply that means "nothing is there" and adheres to a format.

    For one image that is the empty list. Over frames the protocol (docs/reference/protocol.md)
    takes an empty list for no answer in the format: a nested reply can have a frame with no boxes,
    every other format needs a box, which gets no extent.
    """
    if reply_format.frames == 1:
        return write([], reply_format)
    if reply_format.output == "json" and reply_format.structure == "nested":
        key = PLURAL_KEYS.get(reply_format.key, reply_format.key)
        return json.dumps([{"frame_idx": 1, key: []}])
    return write([BoxToWrite((0.0, 0.0, 0.0, 0.0))], reply_format, digits=0)


# --- samples --------------------------------------------------------------------------------------


def negative_sample(seed: int, turns: int, shares: Shares, size: Size) -> Sample:
    """Return questions of every image family about one image of ``size``: a negative, or a scene.

    Unknown things are not there. Of a list of labels about a scene, some may be there.
    """
    rng = _rng(seed)
    shown = _shown(rng, seed, size)
    drawn = []
    for _ in range(turns):
        task = draw(rng, _TASKS)
        question = _question(rng, shown, task)
        variant = draw_variant(rng, shares, _DATASETS[task], task == "multilabel")
        drawn.append(turn_of(question, variant, shown, [0] * len(question.boxes), shares.units))
    return Sample((shown,), opening("Scenes"), tuple(drawn))


def negative_clip_sample(seed: int, turns: int, shares: Shares, frames: int, size: Size) -> Sample:
    """Return questions about unknown labels, or absent shapes, in the frames of a clip."""
    rng = _rng(seed, frames)
    if rng.randint(3) == 0:
        shown = clip(seed, frames, _COUNT, size)
    else:
        shown = tuple(Scene(pixels, ()) for pixels in negative_frames(rng, frames, size))
    absent = _absent(shown)
    drawn = []
    for _ in range(turns):
        variant = draw_variant(rng, shares, "Scenes_video", frames=frames)
        name = draw_name(rng, absent) if absent and rng.randint(8) == 0 else label(rng)
        drawn.append(_turn_of_nothing(name, variant, shown[0], shares.units))
    return Sample(shown, opening("Scenes_video", frames), tuple(drawn))


def negative_shot_sample(
    seed: int, turns: int, shares: Shares, size: Size, shots: Sequence[Size] = (SHOT_SIZE,)
) -> Sample:
    """Return questions about an object, shown by reference shots, that the image does not contain.

    ``shots`` are the shots' sizes; known objects are shown at :data:`SHOT_SIZE` only.
    """
    rng = _rng(seed, len(shots))
    shown = _shown(rng, seed, size)
    if set(shots) == {SHOT_SIZE} and rng.randint(3) == 0:
        other = _other_look(rng, shown)
        references = [shot(seed + number, other) for number in range(len(shots))]
    else:
        references = [Scene(negative_image(rng, shot_size), ()) for shot_size in shots]
    variants = [draw_variant(rng, shares, "Scenes_insdet") for _ in range(turns)]
    drawn = tuple(_turn_of_nothing("-", variant, shown, shares.units) for variant in variants)
    shots_and_scene = opening("Scenes_insdet", references=len(shots))
    return Sample((*references, shown), shots_and_scene, drawn)


def _shown(rng: Rng, seed: int, size: Size) -> Scene:
    if rng.randint(3) == 0:
        return scene(seed, _COUNT, size)
    return Scene(negative_image(rng, size), ())


def _rng(seed: int, *more: int) -> Rng:
    return np.random.RandomState([_STREAM, seed, *more])


def _turn_of_nothing(name: str, variant: FindItVariant, shown: Scene, units: Units) -> Turn:
    turn = turn_of(PosedQuestion(name, ()), variant, shown, [], units)
    return turn._replace(reply=nothing(UNIT_ROWS[units].reads(variant.reply)))


def _other_look(rng: Rng, shown: Scene) -> Look:
    """Return a look that no object of an image has."""
    while True:
        other = draw_look(rng)
        if all(thing.look != other for thing in shown.things):
            return other


# --- questions ------------------------------------------------------------------------------------


def _question(rng: Rng, shown: Scene, task: str) -> PosedQuestion:
    absent = _absent((shown,))
    if task == "multilabel":
        return _several(rng, shown, absent)
    is_known = bool(absent) and rng.randint(8) == 0
    if task == "detection":
        return PosedQuestion(draw_name(rng, absent) if is_known else label(rng), ())
    if is_known:
        return PosedQuestion(of_a_shape(rng, draw_name(rng, absent)), ())
    return PosedQuestion(expression(rng), ())


def _several(rng: Rng, shown: Scene, absent: Sequence[str]) -> PosedQuestion:
    """Ask for several absent labels and, on about half of the scenes, some that are there."""
    most = _MOST_LABELS // 2 if rng.randint(3) else _MOST_LABELS
    names = labels(rng, 1 + rng.randint(most))
    if absent and rng.randint(5) == 0:
        names[-1] = draw_name(rng, absent)
    present = sorted({thing.look.shape for thing in shown.things})
    if present and rng.randint(2):
        for _ in range(1 + rng.randint(len(present))):
            here = present.pop(rng.randint(len(present)))
            names.insert(rng.randint(len(names) + 1), here)
        del names[_MOST_LABELS:]
    things = [t for t in shown.things if t.look.shape in names]
    boxes = tuple(t.box for t in things)
    shapes = tuple(t.look.shape for t in things)
    return PosedQuestion(", ".join(names), boxes, shapes)


def _absent(images: Sequence[Scene]) -> list[str]:
    """Return the known shapes that no image shows."""
    there: set[str] = set()
    for shown in images:
        there.update(thing.look.shape for thing in shown.things)
    if not there:
        return list(_NOT_IN_NOISE)
    return [shape for shape in SHAPES if shape not in there]
