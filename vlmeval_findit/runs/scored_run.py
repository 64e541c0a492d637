"""Scored runs: what statistics, leaderboard and report read, and nothing else.

A run is one prediction file that was scored: ``<stem>_provenance.json`` and
``<stem>_details.jsonl`` beside it, as :func:`.results.write_score` leaves them.  The model is not
asked and the annotation table is not needed.  Every score becomes one frozen :class:`Run`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

from ..benchmarks import benchmark_of, parse
from ..core.benchmark import Benchmark
from ..core.files import file_sha256
from ..core.identity import Identity
from ..core.identity_file import from_values
from ..core.metric import figures
from ..core.question import Question
from ..core.scored_row import ScoredRow, add_up

_PROVENANCE = "_provenance.json"
_DETAILS = "_details.jsonl"
_SIDE_FILES = ("_provenance", "_identity", "_asked", "_score", "_details")

UNKNOWN_PROMPTS = "unknown"
"""The prompt set of a run that did not record what it asked."""


class RunError(ValueError):
    """A run that cannot be read; the message names the file, and what to do."""


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
    """One scored run: a model over one question.  ``path`` is its prediction file."""

    model: str
    question: Question
    path: Path
    rows: tuple[ScoredRow, ...]
    basis: Basis

    @property
    def benchmark(self) -> Benchmark:
        return benchmark_of(self.question.name)

    @property
    def sums(self) -> Mapping[str, float]:
        """The sums of all rows, of their slices too."""
        return add_up(row.all_sums() for row in self.rows)

    @property
    def figures(self) -> Mapping[str, float | None]:
        """The figures in percent, by the names of metrics."""
        return figures(self.benchmark.metrics, self.sums)

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(row.failed for row in self.rows)


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
    return sorted(runs, key=lambda run: (run.model, run.question.name, str(run.path)))


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
        question = parse(values["variant"]["name"])
        rows = tuple(_rows(details))
        basis = _basis(values, rows)
        predictions = provenance.with_name(values["predictions"]["file"])
        run = Run(str(values["model"]), question, predictions, rows, basis)
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
    expected = values["totals"]
    found = add_up(row.sums for row in run.rows)
    for name in {**expected, **found}:
        said, is_ = expected.get(name), found.get(name, 0)
        if said is None or not isclose(said, is_, rel_tol=1e-9, abs_tol=1e-9):
            raise RunError(
                f"{provenance}: totals.{name} is {said}, but the details beside it "
                f"add up to {is_}; {_again(provenance, run.path.stem)}"
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
_ROW_SHAPE: _Shape = {
    "index": int,
    "source": str,
    "failed": bool,
    "reason": str | None,
    "sums": dict,
    "slices": dict,
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


def _basis(values: Mapping[str, Any], rows: Iterable[ScoredRow]) -> Basis:
    run = from_values(values["identity"]) if values["identity"] else None
    return Basis(
        identity=run,
        digest=values["digest"] or UNKNOWN_PROMPTS,
        forced=tuple(values["forced"]),
        prompts=(run and run.prompts) or UNKNOWN_PROMPTS,
        prompt_hash=run.prompt_hash if run else None,
        table=values["table"]["file"],
        table_sha256=values["table"]["sha256"],
        rows=frozenset(row.index for row in rows),
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


def _rows(details: Path) -> Iterator[ScoredRow]:
    with details.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield _row(_checked(_json(line), _ROW_SHAPE))
            except KeyError as error:
                raise RunError(
                    f"{details}, line {number}: no key {error}, as before this version; "
                    + _again(details, details.name.removesuffix(_DETAILS))
                ) from None
            except (TypeError, ValueError) as error:
                raise RunError(f"{details}, line {number}: {error}") from None


def _row(values: Mapping[str, Any]) -> ScoredRow:
    for of in ("sums", "slices"):
        wanted = (int, float) if of == "sums" else str
        for name, value in values.get(of, {}).items():
            if isinstance(value, bool) or not isinstance(value, wanted):
                raise TypeError(f"{of}.{name} should not be {value!r:.40}")
    known = {name: values[name] for name in ("index", "source", "failed", "reason", "sums")}
    slices = values.get("slices", {})
    rest = {name: value for name, value in values.items() if name not in (*known, "slices")}
    return ScoredRow(**known, slices=slices, details=rest)
