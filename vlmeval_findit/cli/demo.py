"""``run_findit.py demo``: why a model scores 2, and 100 in another format, in three minutes.

Needs no network and no download.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import click
from rich.console import Console

from ..analysis import BestFormats, format_averages
from ..benchmarks import parse
from ..benchmarks.findit import PREFIX, FormatAxes
from ..coords import check_run, replies_of_run
from ..core import EXIT_INTERRUPTED, activation, as_called, counted
from ..engine import StoppedError, cancelled_by_signals
from ..leaderboard import (
    OVERALL,
    Board,
    Column,
    Table,
    TableCell,
    plain_value_column,
    signs_of,
    table_of,
    tested_cell,
    value_column,
    write_board,
)
from ..models import NANO, NANO_PX, SHIPPED, ModelEntry, ModelOptions, refuse_missing
from ..protocol import ENGINE_KEY, NUMPY, settings_from
from ..scoring import CellResult, RowData, open_predictions
from ..storage import DEMO_FILE, SWEEP_JOURNAL
from ..sweeps import STAGES, Sweep, grid_tables, in_best_formats, run_sweep
from .command_base import PATH, Command, option, say, switch
from .leaderboard import boards_from
from .printing import print_table
from .progress import SweepProgress
from .report import write_report
from .result_lines import report_formats
from .sweep import FORMATS_FILE
from .who_answers import budget_for, deployments_for

SCENES = "Scenes_mini"
MULTILABEL = f"{SCENES}_multilabel"
_KINDS = ("", "_multilabel", "_refexp", "_described", "_insdet", "_video_f4")
TABLES = tuple(f"{SCENES}{kind}" for kind in _KINDS)
"""Tables that both models are asked at the end, a table or two of each family."""
KEY = "bbox_2d"
FIRST = f"xyxy_json_{KEY}"
"""The format that both models are asked in first."""
EIGHT = FormatAxes(outputs=("json",), keys=(KEY,))
"""Formats of ``--quick``: all representations."""
FORMATS = 19
"""Formats that the search asks each model in."""
WRONG = "grid1000"
"""A space that is not FindIt-Nano-px's."""
CARDS = 1_200
"""Answers in the report, which stays below three megabytes with them."""
_SEARCH = f"search --model {NANO_PX} --data {SCENES}_refexp --limit 20"
"""A command to go on with, which needs nothing that the demonstration does not have."""
ENGINE = {ENGINE_KEY: NUMPY}
"""Settings of its models: what answers is the same, and as fast, whatever else is installed."""


@click.command(
    cls=Command, examples=["python run_findit.py demo", "python run_findit.py demo --quick"]
)
@switch("--quick", "One model, eight formats: half a minute.")
@option("--work-dir", "DIR", "Folder of the results.", type=PATH, default=Path("outputs/demo"))
def command(quick: bool, work_dir: Path) -> int:
    """See why a model scores 2, and 100 in another format: no network, no GPU, no download.

    Two shipped models through search, coordinate check, leaderboard and report. Stopped, it goes on
    where it was.
    """
    refuse_missing(SHIPPED[NANO])
    work_dir.mkdir(parents=True, exist_ok=True)
    log = work_dir / "demo.log"
    with log.open("w", encoding="utf-8") as f:
        demo = Demonstration(work_dir, f)
        try:
            return _run_quick(demo) if quick else _run_all(demo)
        except (StoppedError, KeyboardInterrupt):
            say("Interrupted. No answer is lost: the same command goes on from there.")
            return EXIT_INTERRUPTED
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{error}\nThe log until then: {log}") from error


@dataclass(frozen=True)
class Demonstration:
    """The state of all stages: a folder, and the log of output that is not shown."""

    folder: Path
    log: TextIO

    @contextmanager
    def stage(self, text: str = "") -> Iterator[None]:
        """Redirect output to the log; show what is being done on a terminal."""
        status = Console(file=sys.stderr).status(text) if text else nullcontext()
        with status, redirect_stdout(self.log), redirect_stderr(self.log):
            yield
        self.log.flush()

    def answer(
        self, models: Sequence[str], best: Path | None = None, **fields: Any
    ) -> list[CellResult]:
        """Ask models, in their best formats where a file has them; all stages share a journal."""
        runs = self.folder / "runs"
        runs.mkdir(parents=True, exist_ok=True)
        sweep = Sweep(
            models=tuple(ModelEntry(model, settings=ENGINE) for model in models),
            work_dir=runs,
            journal=self.folder / SWEEP_JOURNAL,
            mark=runs / DEMO_FILE,
            **fields,
        )
        if best is not None:
            sweep = in_best_formats(sweep, BestFormats(best))
        with SweepProgress(lines=False) as bar, self.stage():
            deployments = deployments_for(sweep, ModelOptions(), budget_for(sweep))
            with cancelled_by_signals(lambda _: None) as cancel:
                results = run_sweep(sweep, deployments, bar, cancel)
        if failed := sum(result.failed for result in results):
            raise ValueError(f"{counted(failed, 'call')} failed; the same command asks them again")
        return results


# --- the stages -----------------------------------------------------------------------------------


def _run_all(demo: Demonstration) -> int:
    """Show that two models that detect equally well score 2 and 100, why, and the remedy.

    Returns the exit status.
    """
    both = (NANO, NANO_PX)
    say(f"{NANO} and {NANO_PX} find shapes in rendered scenes. They detect")
    say("equally well, but one was trained to answer in thousandths, one in pixels.\n")

    say("1. Ask both in one format, as most tables of published models are made:")
    first = [parse(f"{PREFIX}{name}_{FIRST}") for name in TABLES]
    results = demo.answer(both, variants=(first[0],))
    _print_scores(results)

    say(f"\n2. Search the format that each answers best in, {FORMATS} of them on 50 scenes:")
    searched = demo.answer(both, tables=(grid_tables()[SCENES],), stages=STAGES)
    best = demo.folder / FORMATS_FILE
    with demo.stage():
        report_formats(searched, best)
    best_runs = [_best(searched, model) for model in both]
    _print_scores(best_runs)

    say(f"\n3. Why did {NANO_PX} score so low? Its answers alone tell:")
    _print_order(demo, results[-1])
    _print_space(demo, best_runs[-1])

    say("\n4. The leaderboard, each in its best format:")
    answered = demo.answer(both, best, variants=tuple(first))
    runs = list(dict.fromkeys(result.path for result in (*searched, *answered)))
    with demo.stage("writing the leaderboard"):
        (board,) = boards_from(runs, (), RowData.SUMS)
        write_board(board, demo.folder / "leaderboard")
    print_table(_families(board), "leaderboard.md")
    say("F1@0.5 in percent.")
    say(f"Object detection is a mean: of {SCENES}, {_of_each(board, SCENES)} as in step 2,")
    say(f"and of {MULTILABEL}, {_of_each(board, MULTILABEL)}.")
    status = _report(demo, runs)
    _go_on(
        f"errors {results[-1].path.parent}",
        f"data show {best_runs[-1].variant.name} --index 3",
        _SEARCH,
    )
    return status


def _run_quick(demo: Demonstration) -> int:
    """Show that a model scores 2 or 100, depending on the format, and why.

    Returns the exit status.
    """
    say(f"{NANO_PX} finds shapes in 50 rendered scenes, asked in eight formats:")
    results = demo.answer([NANO_PX], tables=(grid_tables()[SCENES],), stages=(EIGHT,))
    _print_scores(results)
    say("\nWhy so little as xyxy? Its answers alone tell:")
    _print_order(demo, results[0])
    status = _report(demo, [result.path for result in results])
    _go_on("demo", f"errors {results[0].path.parent}", _SEARCH)
    return status


def _best(results: Sequence[CellResult], model: str) -> CellResult:
    of_model = [result for result in results if result.model == model]
    best = format_averages(of_model)[0].variant
    return next(result for result in of_model if result.variant == best)


def _print_scores(results: Sequence[CellResult]) -> None:
    def value_of(metric: str) -> Column[CellResult]:
        return plain_value_column(metric, lambda each: each.metric_values[metric])

    columns: list[Column[CellResult]] = [
        Column("model", lambda each: each.model),
        Column("format", lambda each: each.variant.format),
        *map(value_of, ("F1@0.5", "mIoU", "Adherence")),
    ]
    print_table(table_of("Scores", columns, results), "demo.log")


def _print_order(demo: Demonstration, result: CellResult) -> None:
    """Print in which order of numbers a model answers, and the score with them."""
    declared, best, f1, agreement = _check(demo, result)
    asked, answered = (name.partition("/")[2] for name in (declared, best))
    say(f"   asked for {asked}, it says {answered}: {agreement}")
    wrong, right = f1[declared], f1[best]
    say(f"   F1@0.5 is {wrong:.1f} if read as asked, and {right:.1f} if read as {answered}")


def _print_space(demo: Demonstration, result: CellResult) -> None:
    """Print the score of good answers in a wrong space, and the check that detects it."""
    declared, best, f1, agreement = _check(demo, result, WRONG)
    right = f1[best]
    wrong = f1[declared]
    space = best.partition("/")[0]
    say(f"   and if somebody took its pixels for thousandths (--space {WRONG})?")
    say(f"   F1@0.5 {right:.1f} would be {wrong:.1f}; the check finds {space}: {agreement}")


def _check(
    demo: Demonstration, result: CellResult, space: str | None = None
) -> tuple[str, str, Mapping[str, float], str]:
    """Return the declared and the best convention, the F1 in each, and how many answers agree."""
    with demo.stage("checking coordinates"):
        settings = replace(settings_from({"space": space}), separately=space is not None)
        run = open_predictions(result.path, settings)
        replies = replies_of_run(run.model, run.dataset, run.replies, run.settings, run.identity)
        check = check_run(replies)
    diagnosis = check.diagnosis
    fit = check.diagnosis.fit
    assert fit is not None
    f1 = {line.convention.name: line.metric_values["F1@0.5"] or 0.0 for line in check.lines}
    agreement = f"{fit.agree} of {diagnosis.answered} answers agree"
    return diagnosis.declared.name, fit.best.name, f1, agreement


def _families(board: Board) -> Table:

    def of_model(model: str) -> Column[str]:
        def cell(mean: str) -> TableCell:
            return tested_cell(board.cells[model, mean].entries[board.headline.name])

        return value_column(model, cell)

    columns: list[Column[str]] = [Column("", str), *map(of_model, board.models)]
    means = [mean.name for mean in board.means if mean.name != OVERALL]
    return table_of("Leaderboard", columns, [*means, OVERALL], signs=signs_of(board))


def _of_each(board: Board, dataset: str) -> str:
    """Return the models' values on a dataset, in the order of the board."""
    name = board.headline.name
    entries = [board.cells[model, dataset].entries[name] for model in board.models]
    return " and ".join(f"{entry.tested:.1f}" for entry in entries)


def _report(demo: Demonstration, runs: Sequence[Path]) -> int:
    """Write the report; returns the exit status: the log says what a page lacks."""
    report = demo.folder / "report.html"
    with demo.stage("writing the report"):
        status = write_report(runs, report, cards=CARDS)
    say(f"\nReport: {report} (open it in a browser)\nLog:    {demo.log.name}")
    return status


def _go_on(*commands: str) -> None:
    first = activation()
    script = Path(sys.executable).with_name("findit")
    is_typable = bool(first) or shutil.which("findit") == str(script)
    named = "findit" if is_typable and script.is_file() else "python run_findit.py"
    # On a line that is empty otherwise: all should fit on a screen
    say(f"First type: {first}" if first else "")
    say("Go on with (yours: --model NAME=CHECKPOINT, or NAME and --base-url ADDRESS)")
    for command in commands:
        say(as_called(f"  {named} {command}"))
