"""Pairs of rendered scenes and the shortest captions that tell them apart, as SelfRetrieval asks.

A caption says of the object that differs its colour, its shape and what is another in the other
scene; more only where another object would make it true there.  Nothing here needs torch.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from training.dual_encoder.lessons import ATTRIBUTES, phrase, values_of
from training.lessons import Lesson, Spoken, Turn
from training.pairs import ScenePair, scene_pair
from vlmeval_findit.benchmarks.selfretrieval import benchmark as prompts
from vlmeval_findit.benchmarks.selfretrieval.image_pairs import ImagePair, PairSide, parse

ALWAYS = ("colour", "shape")
"""Attributes that every caption says."""

_QUESTION = parse("SelfRetrieval_Scenes")
_MESSAGE = prompts.message(ImagePair(0, "-", ("0", "1")), _QUESTION)
"""The same for every pair but for its pictures, which are called as those of other lessons."""

_Values = Mapping[str, str]


def pair_lesson(seed: int, turns: int, size: tuple[int, int]) -> Lesson:
    """The two pictures of a seed's pair and a caption of each.

    Args:
        seed: any of the train split.
        turns: one at least; of a pair there is but one question.
        size: (width, height) of both pictures in pixels.
    """
    pair = scene_pair(seed, size)
    said = dict(zip((side.key for side in PairSide), captions(pair), strict=True))
    # The first of the things is the one that differs.
    objects = tuple((i, one.things[0].box) for i, one in enumerate((pair.left, pair.right)))
    reply = json.dumps(said)
    spoken, start = [], 0
    for which, caption in enumerate(said.values()):
        start = reply.index(caption, start)
        spoken.append(Spoken(start, start := start + len(caption), which))
    turn = Turn(_MESSAGE[-1].value, reply, objects, 0, spoken=tuple(spoken))
    return Lesson((pair.left, pair.right), _MESSAGE[:-1], (turn,))


def captions(pair: ScenePair) -> tuple[str, str]:
    """What is said of the left and of the right scene of a pair.

    >>> from training.pairs import scene_pair
    >>> captions(scene_pair(2))
    ('a red triangle', 'a red ring')
    """
    left, right = ([values_of(one, s) for one in s.things] for s in (pair.left, pair.right))
    must = {*ALWAYS, pair.attribute}
    more = [name for name in ATTRIBUTES if name not in must]
    tried = ({*must, *some} for many in range(len(more) + 1) for some in combinations(more, many))
    kept = next((k for k in tried if _tells(left, right, k)), {*ATTRIBUTES})
    return phrase(left[0], kept), phrase(right[0], kept)


def _tells(left: Sequence[_Values], right: Sequence[_Values], kept: Collection[str]) -> bool:
    """Whether no object of a scene is as the other scene's first, by the attributes kept."""
    return not any(
        all(other[name] == own[0][name] for name in kept)
        for own, others in ((left, right), (right, left))
        for other in others
    )
