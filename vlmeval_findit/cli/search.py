"""``run_findit.py search``: the format that a model answers best in (protocol section 6)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from ..analysis import format_pilots, ranking_rule, shown_by_search
from ..benchmarks.findit import BENCHMARK, MARKS, AnnotationTable
from ..core import counted, first_few, flag_name, suggestion
from ..data import MAKERS, load_dataset
from ..leaderboard import group_comparable
from ..models import ModelOptions, find_model, space_or_variable
from ..scoring import RowData, RunError, load_runs
from ..statistics import CHANCE, Sized, assumed_pilot
from ..storage import SWEEP_JOURNAL, table_folders
from ..sweeps import Sweep, all_variants, grid_tables, search_sweep, search_target
from .command_base import (
    PATH,
    WRITTEN,
    complete_datasets,
    complete_models,
    option,
    print_note,
    switch,
)
from .early_checks import check_amounts, note_of_shared_names, refuse_untabled
from .model_options import MODEL, model_options
from .printing import print_folded
from .run_line import RunCommand
from .sweep import FORMATS_FILE, run_or_count
from .who_answers import with_options

_USUAL_TABLE = "Pascal"


@click.command(
    cls=RunCommand,
    epilog=f"The winner: {ranking_rule(BENCHMARK)}.",
    examples=[
        "python run_findit.py search --model FindIt-Nano-px --data Scenes_mini --limit 10 --race",
        "python run_findit.py search --model Qwen3-VL-8B --data Scenes_mini --serve vllm --dry-run",
    ],
)
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    shell_complete=complete_models,
    help=MODEL,
)
@click.option(
    "--data",
    "datasets",
    multiple=True,
    shell_complete=complete_datasets,
    help=f"A table, or a complete name in any of its formats.  [default: {_USUAL_TABLE}]",
)
@click.option(
    "--limit", type=int, default=50, help="Queries; the paper took 20 for proprietary models."
)
@option(
    "--marks",
    "SHAPE,…",
    "Of an instance-detection dataset: also ask the winner with marked reference images "
    f"({', '.join(MARKS)}, or all).",
)
@switch("--race", "Drop formats early that can hardly be best: saves 1/4 to 1/2 of the calls.")
@option(
    "--out",
    "FILE",
    f"The formats with their values, for sweep --formats.  [default: {FORMATS_FILE} in --work-dir, "
    "else in outputs]",
    type=WRITTEN,
)
@option("--work-dir", "DIR", "Folder of the results.  [default: outputs/search]", type=PATH)
@option(
    "--journal",
    "FILE",
    "File of all answers.  [default: calls.jsonl in --work-dir, else in outputs]",
    type=PATH,
)
@model_options(
    "prompts",
    "dry_run",
    "batch",
    "executor",
    "replicas",
    "logprobs",
    "force",
    "skip_missing_images",
)
def command(
    options: ModelOptions,
    models: tuple[str, ...],
    datasets: tuple[str, ...],
    limit: int,
    marks: str | None,
    race: bool,
    out: Path | None,
    work_dir: Path | None,
    journal: Path | None,
) -> int:
    """Find the format that a model answers best in.

    Stage 1 asks all representations in text and JSON, stage 2 the keys at the winner. A benchmark
    that is not of FindIt's grid is asked in all its formats at once.
    """
    model = _only("model", models)
    data = _only("data", datasets or (_USUAL_TABLE,))
    table = search_target(data)
    check_amounts(options, limit=limit)
    if isinstance(table, AnnotationTable) and (note := note_of_shared_names([data])):
        print_note(note)
    entry = options.entry(model)
    name = entry.like or entry.name
    reads_boxes = isinstance(table, AnnotationTable) or table.in_boxes
    if reads_boxes and find_model(name) is None and space_or_variable(entry.space, None) is None:
        refuse_untabled(entry)
    beside = work_dir or Path("outputs")
    out = out or WRITTEN.begin(beside / FORMATS_FILE, "--out")
    places = (work_dir or Path("outputs/search"), journal or beside / SWEEP_JOURNAL)
    sweep = search_sweep(entry, table, limit, places, _marks(marks), race)
    sweep = with_options(sweep, options)
    try:
        status = run_or_count(sweep, options, out)
    except FileNotFoundError:
        if not datasets:
            _refuse_without_usual_table()
        raise
    if options.dry_run:
        _print_power(sweep, limit)
    return status


def _only(option: str, named: tuple[str, ...]) -> str:
    """Return what an option names; a ValueError if that is several."""
    first, *others = named
    if others:
        flag = flag_name(option)
        raise ValueError(
            f"{flag} names {', '.join(named)}: a search is of one at a time. Type {flag} {first}; "
            "a sweep's file takes several (run_findit.py sweep --help)"
        )
    return first


def _refuse_without_usual_table() -> None:
    """Say what is here where no table is named, and the one that is searched then is not here."""
    folders = table_folders()

    def is_here(table: str) -> bool:
        return any((folder / f"{table}.tsv").is_file() for folder in folders)

    if is_here(_USUAL_TABLE):
        return
    found = [table for table in grid_tables() if table not in MAKERS and is_here(table)]
    here = [*found, "Scenes_mini", "Demo"]
    raise ValueError(
        f"--data is not typed, and {_USUAL_TABLE}, which is searched then, is not here "
        f"(run_findit.py data get {_USUAL_TABLE}). Here are {first_few(here, 5)}: "
        f"--data {here[0]}"
    ) from None


def _print_power(sweep: Sweep, limit: int) -> None:
    """Say which formats a search tells apart: like those that were asked before, if any were."""
    variants = all_variants(sweep, sweep.models[0].name)
    queries = list(load_dataset(variants[0].name).queries.values())[:limit]
    images = len({query.cluster for query in queries})
    earlier = []
    if sweep.work_dir.is_dir():
        with suppress(RunError):  # None of its runs is scored
            earlier = load_runs([sweep.work_dir], keep=RowData.SUMS)
    dataset = variants[0].board_dataset
    comparable, others = group_comparable(run for run in earlier if run.board_dataset == dataset)
    for other in others:
        print_note(f"not in what is told apart: {other.run.path}: {other.reason}")
    pilots = [pilot for runs in comparable for pilot in format_pilots(runs.runs)]
    asked = f"{counted(images, 'image')} and {len(variants)} formats"
    if pilots:
        ways = {f"as in {sweep.work_dir} ({counted(len(pilots), 'pair')})": pilots}
    else:
        ways = {
            "where one finds all that the other finds": [assumed_pilot(0.0, images)],
            "where the two differ on 40 % of images": [assumed_pilot(0.4, images)],
        }
    said = []
    for way, of_way in ways.items():
        size = shown_by_search(of_way, images, len(variants))
        if size is not None:
            said.append(f"from {_points(size)} points, {way}")
    if said:
        print_folded(
            f"{asked}: two are told apart with a chance of {100 * CHANCE:.0f} % {'; '.join(said)}."
        )
    else:
        print_folded(f"{asked}: too few images to tell two apart.")


def _points(size: Sized) -> str:
    """Format a difference: ``18``, ``18 (15–22)``."""
    ends = f"{size.range.low:.0f}–{size.range.high:.0f}"
    value = f"{size.value:.0f}"
    return value if ends == f"{value}–{value}" else f"{value} ({ends})"


def _marks(text: str | None) -> tuple[str, ...]:
    if text is None or text == "all":
        return MARKS if text else ()
    marks = tuple(dict.fromkeys(text.split(",")))
    for mark in marks:
        if mark not in MARKS:
            raise ValueError(f"--marks: unknown mark {mark!r}{suggestion(mark, MARKS)}")
    return marks
