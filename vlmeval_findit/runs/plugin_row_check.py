"""What is tried of a model, a space, a representation or a data source before its first run."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..benchmarks import benchmark_of, load
from ..boxes.reading import read
from ..boxes.representation import (
    STRUCTURES,
    Corners,
    MatchRule,
    ReplyFormat,
    Representation,
)
from ..boxes.spaces import Space, SpaceKind, reference, to_pixels
from ..boxes.writing import BoxToWrite, write
from ..core.custom_prompt import CustomPrompt, prompt_set
from ..core.folders import image_folder
from ..core.image_files import header
from ..core.question import located
from ..data.sources import DataSource
from ..models.model_row import ModelRow
from .benchmark_check import Finding, Findings


def check_model(
    row: ModelRow, checkpoint: str | None, name: str, prompt: CustomPrompt | None = None
) -> Findings:
    """Check a model's row on some rows of a question, with its processor if it is here."""
    task, words = load(name), prompt_set(benchmark_of(name), prompt)
    space = row.space(task.question)
    yield Finding(f"{row.name} answers {name} in {space.as_dict()}")
    yield from _round_trips(space)
    for (output, several), scheme in row.schemes.items():
        what = f"unconstrained prompts for {output}{', several labels' * several}"
        how = f"{scheme.output} {scheme.representation} {scheme.key} {scheme.structure}"
        yield Finding(f"{what}: answered in {how}")
    if row.local is None:
        return
    bounds = row.local.bounds(task.question).as_dict()
    yield Finding(f"image bounds: {bounds or 'the checkpoint decides'}")
    from ..models.local.local_runner import ProcessorMissingError, shown

    checkpoint = checkpoint or next(iter(row.local.checkpoints.values()))
    folder = image_folder(task.question.images).path
    for index in list(task.queries)[:3]:
        asked = words.message(task.queries[index], task.question)
        try:
            seen = shown(row, checkpoint, task.question, located(asked, folder))
        except ProcessorMissingError as error:
            yield Finding(f"its processor was not tried: {error}; name one with NAME=FOLDER")
            return
        sizes = "; ".join(
            ", ".join("{} {} x {}".format(name, *image[name]) for name in image if name != "bounds")
            for image in seen.images
        )
        yield Finding(f"row {index}: {len(seen.ids)} tokens, {sum(seen.types)} of images: {sizes}")
        if not sum(seen.types):
            yield Finding(f"row {index}", "no token stands for its image")
    yield Finding(f"after the chat template:\n{seen.text}")


def check_space(kind: SpaceKind) -> Findings:
    """Check a coordinate space on images of all shapes."""
    needs: Mapping[str, Any] = kind.needs
    space = Space(kind.name, **needs)
    for width, height in ((640, 480), (480, 640), (8192, 6144), (1, 1000)):
        where = tuple(round(n, 2) for n in reference(space, width, height))
        yield Finding(f"{width} x {height} pixels lie at (width, height, left, top) {where}")
    yield from _round_trips(space)


def _round_trips(space: Space) -> Findings:
    """Random boxes in pixels, in numbers of a space, and in pixels again."""
    rng = random.Random(0)
    for _ in range(1000):
        size = rng.randint(1, 9000), rng.randint(1, 9000)
        width, height, left, top = reference(space, *size)
        box = np.array(_random_box(rng, *size)).reshape(2, 2)
        numbers = box * (width / size[0], height / size[1]) + (left, top)
        moved = to_pixels(space, *size)
        back = numbers * (moved.scale_x, moved.scale_y) + (moved.left, moved.top)
        if not np.allclose(box, back, atol=1e-6 * max(size)):
            what = f"{box.ravel().tolist()} of {size[0]} x {size[1]} pixels"
            yield Finding(what, f"comes back as {back.ravel().tolist()}")
            return
    yield Finding("1,000 random boxes come back")


def _random_box(rng: random.Random, width: float, height: float) -> Corners:
    x1, x2 = sorted((rng.uniform(0, width), rng.uniform(0, width)))
    y1, y2 = sorted((rng.uniform(0, height), rng.uniform(0, height)))
    return x1, y1, x2, y2


def check_representation(row: Representation) -> Findings:
    """Random boxes as numbers and back, and as replies in every format that prompts ask for."""
    rng = random.Random(0)
    boxes = [_random_box(rng, 1000, 1000) for _ in range(1000)]
    for box in boxes:
        back = row.to_corners(row.from_corners(box))
        if not _same(row, box, back):
            yield Finding(f"{box} as {row.name}", f"comes back as {back}")
            return
    yield Finding(f"1,000 random boxes come back from {row.name}")
    structures = [each for each in STRUCTURES if each != "decomposed" or row.keys]
    formats = [ReplyFormat("text", row.name, row.json_keys[0])]
    formats += [ReplyFormat("json", row.name, row.json_keys[0], each) for each in structures]
    for how in formats:
        reply = write([BoxToWrite(box) for box in boxes[:9]], how, digits=9)
        parsed = read(reply, how)
        pairs = zip(boxes, parsed.boxes, strict=False)
        same = len(parsed.boxes) == 9 and all(_same(row, *pair) for pair in pairs)
        why = f"is read as {parsed.boxes[:1]}: {parsed.reason or 'other boxes'}"
        what = f"{how.output} {how.structure}: {reply.splitlines()[0][:60]} …"
        yield Finding(what, "" if same else why)


def _same(row: Representation, box: Corners, back: Sequence[float]) -> bool:
    if row.match_rule is MatchRule.POINT_IN_OBJECT:
        middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        box = (*middle, *middle)
    return bool(np.allclose(box, back, atol=1e-6))


# --- a data source --------------------------------------------------------------------------------


def check_source(row: DataSource, folder: Path | None) -> Findings:
    """Check a published set and what its reader finds in a folder."""
    yield Finding(f"{row.title} ({row.licence}), {row.address}")
    if folder is None:
        yield Finding(f"its reader was not tried: --from FOLDER, which holds {row.holds}")
        return
    parts = row.parts_in(folder)
    if len(parts) != row.datasets:
        yield Finding(f"{folder}", f"has {len(parts)} datasets, and the row says {row.datasets}")
    for part in parts:
        samples = part.read()
        what = f"{row.dataset(part.name)}: {samples.counts}"
        yield Finding(what, "; ".join(row.differences(part.name, samples)))
        if isinstance(samples.images, Path):
            for name in chain.from_iterable(query.images for query in samples.queries[:3]):
                header(str(samples.images / name))
