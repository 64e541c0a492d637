"""Scored runs as data frames: one row a run, one row a query."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ..core.drawing import Role
from ..core.predictions import read_predictions
from ..core.replies import Reply
from ..core.scored_row import ScoredRow
from ..core.spelling import nearest
from ..runs import scored_run
from ..runs.scored_run import Run

if TYPE_CHECKING:
    import pandas as pd

    from ..core.statistics import Difference
    from ..leaderboard.table import Table
    from ..report.transcripts import Transcript


_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Runs(Sequence[Run]):
    """Scored runs, by model and dataset; a sequence of :class:`..runs.scored_run.Run`."""

    runs: tuple[Run, ...]

    def __repr__(self) -> str:
        """How many, and the first of them: a run has thousands of rows."""
        first = ", ".join(map(repr, self.runs[:_SHOWN]))
        more = ", …" * (len(self.runs) > _SHOWN)
        return f"Runs({len(self.runs)}: {first}{more})"

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> Runs: ...
    def __getitem__(self, at: int | slice) -> Run | Runs:
        return Runs(self.runs[at]) if isinstance(at, slice) else self.runs[at]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def frame(self) -> pd.DataFrame:
        """Return one row a run: what was asked of whom, values in percent with 95 % intervals."""
        import pandas as pd

        return pd.DataFrame([run_row(run) for run in self.runs])

    def queries(self) -> pd.DataFrame:
        """Return one row a query of every run: what was asked and answered, and its score.

        ``image`` is the absolute path of the image (a list of them where there are several),
        ``truth`` what was right (boxes in pixels of the original image, or texts), ``errors`` the
        types of its errors, ``score`` the query's own value in percent.  Then come its details as
        the details file has them (boxes are in pixels, too), its sums, and its slices: one that is
        called as a column before it has ``(part)`` behind its name.  What is not at hand any more
        (the table, the images' folder, the words of a prompt) is None, and a warning says why.
        """
        # They bring the benchmarks' drawing, and scipy.
        import pandas as pd

        from ..report.transcripts import gather

        rows: list[dict[str, Any]] = []
        for run in self.runs:
            found, missing = gather([run])
            for one in missing:
                warnings.warn(f"{run!r}: no images, prompts, truths: {one.reason}", stacklevel=2)
            asked = found[0] if found else None
            rows += ({**known, **_asked(asked, row)} for row, known in _scored(run))
        frame = pd.DataFrame(rows)
        first = list(_FIRST)
        return frame[[*first, *frame.columns.difference(first, sort=False)]] if rows else frame


_FIRST = ("model", "dataset", "format", "index", "image", "prompt", "reply", "truth", "score")


def load_runs(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
) -> Runs:
    """The scored runs of prediction files and folders, each once.

    Args:
        paths: prediction files, or folders that are searched to any depth.

    Raises:
        FileNotFoundError: a path is not there.
        RunError: what is there is no scored run; the message says what to do.
    """
    if isinstance(paths, (str, PathLike)):
        paths = [paths]
    return Runs(tuple(scored_run.load_runs(map(Path, paths))))


RunLike = Run | Runs | str | PathLike[str]
"""A run, the path of its prediction file or folder, or its name."""


class Comparison(Mapping[str, "Difference"]):
    """The metrics of one run minus those of another, by their names; ``direction`` says which.

    Each difference has its 95 % interval and p-value, paired over images.
    """

    def __init__(self, run: Run, other: Run, differences: Mapping[str, Difference]) -> None:
        self.run, self.other, self._differences = run, other, differences

    def __getitem__(self, metric: str) -> Difference:
        return self._differences[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self._differences)

    def __len__(self) -> int:
        return len(self._differences)

    @property
    def direction(self) -> str:
        """What is subtracted from what."""
        names = (f"{one.model} on {one.question.name}" for one in (self.run, self.other))
        return " minus ".join(names)

    @property
    def table(self) -> Table:
        """One row a metric: both values, the difference with its interval, and its p-value."""
        from ..leaderboard.comparison import comparison_table

        return comparison_table(self.run, self.other, self._differences)

    def __repr__(self) -> str:
        from ..leaderboard.render import to_plain

        return to_plain(self.table)


def compare(run: RunLike, other: RunLike, within: str | PathLike[str] = "outputs") -> Comparison:
    """Subtract the metrics of ``other`` from those of ``run``: two models, or two formats of one.

    A metric that one of them lacks is left out.

    Args:
        run: a run of :func:`load_runs`, the path of its predictions or folder, or a name: of a
            model with one run, or of a prediction file without its suffix.
        other: the one that is subtracted, likewise.
        within: the folder in which names are looked up.

    Raises:
        ValueError: what is given is not exactly one run; or (a StatisticsError) the runs have other
            rows, or none, or were scored by something else.
    """
    # It brings scipy.
    from ..runs import comparison

    first, second = _one_run(run, within), _one_run(other, within)
    return Comparison(first, second, comparison.compare(first, second))


def _one_run(given: RunLike, within: str | PathLike[str]) -> Run:
    if isinstance(given, Run):
        return given
    if not isinstance(given, (Runs, str, PathLike)):
        raise ValueError(
            f"{type(given).__name__} is no run: give one of load_runs(…), the path of its "
            "predictions, or its name"
        )
    found = given if isinstance(given, Runs) else _runs_at(given, within)
    if len(found) != 1:
        raise ValueError(f"{len(found)} runs where one is compared: choose one of {found!r}")
    return found[0]


def _runs_at(given: str | PathLike[str], within: str | PathLike[str]) -> Runs:
    """Load the runs at a path, or else those of a name."""
    if Path(given).exists():
        return load_runs(given)
    runs = load_runs(within) if Path(within).exists() else Runs(())
    named = Runs(tuple(run for run in runs if str(given) in (run.model, run.path.stem)))
    if not named:
        names = [name for run in runs for name in (run.model, run.path.stem)]
        raise ValueError(
            f"{str(given)!r} is no file or folder here, and no run in {within}"
            f"{nearest(str(given), dict.fromkeys(names))}"
        )
    return named


def run_row(run: Run) -> dict[str, Any]:
    """Return one row of :meth:`Runs.frame`."""
    # It brings scipy.
    from ..leaderboard.tables import runs_table

    return runs_table([run]).records()[0]


def query_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield what is known of every query of a run without its table: reply, score, details."""
    return (known for _, known in _scored(run))


def _scored(run: Run) -> Iterator[tuple[ScoredRow, dict[str, Any]]]:
    from ..runs.anatomy import causes_of

    replies: dict[int, Reply] = {}
    if run.path.is_file():
        replies = {reply.index: reply for reply in read_predictions(run.path)}
    taken = {name for row in run.rows for name in (*row.details, *row.sums)}
    for row, errors in zip(run.rows, causes_of(run), strict=True):
        known = {
            "model": run.model,
            "dataset": run.question.name,
            "format": run.question.format,
            "index": row.index,
            **_call(replies.get(row.index)),
            "score": run.benchmark.goodness(row),
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
