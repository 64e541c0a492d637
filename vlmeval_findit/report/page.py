"""The page: metrics, plots and gallery, as HTML."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
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
from ..leaderboard.notes import NOTE, format_note, formats_used, notes_of
from ..leaderboard.table_output import to_html
from .cards import CARDS, FEWEST, choose_cards
from .charts import script as charts_script
from .differences import opening_pair, pair_values
from .gallery import gallery_data
from .lost_points import MODELS as LOSS_MODELS
from .lost_points import losses_of
from .pairs import Side, first_pairs, key_of, pair_runs, pairs_note
from .sections import Details, forest_of, heat_maps_of, reasons_of, short_metrics
from .standings import MODELS, headlines_of, panels_of
from .transcripts import gather

_TEMPLATES = Path(__file__).with_name("templates")
_SCRIPTS = (
    "elements", "drawing", "zoom", "detail", "gallery", "compare", "losses", "charts", "start",
)  # fmt: skip
"""The parts of the page's script, in this order."""

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
    details = Details(board)
    first = first_pairs(board, sides)
    keys = details.keys | {key_of(run) for pair in first for run in (pair.left, pair.right)}
    rank = {model: at for at, model in enumerate(board.models)}
    by_rank = sorted(runs, key=lambda run: rank.get(run.model, len(rank)))
    most = max(cards, CARDS) // FEWEST  # The others have no answer on the page.
    transcripts, missing = gather(
        [run for at, run in enumerate(by_rank) if at < most or key_of(run) in keys], details.add
    )
    losses, panels = losses_of(board), panels_of(board)
    forest = forest_of(board, panels)
    heat_maps = heat_maps_of(board)
    charts = details.drawn()
    drawn = [group for group in (forest, heat_maps, *(chart for _, chart in charts)) if group]
    pairs = pair_runs(board, sides)
    compared = pair_values(pairs, board.shown, runs)
    error_types = board.benchmark.errors.error_types
    gallery = gallery_data(choose_cards(transcripts, cards, first), runs)
    data: dict[str, Any] = {
        **gallery,
        "error_types": [(t.key, t.name, t.meaning) for t in error_types],
        "losses": losses.values(error_types),
        "pairs": compared,
        # Pairs of --compare come first.
        "opening_pair": 0 if first else opening_pair(compared, runs),
        "charts": {group.key: [spec for _, spec in group.charts] for group in drawn},
    }
    parts = "\n".join(template_text(f"{name}.js") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    reason_rows = [*reasons_of(board)]
    return render(
        "report.html.j2",
        time.strftime("%Y-%m-%d %H:%M UTC"),
        [charts_script(), script] if drawn else [script],
        ["report.css", "gallery.css"],
        board=board,
        headlines=headlines_of(board, panels, losses),
        forest=forest,
        drawn_models=MODELS,
        losses=losses,
        loss_models=LOSS_MODELS,
        heat_maps=heat_maps,
        details=charts,
        details_note=details.note,
        reason_rows=reason_rows,
        most_runs=_RUNS,
        reasons=list(dict.fromkeys(name for _, shares in reason_rows for name in shares)),
        tables=[metric_table(board, metric.name) for metric in board.shown],
        parts=slices_tables(board),
        formats=formats_used(board),
        apart=excluded_table(board).only(*EXCLUDED),
        notes=[note for note in notes_of(board) if note.title],
        to_html=to_html,
        missing=grouped(missing, lambda each: each.reason),
        runs=runs[:_RUNS],
        short=short_metrics(board),
        pairs=pairs,
        pairs_note=pairs_note(board),
        found_at=HIT_SCORE,
        note=NOTE,
        format_note=format_note(board),
        counted=counted,
        answers=sum(len(run.rows) for run in runs),
        shown=len(gallery["cards"]),
        data=Markup(json_in_html(data)),
    )


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
