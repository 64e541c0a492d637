"""The leaderboard as text: Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..core.metric import Metric
from ..core.spelling import counted, visible
from .board import OVERALL, TIED, Board
from .published import PUBLISHED, published_lines, published_notes
from .rows import (
    NOTE,
    GridCell,
    apart_rows,
    format_note,
    formats_tried,
    formats_used,
    grid,
    rank_text,
    remarks,
)
from .slices import PartsTable, parts_tables

# --- Markdown -------------------------------------------------------------------------------------


def as_markdown(board: Board) -> str:
    """The whole leaderboard as a Markdown page."""
    title = f"# {board.benchmark.name} leaderboard"
    parts = [title, NOTE, "## Overall", _overall_table(board)]
    for metric in board.shown:
        parts += [f"## {metric.title}", _metric_table(board, metric.name)]
    for table in parts_tables(board):
        parts += [f"## {board.headline.name} by parts of {md(table.column)}", *_parts(table)]
    if formats_used(board):
        parts += ["## Formats", _formats_table(board), format_note(board)]
    for title, lines in (
        *remarks(board),
        ("Published figures, not ranked", published_notes(board)),
    ):
        if lines:
            parts += [f"## {title}", "\n".join(f"* {md(line)}" for line in lines)]
    if board.apart:
        parts += [
            f"## Not compared: {counted(len(board.apart), 'run')}",
            md_table(
                ["model", "dataset", "reason", "queries"],
                [
                    [md(r["model"]), md(r["dataset"]), md(r["reason"]), str(r["queries"])]
                    for r in apart_rows(board)
                ],
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _overall_table(board: Board) -> str:
    metrics = [metric.name for metric in board.shown]
    grids = {metric: dict(grid(board, metric)) for metric in metrics}
    tried = formats_tried(board)
    rows = []
    for model in board.models:
        cell = board.cells.get((model, OVERALL))
        have = [c for c in board.columns if (model, c.name) in board.cells]
        counts = [cell] if cell else [board.cells[model, c.name] for c in have]
        found = [grids[metric][model][0] for metric in metrics]
        rows.append([rank_text(found[0]), md(model), *_tried(tried, model)])
        rows[-1] += map(_md_cell, found)
        rows[-1] += [str(sum(one.queries for one in counts)), str(sum(x.failures for x in counts))]
        rows[-1].append(f"{len(have)}/{len(board.columns)}")
    titles = [metric.title for metric in board.shown]
    header = ["rank", "model", *([_TRIED] * bool(tried)), *titles]
    return md_table([*header, "queries", "failed calls", "datasets"], rows)


_TRIED = "formats tried"


def _tried(tried: Mapping[str, int], model: str) -> list[str]:
    """The cell of a model where there is such a column: none where nobody had a choice."""
    return [str(tried[model])] if tried else []


def _metric_table(board: Board, metric: str) -> str:
    rows = [
        [rank_text(cells[0]), md(model), *(_md_cell(cell) for cell in cells)]
        for model, cells in grid(board, metric)
    ]
    rows += [
        [f"*{PUBLISHED}*", f"*{md(line.model)}*", *line.texts]
        for line in published_lines(board, metric)
    ]
    names = [f"*{md(a.name)}*" for a in board.averages] + [md(c.name) for c in board.columns]
    return md_table(["rank", "model", *names], rows)


def _parts(table: PartsTable) -> list[str]:
    made = []
    if table.rows:
        rows = [[md(part), str(count), *texts] for part, count, texts in table.rows]
        made.append(md_table(["part", "queries", *map(md, table.models)], rows))
    made += [f"{md(kind)}: {n} values, in slices.csv" for kind, n in table.left_out.items()]
    return made


def _formats_table(board: Board) -> str:
    rows = [
        [md(model), md(found), md(", ".join(names))] for model, found, names in formats_used(board)
    ]
    return md_table(["model", "format", "datasets"], rows)


def _md_cell(cell: GridCell | None) -> str:
    if cell is None:
        return "–"
    value = f"**{cell.text}**" if cell.best else cell.text
    bounds = f" <sub>{cell.bounds}</sub>" if cell.bounds else ""
    return value + cell.mark + bounds


def md(text: str) -> str:
    """Text as it stands: nothing of it is markup."""
    return re.sub(r"([\\|`*_<>\[\]&$~])", r"\\\1", " ".join(visible(text).split()))


def md_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; its cells are markup already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


# --- LaTeX ----------------------------------------------------------------------------------------

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    TIED: r"$\approx$",
    "–": "--",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def as_latex(board: Board) -> str:
    """One ``table*`` a metric; needs the packages booktabs and graphicx."""
    return "\n".join(
        [
            "% needs \\usepackage{booktabs,graphicx}",
            *(_latex_table(board, one, at == 0) for at, one in enumerate(board.shown)),
        ]
    )


def _latex_table(board: Board, metric: Metric, is_first: bool) -> str:
    names = [_latex(name) for name in board.names()]
    tried = formats_tried(board)
    caption = _caption(board) if is_first else f"Notes as under {board.shown[0].title}."
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{_latex(f'{metric.title}. {caption}')}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{rl{'r' * (len(names) + bool(tried))}}}",
        r"\toprule",
        " & ".join(["", "Model", *(["Formats tried"] * bool(tried)), *names]) + r" \\",
        r"\midrule",
    ]
    for model, cells in grid(board, metric.name):
        figures = [*_tried(tried, model), *map(_latex_cell, cells)]
        lines.append(" & ".join([_latex(rank_text(cells[0])), _latex(model), *figures]) + r" \\")
    published = published_lines(board, metric.name)
    lines += [r"\midrule"] * bool(published)
    for line in published:
        figures = [*([""] * bool(tried)), *map(_latex, line.texts)]
        lines.append(" & ".join(["", rf"\textit{{{_latex(line.model)}}}", *figures]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table*}", ""])


def _caption(board: Board) -> str:
    said = [NOTE, *(f"{title}: {'; '.join(lines)}." for title, lines in remarks(board))]
    sources = "; ".join(dict.fromkeys(one.where for one in board.published))
    if sources:
        said.append(f"In italics, not ranked: published ({sources}).")
    return " ".join(said)


def _latex_cell(cell: GridCell | None) -> str:
    if cell is None:
        return "--"
    value = rf"\textbf{{{cell.text}}}" if cell.best else cell.text
    mark = rf"\,{_latex(cell.sign)}" if cell.sign else ""
    bounds = rf" {{\scriptsize {_latex(cell.bounds)}}}" if cell.bounds else ""
    return value + mark + bounds


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in visible(text))
