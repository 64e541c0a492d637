"""Samples of SelfRetrieval: two scenes and the shortest captions that tell them apart.

A caption names colour and shape of the object that differs and the attribute in which it differs;
more only if another object would make it true there. Needs no torch.
"""

from __future__ import annotations

import json
from itertools import combinations

from training.pairs import ATTRIBUTES, ScenePair, phrase, scene_pair, tells_apart, values_of
from training.samples import ReplySpan, Sample, Turn
from vlmeval_findit.benchmarks.selfretrieval import benchmark as prompts
from vlmeval_findit.benchmarks.selfretrieval.image_pairs import ImagePair, PairSide, parse

ALWAYS = ("colour", "shape")
"""Attributes that every caption names."""

_MESSAGE = prompts.message(ImagePair(0, "-", ("0", "1")), parse("SelfRetrieval_Scenes"))
"""The message of every pair; its images are named as in other samples."""


def pair_sample(seed: int, size: tuple[int, int]) -> Sample:
    """Return the two images (each of ``size``: width, height) of a seed's pair, with captions."""
    pair = scene_pair(seed, size)
    replies = dict(zip((side.key for side in PairSide), captions(pair), strict=True))
    # The first object differs.
    objects = tuple((i, scene.things[0].box) for i, scene in enumerate((pair.left, pair.right)))
    reply = json.dumps(replies)
    spans, start = [], 0
    for number, caption in enumerate(replies.values()):
        start = reply.index(caption, start)
        spans.append(ReplySpan(start, start := start + len(caption), number))
    turn = Turn(_MESSAGE[-1].value, reply, objects, 0, reply_spans=tuple(spans))
    return Sample((pair.left, pair.right), _MESSAGE[:-1], (turn,))


def captions(pair: ScenePair) -> tuple[str, str]:
    """Return the shortest captions of the left and of the right scene of a pair.

    >>> captions(scene_pair(2))
    ('a red triangle', 'a red ring')
    """
    left, right = ([values_of(thing, s) for thing in s.things] for s in (pair.left, pair.right))
    must = {*ALWAYS, pair.attribute}
    more = [name for name in ATTRIBUTES if name not in must]
    sets = (
        {*must, *extra} for count in range(len(more) + 1) for extra in combinations(more, count)
    )
    names = next((names for names in sets if tells_apart(left, right, names)), {*ATTRIBUTES})
    return phrase(left[0], names), phrase(right[0], names)
