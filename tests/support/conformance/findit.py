"""Replies and the score that the release gives them (protocol section 8).

Boxes have to agree to 1e-3 pixels, IoU to 1e-5, counts and adherence exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vlmeval_findit.benchmarks.findit import (
    SUBSETS,
    FindItQuery,
    query_from_row,
    thinned_query,
)
from vlmeval_findit.boxes import (
    DEFAULT_KEY,
    DEFAULT_STRUCTURE,
    MatchResult,
    ParsedReply,
    Reader,
    ReplyFormat,
    Space,
    ToPixels,
    match,
    reader,
    space_from,
    to_pixels,
)
from vlmeval_findit.core import suggestion
from vlmeval_findit.storage import parquet_rows

from .cases import Agreement, CaseError, each, unlike
from .cases import Case as Row

BOX_TOLERANCE = 1e-3
IOU_TOLERANCE = 1e-5


def subset_queries(path: Path) -> list[FindItQuery]:
    """Read the queries of a subset file, thinned to the dataset's frames."""
    dataset, multilabel = SUBSETS[path.stem]
    return [
        thinned_query(query_from_row(i, row, dataset, multilabel), dataset.frames)
        for i, (_, row) in enumerate(parquet_rows(path))
    ]


@dataclass(frozen=True, slots=True)
class Case:
    """A case, ready to be scored: everything but the reading of the reply is resolved."""

    response: str
    reply_format: ReplyFormat
    read: Reader
    query: FindItQuery
    to_pixels: ToPixels
    is_video: bool
    expected: Row


def agreement(path: Path, subsets: Path | None) -> Agreement:
    """Compare the scores."""
    if subsets is None:
        raise CaseError("FindIt's cases name rows of its subsets: --subsets DIR says where")
    cases = load_cases(path, subsets)
    differences = []
    scored = score_cases([case for _, case in cases])
    for (where, case), (reading, matched) in zip(cases, scored, strict=True):
        why = difference(case, reading, matched)
        if why is not None:
            differences.append(f"{where}: {why}\n  {case.reply_format}\n  {case.response!r}")
    return Agreement(len(cases) - len(differences), len(cases), differences)


def load_cases(path: Path, subsets: Path) -> list[tuple[str, Case]]:
    """Resolve the cases of a file, each with its line."""

    @cache
    def rows(subset: str) -> list[FindItQuery]:
        if subset not in SUBSETS:
            raise CaseError(f"no subset {subset!r}{suggestion(subset, SUBSETS)}")
        return subset_queries(subsets / f"{subset}.parquet")

    @cache
    def query(subset: str, row: int, frames: int) -> FindItQuery:
        if not 0 <= row < len(rows(subset)):
            raise CaseError(f"{subset} has no row {row}")
        return thinned_query(rows(subset)[row], frames)

    def resolved(raw: Row) -> Case:
        reply_format = _reply_format(raw["kwargs"])
        return Case(
            response=raw["response"],
            reply_format=reply_format,
            read=reader(reply_format),
            query=query(raw["dataset"], raw["row"], reply_format.frames),
            to_pixels=to_pixels(_space(raw["kwargs"]), raw["width"], raw["height"]),
            is_video=SUBSETS[raw["dataset"]][0].family.is_video,
            expected=raw["expected"],
        )

    return [(where, case) for where, _, case in each(path, resolved)]


def _reply_format(kwargs: Row) -> ReplyFormat:
    """Return how the release reads the cell: a scheme of the model comes first."""
    structure = kwargs.get("parse_json_structure") or kwargs.get("json_structure")
    return ReplyFormat(
        output=kwargs.get("parse_fmt") or kwargs["fmt"],
        representation=kwargs.get("parse_bbox_repr") or kwargs["bbox_repr"],
        key=kwargs.get("parse_json_key") or kwargs.get("json_key") or DEFAULT_KEY,
        structure=structure or DEFAULT_STRUCTURE,
        multilabel=bool(kwargs.get("multi_label")),
        frames=int(kwargs.get("max_frames") or 1),
    )


def _space(kwargs: Row) -> Space:
    names = {
        "rescale_mode": "kind",
        "scene_max_size": "scene_max_size",
        "qwen_min_pixels": "min_pixels",
        "qwen_max_pixels": "max_pixels",
        "qwen_two_step": "two_step",
    }
    return space_from({field: kwargs[name] for name, field in names.items() if name in kwargs})


def score_cases(cases: Sequence[Case]) -> list[tuple[ParsedReply, MatchResult]]:
    """Read and match every case: reading, coordinate space, assignment and counts."""
    readings = [case.read(case.response) for case in cases]
    matched = match(readings, [c.query.truth for c in cases], [c.to_pixels for c in cases])
    return list(zip(readings, matched, strict=True))


def difference(case: Case, reading: ParsedReply, matched: MatchResult) -> str | None:
    """Return how our score of a case differs from the expected score."""
    actual = {
        "format_ok": reading.reason is None,
        "tp": matched.tp,
        "n_pred": len(matched.boxes),
        "n_gt": len(matched.ious),
        "ious": list(matched.ious),
        "boxes": _boxes_as_expected(case, reading, matched),
    }
    expected = {name: case.expected[name] for name in actual}
    boxes = {"boxes": expected.pop("boxes")}
    return unlike(actual, expected, IOU_TOLERANCE) or unlike(actual, boxes, BOX_TOLERANCE)


def _boxes_as_expected(case: Case, reading: ParsedReply, matched: MatchResult) -> list[Any]:
    """Return our boxes in the layout of the cases: with labels if any, by frame for videos."""
    boxes: list[Any] = [list(box) for box in matched.boxes]
    if case.reply_format.multilabel:
        boxes = [[label, box] for label, box in zip(reading.labels, boxes, strict=True)]
    if not case.is_video:
        return boxes
    frames: list[list[Any]] = [[] for _ in range(case.reply_format.frames)]
    for frame, box in zip(reading.frames or [0] * len(boxes), boxes, strict=True):
        frames[frame].append(box)
    return frames
