"""Self-retrieval as a :class:`.Benchmark`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...protocol import (
    UNREAD,
    Baseline,
    BatchScore,
    Benchmark,
    Drawing,
    Identity,
    Message,
    PlainVariant,
    PromptSet,
    Replies,
    Reply,
    ReplyRecord,
    ScoredRow,
    Settings,
    image,
    image_paths,
    text,
)
from ...storage import image_folder
from .caption_metrics import COUNTS, METRICS, RANKING, WITH_FAILURES, draw, scored_row
from .caption_reading import REASONS, read_captions, replies_of
from .caption_scoring import encoder_name, judge, load_encoder, scorer_of
from .image_pairs import (
    PAIR_SETS,
    RENDERED,
    ImagePair,
    LoadedPairs,
    PairSide,
    PerSide,
    load_pairs,
    parse,
)

VERSION = 1  # increase when the wording changes
PROMPTS_NAME = f"self-retrieval-own-{VERSION}"  # Name of our prompt set, as runs record it

REQUEST = (
    "The first image is the left one, the second image is the right one. They look much alike. "
    "Find the small differences between them, then write one caption of each image, with details "
    "that are true of it and not of the other, so that a reader who sees a caption alone knows "
    "which of the two images it is about. "
    'Answer with a JSON object of two strings: {"left_image": "caption of the left image", '
    '"right_image": "caption of the right image"}. Answer with nothing else.'
)


def message(pair: ImagePair, variant: PlainVariant) -> Message:
    """Compose a pair's message, the left image first."""
    return (*map(image, pair.images), text(REQUEST))


def describe_scenes(message: Message, variant: PlainVariant) -> tuple[str, ReplyRecord]:
    """Answer with the captions that rendered images come with, or raise ValueError."""
    shown = image_paths(message)
    folder = str(image_folder(variant.images).path)
    for pair in load_pairs(variant.name).queries.values():
        if pair.captions and shown == tuple(os.path.join(folder, name) for name in pair.images):
            return _reply(pair.captions), ReplyRecord(finish_reason="stop")
    raise ValueError(f"{variant.name}: no description of {' and '.join(shown)}")


def _reply(captions: PerSide[str]) -> str:
    return json.dumps({side.key: captions.value(side) for side in PairSide})


# By model name
BASELINES = {"SceneDescriber": Baseline(describe_scenes, annotation_tables=frozenset(RENDERED))}


class SelfRetrieval(Benchmark):
    """Captions that tell two similar images apart, scored by a dual encoder."""

    name = "Self-Retrieval"
    metrics = METRICS
    ranking = RANKING
    headline_counting_failures = WITH_FAILURES
    counts = COUNTS
    reasons = (*UNREAD, *REASONS)
    uses_encoder = True
    baselines = BASELINES

    def parse(self, name: str) -> PlainVariant:
        return parse(name)

    def variant_names(self) -> Sequence[str]:
        return list(PAIR_SETS)

    def load(self, name: str) -> LoadedPairs:
        return load_pairs(name)

    def prompts(self) -> Sequence[PromptSet]:
        return [PromptSet(PROMPTS_NAME, message)]

    def example(self, query: Any, variant: Any) -> str:
        return _reply(query.captions) if query.captions else ""

    def check(self, variant: Any, settings: Settings) -> None:
        encoder_name(variant.table, settings)

    def convert(self, path: Path, dataset: Any) -> Sequence[Reply]:
        """Read the captions of an object {uid: {"left": text, "right": text}}."""
        return replies_of(path, dataset.queries.values())

    def score_batch(
        self, model: str, dataset: Any, replies: Replies, settings: Settings, run: Identity | None
    ) -> BatchScore:
        variant: PlainVariant = dataset.variant
        name, source = encoder_name(variant.table, settings)
        encoder = load_encoder(name)
        pairs = [dataset.queries[reply.index] for reply in replies]
        folder = image_folder(variant.images).path
        scored = judge(pairs, [read_captions(reply) for reply in replies], folder, encoder)
        rows = [
            scored_row(pair, captions, reply.failed)
            for pair, captions, reply in zip(pairs, scored, replies, strict=True)
        ]
        return BatchScore(tuple(rows), scorer=scorer_of(encoder, source))

    def draw(self, dataset: Any, row: ScoredRow) -> Drawing:
        return draw(dataset.queries[row.index], row)

    def host_class(self, variant: Any) -> str:
        return "SelfRetrievalDataset"


BENCHMARK = SelfRetrieval()  # The one self-retrieval benchmark: captions that tell two images apart
