"""Samples in saying that nothing is there: photographs, words and instances that are unknown.

FindIt-Nano knows rendered scenes and nothing else.  Asked about anything else it shall say so, in
the format that was asked for, and neither guess nor go on for ever.  Images are noise that looks
like photographs (:mod:`.negative_images`), in some samples scenes; words are those it never learns
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
from vlmeval_findit.benchmarks.findit.variant import Variant
from vlmeval_findit.boxes.representation import PLURAL_KEYS, ReplyFormat
from vlmeval_findit.boxes.writing import BoxToWrite, write
from vlmeval_findit.data.rendered.drawing import SHAPES, Look, Rng
from vlmeval_findit.data.rendered.scene import SHOT_SIZE, look, pick

_STREAM = 16
"""What random numbers of these samples are for: none of the scenes' own streams."""

_COUNT = (2, 4)
"""Fewest and most objects of a scene: room for them in images that are long and narrow."""

_DATASETS = {
    "detection": "Scenes",
    "multilabel": "Scenes",
    "refexp": "Scenes_refexp",
    "described": "Scenes_described",
}
_TASKS: Mapping[str, float] = {"detection": 3, "multilabel": 4, "refexp": 3, "described": 2}

_NOT_IN_NOISE = ("circle", "ring", "triangle", "diamond")
"""Shapes that no wild image holds: bars may cross there, or show a square part."""

_MOST_LABELS = 12


def nothing(how: ReplyFormat) -> str:
    """The reply that adheres and says as plainly as its format can that nothing is there.

    For one image that is the empty list.  Over frames the protocol takes an empty list for no
    answer in the format (docs/protocol.md): a nested reply can say a frame with no boxes, every
    other has to say a box, and says one without extent.
    """
    if how.frames == 1:
        return write([], how)
    if how.output == "json" and how.structure == "nested":
        return json.dumps([{"frame_idx": 1, PLURAL_KEYS.get(how.key, how.key): []}])
    return write([BoxToWrite((0.0, 0.0, 0.0, 0.0))], how, digits=0)


# --- samples --------------------------------------------------------------------------------------


def negative_sample(seed: int, turns: int, shares: Shares, size: Size) -> Sample:
    """Questions of every image family about one image of ``size``: a wild one, or a scene.

    What is unknown is not there.  Of a list of labels about a scene, some may be there.
    """
    rng = _rng(seed)
    shown = (
        scene(seed, _COUNT, size) if rng.randint(3) == 0 else Scene(negative_image(rng, size), ())
    )
    asked = []
    for _ in range(turns):
        task = draw(rng, _TASKS)
        question = _question(rng, shown, task)
        variant = draw_variant(rng, shares, _DATASETS[task], task == "multilabel")
        asked.append(turn_of(question, variant, shown, [0] * len(question.boxes), shares.units))
    return Sample((shown,), opening("Scenes"), tuple(asked))


def negative_clip_sample(seed: int, turns: int, shares: Shares, frames: int, size: Size) -> Sample:
    """Unknown labels, or shapes that are not there, in the frames of a clip."""
    rng = _rng(seed, frames)
    if rng.randint(3) == 0:
        shown = clip(seed, frames, _COUNT, size)
    else:
        shown = tuple(Scene(pixels, ()) for pixels in negative_frames(rng, frames, size))
    absent = _absent(shown)
    asked = []
    for _ in range(turns):
        variant = draw_variant(rng, shares, "Scenes_video", frames=frames)
        said = pick(rng, absent) if absent and rng.randint(8) == 0 else label(rng)
        asked.append(_turn_of_nothing(said, variant, shown[0], shares.units))
    return Sample(shown, opening("Scenes_video", frames), tuple(asked))


def negative_shot_sample(
    seed: int, turns: int, shares: Shares, size: Size, shots: Sequence[Size] = (SHOT_SIZE,)
) -> Sample:
    """Reference shots of an object that the image does not show, asked in several formats.

    Args:
        seed: of what is shown and asked.
        turns: how many formats.
        shares: those of the formats.
        size: of the image.
        shots: of each reference shot; an object that is known has shots of its own size only.
    """
    rng = _rng(seed, len(shots))
    shown = (
        scene(seed, _COUNT, size) if rng.randint(3) == 0 else Scene(negative_image(rng, size), ())
    )
    if set(shots) == {SHOT_SIZE} and rng.randint(3) == 0:
        other = _other_look(rng, shown)
        references = [shot(seed + number, other) for number in range(len(shots))]
    else:
        references = [Scene(negative_image(rng, each), ()) for each in shots]
    asked = tuple(
        _turn_of_nothing("-", draw_variant(rng, shares, "Scenes_insdet"), shown, shares.units)
        for _ in range(turns)
    )
    shots_and_scene = opening("Scenes_insdet", references=len(shots))
    return Sample((*references, shown), shots_and_scene, asked)


def _rng(seed: int, *more: int) -> Rng:
    return np.random.RandomState([_STREAM, seed, *more])


def _turn_of_nothing(said: str, variant: Variant, shown: Scene, units: Units) -> Turn:
    turn = turn_of(PosedQuestion(said, ()), variant, shown, [], units)
    return turn._replace(reply=nothing(UNIT_ROWS[units].reads(variant.reply)))


def _other_look(rng: Rng, shown: Scene) -> Look:
    """The look of nothing on an image."""
    while True:
        found = look(rng)
        if all(thing.look != found for thing in shown.things):
            return found


# --- questions ------------------------------------------------------------------------------------


def _question(rng: Rng, shown: Scene, task: str) -> PosedQuestion:
    absent = _absent((shown,))
    if task == "multilabel":
        return _several(rng, shown, absent)
    known = absent and rng.randint(8) == 0
    if task == "detection":
        return PosedQuestion(pick(rng, absent) if known else label(rng), ())
    return PosedQuestion(of_a_shape(rng, pick(rng, absent)) if known else expression(rng), ())


def _several(rng: Rng, shown: Scene, absent: Sequence[str]) -> PosedQuestion:
    """Several labels: those of which nothing is there, and about half of the times on a scene some
    of which something is.
    """
    names = labels(rng, 1 + rng.randint(_MOST_LABELS // 2 if rng.randint(3) else _MOST_LABELS))
    if absent and rng.randint(5) == 0:
        names[-1] = pick(rng, absent)
    present = sorted({thing.look.shape for thing in shown.things})
    if present and rng.randint(2):
        for _ in range(1 + rng.randint(len(present))):
            here = present.pop(rng.randint(len(present)))
            names.insert(rng.randint(len(names) + 1), here)
        del names[_MOST_LABELS:]
    found = [(t.look.shape, t.box) for t in shown.things if t.look.shape in names]
    return PosedQuestion(
        ", ".join(names), tuple(box for _, box in found), tuple(shape for shape, _ in found)
    )


def _absent(images: Sequence[Scene]) -> list[str]:
    """Known shapes that no image shows."""
    there = {thing.look.shape for shown in images for thing in shown.things}
    return [shape for shape in (SHAPES if there else _NOT_IN_NOISE) if shape not in there]
