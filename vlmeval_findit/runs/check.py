"""What is tried of a row before its first run: a benchmark, a model, a space and so on.

A check yields findings as it goes; one that says ``wrong`` names what to mend.  What a row raises
by itself is not caught: whoever writes it wants to see where.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

from ..benchmarks import benchmark_of, load
from ..boxes.reading import read
from ..boxes.reply_format import OUTPUTS, STRUCTURES, ReplyFormat
from ..boxes.representation import Corners, Judging, Representation
from ..boxes.spaces import Kind, Space, reference, to_pixels
from ..boxes.writing import Said, write
from ..core.benchmark import Benchmark
from ..core.drawing import Drawing
from ..core.image_files import header
from ..core.messages import Message, PartKind, located
from ..core.metric import Better, Metric, is_sliced
from ..core.places import image_folder
from ..core.predictions import read_predictions, write_rows
from ..core.question import AnyTask
from ..core.replies import FAILED
from ..core.scored_row import ScoredRow, add_up
from ..core.settings import Settings
from ..core.spelling import nearest
from ..data.importers.importer import Importer, unlike
from ..models.row import ModelRow
from .results import write_score
from .score import RunScore, score_file
from .scored_run import load_run


class Finding(NamedTuple):
    """What was looked at, and what is wrong with it ("": nothing)."""

    what: str
    wrong: str = ""


Findings = Iterator[Finding]

ROWS = 8
"""Rows of a benchmark that are tried."""

UNREADABLE = "~"


# --- a benchmark ----------------------------------------------------------------------------------


def check_benchmark(
    name: str, settings: Settings, folder: Path, draw: Callable[[Drawing, Path], object]
) -> Findings:
    """Ask, score, write, read back and draw some rows of a question.

    Args:
        name: the question.
        settings: of the scoring.
        folder: where predictions and scores of its replies go, a model of its own for each kind.
        draw: brings a drawing, whose pictures lie below a folder, to a page.
    """
    task, benchmark = load(name), benchmark_of(name)
    yield Finding(f"{len(task.queries)} rows of {task.table}", "" if task.queries else "no rows")
    indexes = list(task.queries)[:ROWS]
    for index in indexes[:3]:
        yield _message(benchmark, task, index)
    runs: dict[str, RunScore] = {}
    for kind, texts in _replies(benchmark, task, indexes).items():
        if not texts:
            yield Finding(f"{kind.lower()} replies: none: `example` says no right one")
            continue
        path = folder / kind / f"{kind}_{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [_row(task, *one) for one in texts.items()]
        write_rows(path, rows.copy)
        try:
            run = runs[kind] = score_file(path, settings, name)
        except ValueError as error:
            yield Finding(f"{kind.lower()} replies", str(error))
            continue
        yield from _scored(kind, path, run, texts)
        images = image_folder(task.question.images).path
        for row in run.rows:
            try:
                draw(benchmark.draw(task, row), images)
            except (AttributeError, TypeError, ValueError) as error:
                yield Finding(f"{kind.lower()} replies", f"row {row.index} is not drawn: {error!r}")
        yield Finding(f"{kind.lower()} replies: {len(run.rows)} drawn")
    yield from _values(benchmark, runs)


def _message(benchmark: Benchmark, task: AnyTask, index: int) -> Finding:
    """The message of a row, whose images are there."""
    message = benchmark.prompts()[0].message(task.queries[index], task.question)
    folder = image_folder(task.question.images).path
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
                header(part.value)
            except OSError as error:
                return f"{error}: set FINDIT_IMAGES or --images"
    return ""


def _replies(
    benchmark: Benchmark, task: AnyTask, indexes: Sequence[int]
) -> Mapping[str, Mapping[int, str]]:
    """By their kind replies to rows; a wrong one is right of another row."""
    right = {
        index: said
        for index in indexes
        if (said := benchmark.example(task.queries[index], task.question))
    }
    others = {
        index: next((other for other in right.values() if other != said), None)
        for index, said in right.items()
    }
    return {
        "Right": right,
        "Wrong": {index: said for index, said in others.items() if said is not None},
        "Unreadable": dict.fromkeys(indexes, UNREADABLE),
        "Empty": dict.fromkeys(indexes, ""),
        "Failed": dict.fromkeys(indexes, FAILED),
    }


def _row(task: AnyTask, index: int, text: str) -> Mapping[str, Any]:
    query = task.queries[index]
    return {"index": index, "label": query.label, "prediction": text}


def _scored(kind: str, path: Path, run: RunScore, texts: Mapping[int, str]) -> Findings:
    """The rows of one kind of replies: what each must keep, and that files give them back."""
    what = f"{kind.lower()} replies"
    if [(one.index, one.text) for one in read_predictions(path)] != [*texts.items()]:
        yield Finding(what, f"{path} gives back other replies than were written")
    again = load_run(write_score(run, path).provenance)
    for row, back in zip(run.rows, again.rows, strict=True):
        if back != row:
            yield Finding(what, f"row {row.index}: {_unlike(row, back)} is another after reading")
    yield from (Finding(what, why) for why in _broken_rules(kind, run, list(texts)))
    said = ", ".join(f"{name} {_figure(value)}" for name, value in run.figures.items())
    yield Finding(f"{what}: {said}")


def _unlike(row: ScoredRow, back: ScoredRow) -> str:
    names = (name for name in ScoredRow.__dataclass_fields__)
    return next(name for name in names if getattr(row, name) != getattr(back, name))


def _broken_rules(kind: str, run: RunScore, indexes: Sequence[int]) -> Iterator[str]:
    found = [row.index for row in run.rows]
    if found != indexes:
        yield f"rows {found} for replies to {indexes}: one row a reply, in their order"
    for row in run.rows:
        if not row.source:
            yield f"row {row.index}: source is empty: it names the picture that rows share"
        if row.failed != (kind == "Failed"):
            yield f"row {row.index}: failed is {row.failed} of a call that did{_not(kind)} fail"
        if kind in ("Unreadable", "Empty") and row.reason is None:
            yield f"row {row.index}: reason is None: `read` should return a ParseFailure"


def _not(kind: str) -> str:
    return "" if kind == "Failed" else " not"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _values(benchmark: Benchmark, runs: Mapping[str, RunScore]) -> Findings:
    """What the figures of right replies, of others, and of failed calls must be."""
    headline, right = benchmark.with_failures, runs.get("Right")
    yield from _unknown_sums(benchmark, {name for run in runs.values() for name in run.sums})
    if right is None:
        return
    best = headline.value(right.sums)
    # What an encoder judges has right replies that it does not find right.
    exact = headline.share and right.scorer is None
    if best is None or (exact and abs(best - _best(headline)) > 0.5):
        wrong = f"should be {_best(headline):g}: is `example` right, and the score?"
        yield Finding(f"{headline.name} of right replies is {_figure(best)}", wrong)
    for kind, run in runs.items():
        value = headline.value(run.sums)
        if kind != "Right" and not _is_worse(value, best, headline):
            yield Finding(f"{headline.name} of {kind.lower()} replies", f"{value} is as good")
    first, failed = benchmark.metrics[0], runs.get("Failed")
    if failed and first.value(add_up((right.sums, failed.sums))) != first.value(right.sums):
        yield Finding(first.name, f"counts failed calls, which only {headline.name} may")


def _unknown_sums(benchmark: Benchmark, known: set[str]) -> Findings:
    """Sums that a metric needs and no row has."""
    plain = [name for name in known if not is_sliced(name)]
    for metric in benchmark.all_metrics:
        # Others are of rows, or of replies, that need not be among these.
        if metric.empty is not None and metric is not benchmark.salvaged:
            for name in {*metric.part, *metric.whole} - known:
                why = f"is of the sum {name!r}, which no row has{nearest(name, plain)}"
                yield Finding(metric.name, why)


def _best(metric: Metric) -> float:
    return metric.scale if metric.better is Better.HIGHER else 0.0


def _is_worse(value: float | None, best: float | None, metric: Metric) -> bool:
    if value is None or best is None:
        return value is None
    return value < best if metric.better is Better.HIGHER else value > best


# --- a model --------------------------------------------------------------------------------------


def check_model(row: ModelRow, checkpoint: str | None, name: str, indexes: int = 3) -> Findings:
    """A model's row on some rows of a question; its processor, where its checkpoint is here."""
    task, benchmark = load(name), benchmark_of(name)
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
    from ..models.local.runner import NotHereError, shown

    checkpoint = checkpoint or next(iter(row.local.checkpoints.values()))
    folder = image_folder(task.question.images).path
    for index in list(task.queries)[:indexes]:
        asked = benchmark.prompts()[0].message(task.queries[index], task.question)
        try:
            seen = shown(row, checkpoint, task.question, located(asked, folder))
        except NotHereError as error:
            yield Finding(f"its processor was not tried: {error}; NAME=FOLDER names one that is")
            return
        sizes = [dict(image) for image in seen.images]
        yield Finding(f"row {index}: {len(seen.ids)} tokens, {sum(seen.types)} of images: {sizes}")
        if not sum(seen.types):
            yield Finding(f"row {index}", "no token stands for its image")
    yield Finding(f"after the chat template:\n{seen.text}")


# --- a space, a representation -------------------------------------------------------------------


def check_space(kind: Kind) -> Findings:
    """A coordinate space on images of all shapes."""
    needs: Mapping[str, Any] = kind.needs
    space = Space(kind.name, **needs)
    for size in ((640, 480), (480, 640), (8192, 6144), (1, 1000)):
        where = tuple(round(n, 2) for n in reference(space, *size))
        yield Finding(f"{size[0]} x {size[1]} pixels lie at (width, height, left, top) {where}")
    yield from _round_trips(space)


def _round_trips(space: Space) -> Findings:
    """Random boxes in pixels, in numbers of a space, and in pixels again."""
    rng = random.Random(0)
    for _ in range(1000):
        size = rng.randint(1, 9000), rng.randint(1, 9000)
        width, height, left, top = reference(space, *size)
        box = np.array(_random_box(rng, *size)).reshape(2, 2)
        said = box * (width / size[0], height / size[1]) + (left, top)
        moved = to_pixels(space, *size)
        back = said * (moved.scale_x, moved.scale_y) + (moved.left, moved.top)
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
    for how in _formats(row):
        reply = write([Said(box) for box in boxes[:9]], how, digits=9)
        found = read(reply, how)
        same = len(found.boxes) == 9 and all(
            _same(row, box, back) for box, back in zip(boxes, found.boxes, strict=False)
        )
        why = f"is read as {found.boxes[:1]}: {found.reason or 'other boxes'}"
        what = f"{how.output} {how.structure}: {reply.splitlines()[0][:60]} …"
        yield Finding(what, "" if same else why)


def _formats(row: Representation) -> Iterator[ReplyFormat]:
    for output in OUTPUTS:
        for structure in STRUCTURES if output == "json" else STRUCTURES[:1]:
            if structure != "decomposed" or row.keys:
                yield ReplyFormat(output, row.name, row.json_keys[0], structure)


def _same(row: Representation, box: Corners, back: Sequence[float]) -> bool:
    if row.judged is Judging.BY_LYING_INSIDE:
        middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        box = (*middle, *middle)
    return bool(np.allclose(box, back, atol=1e-6))


# --- an importer ----------------------------------------------------------------------------------


def check_importer(row: Importer, folder: Path | None) -> Findings:
    """What is known of a published set, and what its reader finds in a folder."""
    yield Finding(f"{row.title} ({row.licence}), {row.source}")
    if folder is None:
        yield Finding(f"its reader was not tried: --from FOLDER, which holds {row.holds}")
        return
    parts = row.read(folder)
    if len(parts) != row.datasets:
        yield Finding(f"{folder}", f"has {len(parts)} datasets, and the row says {row.datasets}")
    for part in parts:
        content = part.read()
        what = f"{row.dataset(part.name)}: {content.found}"
        yield Finding(what, "; ".join(unlike(content.found, row.counts_of(part.name))))
        for file in content.missing:
            yield Finding(what, f"{file} is missing")
        if isinstance(content.images, Path):
            for query in content.asked.queries[:3]:
                for name in query.images:
                    header(str(content.images / name))
