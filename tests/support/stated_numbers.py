"""What every output says of the same runs: a number by what it is of, wherever it stands.

A reader takes a folder of scored runs, and yields what one output states: (column of the board,
model, format, metric) with its number as that output writes it. Numbers as texts have fewer digits.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings

from openpyxl import load_workbook

import vlmeval_findit as findit
from vlmeval_findit.cli import main
from vlmeval_findit.export import trackers
from vlmeval_findit.leaderboard import (
    Board,
    board_folder,
    boards,
    group_comparable,
    learning_curves,
)
from vlmeval_findit.report import losses_of, panels_of
from vlmeval_findit.scoring import Run, load_runs, reviewed_runs
from vlmeval_findit.storage import read_reviews


class Stated(NamedTuple):
    """A number, and what it is of."""

    column: str  # A dataset of a board, with reviews apart; or a benchmark's ``mean: …``
    model: str
    format: str  # "" where an output has none: the reported one
    name: str  # Of a metric, as it is in files
    value: float
    digits: int = 9


class Outputs:
    """A folder of scored runs with reviews, and its outputs, made once."""

    def __init__(self, runs: Path, reviews: Path, out: Path) -> None:
        self.folder = runs
        self.reviews = reviews
        self.out = out

    @cached_property
    def runs(self) -> list[Run]:
        runs = load_runs([self.folder])
        return runs + list(reviewed_runs(runs, read_reviews([self.reviews])).runs)

    @cached_property
    def boards(self) -> list[Board]:
        return boards(self.runs)

    @cached_property
    def printed(self) -> str:
        """What ``leaderboard`` prints, which writes :meth:`files`."""
        return printed(
            "leaderboard", self.folder, "--out", self.out / "board", "--reviews", self.reviews
        )

    def files(self, name: str) -> Iterator[tuple[Board, Path]]:
        """Yield the file of that name of each board."""
        assert self.printed
        for board in self.boards:
            yield board, board_folder(board, self.out / "board") / name


def typed(*words: object) -> tuple[int, str, str]:
    """Return the status of a command, what it prints, and what it says beside it."""
    out, said = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(said):
        status = main(list(map(str, words)))
    return status, out.getvalue(), said.getvalue()


def printed(*words: object) -> str:
    status, out, said = typed(*words)
    assert status == 0, said
    return out


def _metrics(board: Board) -> dict[str, str]:
    """Return the names of the metrics of a board by their titles."""
    return {metric.title: metric.name for metric in board.metrics}


# --- files of the leaderboard ---------------------------------------------------------------------


def formats_csv(made: Outputs) -> Iterator[Stated]:
    """Every run: what all others are held against."""
    for board, path in made.files("formats.csv"):
        for row in csv.DictReader(path.open(encoding="utf-8", newline="")):
            yield from _of_row(row, _column(board, row["dataset"]), row["format"], 4)


def leaderboard_csv(made: Outputs) -> Iterator[Stated]:
    for board, path in made.files("leaderboard.csv"):
        for row in csv.DictReader(path.open(encoding="utf-8", newline="")):
            if not row.get("published in"):
                yield from _of_row(row, _column(board, row["dataset"]), row["format"], 4)


def leaderboard_json(made: Outputs) -> Iterator[Stated]:
    for board, path in made.files("leaderboard.json"):
        for row in json.loads(path.read_text("utf-8"))["rows"]:
            if not row.get("published in"):
                flat = {**row}
                for name, value in row.items():
                    if isinstance(value, Mapping):
                        ends = {f"{name} {end}": value.get(end) for end in ("low", "high")}
                        flat |= {name: value["value"], **ends}
                yield from _of_row(flat, _column(board, row["dataset"]), row["format"])


def sheet(made: Outputs) -> Iterator[Stated]:
    """The sheets of all values and of all formats."""
    for board, path in made.files("leaderboard.xlsx"):
        for name in ("All values", "Formats"):
            rows = [
                row for row in load_workbook(path)[name].iter_rows(values_only=True) if any(row)
            ]
            at = next(
                place for place, row in enumerate(rows) if "dataset" in row and "model" in row
            )
            for values in rows[at + 1 :]:
                row = dict(zip(rows[at], values, strict=True))
                if row["dataset"] and row["model"] and not row.get("published in"):
                    column = _column(board, row["dataset"])
                    yield from _of_row(row, column, row["format"] or "")


def _column(board: Board, column: str) -> str:
    """Name a mean with its benchmark; datasets have names of their own."""
    return f"{board.benchmark.name} {column}" if column.startswith("mean: ") else column


def _of_row(row: Mapping[str, Any], column: str, format_: str, digits: int = 9) -> Iterator[Stated]:
    for name, value in row.items():
        if value in (None, "") or name in _NO_VALUES:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        yield Stated(column, row["model"], format_, name, number, digits)


_NO_VALUES = ("model", "dataset", "format", "family", "USD source", "image size", "images")


def markdown(made: Outputs) -> Iterator[Stated]:
    """The table of each metric: columns are means and datasets."""
    for board, path in made.files("leaderboard.md"):
        titles = _metrics(board)
        sections = path.read_text("utf-8").replace("\\", "").split("\n## ")
        for section in sections:
            title, _, rest = section.partition("\n")
            if title in titles:
                lines = [line for line in rest.splitlines() if line.startswith("|")]
                rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
                yield from _cells(rows[0], rows[2:], titles[title], board)


def latex(made: Outputs) -> Iterator[Stated]:
    for board, path in made.files("leaderboard.tex"):
        titles = _metrics(board)
        for table in path.read_text("utf-8").split(r"\begin{table")[1:]:
            plain = table.replace("\\_", "_").replace("\\%", "%").replace("\\$", "$")
            caption = re.search(r"\\caption\{(.*?)[.}]? ?(Prompts|\}|\n)", plain)
            title = next((each for each in titles if caption and caption[1].startswith(each)), None)
            exact = [each for each in titles if caption and caption[1].rstrip(". ") == each]
            title = exact[0] if exact else title
            if title is None:
                continue
            rows = [
                [cell.strip() for cell in line.rstrip("\\ ").split(" & ")]
                for line in plain.splitlines()
                if " & " in line
            ]
            head = [re.sub(r"\\shortstack\[r\]\{(.*)\}", r"\1", cell) for cell in rows[0]]
            head = [cell.replace(r"\\", " ") for cell in head]
            yield from _cells(head, rows[1:], titles[title], board)


def _cells(head: list[str], rows: list[list[str]], name: str, board: Board) -> Iterator[Stated]:
    """Yield the values of a table for people: models by means and datasets, either way round."""
    if head[0] == "dataset":
        head, *rows = [list(column) for column in zip(head, *rows, strict=True)]
        head[0] = "model"
    columns = [re.sub(r" *<sub>.*?</sub>", "", cell) for cell in head]
    means = {mean.name for mean in board.means}
    datasets = {dataset.name for dataset in board.datasets}
    for row in rows:
        cells = dict(zip(columns, row, strict=False))
        model = cells.get("model", "")
        if model not in board.models:
            continue
        for column, text in cells.items():
            number = re.match(r"[*\\textbf{ ]*(-?\d+\.\d)", text)
            if number and column in datasets:
                yield Stated(column, model, "", name, float(number[1]), 1)
            elif number and column in means:
                yield Stated(
                    _column(board, f"mean: {column}"), model, "", name, float(number[1]), 1
                )


def terminal(made: Outputs) -> Iterator[Stated]:
    """The means that the command prints; the mean over one dataset is named by it."""
    names = [re.escape(each.name) for board in made.boards for each in board.datasets]
    heading = rf"^(.*): (?:means over \d+ datasets|{'|'.join(names)})$"
    parts = re.split(heading, made.printed, flags=re.MULTILINE)
    for board, text in zip(made.boards, parts[2::2], strict=True):
        lines = [re.split(r" {2,}", line.strip()) for line in text.strip().splitlines()]
        yield from _cells(lines[0], lines[1:], board.headline.name, board)


# --- other commands, Python, and pages ------------------------------------------------------------


def errors_csv(made: Outputs) -> Iterator[Stated]:
    """The score in the table of errors, and 100 minus what its error types took."""
    for board, path in made.files("errors.csv"):
        score = board.benchmark.errors.score.name
        for row in csv.DictReader(path.open(encoding="utf-8", newline="")):
            place = row["dataset"], row["model"], row["format"], score
            yield Stated(*place, float(row[score]), 4)
            types = [name.removesuffix(" events") for name in row if name.endswith(" events")]
            lost = [float(row[name]) for name in types if row[name]]
            if lost:  # few reviewed rows may tell none
                yield Stated(*place, 100 - sum(lost), 2)


def errors_command(made: Outputs) -> Iterator[Stated]:
    """Each run's score and the sum of its errors, of the files with reviews, too."""
    out = made.out / "errors.json"
    for run in _compared(made):
        status, _, said = typed("errors", run.files.provenance, "--json", out)
        if "no errors can be told" in said:  # by few reviewed rows
            continue
        assert status == 0, said
        (written,) = json.loads(out.read_text("utf-8"))
        (table,) = (each for each in written["tables"] if each["title"] == "Errors")
        first, *others = table["rows"]
        points = [row["points"]["value"] for row in others if row["error type"] != "sum"]
        score = run.benchmark.errors.score.name
        for value in (first["points"]["value"], 100 - sum(points)):
            yield Stated(run.board_dataset, run.model, run.variant.format, score, value)


def compare_command(made: Outputs) -> Iterator[Stated]:
    out = made.out / "compare.json"
    for left, right in _neighbours(made):
        printed("compare", left.files.provenance, right.files.provenance, "--json", out)
        (written,) = json.loads(out.read_text("utf-8"))
        titles = {metric.title: metric.name for metric in left.benchmark.all_metrics}
        for row in written["metrics"]["rows"]:
            for side, run in (("A", left), ("B", right)):
                of = run.board_dataset, run.model, run.variant.format, titles[row["metric"]]
                yield Stated(*of, row[side])


def compare_in_python(made: Outputs) -> Iterator[Stated]:
    for left, right in _neighbours(made):
        titles = {metric.title: metric.name for metric in left.benchmark.all_metrics}
        with catch_warnings(action="ignore"):
            compared = findit.compare(left, right)
        for title, row in compared.iterrows():
            for side, run in (("A", left), ("B", right)):
                of = run.board_dataset, run.model, run.variant.format, titles[str(title)]
                yield Stated(*of, row[side])


def _compared(made: Outputs) -> list[Run]:
    return [row.run for board in made.boards for row in board.runs]


def _neighbours(made: Outputs) -> Iterator[tuple[Run, Run]]:
    """Yield pairs of compared runs of a column."""
    for board in made.boards:
        for left, right in pairwise(board.runs):
            if left.dataset == right.dataset:
                yield left.run, right.run


def score_files(made: Outputs) -> Iterator[Stated]:
    """The files that ``score`` writes, by their names of metrics."""
    for run in _compared(made):
        (row,) = csv.DictReader(run.files.score.open(encoding="utf-8", newline=""))
        column = run.provenance.reviews.column if run.provenance.reviews else ""
        for metric in (*run.benchmark.metrics, run.benchmark.headline_counting_failures):
            if text := row[f"{metric.name} {column}".strip()]:
                of = run.board_dataset, run.model, run.variant.format, metric.name
                yield Stated(*of, float(text), 4)


def provenances(made: Outputs) -> Iterator[Stated]:
    for run in _compared(made):
        values = json.loads(run.files.provenance.read_text("utf-8"))["metrics"]
        for metric in (*run.benchmark.metrics, run.benchmark.headline_counting_failures):
            if (value := values[metric.key or metric.name]) is not None:
                yield Stated(run.board_dataset, run.model, run.variant.format, metric.name, value)


def data_frame(made: Outputs) -> Iterator[Stated]:
    compared = {str(run.files.provenance): run for run in _compared(made)}
    paths = {(run.model, run.dataset_name, str(run.path)) for run in compared.values()}
    for row in findit.load_scores(made.folder, reviews=made.reviews).to_dict("records"):
        if (row["model"], row["dataset"], row["path"]) in paths:
            rest = {name: value for name, value in row.items() if value == value}
            yield from _of_row(rest, row["column"], row["format"])


def tracked(made: Outputs) -> Iterator[Stated]:
    class Tracker:
        def __init__(self) -> None:
            self.runs: list[Any] = []

        def has(self, key: str) -> bool:
            return False

        def log(self, run: Any) -> None:
            self.runs.append(run)

        def log_curve(self, curve: Any) -> None:
            pass

    tracker = Tracker()
    compared = _compared(made)
    assert list(trackers.log_new(compared, tracker, 0))
    for each in tracker.runs:
        run = each.run
        for metric in run.benchmark.all_metrics:
            for name in (metric.name, f"{metric.name} low", f"{metric.name} high"):
                value = each.metric_values.get(trackers.plain_name(name))
                if value is not None:
                    yield Stated(run.board_dataset, run.model, run.variant.format, name, value)


def curves(made: Outputs) -> Iterator[Stated]:
    for board in made.boards:
        for curve in learning_curves(board.datasets):
            for point in curve.points:
                run = point.run
                of = run.board_dataset, run.model, run.variant.format, curve.metric.name
                yield Stated(*of, point.value)


def loss_bars(made: Outputs) -> Iterator[Stated]:
    for board in made.boards:
        name = board.benchmark.errors.score.name
        datasets = {dataset.name for dataset in board.datasets}
        for bar in losses_of(board).bars:
            if bar.where in datasets:
                yield Stated(bar.where, bar.model, "", name, bar.score)


def standings(made: Outputs) -> Iterator[Stated]:
    """The dots of the report, where no format was chosen: they show what is tested."""
    for board in made.boards:
        for panel in panels_of(board):
            for dot in panel.dots:
                name = _column(board, f"mean: {panel.name}")
                if len(panel.datasets) == 1:
                    (name,) = panel.datasets
                if dot.entry.elsewhere is None:
                    metric = board.metrics[0].name
                    yield Stated(name, dot.model, "", metric, dot.entry.value)


def comparable(made: Outputs) -> Iterator[Stated]:
    """The runs themselves."""
    datasets, _ = group_comparable(made.runs)
    for dataset in datasets:
        for run in dataset.runs:
            for metric in run.benchmark.all_metrics:
                if (value := run.value(metric)) is not None:
                    yield Stated(dataset.name, run.model, run.variant.format, metric.name, value)


READERS: tuple[Callable[[Outputs], Iterator[Stated]], ...] = (
    leaderboard_csv,
    leaderboard_json,
    sheet,
    markdown,
    latex,
    terminal,
    errors_csv,
    errors_command,
    compare_command,
    compare_in_python,
    score_files,
    provenances,
    data_frame,
    tracked,
    curves,
    loss_bars,
    standings,
    comparable,
)
