"""Write the tables that the package ships: ``python -m training.shipped_tables``.

The same code gives the same bytes; tests hold that what ships is what this writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from training.pairs import scene_pair
from training.questions import SETS, PosedQuestion, ShownScene, in_clip, shown_scenes
from training.scenes import SPLITS, clip
from training.vp_questions.asking import ShownQuestion
from training.vp_questions.images import scene_images
from training.vp_questions.making import mark_rows, questions
from training.vp_questions.plan import NEED_OUTLINES
from vlmeval_findit.benchmarks.findit import BENCHMARK_DATASETS, Family, FindItQuery, Sighting
from vlmeval_findit.benchmarks.findit import write_table as write_queries
from vlmeval_findit.benchmarks.selfretrieval import PerSide
from vlmeval_findit.benchmarks.vpbench import VPQuery
from vlmeval_findit.boxes import Truth
from vlmeval_findit.data import DrawnMark, MarkedRow, PairRow, Stream, rng_of
from vlmeval_findit.marks import Polygon, Region, Shape
from vlmeval_findit.storage import meta_path, shipped_table, write_table

# --- scenes ---------------------------------------------------------------------------------------

CLIP_FRAMES = 8

# The questions of scenes, by the family of their table
_QUESTION = {Family.OBJDET: "", Family.REFEXP: "refexp", Family.REFEXP_ALL: "described"}


def scene_tables() -> Iterator[str]:
    """Yield the name of every table of scenes."""
    for dataset in BENCHMARK_DATASETS.values():
        if dataset.images in SETS:
            yield from dataset.tables


def write_scenes(table: str, folder: Path) -> Path:
    """Write a table of scenes into a folder."""
    name, multilabel, _ = table.partition("_multilabel")
    dataset = BENCHMARK_DATASETS[name]
    scenes = SETS[dataset.images]
    if dataset.family.is_video:
        first = SPLITS[scenes.split].start
        queries = [_clip_query(first + i, i) for i in range(scenes.clips)]
    elif dataset.family is Family.INSDET:
        queries = [_instance_query(shown, i) for i, shown in enumerate(shown_scenes(scenes))]
    else:
        asked = "multilabel" if multilabel else _QUESTION[dataset.family]
        queries = [
            _query(shown, i, shown.questions[asked]) for i, shown in enumerate(shown_scenes(scenes))
        ]
    path = write_queries(folder, table, queries, {}).path
    meta_path(path).unlink()
    return path


def _instance_query(shown: ShownScene, index: int) -> FindItQuery:
    support = f"shots/{shown.seed}.png"
    (thing,) = shown.shot.things
    query = _query(shown, index, shown.instance)
    return replace(query, support=(support,), sightings=(Sighting(support, thing.box),))


def _query(shown: ShownScene, index: int, question: PosedQuestion) -> FindItQuery:
    return FindItQuery(
        index=index,
        label=question.label,
        width=shown.scene.width,
        height=shown.scene.height,
        images=(f"scenes/{shown.seed}.png",),
        truth=Truth(question.boxes, (0,) * len(question.boxes), question.labels),
    )


def _clip_query(seed: int, index: int) -> FindItQuery:
    frames = clip(seed, CLIP_FRAMES)
    question, places = in_clip(rng_of(Stream.QUESTION, seed, 1), frames)
    return FindItQuery(
        index=index,
        label=question.label,
        width=frames[0].width,
        height=frames[0].height,
        images=tuple(f"clips/{seed}/{number:02d}.png" for number in range(len(frames))),
        frame_indices=tuple(range(len(frames))),
        truth=Truth(question.boxes, places),
    )


# --- pairs ----------------------------------------------------------------------------------------

# By table: the split whose first seeds the pairs are of, and their number
PAIRS = {"SelfRetrieval_Scenes": ("test", 500), "SelfRetrieval_Scenes_mini": ("validation", 50)}


def write_pairs(table: str, path: Path) -> None:
    """Write a table of pairs with how its images are rendered."""
    split, pairs = PAIRS[table]
    rows = [_pair_row(index, seed) for index, seed in enumerate(SPLITS[split][:pairs])]
    write_table(path, PairRow, rows, {})
    meta_path(path).unlink()


def _pair_row(index: int, seed: int) -> PairRow:
    pair = scene_pair(seed)
    return PairRow(
        index,
        f"{seed}",
        (f"{seed}-left.png", f"{seed}-right.png"),
        PerSide(pair.left_caption, pair.right_caption),
        pair.attribute,
        first=pair.first,
        others=pair.others,
    )


# --- marks ----------------------------------------------------------------------------------------

# By table: the set of scenes, and the number of questions
MARKS = {"VPBench_Scenes": ("Scenes", 400), "VPBench_Scenes_mini": ("Scenes_mini", 48)}

MARKS_SEED = 0


def write_marks(table: str, path: Path) -> None:
    """Write a table of questions about marks with how its images are drawn."""
    scenes, count = MARKS[table]
    shown = list(questions(scene_images(scenes, count), count, MARKS_SEED))
    queries = mark_rows([each.posed for each in shown], MARKS_SEED, scenes)
    marked = [_marked_row(query, each) for query, each in zip(queries, shown, strict=True)]
    write_table(path, MarkedRow, marked, {})
    meta_path(path).unlink()


def _marked_row(query: VPQuery, shown: ShownQuestion) -> MarkedRow:
    style = shown.posed.slot.style
    marks = tuple(
        DrawnMark(colour, _short(region.box), _outlines(region, style.shape))
        for region, colour in zip(shown.regions, shown.colours, strict=True)
    )
    values = {field.name: getattr(query, field.name) for field in fields(VPQuery)}
    return MarkedRow(**values, style=(style.shape.value, style.variant, style.width), marks=marks)


def _outlines(region: Region, shape: Shape) -> tuple[Polygon, ...]:
    """Return the outlines of a region, if the shape needs them."""
    if shape not in NEED_OUTLINES:
        return ()
    return tuple(map(_short, region.outlines))


def _short(numbers: Iterable[float]) -> Any:
    """Write whole numbers without ".0"."""
    return tuple(int(number) if number == int(number) else number for number in numbers)


if __name__ == "__main__":
    for table in scene_tables():
        write_scenes(table, shipped_table(table).parent)
    for name in PAIRS:
        write_pairs(name, shipped_table(name))
    for name in MARKS:
        write_marks(name, shipped_table(name))
