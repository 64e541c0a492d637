"""Scored runs as data frames, and the comparison of two runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import scoring
from ..core import counted, suggestion
from ..protocol import DrawnBox, Reply, Role, ScoredRow
from ..scoring import Run, reviewed_runs
from ..storage import read_predictions, read_reviews

if TYPE_CHECKING:
    import pandas as pd

    from ..report import Transcript

PathLikeStr = str | PathLike[str]
Paths = PathLikeStr | Iterable[PathLikeStr]
"""Prediction files, or folders that are searched to any depth."""

OUTPUTS = "outputs"
"""The folder of runs by default."""

_FIRST = (
    "model", "dataset", "format", "index", "image", "prompt", "reply", "truth", "score", "drawn",
)  # fmt: skip


def load_runs(paths: Paths = OUTPUTS, reviews: Paths | None = None) -> pd.DataFrame:
    """Return a row for each query of scored runs: prompt, reply, truth, boxes and score.

    >>> queries = load_runs("outputs")
    >>> queries.groupby("model").score.mean().round().to_dict()
    {'Good': 94.0, 'Poor': 17.0}

    Args:
        paths: prediction files, or folders of them.
        reviews: as for :func:`open_runs`; their ``dataset`` ends in ``[reviewed …]``.

    Returns:
        ``image`` is the absolute path of the image (a list of several), ``truth`` the ground truth
        ((N, 4) corners in pixels of the original image, or texts), ``boxes`` the answered corners
        in the same pixels, ``hits`` and ``ious`` a value for each object, ``errors`` the error
        types, ``score`` the value of the query alone in percent, ``drawn`` the boxes on each image
        with their roles (:func:`.draw_answer`). Then come further details, sums and slices; a slice
        with the name of an earlier column has ``(part)`` behind its name. Image, prompt, truth and
        ``drawn`` are None, with a warning, if the table, the images or the words of the prompts no
        longer exist. Where two scorers scored runs of a dataset, or no call of a run was answered,
        a warning says what to type. The rows of a dataset can be kept as Parquet: values are texts,
        numbers, and lists of them.

    Raises:
        FileNotFoundError: a path does not exist.
        RunError: there is no scored run; the message says what to type.
    """
    # They import scipy and the drawing of benchmarks.
    import pandas as pd

    from ..report import gather_transcripts

    runs = open_runs(paths, reviews)
    _warn_of_apart(runs)
    transcripts, missing = gather_transcripts(runs)
    for each in missing:
        warnings.warn(f"{each.run!r}: no images, prompts, truths: {each.reason}", stacklevel=2)
    by_path = {each.run.files.provenance: each for each in transcripts}
    rows = [
        {**known, **_variant(by_path.get(run.files.provenance), row)}
        for run in runs
        for row, known in zip(run.rows, query_rows(run), strict=True)
    ]
    without_image = [row for row in rows if row["drawn"] is not None and row["image"] is None]
    if without_image:
        folders = ", ".join(dict.fromkeys(str(each.images) for each in transcripts))
        warnings.warn(
            f"{counted(len(without_image), 'row')} without image in {folders}", stacklevel=2
        )
    frame = pd.DataFrame(rows)
    return frame[[*_FIRST, *frame.columns.difference(list(_FIRST), sort=False)]] if rows else frame


def load_scores(paths: Paths = OUTPUTS, reviews: Paths | None = None) -> pd.DataFrame:
    """Return a row for each scored run: metrics in percent, 95 % intervals, and provenance.

    >>> scores = load_scores("outputs")
    >>> scores[["model", "F1@0.5", "F1@0.5 low", "F1@0.5 high", "failed calls"]].round(0)
      model  F1@0.5  F1@0.5 low  F1@0.5 high  failed calls
    0  Good    96.0        48.0        100.0             0
    1  Poor    22.0         4.0         68.0             0

    ``reviews`` are as for :func:`open_runs`. Where two scorers scored runs of a dataset, a warning
    says what to type; so does one of each run in which no call was answered, whose metrics are NaN.

    Raises:
        FileNotFoundError: a path does not exist.
        RunError: there is no scored run.
    """
    import pandas as pd

    runs = open_runs(paths, reviews)
    _warn_of_apart(runs)
    return pd.DataFrame([row_of_run(run) for run in runs])


def _warn_of_apart(runs: Sequence[Run]) -> None:
    """Warn of each reason why runs are not compared: no answers, or two scorers of a dataset."""
    # It imports scipy.
    from ..leaderboard import of_answered_calls, of_one_scorer

    answered, unanswered = of_answered_calls(runs)
    for each in unanswered:
        warnings.warn(f"{each.run.path}: {each.reason}", stacklevel=3)
    _, others = of_one_scorer(answered)
    for reason in dict.fromkeys(each.reason for each in others):
        warnings.warn(f"not to be compared with the rest: {reason}", stacklevel=3)


def open_runs(paths: Paths = OUTPUTS, reviews: Paths | None = None) -> list[Run]:
    """Return scored runs, each once, by model and dataset.

    >>> open_runs("outputs")[0]
    Run(Good on FindIt_Pascal_xyxy_json_bbox_2d, 12 queries)

    Args:
        paths: prediction files, or folders of them.
        reviews: files of reviews of labels: runs whose table they review follow, scored with them.
            Where it is missing it is made, and written next to the other score.

    Raises:
        FileNotFoundError: a path does not exist.
        RunError: there is no scored run.
        ReviewsError: ``reviews`` are of no table of these runs, or cannot be read.
    """
    runs = scoring.load_runs(_paths(paths))
    return runs if reviews is None else runs + _reviewed(runs, reviews)


def _paths(paths: Paths) -> list[Path]:
    return [Path(paths)] if isinstance(paths, (str, PathLike)) else list(map(Path, paths))


def _reviewed(runs: Sequence[Run], reviews: Paths) -> list[Run]:
    """Return the scores of runs with files of reviews."""
    return list(reviewed_runs(runs, read_reviews(_paths(reviews))).runs)


def compare(
    run: Run | PathLikeStr,
    other: Run | PathLikeStr,
    within: PathLikeStr = OUTPUTS,
    reviews: Paths | None = None,
) -> pd.DataFrame:
    """Subtract the metrics of a run from those of another: two models, or two formats of a model.

    >>> table = compare("Good", "Poor")
    >>> table.loc["F1@0.5", ["A", "B", "A - B"]].round().tolist(), table.columns.name
    ([96.0, 22.0, 73.0], 'Good minus Poor')

    Args:
        run: A: a run of :func:`open_runs`; the path of its predictions or folder; or a name, of a
            model with one run or of a prediction file without its suffix.
        other: B: the run that is subtracted.
        within: the folder in which names are looked up.
        reviews: files of reviews of labels; both runs are scored with them, as by
            :func:`open_runs`.

    Returns:
        A row for each metric that both have: A and B, in percent; A - B with its 95 % interval,
        paired over images; and p. The name of the columns has the names of both. Failed calls are
        misses in the first row; the other metrics are over answered calls, and have neither
        interval nor p, with a warning, where A and B answered different queries.

    Raises:
        ValueError: an argument is not exactly one run; or (a StatisticsError) the runs have
            different rows, none, or two scorers scored them; or reviewers saw the answers
            of one of them, and no random rows were reviewed.
    """
    # They import scipy.
    from ..analysis import run_statistics
    from ..leaderboard import comparison_table

    pair = _single_run(run, within), _single_run(other, within)
    if reviews is not None:
        by_path = {each.path: each for each in _reviewed(pair, reviews)}
        pair = by_path[pair[0].path], by_path[pair[1].path]
    names = [each.model for each in pair]
    if names[0] == names[1]:
        names = [each.variant.name for each in pair]
    if run_statistics.untested_metrics(*pair):
        failed = ", ".join(f"{n}: {each.failed}" for n, each in zip("AB", pair, strict=True))
        warnings.warn(
            f"failed calls ({failed}): A and B answered different queries, so only "
            f"{pair[0].benchmark.headline_counting_failures.name!r} is tested",
            stacklevel=2,
        )
    frame: pd.DataFrame = comparison_table(*pair, run_statistics.compare_runs(*pair)).frame()
    return frame.set_index("metric").rename_axis(columns=" minus ".join(names))


def _single_run(value: Run | PathLikeStr, within: PathLikeStr) -> Run:
    if isinstance(value, Run):
        return value
    if not isinstance(value, (str, PathLike)):
        raise ValueError(
            f"{type(value).__name__} is not a run: use a run of open_runs(…), the path of its "
            "predictions, or its name"
        )
    if Path(value).exists():
        runs = open_runs(value)
    else:
        every = open_runs(within) if Path(within).exists() else []
        runs = [run for run in every if value in (run.model, run.path.stem)]
        if not runs:
            near = suggestion(
                str(value), {n: 0 for run in every for n in (run.model, run.path.stem)}
            )
            why = f"is neither a file, nor a folder, nor a run in {within}{near}"
            raise ValueError(f"{str(value)!r} {why}")
    if len(runs) != 1:
        several = ", ".join(str(run.path) for run in runs[:3])
        if len(runs) > 3:
            several += ", …"
        raise ValueError(f"{value}: {len(runs)} runs, but one is needed: {several}")
    return runs[0]


def row_of_run(run: Run) -> dict[str, Any]:
    """Return a row of :func:`load_scores`."""
    # It imports scipy.
    from ..leaderboard import runs_table

    provenance = run.provenance
    return runs_table([run]).records()[0] | {
        "space": "; ".join(provenance.spaces_in_words),
        "prompts": provenance.prompts,
        "prompts hash": provenance.prompt_hash,
        "table": provenance.table.file,
        "table sha256": provenance.table_sha256,
        "rows missing": len(provenance.missing),
        "forced": list(provenance.forced),
        "coords doubt": provenance.coords_doubt,
        "answered by": [model.name for model in provenance.models],
        "versions": dict(provenance.versions),
        "scored with": dict(provenance.scored_with),
    }


def query_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield reply, score and details of every query of a run, which need no table."""
    from ..analysis import error_types_of

    replies: dict[int, Reply] = {}
    if run.path.is_file():
        replies = {reply.index: reply for reply in read_predictions(run.path)}
    columns = {*_FIRST} | {name for row in run.rows for name in (*row.details, *row.sums)}
    for row, errors in zip(run.rows, error_types_of(run), strict=True):
        known = {
            "model": run.model,
            "dataset": run.dataset_name,
            "format": run.variant.format,
            "index": row.index,
            **_call(replies.get(row.index)),
            "score": run.benchmark.query_score(row),
            "failed": row.failed,
            "reason": row.reason,
            "errors": list(errors),
            "source": row.source,
        }
        # Sums override details of the same name: they are zero for a failed call.
        rest = {**row.details, **row.sums}
        # A custom slice may have any name.
        for kind, value in row.slices.items():
            is_column = kind in columns or kind in known
            rest[f"{kind} (part)" if is_column else kind] = value
        yield known | rest | known


def _call(reply: Reply | None) -> dict[str, Any]:
    if reply is None:
        return {"reply": None}
    call = reply.recorded.call
    tokens = reply.recorded.tokens
    return {
        "reply": None if reply.failed else reply.text,
        "error": call.get("error") or (reply.text if reply.failed else None),
        "cost in USD": call.get("cost"),
        "tokens in": tokens.get("prompt"),
        "tokens out": tokens.get("completion", tokens.get("reply")),
        "seconds": reply.time.seconds,
    }


def _variant(transcript: Transcript | None, row: ScoredRow) -> dict[str, Any]:
    if transcript is None:
        return dict.fromkeys(("image", "prompt", "truth", "drawn"))
    drawing = transcript.draw(row)
    paths = [(transcript.images / each.path).absolute() for each in drawing.images]
    images = [str(path) for path in paths if path.is_file()]
    image: str | list[str] | None = None
    if len(images) == len(paths):
        image = images[0] if len(images) == 1 else images
    drawn = [box for image in drawing.images for box in image.boxes]
    boxes = [list(box.box) for box in drawn if box.role is Role.TRUTH]
    texts = [line.text for line in drawing.lines if line.role is Role.TRUTH]
    return {
        "image": image,
        "prompt": transcript.prompt(row.index) if transcript.prompts else None,
        "truth": texts if texts and not boxes else boxes,
        "drawn": [[_plain_box(box) for box in image.boxes] for image in drawing.images],
    }


def _plain_box(box: DrawnBox) -> dict[str, Any]:
    """Return a box as values that every format of tables can hold."""
    return {
        "role": box.role.value,
        "box": [float(number) for number in box.box],
        "label": box.label,
        "value": None if box.value is None else float(box.value),
    }
