"""The page: figures, plots and gallery, as one text."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from .. import __version__
from ..core.formatting import counted, printable
from ..core.metric import Metric
from ..leaderboard.board import Board
from ..leaderboard.board_tables import EXCLUDED, excluded_table, metric_table
from ..leaderboard.notes import NOTE, format_note, formats_used, notes_of
from ..leaderboard.render import to_html
from ..leaderboard.slices import slices_tables
from ..runs.run_statistics import FOUND
from ..runs.scored_run import Run
from .cards import CARDS, Choice
from .differences import opening_pair, pair_values
from .gallery import gallery_data
from .losses import losses_of
from .pairs import Side, first_pairs, pair_runs, pairs_note
from .sections import Details, forest_of, heat_maps_of, reasons_of, short_metrics
from .standings import MODELS, headlines_of, panels_of
from .transcripts import Missing, Transcript, gather
from .vega import script as charts_script

_TEMPLATES = Path(__file__).with_name("templates")
_SCRIPTS = (
    "elements", "drawing", "zoom", "detail", "gallery", "compare", "losses", "charts", "start",
)  # fmt: skip
"""What the page's one script is made of, in this order."""
_WITH_ASSETS = (_SCRIPTS[0], "index", *_SCRIPTS[1:], "assets")
"""The same of a page whose answers are in files beside it."""


def make_page(board: Board, time: datetime, cards: int = CARDS, sides: Sequence[Side] = ()) -> str:
    """The report of a leaderboard as HTML, all of it in one text however long.

    Args:
        board: the figures; every comparable run of it has its answers in the gallery.
        time: when the page is made.
        cards: at most so many answers in the gallery.
        sides: two that are put side by side first, and whose answers the gallery must have.
    """
    contents = contents_of(board, time, cards, sides)
    chosen = (card for one in contents.found for card in contents.choice.cards(one))
    gallery = gallery_data(chosen, contents.runs)
    return rendered(contents, gallery, len(gallery["cards"]))


@dataclass(frozen=True, slots=True)
class Contents:
    """All that a page shows, but for its answers: where those lie depends on how many they are.

    ``values`` are those of the template, ``data`` what the script is told besides the answers.
    """

    runs: Sequence[Run]
    found: Sequence[Transcript]
    choice: Choice
    values: Mapping[str, Any]
    data: Mapping[str, Any]


def contents_of(board: Board, time: datetime, cards: int, sides: Sequence[Side]) -> Contents:
    """The contents of a page; see :func:`make_page`."""
    runs = [one.run for one in board.runs]
    details = Details(board)
    found, missing = gather(runs, details.see)
    losses, panels = losses_of(board), panels_of(board)
    forest, heat_maps = forest_of(board, panels), heat_maps_of(board)
    charts = details.drawn()
    pairs = pair_runs(board, sides)
    error_types = [(one.key, one.name, one.meaning) for one in board.benchmark.errors.error_types]
    reason_rows = [*reasons_of(board)]
    values = {
        "board": board,
        "title": f"{board.benchmark.name} report",
        "headlines": headlines_of(board, panels, losses),
        "forest": forest,
        "drawn_models": MODELS,
        "losses": losses,
        "heat_maps": heat_maps,
        "details": charts,
        "details_note": details.note,
        "reason_rows": reason_rows,
        "reasons": list(dict.fromkeys(name for _, shares in reason_rows for name in shares)),
        "tables": [metric_table(board, metric.name) for metric in board.shown],
        "parts": slices_tables(board),
        "formats": formats_used(board),
        "apart": excluded_table(board).only(*EXCLUDED),
        "notes": [note for note in notes_of(board) if note.title],
        "to_html": to_html,
        "missing": _by_reason(missing),
        "runs": [_run_row(run, short_metrics(board)) for run in runs],
        "short": [metric.name for metric in short_metrics(board)],
        "pairs": pairs,
        "pairs_note": pairs_note(board),
        "found_at": FOUND,
        "note": NOTE,
        "format_note": format_note(board),
        "counted": counted,
        "answers": sum(len(run.rows) for run in runs),
        "style": Markup(template_text("report.css") + template_text("gallery.css")),
        "time": time.strftime("%Y-%m-%d %H:%M UTC"),
        "version": __version__,
    }
    compared = pair_values(pairs, board.shown, runs)
    data: dict[str, Any] = {
        "error_types": error_types,
        "losses": losses.values(),
        "pairs": compared,
        # What --compare names stands first.
        "opening_pair": 0 if first_pairs(board, sides) else opening_pair(compared, runs),
    }
    drawn = [one for one in (forest, heat_maps, *(chart for _, chart in charts)) if one]
    data["charts"] = {one.key: [spec for _, spec in one.charts] for one in drawn}
    values["draws"] = bool(drawn)
    return Contents(
        runs, found, Choice.among(found, cards, first_pairs(board, sides)), values, data
    )


def rendered(
    contents: Contents, gallery: Mapping[str, Any], shown: int, folder: str | None = None
) -> str:
    """The page as HTML.

    Args:
        contents: what it shows.
        gallery: its answers for the script, as :func:`.gallery.gallery_data` has them.
        shown: how many answers that is.
        folder: the folder beside the page that pictures and replies lie in (None: in the page).
    """
    vega = charts_script() if contents.values["draws"] else ""
    script = _script(_SCRIPTS if folder is None else _WITH_ASSETS)
    template = environment().get_template("report.html.j2")
    page: str = template.render(
        **contents.values,
        shown=shown,
        folder=folder,
        data=Markup(json_in_html({**gallery, **contents.data})),
        vega=Markup(vega),
        script=Markup(script),
        script_hashes=[csp_hash(one) for one in (vega, script) if one],
    )
    return page


def environment() -> Environment:
    """The templates; text in them is escaped and made visible."""
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
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def template_text(name: str) -> str:
    """A file beside the templates."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _script(names: Iterable[str]) -> str:
    parts = "\n".join(template_text(f"{name}.js") for name in names)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def csp_hash(script: str) -> str:
    """The hash by which the page's policy knows its one script: no other script runs."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def json_in_html(value: Any) -> str:
    """JSON that cannot end the element that it stands in, whatever a model said."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # Half a surrogate pair is no text in UTF-8, but a model can say it.
    return text.encode("utf-8", "replace").decode("utf-8")


# --- tables ---------------------------------------------------------------------------------------


def _by_reason(missing: Iterable[Missing]) -> Mapping[str, list[str]]:
    """The runs without a gallery, by the reason: one missing table is one line."""
    found: dict[str, list[str]] = {}
    for one in missing:
        found.setdefault(one.reason, []).append(f"{one.run.model} {one.run.question.name}")
    return found


def _run_row(run: Run, short: Sequence[Metric]) -> dict[str, Any]:
    provenance = run.provenance
    said = {**provenance.versions, **provenance.plugins}
    versions = ", ".join(f"{name} {number}" for name, number in said.items())
    return {
        "model": run.model,
        "dataset": run.question.board_dataset,
        "format": run.question.format,
        "figures": {metric.name: metric.value(run.sums) for metric in short},
        "queries": len(run.rows),
        "failed": run.failed,
        "left_out": len(provenance.left_out),
        "prompts": provenance.prompts,
        "prompt_hash": (provenance.prompt_hash or "unknown")[:12],
        "table_sha256": provenance.table_sha256[:12],
        "spaces": "; ".join(provenance.spaces),
        "versions": versions,
        "scored_at": provenance.scored_at,
    }
