"""What is tried of a benchmark, or of another row of a plug-in, before its first run.

A check yields findings as it goes; ``wrong`` says what to mend. What a row raises
by itself is not caught: whoever writes it wants to see where.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

from ..benchmarks import benchmark_of, parse
from ..boxes import (
    STRUCTURES,
    BoxToWrite,
    Corners,
    MatchRule,
    ReplyFormat,
    Representation,
    Space,
    SpaceKind,
    read,
    reply_extent,
    to_pixels,
    write,
)
from ..core import counted
from ..data import DataSource, load_dataset
from ..models import ModelRow
from ..protocol import (
    FAILED_ANSWER,
    AnyDataset,
    Benchmark,
    Better,
    CustomPrompt,
    DatasetVariant,
    Drawing,
    Message,
    Metric,
    PartKind,
    Settings,
    add_up,
    located,
    prompt_set,
)
from ..scoring import RunScore, load_run, score_file, write_score
from ..storage import (
    content_of,
    image_folder,
    imported_contents,
    is_transparent,
    read_image_header,
    replaced_images,
    replaced_note,
    unusable_images_error,
    unusable_rows,
    write_rows,
)


class Finding(NamedTuple):
    """What was looked at, and what is wrong with it ("": nothing)."""

    what: str
    wrong: str = ""


Findings = Iterator[Finding]

ROWS = 8  # Rows of a benchmark that are tried

UNREADABLE = "~"  # A reply that no benchmark reads


def check_benchmark(
    name: str, settings: Settings, folder: Path, draw: Callable[[Drawing, Path], object]
) -> Findings:
    """Ask, score, write, read back and draw some rows of a variant; then check its formats.

    Predictions and scores go into ``folder``, with a model for each kind of replies. ``draw`` gets
    a drawing and the folder of its images.
    """
    dataset = load_dataset(name)
    benchmark = benchmark_of(name)
    rows = f"{counted(len(dataset.queries), 'row')} of {dataset.table}"
    yield Finding(rows, "" if dataset.queries else "no rows")
    indexes = list(dataset.queries)[:ROWS]
    for index in indexes[:3]:
        yield _message(benchmark, dataset, index)
    yield _images(dataset)
    transparent = _transparent(dataset, indexes)
    if transparent:
        yield Finding(transparent)
    runs: dict[str, RunScore] = {}
    for kind, texts in _replies(benchmark, dataset, indexes).items():
        what = f"{kind.lower()} replies"
        if not texts:
            yield Finding(f"{what}: none: `example` gives none")
            continue
        path = _written(folder, kind, dataset, texts)
        try:
            run = score_file(path, settings, name)
        except ValueError as error:
            yield Finding(what, str(error))
            continue
        runs[kind] = run
        yield from _scored(kind, path, run, texts)
        yield from _drawn(what, benchmark, run, draw)
    yield from _values(benchmark, runs)
    yield from _formats(benchmark, dataset)


def _drawn(
    what: str, benchmark: Benchmark, run: RunScore, draw: Callable[[Drawing, Path], object]
) -> Findings:
    """Draw every row of a run."""
    images = image_folder(run.dataset.variant.images).path
    for row in run.rows:
        try:
            draw(benchmark.draw(run.dataset, row), images)
        except (AttributeError, TypeError, ValueError) as error:
            yield Finding(what, f"row {row.index} is not drawn: {error!r}")
    yield Finding(f"{what}: {len(run.rows)} drawn")


def _images(dataset: AnyDataset) -> Finding:
    """Look at all images as a run does: that they are there, of their size, and not replaced."""
    folder = image_folder(dataset.variant.images)
    what = f"images of {len(dataset.queries)} rows in {folder.path}"
    bad = unusable_rows(list(dataset.queries.values()), folder.path)
    if bad:
        return Finding(what, str(unusable_images_error(bad, len(dataset.queries), folder)))
    others = replaced_images(imported_contents(dataset.table), folder.path)
    return Finding(what, replaced_note(others, folder.path) if others else "")


def _transparent(dataset: AnyDataset, indexes: Sequence[int]) -> str:
    """Say how many images of some rows are transparent; unreadable ones are reported elsewhere."""
    folder = image_folder(dataset.variant.images).path
    names: dict[str, None] = {}
    for index in indexes:
        query = dataset.queries[index]
        names.update(dict.fromkeys((*query.support, *query.images)))
    count = 0
    for name in names:
        with suppress(OSError):
            count += is_transparent(content_of(folder / name))
    if not count:
        return ""
    first = f"of the first {len(indexes)} rows" if len(dataset.queries) > len(indexes) else ""
    what = f"{count} of {len(names)} images {first}".rstrip()
    return f"{what} are transparent: models are shown them on white"


def _message(benchmark: Benchmark, dataset: AnyDataset, index: int) -> Finding:
    message = benchmark.prompts()[0].message(dataset.queries[index], dataset.variant)
    folder = image_folder(dataset.variant.images).path
    parts = (f"<{part.value}>" if part.kind is PartKind.IMAGE else part.value for part in message)
    shown = indent("\n".join(parts), " " * 9)
    return Finding(f"row {index} asks:\n{shown}", _no_message(message, folder))


def _no_message(message: Message, folder: Path) -> str:
    if not any(part.kind is PartKind.TEXT and part.value.strip() for part in message):
        return "it has no words"
    for part in message:
        if part.kind is PartKind.IMAGE and Path(part.value).is_absolute():
            return f"{part.value}: images are named relative to their folder, here {folder}"
    for part in located(message, folder):
        if part.kind is PartKind.IMAGE:
            try:
                read_image_header(part.value)
            except OSError as error:
                return f"{error}: set FINDIT_IMAGES or --image-root"
    return ""


def _replies(
    benchmark: Benchmark, dataset: AnyDataset, indexes: Sequence[int]
) -> Mapping[str, Mapping[int, str]]:
    """Return replies to rows by kind; a wrong reply is right for another row."""
    examples = {at: benchmark.example(dataset.queries[at], dataset.variant) for at in indexes}
    right = {index: text for index, text in examples.items() if text}
    wrong = {}
    for index, text in right.items():
        others = [other for other in right.values() if other != text]
        if others:
            wrong[index] = others[-1]
    return {
        "Right": right,
        "Wrong": wrong,
        "Unreadable": dict.fromkeys(indexes, UNREADABLE),
        "Empty": dict.fromkeys(indexes, ""),
        "Failed": dict.fromkeys(indexes, FAILED_ANSWER),
    }


def _written(folder: Path, model: str, dataset: AnyDataset, texts: Mapping[int, str]) -> Path:
    path = folder / model / f"{model}_{dataset.variant.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"index": index, "label": dataset.queries[index].label, "prediction": text}
        for index, text in texts.items()
    ]
    write_rows(path, lambda: rows)
    return path


def _scored(kind: str, path: Path, run: RunScore, texts: Mapping[int, str]) -> Findings:
    """Check the rows of one kind of replies, and that files give them back."""
    what = f"{kind.lower()} replies"
    again = load_run(write_score(run, path).provenance)
    for row, back in zip(run.rows, again.rows, strict=True):
        if back != row:
            yield Finding(what, f"row {row.index}: {back} after reading, not {row}")
    yield from (Finding(what, why) for why in _broken_rules(kind, run, list(texts)))
    text = ", ".join(f"{name} {_shown(value)}" for name, value in run.metric_values.items())
    yield Finding(f"{what}: {text}")


def _broken_rules(kind: str, run: RunScore, indexes: Sequence[int]) -> Iterator[str]:
    indices = [row.index for row in run.rows]
    if indices != indexes:
        yield f"rows {indices} for replies to {indexes}: a row for each reply, in their order"
    for row in run.rows:
        if not row.source:
            yield f"row {row.index}: source is empty: it names the image that rows share"
        if row.failed != (kind == "Failed"):
            did = "did" if kind == "Failed" else "did not"
            yield f"row {row.index}: failed is {row.failed} of a call that {did} fail"
        if kind in ("Unreadable", "Empty") and row.reason is None:
            yield f"row {row.index}: reason is None: `read` should return a ParseFailure"


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _values(benchmark: Benchmark, runs: Mapping[str, RunScore]) -> Findings:
    """Check that right replies have the best value, and that only they have it."""
    headline = benchmark.headline_counting_failures
    right = runs.get("Right")
    if right is None:
        return
    best = headline.value(right.sums)
    expected = headline.scale if headline.better is Better.HIGHER else 0.0
    # An encoder does not find every right reply right.
    exact = headline.share and right.scorer is None
    if best is None or (exact and abs(best - expected) > 0.5):
        wrong = f"should be {expected:g}: is `example` right, and the score?"
        yield Finding(f"{headline.name} of right replies is {_shown(best)}", wrong)
    yield from _as_good(headline, right, runs)
    # Wrong replies may adhere to their format.
    no_answers = {kind: run for kind, run in runs.items() if kind != "Wrong"}
    for metric in benchmark.ranking:
        if metric.name != headline.name:
            yield from _as_good(metric, right, no_answers)
    unreadable = headline.value(runs["Unreadable"].sums)
    if headline.better is Better.LOWER and unreadable is None:
        yield Finding(
            f"{headline.name} of unreadable replies",
            "has no value, so a model that answers only what it knows is ranked first: count all "
            "replies in the whole, and in the part what a missing answer costs",
        )
    first = benchmark.metrics[0]
    failed = runs.get("Failed")
    if failed and first.value(add_up((right.sums, failed.sums))) != first.value(right.sums):
        yield Finding(first.name, f"counts failed calls, which only {headline.name} may")


def _as_good(metric: Metric, right: RunScore, runs: Mapping[str, RunScore]) -> Findings:
    """Find kinds of replies that are as good as right ones by a metric."""
    best = metric.value(right.sums)
    for kind, run in runs.items():
        value = metric.value(run.sums)
        if kind == "Right" or value is None or best is None:
            continue
        if metric.better.order(value) <= metric.better.order(best):
            yield Finding(f"{metric.name} of {kind.lower()} replies", f"{value} is as good")


def _formats(benchmark: Benchmark, dataset: AnyDataset) -> Findings:
    """Check what a search over formats relies on; each name can be checked for its replies."""
    asked = benchmark.formats(dataset.variant)
    if [*asked] == [dataset.variant]:
        return
    if dataset.variant not in asked:
        yield Finding(f"formats of {dataset.variant.name}", "it is not among them")
    for variant in asked:
        what = f"format {variant.format!r}, {variant.name}"
        yield Finding(what, _no_format(benchmark, dataset, variant, asked))


def _no_format(
    benchmark: Benchmark,
    dataset: AnyDataset,
    other_format: DatasetVariant,
    asked: Sequence[DatasetVariant],
) -> str:
    """Say why a variant is no valid format of its table ("" if it is)."""
    variant = dataset.variant
    for what in ("format", "name", "format_place"):
        value = getattr(other_format, what)
        if sum(getattr(each, what) == value for each in asked) > 1:
            return f"its {what} {value!r} is that of another: a search could not tell them apart"
    if not other_format.format:
        return "its format has no name: `format` is empty"
    board = other_format.board_dataset
    expected_board = variant.board_dataset
    if board != expected_board:
        return (
            f"its dataset on a leaderboard is {board!r}, and that of {variant.name} "
            f"{expected_board!r}"
        )
    rows = benchmark.query_set_key(other_format)
    expected_rows = benchmark.query_set_key(variant)
    if rows != expected_rows:
        return f"its rows are {rows}, not {expected_rows}"
    try:
        if parse(other_format.name) != other_format:
            return f"`parse` of its name gives {parse(other_format.name)}"
        if [*load_dataset(other_format.name).queries] != [*dataset.queries]:
            return f"its table has other rows than that of {variant.name}"
    except (OSError, ValueError) as error:
        return str(error)
    if [*benchmark.formats(other_format)] != [*asked]:
        return f"`formats` of it gives others, or another order, than of {variant.name}"
    return ""


# --- a model, a space, a representation, a data source --------------------------------------------


def check_model(
    row: ModelRow, checkpoint: str | None, name: str, prompt: CustomPrompt | None = None
) -> Findings:
    """Check a model's row on some rows of a variant, with its processor if it is here."""
    dataset = load_dataset(name)
    words = prompt_set(benchmark_of(name), prompt)
    space = row.space(dataset.variant)
    yield Finding(f"{row.name} answers {name} in {space.as_dict()}")
    yield from _round_trips(space)
    for (output, several), scheme in row.schemes.items():
        labels = ", several labels" if several else ""
        what = f"unconstrained prompts for {output}{labels}"
        how = f"{scheme.output} {scheme.representation} {scheme.key} {scheme.structure}"
        yield Finding(f"{what}: answered in {how}")
    if row.local is None:
        return
    bounds = row.local.bounds(dataset.variant).as_dict()
    yield Finding(f"image bounds: {bounds or 'the checkpoint decides'}")
    from ..models import ProcessorMissingError, encode_as_shown

    checkpoint = checkpoint or next(iter(row.local.checkpoints.values()))
    folder = image_folder(dataset.variant.images).path
    for index in list(dataset.queries)[:3]:
        asked = words.message(dataset.queries[index], dataset.variant)
        try:
            seen = encode_as_shown(row, checkpoint, dataset.variant, located(asked, folder))
        except ProcessorMissingError as error:
            yield Finding(f"its processor was not tried: {error}; name one with NAME=FOLDER")
            return
        sizes = "; ".join(map(_sizes_text, seen.images))
        yield Finding(f"row {index}: {len(seen.ids)} tokens, {sum(seen.types)} of images: {sizes}")
        if not sum(seen.types):
            yield Finding(f"row {index}", "no token stands for its image")
    yield Finding(f"after the chat template:\n{seen.text}")


def _sizes_text(image: Mapping[str, Any]) -> str:
    """Return the sizes that a processor recorded of an image: ``original 640 x 480, …``."""
    texts = []
    for name, value in image.items():
        if name != "bounds":
            texts.append(f"{name} {value[0]} x {value[1]}")
    return ", ".join(texts)


def check_space(kind: SpaceKind) -> Findings:
    """Check a coordinate space on images of all shapes."""
    needs: Mapping[str, Any] = kind.needs
    space = Space(kind.name, **needs)
    for width, height in ((640, 480), (480, 640), (8192, 6144), (1, 1000)):
        where = tuple(round(n, 2) for n in reply_extent(space, width, height))
        yield Finding(f"{width} x {height} pixels lie at (width, height, left, top) {where}")
    yield from _round_trips(space)


def _round_trips(space: Space) -> Findings:
    """Convert random boxes from pixels to numbers of a space, and back to pixels."""
    rng = random.Random(0)
    for _ in range(1000):
        width = rng.randint(1, 9000)
        height = rng.randint(1, 9000)
        box = np.array(_random_box(rng, width, height)).reshape(2, 2)
        full_width, full_height, left, top = reply_extent(space, width, height)
        numbers = box * (full_width / width, full_height / height) + (left, top)
        pixels = to_pixels(space, width, height)
        back = numbers * (pixels.scale_x, pixels.scale_y) + (pixels.left, pixels.top)
        if not np.allclose(box, back, atol=1e-6 * max(width, height)):
            what = f"{box.ravel().tolist()} of {width} x {height} pixels"
            yield Finding(what, f"comes back as {back.ravel().tolist()}")
            return
    yield Finding("1,000 random boxes come back")


def _random_box(rng: random.Random, width: float, height: float) -> Corners:
    x1, x2 = sorted((rng.uniform(0, width), rng.uniform(0, width)))
    y1, y2 = sorted((rng.uniform(0, height), rng.uniform(0, height)))
    return x1, y1, x2, y2


def check_representation(row: Representation) -> Findings:
    """Convert random boxes to numbers and back, and to replies in every format that is asked."""
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
        same = len(parsed.boxes) == 9
        for box, back in zip(boxes, parsed.boxes, strict=False):
            same = same and _same(row, box, back)
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
                read_image_header(str(samples.images / name))
