"""What a sweep over one axis ends in: a table and a plot of what the axis changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..core import atomic_write, new_file_set
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

_STEM = "ablation"  # Of its files; of several benchmarks each has its name behind it
_SUFFIXES = (".md", ".csv", ".tex", ".svg")


def report_ablations(results: Sequence[CellResult], folder: Path) -> None:
    """Print what the only axis of a sweep changes, and write it as tables and a plot.

    Nothing is printed where its runs differ in nothing, or in several things, as after a race. What
    an earlier sweep wrote goes.
    """
    runs = []
    if all(result.dropped is None for result in results):
        for result in results:
            runs.append(load_run(RunFiles(result.path).provenance, RowData.SUMS))
    ablations = find_ablations(runs)
    names = [_STEM]
    if len(ablations) != 1:
        names = [f"{_STEM}-{each.benchmark}" for each in ablations]
    tables = [ablation_table(each) for each in ablations]
    texts = {}
    for stem, ablation, table in zip(names, ablations, tables, strict=True):
        for suffix, text in _files_of(ablation, table).items():
            texts[f"{stem}{suffix}"] = text
    earlier = [path for path in _earlier_files(folder) if path.name not in texts]
    _write_in_place_of(earlier, texts, folder)
    for stem, table in zip(names, tables, strict=True):
        print_folded(f"{table.title}:")
        print_table(table, f"{folder / stem}.md")
        for note in table.notes:
            print_folded(note.text)
        print_folded(f"{folder}/: {', '.join(f'{stem}{suffix}' for suffix in _SUFFIXES)}")


def _earlier_files(folder: Path) -> Iterator[Path]:
    """Yield the files that sweeps wrote into a folder of their axes.

    A name of a benchmark is ours only if all its files are there: others may write, too.
    """
    for csv in [folder / f"{_STEM}.csv", *sorted(folder.glob(f"{_STEM}-*.csv"))]:
        files = [csv.with_suffix(suffix) for suffix in _SUFFIXES]
        there = [path for path in files if path.is_file()]
        if csv.stem == _STEM or there == files:
            yield from there


def _write_in_place_of(earlier: Sequence[Path], texts: Mapping[str, str], folder: Path) -> None:
    """Write texts into a folder, and delete earlier files, all at once."""
    if not texts and not earlier:
        return
    with new_file_set(folder / f"{_STEM}.md", folder) as files:
        for name, text in texts.items():
            with atomic_write(files.folder / name) as f:
                f.write(text)
        for path in earlier:
            files.delete(path)
        files.commit()


def _files_of(ablation: Ablation, table: Table) -> dict[str, str]:
    """Return the texts of an ablation's files by their suffixes."""
    from ..report import ablation_chart, svg  # It brings the plots

    texts = (
        markdown_page(table.title, [table]),
        to_csv(table),
        to_latex(table),
        svg(ablation_chart(ablation)),
    )
    return dict(zip(_SUFFIXES, texts, strict=True))
