"""Scored runs as data frames, and two of them held against each other."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.drawing import Role
from ..core.formatting import nearest
from ..core.predictions import read_predictions
from ..core.replies import Reply
from ..core.scored_row import ScoredRow
from ..runs import scored_run
from ..runs.scored_run import Run

if TYPE_CHECKING:
    import pandas as pd

    from ..report.transcripts import Transcript

OnePath = str | PathLike[str]
Paths = OnePath | Iterable[OnePath]
"""Prediction files, or folders that are searched to any depth."""

OUTPUTS = "outputs"
"""Where runs lie unless somebody says otherwise."""

_FIRST = ("model", "dataset", "format", "index", "image", "prompt", "reply", "truth", "score")


def load_runs(paths: Paths = OUTPUTS) -> pd.DataFrame:
    """Return one row a query of scored runs: what was asked and answered, and its score.

    ``image`` is the absolute path of the image (a list of them where there are several), ``truth``
    what was right (boxes in pixels of the original image, or texts), ``errors`` the types of its
    errors, ``score`` the query's own value in percent.  Then come its details as the details file
    has them (``boxes`` in pixels, ``hits``, ``ious``, …), its sums, and its slices: one that is
    called as a column before it has ``(part)`` behind its name.  What is not at hand any more (the
    table, the images' folder, the words of a prompt) is None, and a warning says why.

    Raises:
        FileNotFoundError: a path is not there.
        RunError: what is there is no scored run; the message says what to type.
    """
    # They bring the benchmarks' drawing, and scipy.
    import pandas as pd

    from ..report.transcripts import gather

    runs = open_runs(paths)
    found, missing = gather(runs)
    for one in missing:
        warnings.warn(f"{one.run!r}: no images, prompts, truths: {one.reason}", stacklevel=2)
    asked = {one.run.path: one for one in found}
    rows = [
        {**known, **_asked(asked.get(run.path), row)} for run in runs for row, known in _scored(run)
    ]
    frame = pd.DataFrame(rows)
    return frame[[*_FIRST, *frame.columns.difference(list(_FIRST), sort=False)]] if rows else frame


def load_scores(paths: Paths = OUTPUTS) -> pd.DataFrame:
    """Return one row a scored run: metrics in percent, 95 % intervals, and what they rest on."""
    import pandas as pd

    return pd.DataFrame([run_row(run) for run in open_runs(paths)])


def open_runs(paths: Paths = OUTPUTS) -> list[Run]:
    """Return scored runs, each once, by model and dataset; see :func:`load_runs`."""
    given = [paths] if isinstance(paths, (str, PathLike)) else paths
    return scored_run.load_runs(map(Path, given))


def compare(run: Run | OnePath, other: Run | OnePath, within: OnePath = OUTPUTS) -> pd.DataFrame:
    """Subtract the metrics of ``other`` from those of ``run``: two models, or two formats of one.

    Args:
        run: a run of :func:`open_runs`, the path of its predictions or folder, or a name: of a
            model with one run, or of a prediction file without its suffix.
        other: the one that is subtracted, likewise.
        within: the folder in which names are looked up.

    Returns:
        One row a metric that both have: both values (A, B), A - B with its 95 % interval, paired
        over images, and p.  The name of the columns says what is subtracted from what.

    Raises:
        ValueError: what is given is not exactly one run; or (a StatisticsError) the runs have other
            rows, or none, or were scored by something else.
    """
    # It brings scipy.
    from ..leaderboard.run_tables import comparison_table
    from ..runs.run_statistics import compare as compare_runs

    pair = _one_run(run, within), _one_run(other, within)
    names = [run.model for run in pair]
    if names[0] == names[1]:
        names = [run.question.name for run in pair]
    frame: pd.DataFrame = comparison_table(*pair, compare_runs(*pair)).frame()
    return frame.set_index("metric").rename_axis(columns=" minus ".join(names))


def _one_run(given: Run | OnePath, within: OnePath) -> Run:
    if isinstance(given, Run):
        return given
    if not isinstance(given, (str, PathLike)):
        raise ValueError(
            f"{type(given).__name__} is no run: give one of open_runs(…), the path of its "
            "predictions, or its name"
        )
    found = open_runs(given) if Path(given).exists() else _named(str(given), within)
    if len(found) != 1:
        several = ", ".join(str(run.path) for run in found[:3]) + ", …" * (len(found) > 3)
        raise ValueError(f"{given}: {len(found)} runs where one is compared: {several}")
    return found[0]


def _named(name: str, within: OnePath) -> list[Run]:
    runs = open_runs(within) if Path(within).exists() else []
    found = [run for run in runs if name in (run.model, run.path.stem)]
    if not found:
        names = dict.fromkeys(name for run in runs for name in (run.model, run.path.stem))
        raise ValueError(
            f"{name!r} is no file or folder here, and no run in {within}{nearest(name, names)}"
        )
    return found


def run_row(run: Run) -> dict[str, Any]:
    """Return one row of :func:`load_scores`: values and intervals, and what they rest on."""
    # It brings scipy.
    from ..leaderboard.run_tables import runs_table

    provenance = run.provenance
    return runs_table([run]).records()[0] | {
        "space": "; ".join(provenance.spaces),
        "prompts": provenance.prompts,
        "prompts hash": provenance.prompt_hash,
        "table": provenance.table,
        "table sha256": provenance.table_sha256,
        "rows missing": len(provenance.missing),
        "forced": list(provenance.forced),
        "coordinate check": provenance.coords_doubt,
        "versions": dict(provenance.versions),
        "scored with": dict(provenance.scored_with),
    }


def query_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield what is known of every query of a run without its table: reply, score, details."""
    return (known for _, known in _scored(run))


def _scored(run: Run) -> Iterator[tuple[ScoredRow, dict[str, Any]]]:
    from ..runs.run_errors import error_types_of

    replies: dict[int, Reply] = {}
    if run.path.is_file():
        replies = {reply.index: reply for reply in read_predictions(run.path)}
    taken = {name for row in run.rows for name in (*row.details, *row.sums)}
    for row, errors in zip(run.rows, error_types_of(run), strict=True):
        known = {
            "model": run.model,
            "dataset": run.question.name,
            "format": run.question.format,
            "index": row.index,
            **_call(replies.get(row.index)),
            "score": run.benchmark.query_score(row),
            "failed": row.failed,
            "reason": row.reason,
            "errors": list(errors),
            "picture": row.source,
        }
        # Sums go before details of their names: of a failed call they count nothing.
        rest = {**row.details, **row.sums}
        # A custom slice may be called as anything else is.
        for kind, value in row.slices.items():
            is_column = kind in taken or kind in known or kind in _FIRST
            rest[f"{kind} (part)" if is_column else kind] = value
        yield row, {**known, **{name: value for name, value in rest.items() if name not in known}}


def _call(reply: Reply | None) -> dict[str, Any]:
    """Return what was answered, and what was recorded of the call, as far as anything was."""
    if reply is None:
        return {"reply": None}
    call, tokens = reply.recorded.call, reply.recorded.tokens
    return {
        "reply": None if reply.failed else reply.text,
        "error": call.get("error") or (reply.text if reply.failed else None),
        "cost in USD": call.get("cost"),
        "tokens in": tokens.get("prompt"),
        "tokens out": tokens.get("completion", tokens.get("reply")),
    }


def _asked(asked: Transcript | None, row: ScoredRow) -> dict[str, Any]:
    """Return what was asked and what is right."""
    if asked is None:
        return dict.fromkeys(("image", "prompt", "truth"))
    drawing = asked.draw(row)
    images = [str((asked.pictures / one.path).absolute()) for one in drawing.pictures]
    boxes = [list(x.box) for one in drawing.pictures for x in one.boxes if x.role is Role.TRUTH]
    texts = [line.text for line in drawing.lines if line.role is Role.TRUTH]
    return {
        "image": images[0] if len(images) == 1 else images,
        "prompt": asked.prompt(row.index) if asked.words else None,
        "truth": texts if texts and not boxes else boxes,
    }
