"""The page: metrics, plots and gallery, as HTML."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from .. import __version__
from ..analysis.run_statistics import HIT_SCORE
from ..core.formatting import counted, printable
from ..leaderboard.board import Board
from ..leaderboard.board_tables import EXCLUDED, excluded_table, metric_table, slices_tables
from ..leaderboard.comparable import grouped
from ..leaderboard.format_costs import cheapest_formats, cheapest_sentence, cheapest_table
from ..leaderboard.format_spread import format_spreads, spread_sentence, spread_table
from ..leaderboard.notes import NOTE, format_note, formats_used, notes_of
from ..leaderboard.table_output import to_html
from ..scoring.scored_run import Run
from ..statistics.intervals import COUNTING, TOO_FEW
from ..statistics.label_doubts import FAULTS, LabelFault
from .cards import CARDS, FEWEST, choose_cards
from .charts import DRAWN_MAPS
from .charts import script as charts_script
from .cost_charts import CostCharts
from .cost_points import cost_table
from .differences import opening_pair, pair_values
from .doubtful_labels import DatasetDoubts, doubts_by_row, doubts_of
from .gallery import gallery_data
from .lost_points import MODELS as LOSS_MODELS
from .lost_points import Losses, losses_of
from .pairs import Key, Pair, Side, first_pairs, key_of, pair_runs, pairs_note
from .sections import (
    Details,
    Drawn,
    forest_of,
    format_costs_of,
    heat_maps_of,
    model_costs_of,
    reasons_of,
    short_metrics,
)
from .setup_section import setups_of
from .standings import MODELS, Panel, headlines_of, panels_of
from .transcripts import gather

_TEMPLATES = Path(__file__).with_name("templates")
# The parts of the page's script, in this order
_SCRIPTS = (
    "elements", "theme", "drawing", "zoom", "detail", "gallery", "compare", "losses", "labels",
    "charts", "costs", "start",
)  # fmt: skip

_RUNS = 2_000  # Most rows of the table of runs


def make_page(board: Board, time: datetime, cards: int = CARDS, sides: Sequence[Side] = ()) -> str:
    """Make the report of a leaderboard as HTML.

    Args:
        board: its metrics, and the runs whose answers the gallery shows.
        time: written on the page.
        cards: most answers in the gallery.
        sides: two sides to compare first; the gallery has the answers in which they differ most.
    """
    runs = [row.run for row in board.runs]
    first = first_pairs(board, sides)
    details = Details(board)
    with_answers = _runs_with_answers(board, details.keys, first, cards)
    transcripts, missing = gather(with_answers)
    for transcript in transcripts:
        details.add(transcript)
    doubts = doubts_of(board)
    by_row = doubts_by_row(doubts)
    gallery = gallery_data(choose_cards(transcripts, cards, first, by_row), runs, by_row)
    losses = losses_of(board)
    panels = panels_of(board)
    pairs = pair_runs(board, sides)
    charts = _charts(board, panels, details)
    data = {**gallery, **_script_data(board, losses, pairs, charts, bool(first))}
    answers = {
        "missing": grouped(missing, lambda each: each.reason),
        "answers": sum(len(run.rows) for run in runs),
        "shown": len(gallery["cards"]),
    }
    scripts = [joined_script(_SCRIPTS)]
    if _drawn(charts) or _costs(charts):
        scripts.insert(0, charts_script())
    return render(
        "report.html.j2",
        time.strftime("%Y-%m-%d %H:%M UTC"),
        scripts,
        ["report.css", "gallery.css"],
        board=board,
        counted=counted,
        to_html=to_html,
        data=Markup(json_in_html(data)),
        headlines=headlines_of(board, panels, losses),
        drawn_models=MODELS,
        drawn_maps=DRAWN_MAPS,
        setups=setups_of(board),
        doubts=doubts,
        faults=_faults(doubts),
        losses=losses,
        loss_models=LOSS_MODELS,
        cost_table=cost_table,
        pairs=pairs,
        pairs_note=pairs_note(board),
        hit_score=HIT_SCORE,
        too_few=TOO_FEW,
        counting=COUNTING,
        **charts,
        **answers,
        **_tables(board),
        **_notes(board),
    )


def _faults(doubts: Iterable[DatasetDoubts]) -> list[LabelFault]:
    """Return the faults that any label is doubted for."""
    met = {fault for each in doubts for fault in each.by_fault}
    return [fault for fault in FAULTS if fault in met]


def _runs_with_answers(
    board: Board, detailed: Set[Key], pairs: Iterable[Pair], cards: int
) -> list[Run]:
    """Return the runs whose answers or details a page shows, by the rank of their models.

    Args:
        board: the leaderboard.
        detailed: keys of runs in the charts of details.
        pairs: pairs whose answers are shown first.
        cards: most answers in the gallery.
    """
    keys = {*detailed}
    for pair in pairs:
        keys |= {key_of(pair.left), key_of(pair.right)}
    rank = {model: at for at, model in enumerate(board.models)}
    runs = [row.run for row in board.runs]
    by_rank = sorted(runs, key=lambda run: rank.get(run.model, len(rank)))
    # The others have no answer on the page.
    most = max(cards, CARDS) // FEWEST
    return [run for at, run in enumerate(by_rank) if at < most or key_of(run) in keys]


def _charts(board: Board, panels: Sequence[Panel], details: Details) -> dict[str, Any]:
    """Return the charts for the template; ``details`` are by title."""
    return {
        "forest": forest_of(board, panels),
        "heat_maps": heat_maps_of(board),
        "model_costs": model_costs_of(board, panels),
        "format_costs": format_costs_of(board),
        "details": details.drawn(),
        "details_note": details.note,
    }


def _drawn(charts: Mapping[str, Any]) -> list[Drawn]:
    """Return all charts of a page."""
    every = [charts["forest"], charts["heat_maps"], *(chart for _, chart in charts["details"])]
    return [chart for chart in every if chart is not None]


def _costs(charts: Mapping[str, Any]) -> list[CostCharts]:
    """Return the charts of score against cost."""
    both = [charts["model_costs"], charts["format_costs"]]
    return [chart for chart in both if chart is not None]


def _script_data(
    board: Board,
    losses: Losses,
    pairs: Sequence[Pair],
    charts: Mapping[str, Any],
    any_first: bool,
) -> dict[str, Any]:
    """Return the values for the page's script, besides those of the gallery.

    ``any_first``: the first pair was named with ``--compare``, and is opened.
    """
    runs = [row.run for row in board.runs]
    error_types = board.benchmark.errors.error_types
    compared = pair_values(pairs, board.shown, runs)
    return {
        "error_types": [(each.key, each.name, each.meaning) for each in error_types],
        "losses": losses.values(error_types),
        "pairs": compared,
        "too_few": TOO_FEW,
        "opening_pair": 0 if any_first else opening_pair(compared, runs),
        "charts": {chart.key: [spec for _, spec in chart.charts] for chart in _drawn(charts)},
        "costs": {chart.key: chart.values() for chart in _costs(charts)},
    }


def _notes(board: Board) -> dict[str, Any]:
    spreads = format_spreads(board)
    cheapest = cheapest_formats(board)
    return {
        "cheapest_sentence": cheapest_sentence(board, cheapest),
        "cheapest_table": cheapest_table(board, cheapest),
        "spread_sentence": spread_sentence(board, spreads),
        "spread_table": spread_table(board, spreads),
        "formats": formats_used(board),
        "format_note": format_note(board),
        "note": NOTE,
        "notes": [note for note in notes_of(board) if note.title],
    }


def joined_script(names: Sequence[str]) -> str:
    """Join parts of a page's script, in their order."""
    parts = "\n".join(template_text(f"{name}.js") for name in names)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _tables(board: Board) -> dict[str, Any]:
    """Return the values of all tables for the template."""
    reason_rows = list(reasons_of(board))
    reasons = dict.fromkeys(name for _, shares in reason_rows for name in shares)
    return {
        "tables": [metric_table(board, metric.name) for metric in board.shown],
        "slice_tables": slices_tables(board),
        "excluded": excluded_table(board).only(*EXCLUDED),
        "runs": [row.run for row in board.runs[:_RUNS]],
        "short_metrics": short_metrics(board),
        "reason_rows": reason_rows,
        "reasons": list(reasons),
        "most_runs": _RUNS,
    }


def render(
    template: str, time: str, scripts: Sequence[str], styles: Sequence[str], **values: Any
) -> str:
    """Fill a template: text is escaped, control characters become visible.

    No scripts run but these, by their hashes in the page's policy; ``styles`` are files.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    digests = [base64.b64encode(hashlib.sha256(code.encode()).digest()) for code in scripts]
    page: str = environment.get_template(template).render(
        time=time,
        version=__version__,
        scripts=list(map(Markup, scripts)),
        script_hashes=[f"sha256-{digest.decode('ascii')}" for digest in digests],
        style=Markup("".join(map(template_text, styles))),
        **values,
    )
    return page


def _shown(value: Any) -> Any:
    """Make text of an expression printable; markup comes from this package and stays."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def template_text(name: str) -> str:
    """Return a file of the templates' folder."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def json_in_html(value: Any) -> str:
    """Return JSON that cannot end its HTML element, whatever a reply contains."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # Half a surrogate pair is no text in UTF-8, but a reply can contain it.
    return text.encode("utf-8", "replace").decode("utf-8")
