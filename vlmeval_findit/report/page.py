"""The page: figures, plots and gallery in one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from .. import __version__
from ..benchmarks.findit.metrics import SHOWN
from ..benchmarks.findit.variant import Variant
from ..boxes.records import Reason
from ..boxes.reply_format import DEFAULT_STRUCTURE
from ..boxes.representation import REPRESENTATIONS
from ..core.statistics import METRICS
from ..core.visible import visible
from ..leaderboard.board import OVERALL, Board
from ..leaderboard.columns import Column, column_name, format_name
from ..leaderboard.rows import (
    FORMAT_NOTE,
    NOTE,
    apart_rows,
    failure_lines,
    forced_lines,
    formats_used,
    grid,
    rank_text,
)
from ..runs.scored_run import Run
from .box_roles import Curve, curve
from .gallery import CARDS, choose_cards, gallery_data
from .plots import Bar, Plot, bars, curves, heat_map, reasons
from .transcripts import Material, Missing, gather

_TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True, slots=True)
class Section:
    """The plots of one column."""

    name: str
    plots: tuple[Plot, ...]


def make_page(board: Board, time: datetime, cards: int = CARDS) -> str:
    """The report of a leaderboard as HTML.

    Args:
        board: the figures; every comparable run of it has its answers in the gallery.
        time: when the page is made.
        cards: at most so many answers in the gallery.
    """
    runs = [one.run for one in board.sweep]
    found, missing = gather(runs)
    chosen = choose_cards(found, cards)
    style, script = _template_text("report.css"), _template_text("report.js")
    page: str = (
        _environment()
        .get_template("report.html.j2")
        .render(
            board=board,
            bars=list(_bar_plots(board)),
            heat_maps=list(_heat_map_sections(board)),
            curves=list(_curve_plots(board, found)),
            reasons=list(_reason_plots(board)),
            grids={metric: grid(board, metric) for metric in METRICS},
            formats=formats_used(board),
            apart=apart_rows(board),
            failures=failure_lines(board),
            forced=forced_lines(board),
            missing=_by_reason(missing),
            runs=[_run_row(run) for run in runs],
            metrics=METRICS,
            note=NOTE,
            format_note=FORMAT_NOTE,
            rank_text=rank_text,
            answers=sum(len(run.answers) for run in runs),
            shown=len(chosen),
            data=Markup(_json_in_html(gallery_data(chosen))),
            style=Markup(style),
            script=Markup(script),
            script_hash=_csp_hash(script),
            time=time.strftime("%Y-%m-%d %H:%M UTC"),
            version=__version__,
        )
    )
    return page


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """What an expression of the template becomes: markup is ours, text is not."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _template_text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _csp_hash(script: str) -> str:
    """The hash by which the page's policy knows its one script: no other script runs."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _json_in_html(value: Any) -> str:
    """JSON that cannot end the element that it stands in, whatever a model said."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # Half a surrogate pair is no text in UTF-8, but a model can say it.
    return text.encode("utf-8", "replace").decode("utf-8")


# --- plots ----------------------------------------------------------------------------------------


def _bar_plots(board: Board) -> Iterator[Plot]:
    for at, name in enumerate((OVERALL, *(column.name for column in board.columns))):
        figures = {metric: [_bar(board, m, name, metric) for m in board.models] for metric in SHOWN}
        if any(bar is not None for values in figures.values() for bar in values):
            title = f"{name}: mean of {len(board.columns)} datasets" if not at else name
            yield bars(f"bars{at}", title, board.models, figures)


def _bar(board: Board, model: str, name: str, metric: str) -> Bar | None:
    cell = board.cells.get((model, name))
    return Bar(cell.entries[metric].value, cell.entries[metric].interval) if cell else None


def _heat_map_sections(board: Board) -> Iterator[Section]:
    """A section for every column in which a model was run in more than one format."""
    for at, column in enumerate(board.columns):
        plots = [
            plot
            for place, model in enumerate(board.models)
            if (plot := _heat_map(f"heat{at}-{place}", board, model, column)) is not None
        ]
        if plots:
            yield Section(column.name, tuple(plots))


def _heat_map(name: str, board: Board, model: str, column: Column) -> Plot | None:
    runs = [run for run in column.runs if run.model == model]
    if len(runs) < 2:
        return None
    values = {_place(run.variant): run.figures.f1 for run in runs}
    there = {row for row, _ in values}
    rows = [row for row in REPRESENTATIONS if row in there]
    columns = sorted({c for _, c in values}, key=lambda c: (c != "text", len(c), c))
    cell = board.cells.get((model, column.name))
    reported = _place(cell.run.variant) if cell and cell.run else None
    return heat_map(name, model, rows, columns, values, reported)


def _place(variant: Variant) -> tuple[str, str]:
    """A variant's row and column in a heat map."""
    return variant.representation, output_name(variant)


def output_name(variant: Variant) -> str:
    """A variant's column in a heat map: output, key, structure and centre experiment."""
    if variant.output == "text":
        parts = ["text"]
    elif variant.structure == DEFAULT_STRUCTURE:
        parts = ["json", variant.key]
    else:
        parts = ["json", variant.structure, *([variant.key] if variant.key != "bbox" else [])]
    return " ".join([*parts, *([f"cx-{variant.centre}"] if variant.centre else [])])


def _curve_plots(board: Board, found: Sequence[Material]) -> Iterator[Plot]:
    at_hand = {one.run.path: one for one in found}
    places = {model: place for place, model in enumerate(board.models)}
    for at, column in enumerate(board.columns):
        shown: dict[str, Curve] = {}
        for model in board.models:
            cell = board.cells.get((model, column.name))
            one = at_hand.get(cell.run.path) if cell and cell.run else None
            if one is not None:
                shown[model] = curve((a, one.queries[a.index].truth) for a in one.run.answers)
        if shown:
            yield curves(f"curves{at}", column.name, shown, places)


def _reason_plots(board: Board) -> Iterator[Plot]:
    """One plot a model: every run of it with replies that do not adhere."""
    places = {reason.value: at for at, reason in enumerate(Reason)}
    for at, model in enumerate(board.models):
        counts = {}
        for one in board.sweep:
            if one.run.model == model and (found := _reason_shares(one.run)):
                counts[f"{one.column} · {format_name(one.run.variant)}"] = found
        if counts:
            yield reasons(f"reasons{at}", model, counts, places)


def _reason_shares(run: Run) -> dict[str, float]:
    """Reasons of a run in percent of its replies (failed calls are none), the commonest first."""
    replies = [answer for answer in run.answers if not answer.totals.failed]
    counts = Counter(answer.reason.value for answer in replies if answer.reason)
    return {reason: 100.0 * n / len(replies) for reason, n in counts.most_common()}


# --- tables ---------------------------------------------------------------------------------------


def _by_reason(missing: Iterable[Missing]) -> Mapping[str, list[str]]:
    """The runs without a gallery, by the reason: one missing table is one line."""
    found: dict[str, list[str]] = {}
    for one in missing:
        found.setdefault(one.reason, []).append(f"{one.run.model} {one.run.variant.name}")
    return found


def _run_row(run: Run) -> dict[str, Any]:
    basis = run.basis
    versions = ", ".join(f"{name} {number}" for name, number in basis.versions.items())
    return {
        "model": run.model,
        "dataset": column_name(run.variant),
        "format": format_name(run.variant),
        "figures": run.figures,
        "queries": len(run.answers),
        "failed": run.totals.failed,
        "left_out": len(basis.left_out),
        "prompts": basis.prompts,
        "prompt_hash": (basis.prompt_hash or "unknown")[:12],
        "table_sha256": basis.table_sha256[:12],
        "spaces": "; ".join(basis.spaces),
        "versions": versions,
        "scored_at": basis.scored_at,
    }
