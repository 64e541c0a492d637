"""Scoring cases of the release (protocol section 8): do we give each the same score?

Boxes have to agree to 1e-3 pixels, IoU to 1e-5, counts and adherence exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...boxes.matching import match
from ...boxes.reading import Reader, reader
from ...boxes.records import Matched, Reading
from ...boxes.reply_format import DEFAULT_KEY, DEFAULT_STRUCTURE, ReplyFormat
from ...boxes.spaces import Space, SpaceError, reference_size, space_from
from ...core.conformance import Agreement, CaseError, Protocols, lines_of
from ...core.spelling import nearest
from .aliases import SUBSETS
from .query import Query
from .release_subsets import subset_queries
from .thinning import thinned

BOX_TOLERANCE = 1e-3
IOU_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Case:
    """One case, ready to be scored: everything but the reading of the reply is resolved."""

    line: int
    response: str
    how: ReplyFormat
    read: Reader
    query: Query
    scale: tuple[float, float]
    is_video: bool
    expected: Mapping[str, Any]


def load_cases(path: Path, subsets: Path) -> list[Case]:
    """All cases of a file (JSON lines, gzipped or not).

    Raises:
        CaseError: a line that is no case, an unknown subset, row or setting.
    """

    @cache
    def rows(subset: str) -> list[Query]:
        if subset not in SUBSETS:
            raise CaseError(f"no subset {subset!r}{nearest(subset, SUBSETS)}")
        dataset, multilabel = SUBSETS[subset]
        return subset_queries(subsets / f"{subset}.parquet", dataset, multilabel)

    @cache
    def query(subset: str, row: int, frames: int) -> Query:
        if not 0 <= row < len(rows(subset)):
            raise CaseError(f"{subset} has no row {row}")
        return thinned(rows(subset)[row], frames)

    cases = []
    for number, raw in lines_of(path):
        try:
            kwargs = raw["kwargs"]
            how = _how(kwargs)
            space = _space(kwargs)
            width, height = raw["width"], raw["height"]
            w, h = reference_size(space, width, height)
            dataset, _ = SUBSETS.get(raw["dataset"], (None, False))
            cases.append(
                Case(
                    line=number,
                    response=raw["response"],
                    how=how,
                    read=reader(how),
                    query=query(raw["dataset"], raw["row"], how.frames),
                    scale=(width / w, height / h),
                    is_video=dataset is not None and dataset.family.is_video,
                    expected=raw["expected"],
                )
            )
        except KeyError as error:
            raise CaseError(f"{path}, line {number}: {error} is missing") from None
        except (CaseError, SpaceError) as error:
            raise CaseError(f"{path}, line {number}: {error}") from None
    return cases


def _how(kwargs: Mapping[str, Any]) -> ReplyFormat:
    """How the release reads the cell: the model's own scheme, where there is one, comes first."""
    structure = kwargs.get("parse_json_structure") or kwargs.get("json_structure")
    return ReplyFormat(
        output=kwargs.get("parse_fmt") or kwargs["fmt"],
        representation=kwargs.get("parse_bbox_repr") or kwargs["bbox_repr"],
        key=kwargs.get("parse_json_key") or kwargs.get("json_key") or DEFAULT_KEY,
        structure=structure or DEFAULT_STRUCTURE,
        multilabel=bool(kwargs.get("multi_label")),
        frames=int(kwargs.get("max_frames") or 1),
    )


def _space(kwargs: Mapping[str, Any]) -> Space:
    names = {
        "rescale_mode": "kind",
        "scene_max_size": "scene_max_size",
        "qwen_min_pixels": "min_pixels",
        "qwen_max_pixels": "max_pixels",
        "qwen_two_step": "two_step",
    }
    return space_from({ours: kwargs[name] for name, ours in names.items() if name in kwargs})


def score_cases(cases: Sequence[Case]) -> list[tuple[Reading, Matched]]:
    """Read and match every case: reading, coordinate space, assignment and counts."""
    readings = [case.read(case.response) for case in cases]
    matched = match(readings, [c.query.truth for c in cases], [c.scale for c in cases])
    return list(zip(readings, matched, strict=True))


def difference(case: Case, reading: Reading, matched: Matched) -> str | None:
    """How our score of a case differs from the expected one; None when it agrees."""
    ours = {
        "format_ok": reading.reason is None,
        "tp": matched.tp,
        "n_pred": len(matched.boxes),
        "n_gt": len(matched.ious),
    }
    for name, value in ours.items():
        if value != case.expected[name]:
            return f"{name} is {value}, should be {case.expected[name]}"
    for i, (ours_, theirs) in enumerate(zip(matched.ious, case.expected["ious"], strict=True)):
        if abs(ours_ - theirs) > IOU_TOLERANCE:
            return f"IoU of box {i} is {ours_}, should be {theirs}"
    boxes = _boxes_as_expected(case, reading, matched)
    if not _near(boxes, case.expected["boxes"]):
        return f"boxes are {boxes}, should be {case.expected['boxes']}"
    return None


def _boxes_as_expected(case: Case, reading: Reading, matched: Matched) -> list[Any]:
    """Our boxes in the layout of the cases: labelled where labels are, by frame for videos."""
    boxes: list[Any] = list(matched.boxes)
    if case.how.multilabel:
        boxes = [[label, box] for label, box in zip(reading.labels, boxes, strict=True)]
    if not case.is_video:
        return boxes
    frames: list[list[Any]] = [[] for _ in range(case.how.frames)]
    for frame, box in zip(reading.frames or [0] * len(boxes), boxes, strict=True):
        frames[frame].append(box)
    return frames


def _near(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list):
        return (
            isinstance(theirs, list) and len(ours) == len(theirs) and all(map(_near, ours, theirs))
        )
    if isinstance(ours, str):
        return bool(ours == theirs)
    return bool(ours == theirs or abs(ours - theirs) <= BOX_TOLERANCE)


def agreement(path: Path, subsets: Path | None) -> Agreement:
    """Score the cases of a file, and hold each against the score that the release gives it.

    Raises:
        CaseError: a line is no case, or no folder of subsets is given.
        OSError: a file cannot be read.
    """
    if subsets is None:
        raise CaseError("FindIt's cases name rows of its subsets: --subsets DIR says where")
    cases = load_cases(path, subsets)
    found = []
    for case, (reading, matched) in zip(cases, score_cases(cases), strict=True):
        why = difference(case, reading, matched)
        if why is not None:
            found.append(f"{path.name}, line {case.line}: {why}\n  {case.how}\n  {case.response!r}")
    return Agreement(len(cases) - len(found), len(cases), found)


PROTOCOLS: Protocols = {"findit": agreement}
