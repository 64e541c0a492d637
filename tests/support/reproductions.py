"""Attempts to reproduce a figure, made of replies by hand or of simulated models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vlmeval_findit import benchmarks
from vlmeval_findit.benchmarks.findit import FindItQuery
from vlmeval_findit.boxes import Truth
from vlmeval_findit.coords import AnsweredQuery
from vlmeval_findit.data import Conditions, FigureSet, PublishedFigure
from vlmeval_findit.models import ModelEntry
from vlmeval_findit.protocol import (
    AnyDataset,
    LoadedDataset,
    PictureSample,
    Predictions,
    Reply,
    ReplyRecord,
    settings_from,
)
from vlmeval_findit.reproduction import Attempt, ConditionSet, Setup, measure_figure
from vlmeval_findit.scoring import check_replies

SIZE = (200, 100)
Box = tuple[float, float, float, float]


def query(index: int, *boxes: Box, picture: str = "", size: tuple[int, int] = SIZE) -> FindItQuery:
    """Return an expression with its objects, in pixels."""
    image = picture or f"{index}.jpg"
    truth = Truth(boxes, (0,) * len(boxes))
    return FindItQuery(index, f"thing {index}", *size, (image,), truth)


def dataset_of(
    queries: Sequence[FindItQuery], name: str = "FindIt_RefCOCO_xyxy_json_bbox_2d"
) -> AnyDataset:
    rows: Mapping[int, Any] = {each.index: each for each in queries}
    return LoadedDataset(name, benchmarks.parse(name), Path("table.tsv"), rows)


def figure(
    value: float,
    datasets: Sequence[str] = ("RefCOCO",),
    metric: Any = "acc@0.5",
    conditions: Conditions | None = None,
) -> PublishedFigure:
    return PublishedFigure(
        model="Qwen3-VL-8B-Instruct",
        set_name="a set",
        set=FigureSet(metric, tuple(datasets)),
        value=value,
        n=None,
        conditions=conditions or Conditions(),
        measured_by="authors",
        source="a test",
        sure="read",
    )


def predictions(
    dataset: AnyDataset, replies: Sequence[Reply], space: str = "grid1000"
) -> Predictions:
    return check_replies("Qwen3-VL", dataset, replies, settings_from({"space": space}))


def setup(
    published: PublishedFigure, *datasets: AnyDataset, conditions: Sequence[ConditionSet] = ()
) -> Setup:
    return Setup(
        figure=published,
        entry=ModelEntry("Qwen3-VL"),
        variants=tuple(each.variant for each in datasets),
        prompts="",
        conditions=tuple(conditions),
        sample=PictureSample(500, 0),
    )


def attempt(published: PublishedFigure, *answered: Predictions) -> Attempt:
    datasets = [each.dataset for each in answered]
    return measure_figure(setup(published, *datasets), answered)


def reply_with(index: int, *boxes: Sequence[float], record: ReplyRecord | None = None) -> Reply:
    """Return a well-formed reply with boxes in thousandths."""
    entries = ", ".join(f'{{"bbox_2d": {list(box)}}}' for box in boxes)
    return Reply(index, f"[{entries}]", record or ReplyRecord())


# --- simulated deployments ------------------------------------------------------------------------


def deployed(
    answers: Sequence[AnsweredQuery],
    published: PublishedFigure,
    change: Callable[[Reply], Reply] = lambda reply: reply,
    space: str = "grid1000",
    conditions: Sequence[ConditionSet] = (),
    model: str = "Qwen3-VL",
) -> Attempt:
    """Return an attempt with the answers of a simulated deployment, in boxes as it writes them."""
    queries = [
        query(at, *map(_corners, each.truths), picture=each.image, size=(each.width, each.height))
        for at, each in enumerate(answers)
    ]
    data = dataset_of(queries)
    replies = [change(reply_with(at, *each.numbers)) for at, each in enumerate(answers)]
    answered = predictions(data, replies, space)
    asked = setup(published, data, conditions=conditions)
    return measure_figure(replace(asked, entry=ModelEntry(model)), [answered])


def _corners(box: Sequence[float]) -> Box:
    left, top, right, bottom = map(float, box)
    return (left, top, right, bottom)
