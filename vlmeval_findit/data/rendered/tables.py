"""The rendered scenes as tables: made when they are first asked for, the same everywhere.

``Scenes`` asks of 1,000 scenes and 100 clips of the test split, ``Scenes_mini`` of 50 scenes and 10
clips of the validation split; the detection, multi-label, referring, described and instance queries
of a set are about the same scenes.  A set's scenes are the first of its split of which all of these
can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ...benchmarks.findit.annotation_tables import Prepared, write_table
from ...benchmarks.findit.datasets import Dataset, Family
from ...benchmarks.findit.query import Query, Sighting
from ...boxes.records import Truth
from ...core import stored_png
from ...core.files import sha256_of, write_once
from ...core.places import image_folder, lmu_data_root
from ...core.stored_png import png
from ...core.table_files import made_of
from . import drawing
from . import questions as asking
from . import scene as scenes
from .questions import PosedQuestion
from .scene import SPLITS, Scene, Stream, clip, rng_of, scene, shot

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


def ensure(dataset: Dataset) -> None:
    """Make a dataset's tables and pictures unless they are there, made by this very code."""
    for multilabel in (False, True)[: 1 + dataset.has_multilabel]:
        table = lmu_data_root() / f"{dataset.table_name(multilabel)}.tsv"
        if made_of(table) != recipe_sha256():
            prepare(dataset, multilabel)


def prepare(dataset: Dataset, multilabel: bool) -> Prepared:
    """Render a table's pictures and write it, below the LMUData root."""
    folder = image_folder(dataset.images).path
    size = SETS[dataset.images]
    if dataset.family.is_video:
        queries = [_clip_query(folder, seed, i) for i, seed in enumerate(_clip_seeds(size))]
    else:
        make = _instance_query if dataset.family is Family.INSDET else _asked(dataset, multilabel)
        queries = [make(folder, shown, i) for i, shown in enumerate(shown_scenes(size))]
    origin = {"source": "rendered", "source_sha256": recipe_sha256()}
    return write_table(lmu_data_root(), dataset.table_name(multilabel), queries, origin)


def recipe_sha256() -> str:
    """A checksum of the code that decides what is rendered and asked."""
    modules = (drawing, scenes, asking, stored_png)
    sources = (*(module.__file__ for module in modules), __file__)
    return sha256_of(*(Path(str(source)).read_bytes() for source in sources))


_QUESTION = {Family.OBJDET: "", Family.REFEXP: "refexp", Family.REFEXP_ALL: "described"}


def _asked(dataset: Dataset, multilabel: bool) -> Callable[[Path, Shown, int], Query]:
    name = "multilabel" if multilabel else _QUESTION[dataset.family]
    return lambda folder, shown, index: _query(folder, shown, index, shown.questions[name])


def _instance_query(folder: Path, shown: Shown, index: int) -> Query:
    support = f"shots/{shown.seed}.png"
    write_once(folder / support, png(shown.shot.pixels))
    (thing,) = shown.shot.things
    query = _query(folder, shown, index, shown.instance)
    return replace(query, support=(support,), sightings=(Sighting(support, thing.box),))


def _query(folder: Path, shown: Shown, index: int, asked: PosedQuestion) -> Query:
    name = f"scenes/{shown.seed}.png"
    write_once(folder / name, png(shown.scene.pixels))
    return Query(
        index=index,
        label=asked.label,
        width=shown.scene.width,
        height=shown.scene.height,
        images=(name,),
        truth=Truth(asked.boxes, (0,) * len(asked.boxes), asked.labels),
    )


def _clip_seeds(size: Size) -> range:
    first = SPLITS[size.split].start
    return range(first, first + size.clips)


def _clip_query(folder: Path, seed: int, index: int) -> Query:
    frames = clip(seed, CLIP_FRAMES)
    asked, places = asking.in_clip(rng_of(Stream.QUESTION, seed, 1), frames)
    names = tuple(f"clips/{seed}/{number:02d}.png" for number in range(len(frames)))
    for name, frame in zip(names, frames, strict=True):
        write_once(folder / name, png(frame.pixels))
    return Query(
        index=index,
        label=asked.label,
        width=frames[0].width,
        height=frames[0].height,
        images=names,
        frame_indices=tuple(range(len(frames))),
        truth=Truth(asked.boxes, places),
    )
