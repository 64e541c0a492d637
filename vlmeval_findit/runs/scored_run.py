"""Scored runs: what statistics, leaderboard and report read, and nothing else.

A run is one prediction file that was scored: ``<stem>_provenance.json`` and
``<stem>_details.jsonl`` beside it, as :func:`.results.write_score` leaves them.  The model is not
asked and the annotation table is not needed.  Every score becomes one frozen :class:`Run`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..benchmarks.findit.metrics import Figures, Totals, add_up, figures
from ..benchmarks.findit.variant import Variant, parse
from ..boxes.records import Reason
from ..core.files import file_sha256
from ..core.identity import Identity, from_values

_PROVENANCE = "_provenance.json"
_DETAILS = "_details.jsonl"
_SIDE_FILES = ("_provenance", "_identity", "_asked", "_score", "_details")

UNKNOWN_PROMPTS = "unknown"
"""The prompt set of a run that did not record what it asked."""


class RunError(ValueError):
    """A run that cannot be read; the message names the file, and what to do."""


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """One query of a run: its sums and what they are made of.

    ``source`` is the picture or the video that the query shows: queries of the same one are not
    independent.  ``boxes[i]`` is the i-th box that was read, (x1, y1, x2, y2) in pixels of the
    original image, None where a number of it is not finite; ``labels`` and ``frames`` belong to
    them.  ``ious[j]`` is the IoU of the j-th ground-truth box with the box assigned to it,
    ``hits[j]`` whether it was found.  ``totals`` are the sums that enter the figures.
    """

    index: int
    label: str
    image: str
    source: str
    reason: Reason | None
    boxes: tuple[tuple[float, ...] | None, ...]
    labels: tuple[str, ...]
    frames: tuple[int, ...]
    ious: tuple[float, ...]
    hits: tuple[bool, ...]
    totals: Totals

    @property
    def f1(self) -> float:
        """F1@0.5 of this query alone, in percent; silence where nothing is to be found is 100."""
        if not self.totals.n_pred + self.totals.n_gt and not self.totals.failed:
            return 100.0
        return figures(self.totals).f1


@dataclass(frozen=True, slots=True)
class Basis:
    """What a score rests on, as far as its run recorded it.

    ``identity`` is what the run recorded before its first call (None: nothing), ``digest`` its
    short name, ``forced`` what ``--force`` overruled in the run or in its scoring.
    ``prompt_hash`` covers every row of the table.  ``rows`` are the indices that were scored,
    ``missing`` those that were not, of which ``left_out`` had no usable image.  ``versions`` are
    those at inference, ``scored_with`` those of the scoring.
    """

    identity: Identity | None
    digest: str
    forced: tuple[str, ...]

    prompts: str
    prompt_hash: str | None
    table: str
    table_sha256: str
    rows: frozenset[int]
    missing: tuple[int, ...]
    left_out: tuple[int, ...]
    spaces: tuple[str, ...]
    versions: Mapping[str, str]
    scored_with: Mapping[str, str]
    predictions_sha256: str
    scored_at: str


@dataclass(frozen=True, slots=True)
class Run:
    """One scored run: a model over one cell of the grid.  ``path`` is its prediction file."""

    model: str
    variant: Variant
    path: Path
    answers: tuple[ScoredRow, ...]
    basis: Basis

    @property
    def totals(self) -> Totals:
        return add_up(answer.totals for answer in self.answers)

    @property
    def figures(self) -> Figures:
        return figures(self.totals)


def load_runs(paths: Iterable[Path]) -> list[Run]:
    """The scored runs of prediction files and folders, each once, by model and variant.

    Args:
        paths: prediction files, or folders that are searched to any depth.

    Raises:
        FileNotFoundError: a path is not there.
        RunError: a prediction file without a score, a folder without any, files that do not hold
            what :func:`.results.write_score` leaves, or a score of other predictions.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        for provenance in _provenances(path):
            # VLMEvalKit links files of a run's folder into the model's: one run, two paths.
            found.setdefault(provenance.resolve(), provenance)
    runs = [load_run(path) for path in found.values()]
    return sorted(runs, key=lambda run: (run.model, run.variant.name, str(run.path)))


def _provenances(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(path.rglob(f"*{_PROVENANCE}"))
        if not inside:
            raise RunError(
                f"{path}: no scored run in it (no *{_PROVENANCE}); score prediction files with: "
                "python run_findit.py score <model>_<dataset>.json"
            )
        return inside
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    if path.name.endswith(_PROVENANCE):
        return [path]
    stem = path.stem
    for ending in _SIDE_FILES:
        stem = stem.removesuffix(ending)
    beside = path.with_name(stem + _PROVENANCE)
    if not beside.is_file():
        raise RunError(
            f"{path}: not scored yet ({beside.name} is not beside it); score it with: "
            f"python run_findit.py score {path}"
        )
    return [beside]


def load_run(provenance: Path) -> Run:
    """The run of one ``…_provenance.json``; see :func:`load_runs` for what it raises."""
    stem = provenance.name.removesuffix(_PROVENANCE)
    details = provenance.with_name(stem + _DETAILS)
    try:
        values = _checked(_json(provenance.read_text(encoding="utf-8")), _PROVENANCE_SHAPE)
        variant = parse(values["variant"]["name"])
        answers = tuple(_answers(details, variant))
        basis = _basis(values, answers)
        predictions = provenance.with_name(values["predictions"]["file"])
        run = Run(str(values["model"]), variant, predictions, answers, basis)
    except FileNotFoundError:
        raise RunError(f"{details} is missing; {_again(provenance, stem)}") from None
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        what = f"no key {error}" if isinstance(error, KeyError) else str(error)
        raise RunError(f"{provenance}: {what}; {_again(provenance, stem)}") from None
    _check(run, values, provenance)
    return run


def _again(side_file: Path, stem: str) -> str:
    return f"score it again: python run_findit.py score {side_file.with_name(stem)}.json"


def _check(run: Run, values: Mapping[str, Any], provenance: Path) -> None:
    """Details, provenance and predictions must be of one scoring."""
    expected, t = values["totals"], run.totals
    for name in ("responses", "adherent", "failed", "tp", "n_pred", "n_gt", "n_gt_failed"):
        if getattr(t, name) != expected.get(name):
            raise RunError(
                f"{provenance}: totals.{name} is {expected.get(name)}, but the details beside it "
                f"add up to {getattr(t, name)}; {_again(provenance, run.path.stem)}"
            )
    if run.path.is_file() and file_sha256(run.path) != run.basis.predictions_sha256:
        raise RunError(
            f"{run.path}: changed after it was scored; {_again(provenance, run.path.stem)}"
        )


# --- values of other files ------------------------------------------------------------------------

_Shape = Any
"""A type, a union of types, ``[shape of every item]`` or ``{key: shape}``; keys may be missing, and
others may be there."""

_PROVENANCE_SHAPE: _Shape = {
    "model": str,
    "variant": {"name": str},
    "identity": dict | None,
    "digest": str | None,
    "forced": [str],
    "table": {"file": str, "sha256": str},
    "predictions": {"file": str, "sha256": str, "rows_missing": [int]},
    "spaces": [{"kind": str, "source": str}],
    "totals": dict,
    "scored_with": dict,
    "scored_at": str,
}
_DETAIL_SHAPE: _Shape = {
    "index": int,
    "label": str,
    "image": str,
    "failed": bool,
    "adherent": bool,
    "reason": str | None,
    "boxes": [[int | float | None]],
    "ious": [int | float],
    "hits": [bool],
    "labels": [str],
    "frames": [int],
}


def _json(text: str) -> Any:
    return json.loads(text, parse_constant=_no_number)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no figure")


def _checked(value: Any, shape: _Shape, at: str = "") -> Any:
    """A value of a shape.

    Raises:
        TypeError: it has another; the message says where.
    """
    if isinstance(shape, (dict, list)):
        if not isinstance(value, type(shape)):
            raise _other_shape(value, at)
        inner = ((key, shape[key]) for key in shape if key in value)
        if isinstance(shape, list):
            inner = ((place, shape[0]) for place in range(len(value)))
        for key, one in inner:
            _checked(value[key], one, f"{at}.{key}" if at else f"{key}")
    # True is a whole number to Python, but not to a reader.
    elif not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        raise _other_shape(value, at)
    return value


def _other_shape(value: Any, at: str) -> TypeError:
    said = repr(value)
    return TypeError(f"{at or 'it'} should not be {said[:40]}{'…' * (len(said) > 40)}")


def _basis(values: Mapping[str, Any], answers: Iterable[ScoredRow]) -> Basis:
    run = from_values(values["identity"]) if values["identity"] else None
    return Basis(
        identity=run,
        digest=values["digest"] or UNKNOWN_PROMPTS,
        forced=tuple(values["forced"]),
        prompts=(run and run.prompts) or UNKNOWN_PROMPTS,
        prompt_hash=run.prompt_hash if run else None,
        table=values["table"]["file"],
        table_sha256=values["table"]["sha256"],
        rows=frozenset(answer.index for answer in answers),
        missing=tuple(values["predictions"]["rows_missing"]),
        left_out=run.left_out if run else (),
        spaces=tuple(_space_text(space) for space in values["spaces"]),
        versions={**run.host, **run.versions} if run else {},
        scored_with=dict(values["scored_with"]),
        predictions_sha256=values["predictions"]["sha256"],
        scored_at=values["scored_at"],
    )


def _space_text(space: Mapping[str, Any]) -> str:
    settings = " ".join(f"{k}={v}" for k, v in space.items() if k not in ("kind", "source") and v)
    return f"{space['kind']}{' ' if settings else ''}{settings} ({space['source']})"


def _answers(details: Path, variant: Variant) -> Iterator[ScoredRow]:
    with details.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield _answer(_checked(_json(line), _DETAIL_SHAPE), variant)
            except KeyError as error:
                raise RunError(
                    f"{details}, line {number}: no key {error}, as before this version; "
                    + _again(details, details.name.removesuffix(_DETAILS))
                ) from None
            except (TypeError, ValueError) as error:
                raise RunError(f"{details}, line {number}: {error}") from None


_OF_BOXES = ("labels", "frames")


def _answer(row: Mapping[str, Any], variant: Variant) -> ScoredRow:
    ious, hits = tuple(row["ious"]), tuple(row["hits"])
    if len(ious) != len(hits) or any(
        len(row.get(k) or row["boxes"]) != len(row["boxes"]) for k in _OF_BOXES
    ):
        raise ValueError("ious and hits, or boxes and labels or frames, are not as many")
    boxes = tuple(None if None in box else tuple(box) for box in row["boxes"])
    if row["failed"]:
        totals = Totals(failed=1, n_gt_failed=len(ious))
    else:
        totals = Totals(
            responses=1,
            adherent=int(row["adherent"]),
            tp=sum(hits),
            n_pred=len(boxes),
            n_gt=len(ious),
            iou_sum=sum(ious),
        )
    return ScoredRow(
        index=row["index"],
        label=row["label"],
        image=row["image"],
        source=source_of(row["image"]) if variant.row.family.is_video else row["image"],
        reason=Reason(row["reason"]) if row["reason"] else None,
        boxes=boxes,
        labels=tuple(row.get("labels", ())),
        frames=tuple(row.get("frames", ())),
        ious=ious,
        hits=hits,
        totals=totals,
    )


def source_of(frame: str) -> str:
    """The video that a frame is of: its path without the frame's number.

    >>> source_of("000005/rgb/00003.png"), source_of("qyrH8GUlgC4_f008606.jpg")
    ('000005/rgb', 'qyrH8GUlgC4')
    """
    return re.sub(r"[_/]f?\d+\.\w+$", "", frame)
