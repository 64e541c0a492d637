"""Writes the tables of rendered scenes that the package ships: python -m training.scene_tables

A set's scenes are the first of its split of which everything can be asked: detection, multi-label,
referring, described and instance queries of a set are about the same scenes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from training import questions as asking
from training.questions import PosedQuestion
from vlmeval_findit.benchmarks.findit.annotation_tables import write_table
from vlmeval_findit.benchmarks.findit.findit_datasets import BENCHMARK, Dataset, Family
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery, Sighting
from vlmeval_findit.boxes.records import Truth
from vlmeval_findit.core.table_files import meta_path
from vlmeval_findit.data.rendered.scene import SPLITS, Scene, Stream, clip, rng_of, scene, shot
from vlmeval_findit.data.rendered.tables import shipped

CLIP_FRAMES = 8


@dataclass(frozen=True, slots=True)
class Size:
    """How large a set is, and the split that its seeds are of."""

    split: str
    scenes: int
    clips: int


SETS = {
    "Scenes": Size("test", scenes=1000, clips=100),
    "Scenes_mini": Size("validation", scenes=50, clips=10),
}
"""By the key of the set's image folder."""


class Shown(NamedTuple):
    """A scene of a set with everything that is asked of it."""

    seed: int
    scene: Scene
    questions: dict[str, PosedQuestion]
    instance: PosedQuestion
    shot: Scene


def shown_scenes(size: Size) -> Iterator[Shown]:
    """The scenes of a set, in order."""
    found = 0
    for seed in SPLITS[size.split]:
        if found == size.scenes:
            return
        shown = _shown(seed)
        if shown is not None:
            found += 1
            yield shown


@lru_cache(maxsize=4096)
def _shown(seed: int) -> Shown | None:
    """A seed's scene with its questions; None where one of them cannot be asked."""
    shown = scene(seed)
    rng = rng_of(Stream.QUESTION, seed)
    expression = asking.referring(rng, shown)
    single = asking.instance(rng, shown)
    if expression is None or single is None:
        return None
    questions = {
        "": asking.detection(rng, shown),
        "multilabel": asking.several(rng, shown),
        "refexp": expression,
        "described": asking.described(rng, shown),
    }
    instance, look = single
    return Shown(seed, shown, questions, instance, shot(seed, look))


# --- tables ---------------------------------------------------------------------------------------


def ship(dataset: Dataset, multilabel: bool, folder: Path) -> Path:
    """Write a table into a folder."""
    size = SETS[dataset.images]
    queries: Sequence[FindItQuery]
    if dataset.family.is_video:
        first = SPLITS[size.split].start
        queries = [_clip_query(first + i, i) for i in range(size.clips)]
    elif dataset.family is Family.INSDET:
        queries = [_instance_query(shown, i) for i, shown in enumerate(shown_scenes(size))]
    else:
        name = "multilabel" if multilabel else _QUESTION[dataset.family]
        shown_ones = enumerate(shown_scenes(size))
        queries = [_query(shown, i, shown.questions[name]) for i, shown in shown_ones]
    path = write_table(folder, dataset.table_name(multilabel), queries, {}).path
    meta_path(path).unlink()
    return path


_QUESTION = {Family.OBJDET: "", Family.REFEXP: "refexp", Family.REFEXP_ALL: "described"}


def _instance_query(shown: Shown, index: int) -> FindItQuery:
    support = f"shots/{shown.seed}.png"
    (thing,) = shown.shot.things
    query = _query(shown, index, shown.instance)
    return replace(query, support=(support,), sightings=(Sighting(support, thing.box),))


def _query(shown: Shown, index: int, asked: PosedQuestion) -> FindItQuery:
    return FindItQuery(
        index=index,
        label=asked.label,
        width=shown.scene.width,
        height=shown.scene.height,
        images=(f"scenes/{shown.seed}.png",),
        truth=Truth(asked.boxes, (0,) * len(asked.boxes), asked.labels),
    )


def _clip_query(seed: int, index: int) -> FindItQuery:
    frames = clip(seed, CLIP_FRAMES)
    asked, places = asking.in_clip(rng_of(Stream.QUESTION, seed, 1), frames)
    return FindItQuery(
        index=index,
        label=asked.label,
        width=frames[0].width,
        height=frames[0].height,
        images=tuple(f"clips/{seed}/{number:02d}.png" for number in range(len(frames))),
        frame_indices=tuple(range(len(frames))),
        truth=Truth(asked.boxes, places),
    )


def shipped_tables() -> Iterator[tuple[Dataset, bool]]:
    """Every table that is shipped, as (dataset, multi-label)."""
    for row in BENCHMARK.values():
        if row.images in SETS:
            yield from ((row, multilabel) for multilabel in (False, True)[: 1 + row.has_multilabel])


if __name__ == "__main__":
    for table in shipped_tables():
        ship(*table, shipped("").parent)
