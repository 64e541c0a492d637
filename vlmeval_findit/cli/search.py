"""``run_findit.py search``: the format that a model answers best in (protocol section 6)."""

from __future__ import annotations

from pathlib import Path

import click

from ..analysis import ranking_rule
from ..benchmarks.findit import BENCHMARK, MARKS, AnnotationTable
from ..core import suggestion
from ..models import ModelOptions, find_model, space_or_variable
from ..storage import SWEEP_JOURNAL
from ..sweeps import search_sweep, search_target
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
from .model_options import MODEL, AskingCommand, model_options
from .sweep import run_or_count
from .who_answers import with_options


@click.command(
    cls=AskingCommand,
    epilog=f"The winner: {ranking_rule(BENCHMARK)}.",
    examples=[
        "python run_findit.py search --model FindIt-Nano-px --data Scenes_mini --limit 10 --race",
        "python run_findit.py search --model Qwen3-VL-8B --data Scenes_mini --serve vllm --dry-run",
    ],
)
@click.option("--model", required=True, shell_complete=complete_models, help=MODEL)
@click.option(
    "--data",
    default="Pascal",
    shell_complete=complete_datasets,
    help="A table, or a complete name in any of its formats.",
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
    "The formats with their values, for sweep --formats.",
    type=WRITTEN,
    default=Path("outputs/best_formats.yaml"),
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
    model: str,
    data: str,
    limit: int,
    marks: str | None,
    race: bool,
    out: Path,
    work_dir: Path | None,
    journal: Path | None,
) -> int:
    """Find the format that a model answers best in.

    Stage 1 asks all representations in text and JSON, stage 2 the keys at the winner. A benchmark
    that is not of FindIt's grid is asked in all its formats at once.
    """
    table = search_target(data)
    check_amounts(options, limit=limit)
    if isinstance(table, AnnotationTable) and (note := note_of_shared_names([data])):
        print_note(note)
    entry = options.entry(model)
    name = entry.like or entry.name
    reads_boxes = isinstance(table, AnnotationTable) or table.in_boxes
    if reads_boxes and find_model(name) is None and space_or_variable(entry.space, None) is None:
        refuse_untabled(entry)
    places = (
        work_dir or Path("outputs/search"),
        journal or (work_dir or Path("outputs")) / SWEEP_JOURNAL,
    )
    sweep = search_sweep(entry, table, limit, places, _marks(marks), race)
    return run_or_count(with_options(sweep, options), options, out)


def _marks(text: str | None) -> tuple[str, ...]:
    if text is None or text == "all":
        return MARKS if text else ()
    marks = tuple(dict.fromkeys(text.split(",")))
    for mark in marks:
        if mark not in MARKS:
            raise ValueError(f"--marks: unknown mark {mark!r}{suggestion(mark, MARKS)}")
    return marks
