"""What a sweep over one axis ends in: a table and a plot of what the axis changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core import write_together
from ..leaderboard import (
    Ablation,
    Table,
    ablation_table,
    find_ablations,
    markdown_page,
    to_csv,
    to_latex,
)
from ..scoring import CellResult, RowData, load_run
from ..storage import RunFiles
from .printing import print_folded, print_table


def report_ablations(results: Sequence[CellResult], folder: Path) -> None:
    """Print what the only axis of a sweep changes, and write it as tables and a plot.

    Nothing is printed where its runs differ in nothing, or in several things, as after a race.
    """
    if any(result.dropped is not None for result in results):
        return
    runs = []
    for result in results:
        runs.append(load_run(RunFiles(result.path).provenance, RowData.SUMS))
    ablations = find_ablations(runs)
    for ablation in ablations:
        stem = "ablation" if len(ablations) == 1 else f"ablation-{ablation.benchmark}"
        table = ablation_table(ablation)
        files = _files_of(ablation, table)
        write_together({folder / f"{stem}{suffix}": text for suffix, text in files.items()})
        print_folded(f"{table.title}:")
        print_table(table, f"{folder / stem}.md")
        for note in table.notes:
            print_folded(note.text)
        print_folded(f"{folder}/: {', '.join(f'{stem}{suffix}' for suffix in files)}")


def _files_of(ablation: Ablation, table: Table) -> dict[str, str]:
    """Return the texts of an ablation's files by their suffixes."""
    from ..report import ablation_chart, svg  # It brings the plots

    return {
        ".md": markdown_page(table.title, [table]),
        ".csv": to_csv(table),
        ".tex": to_latex(table),
        ".svg": svg(ablation_chart(ablation)),
    }
