"""The report's page: its sections, each made by itself, and the values of its script."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path

from markupsafe import Markup

from ..analysis import ELSEWHERE_MEANING, HIT_SCORE
from ..core import counted, printable, read_text
from ..leaderboard import (
    OTHER_FAMILY,
    Board,
    Table,
    ablation_table,
    cheapest_formats,
    cheapest_sentence,
    cheapest_table,
    datasets_in_words,
    elsewhere_column,
    format_note,
    format_spreads,
    formats_used,
    group_by,
    how_to_read,
    metric_table,
    notes_of,
    slices_tables,
    spread_sentence,
    spread_table,
    to_html,
)
from ..protocol import ErrorGroup
from ..scoring import Run, read_details
from ..statistics import (
    FAULTS,
    INTERVALS_ALONE,
    TOO_FEW_IMAGES,
    WHICH_IMAGES_COUNT,
    FamilyOfTests,
    LabelFault,
)
from .board_charts import (
    DetailedCharts,
    DrawnCharts,
    ablations_of,
    forest_of,
    format_costs_of,
    heat_maps_of,
    model_costs_of,
    reasons_of,
    short_metrics,
)
from .charts import DRAWN_MAPS
from .cost_charts import front_table
from .curve_charts import MOST_CURVES, ablation_chart
from .doubtful_labels import DatasetDoubts, doubts_by_row, doubts_of, moves_in_words
from .gallery import gallery_data
from .gallery_choice import CARDS_ON_A_PAGE, FEWEST, choose_cards, kinds_of_cards
from .kept_script import chart_script
from .lost_points import MODELS as LOSS_MODELS
from .lost_points import Losses, losses_of
from .page_section import Contents, MadeSection, Section, SectionFailure, attempt, make_section
from .pair_choice import ModelInFormat, Pair, choose_pairs, first_pairs, page_key, pairs_note
from .pair_comparison import mean_values, opening_pair, pair_values
from .rendering import fill, joined_script, json_in_html, json_object, render, short_names
from .set_charts import sets_drawn
from .setup_section import setups_of
from .standings import MODELS, Panel, headlines_of, panels_of
from .transcripts import Missing, Transcript, gather_transcripts

# The parts of the page's script, in this order
_SCRIPTS = (
    "elements", "theme", "drawing", "zoom", "detail", "gallery", "compare", "losses", "labels",
    "charts", "costs", "tables", "start",
)  # fmt: skip

_RUNS = 2_000  # Most rows of the table of runs


class PageSource:
    """What the sections of a page are made of; what several show is made once.

    Args:
        board: the leaderboard.
        cards: most answers in the gallery.
        sides: two sides to compare first, or none.
    """

    def __init__(
        self, board: Board, cards: int = CARDS_ON_A_PAGE, sides: Sequence[ModelInFormat] = ()
    ) -> None:
        self.board = board
        self.cards = cards
        self.sides = sides
        self.runs = [row.run for row in board.runs]

    @cached_property
    def panels(self) -> list[Panel]:
        return panels_of(self.board)

    @cached_property
    def losses(self) -> Losses:
        return losses_of(self.board)

    @cached_property
    def doubts(self) -> tuple[DatasetDoubts, ...]:
        return doubts_of(self.board)

    @cached_property
    def first(self) -> list[Pair]:
        """The pairs that were named, whose answers are shown first."""
        return first_pairs(self.board, self.sides)

    @cached_property
    def details(self) -> DetailedCharts:
        """The charts of details, yet without any."""
        return DetailedCharts(self.board)

    @cached_property
    def gathered(self) -> tuple[list[Transcript], list[Missing]]:
        """The transcripts of the runs whose answers or details are shown, and those without."""
        return gather_transcripts(self._with_answers())

    def found_by_size(self) -> dict[str, tuple[int, int]]:
        """Return objects, and those found, by size, of a model alone: over its datasets."""
        if len(self.board.models) > 1:
            return {}
        objects: Counter[str] = Counter()
        found: Counter[str] = Counter()
        reported = {page_key(row.run) for row in self.board.runs if row.reported}
        for transcript in self.gathered[0]:
            run = transcript.run
            if page_key(run) not in reported or run.random is not None:
                continue
            counts = run.benchmark.found_by_size(transcript.dataset, read_details(run))
            for size, (its_objects, its_found) in counts.items():
                objects[size] += its_objects
                found[size] += its_found
        return {size: (objects[size], found[size]) for size in objects}

    def _with_answers(self) -> list[Run]:
        """Return the runs whose answers or details a page shows, by the rank of their models."""
        keys = {*self.details.keys}
        for pair in self.first:
            keys |= {page_key(pair.left), page_key(pair.right)}
        rank = {model: at for at, model in enumerate(self.board.models)}
        by_rank = sorted(self.runs, key=lambda run: rank.get(run.model, len(rank)))
        # The others have no answer on the page.
        most = max(self.cards, CARDS_ON_A_PAGE) // FEWEST
        return [run for at, run in enumerate(by_rank) if at < most or page_key(run) in keys]


# --- the sections ---------------------------------------------------------------------------------


def _headlines(page: PageSource) -> Contents | None:
    # The first screen can do without the points that were lost: their section says why.
    losses = attempt(lambda: page.losses, lambda _: Losses("", (), ()))
    # It can do without sizes, too: tables may be missing.
    by_size = attempt(page.found_by_size, lambda _: {})
    headlines = headlines_of(page.board, page.panels, losses, by_size)
    return Contents({"headlines": headlines}) if headlines else None


def _best(page: PageSource) -> Contents:
    board = page.board
    forest = forest_of(board, page.panels)
    values = {
        "board": board,
        "forest": forest,
        "elsewhere": ELSEWHERE_MEANING,
        "p_values": FamilyOfTests.MODELS.value,
        "drawn_models": MODELS,
        "tables": [_on_page(metric_table(board, metric.name)) for metric in board.shown],
        "to_html": to_html,
    }
    return Contents(values, charts=[forest] if forest else [])


def _on_page(table: Table) -> Table:
    """Put values elsewhere behind all others, so that the datasets are in view.

    A rank of one row, and a number of formats that all have, tell nothing: a note has the latter.
    """
    end = elsewhere_column("")
    table = table.without(_telling_nothing(table))
    places = range(len(table.fields))
    return table.at(sorted(places, key=lambda at: table.fields[at].name.endswith(end)))


def _telling_nothing(table: Table) -> set[str]:
    """Return the columns in which no row differs from another: of ranks, of formats tried."""
    rows = table.records()
    alike = {"rank"} if len(rows) == 1 else set()
    tried = {row["formats tried"] for row in rows if "formats tried" in row} - {"", None}
    return alike | ({"formats tried"} if len(tried) == 1 else set())


def _setup(page: PageSource) -> Contents | None:
    setups = setups_of(page.board)
    return Contents({"setups": setups}) if setups else None


def _formats(page: PageSource) -> Contents | None:
    board = page.board
    maps = heat_maps_of(board)
    if maps is None:
        return None
    spreads = format_spreads(board)
    values = {
        "board": board,
        "heat_maps": maps,
        "drawn_maps": DRAWN_MAPS,
        "spread_sentence": spread_sentence(board, spreads),
        "spread_table": spread_table(board, spreads),
        "to_html": to_html,
    }
    return Contents(values, charts=[maps])


def _ablation(page: PageSource) -> Contents | None:
    ablations = ablations_of(page.board)
    if not ablations:
        return None
    charts = [(each.benchmark, ablation_chart(each)) for each in ablations]
    drawn = DrawnCharts("ablations", tuple(charts))
    models = [{line.model for line in each.lines} for each in ablations]
    values = {
        "ablations": drawn,
        "tables": [ablation_table(each) for each in ablations],
        "is_cut": any(len(names) > MOST_CURVES for names in models),
        "most_curves": MOST_CURVES,
        "to_html": to_html,
    }
    return Contents(values, charts=[drawn])


def _cost(page: PageSource) -> Contents | None:
    board = page.board
    of_models = model_costs_of(board, page.panels)
    of_formats = format_costs_of(board)
    charts = [chart for chart in (of_models, of_formats) if chart is not None]
    if not charts:
        return None
    cheapest = cheapest_formats(board)
    values = {
        "board": board,
        "model_costs": of_models,
        "format_costs": of_formats,
        "drawn_models": MODELS,
        "drawn_maps": DRAWN_MAPS,
        "cheapest_sentence": cheapest_sentence(board, cheapest),
        "cheapest_table": cheapest_table(board, cheapest),
        "front_table": front_table,
        "to_html": to_html,
    }
    return Contents(values, costs=charts)


def _lost(page: PageSource) -> Contents | None:
    losses = page.losses
    if not losses.bars and not losses.lacking:
        return None
    values = {
        "board": page.board,
        "losses": losses,
        "loss_models": LOSS_MODELS,
        "has_failed": any(run.failed for run in page.runs),
    }
    return Contents(values, {"losses": losses.values(page.board.benchmark.errors.error_types)})


def _labels(page: PageSource) -> Contents | None:
    if not page.doubts:
        return None
    voters = {each.voters for each in page.doubts}
    values = {
        "board": page.board,
        "doubts": page.doubts,
        "doubtful": [each for each in page.doubts if each.listed],
        "without": [each.dataset for each in page.doubts if not each.listed],
        "voters": voters.pop() if len(voters) == 1 else (),  # Of all datasets
        "faults": _faults(page.doubts),
        "bounded": [each for each in page.doubts if each.bounds],
        "moves": moves_in_words(page.doubts),
        "counted": counted,
    }
    return Contents(values)


def _faults(doubts: Iterable[DatasetDoubts]) -> list[LabelFault]:
    """Return the faults that any label is doubted for."""
    met = {fault for each in doubts for fault in each.by_fault}
    return [fault for fault in FAULTS if fault in met]


def _gallery(page: PageSource) -> Contents:
    # Answers can do without the doubts about labels: their section says why.
    doubts = attempt(lambda: page.doubts, lambda _: ())
    by_row = doubts_by_row(doubts)
    transcripts, missing = page.gathered
    reported = [row.run for row in page.board.runs if row.reported]
    cards = choose_cards(transcripts, page.cards, page.first, by_row, reported)
    values = {
        "shown": len(cards),
        "answers": sum(len(run.rows) for run in page.runs),
        "kinds": kinds_of_cards(cards, len(transcripts), is_doubted=bool(doubts)),
        "missing": group_by(missing, lambda each: each.reason),
    }
    places = [at for at, row in enumerate(page.board.runs) if row.reported]
    script = {**gallery_data(cards, page.runs, by_row), "reported": places}
    return Contents(values, script, options=script["parts"])


def _compare(page: PageSource) -> Contents | None:
    board = page.board
    pairs = choose_pairs(board, page.sides)
    if not pairs:
        return None
    compared = pair_values(pairs, board, page.runs)
    values = {
        "board": board,
        "elsewhere": ELSEWHERE_MEANING,
        "errors_family": FamilyOfTests.ERRORS.value,
        "errors_intervals": INTERVALS_ALONE,
        "too_few": TOO_FEW_IMAGES,
        "counting": WHICH_IMAGES_COUNT,
        "hit_score": HIT_SCORE,
        "pairs_note": pairs_note(board),
    }
    # A pair that was named with --compare is opened.
    opened = 0 if page.first else opening_pair(compared, page.runs)
    families = {family.name: family.value for family in FamilyOfTests}
    script = {"pairs": compared, "opening_pair": opened, "families": families}
    script["means"] = mean_values(pairs, board)
    return Contents(values, script)


def _details(page: PageSource) -> Contents:
    for transcript in page.gathered[0]:
        page.details.add(transcript)
    drawn = page.details.drawn()
    if sets := tuple(sets_drawn(page.board)):
        drawn.append(("The sets", DrawnCharts("sets", sets)))
    rows = list(reasons_of(page.board))
    groups = {"Classes": page.details.class_tables(), "Slices": slices_tables(page.board)}
    titles = [table.title for tables in groups.values() for table in tables]
    values = {
        "board": page.board,
        "details": drawn,
        "details_note": page.details.note,
        "other_family": OTHER_FAMILY,
        "table_groups": groups,
        "reason_rows": rows,
        "reasons": list(dict.fromkeys(name for _, shares in rows for name in shares)),
        "most_runs": _RUNS,
        "to_html": to_html,
    }
    return Contents(values, charts=[chart for _, chart in drawn], options=titles)


def _notes(page: PageSource) -> Contents:
    board = page.board
    values = {
        "board": board,
        "note": how_to_read(board),
        "notes": [note for note in notes_of(board) if note.title],
        "excluded": _excluded_by_reason(board),
        "counted": counted,
        "formats": _models_by_format(board),
        "format_note": format_note(board),
        "runs": page.runs[:_RUNS],
        "short_metrics": short_metrics(board),
    }
    return Contents(values)


def _excluded_by_reason(board: Board) -> dict[str, dict[str, list[Run]]]:
    """Return the runs that are not compared, by the reason, then by model."""
    by_reason = group_by(board.excluded, lambda excluded: excluded.reason)
    return {
        reason: group_by((excluded.run for excluded in members), lambda run: run.model)
        for reason, members in by_reason.items()
    }


def _models_by_format(board: Board) -> dict[tuple[str, str], list[str]]:
    """Return the models that are reported in a format on the same datasets, which are in words."""
    models: dict[tuple[str, str], list[str]] = {}
    for model, format_, datasets in formats_used(board):
        models.setdefault((format_, datasets_in_words(board, datasets)), []).append(model)
    return models


# In the order of the page
SECTIONS: tuple[Section[PageSource], ...] = (
    Section("headlines", "First screen", "headlines.html.j2", _headlines, is_linked=False),
    Section("best", "Scores", "best.html.j2", _best),
    Section("setup", "Setup", "setup.html.j2", _setup),
    Section("formats", "Which format?", "formats.html.j2", _formats),
    Section("ablation", "What does one thing change?", "ablation.html.j2", _ablation),
    Section("cost", "What does it cost?", "costs.html.j2", _cost),
    Section("lost", "What was lost?", "losses.html.j2", _lost),
    Section("labels", "Doubtful labels", "labels.html.j2", _labels),
    Section("gallery", "Answers", "gallery.html.j2", _gallery),
    Section("compare", "A against B", "compare.html.j2", _compare),
    Section("details", "Details", "details.html.j2", _details),
    Section("notes", "Notes", "notes.html.j2", _notes),
)


# --- the page -------------------------------------------------------------------------------------


def _raise(failure: SectionFailure) -> None:
    raise failure.error


def make_page(
    board: Board,
    time: datetime,
    cards: int = CARDS_ON_A_PAGE,
    sides: Sequence[ModelInFormat] = (),
    report_failure: Callable[[SectionFailure], None] = _raise,
) -> str:
    """Make the report of a leaderboard as HTML.

    Args:
        board: its metrics, and the runs whose answers the gallery shows.
        time: written on the page.
        cards: most answers in the gallery.
        sides: two sides to compare first; the gallery has the answers in which they differ most.
        report_failure: called with each section that could not be made. Where it returns, the page
            says why in place of the section, and has the others. By default the error is raised.
    """
    source = PageSource(board, cards, sides)
    made = []
    for section in SECTIONS:
        done = attempt(
            partial(make_section, section, source), partial(_failed, section, report_failure)
        )
        if done is not None:
            made.append(done)
    charts = {key: text for section in made for key, text in section.charts.items()}
    costs = {key: text for section in made for key, text in section.costs.items()}
    scripts = [joined_script(_SCRIPTS)]
    if charts or costs:
        scripts.insert(0, chart_script())
    data = {
        **_empty_data(board),
        **{key: text for section in made for key, text in section.script.items()},
        "charts": json_object(charts),
        "costs": json_object(costs),
        "short_names": json_in_html(short_names(_options(board, made))),
    }
    return render(
        "report.html.j2",
        time.strftime("%Y-%m-%d %H:%M UTC"),
        scripts,
        ["report.css", "gallery.css"],
        board=board,
        shown=shown_on_page(board),
        sections=made,
        data=Markup(json_object(data)),
    )


def _options(board: Board, made: Iterable[MadeSection]) -> Iterator[str]:
    """Yield what the selects of a page offer."""
    yield from board.models
    for row in board.runs:
        yield row.run.board_dataset
        yield row.run.variant.format
        yield f"{row.run.model} · {row.run.variant.format}"
    for section in made:
        yield from section.options


def shown_on_page(board: Board) -> str:
    """Say how much a page shows: ``24 runs of 4 models on 2 datasets``."""
    runs = counted(len(board.runs), "run")
    models = counted(len(board.models), "model")
    return f"{runs} of {models} on {counted(len(board.datasets), 'dataset')}"


_SHOWN = re.compile(r"<p>([\d,]+ runs? of [\d,]+ models? on [\d,]+ datasets?)\. Made ")


def read_shown(page: Path) -> str | None:
    """Return how much a page in a file shows; None: there is none, or it is not ours."""
    try:
        found = _SHOWN.search(read_text(page))
    except (OSError, ValueError):
        return None
    return found[1] if found else None


def _failed(
    section: Section[PageSource], report: Callable[[SectionFailure], None], error: Exception
) -> MadeSection:
    """Return what stands in place of a section that could not be made."""
    failure = SectionFailure(section.title, error)
    report(failure)
    html = fill("failed.html.j2", {"key": section.key, "failure": failure})
    return MadeSection(section.key, section.title, html, section.is_linked)


def _empty_data(board: Board) -> dict[str, str]:
    """Return the values of the page's script, as JSON by their keys, where it has no sections."""
    groups = list(ErrorGroup)
    error_types = [
        (each.key, each.name, each.meaning, groups.index(each.group))
        for each in board.benchmark.errors.error_types
    ]
    values = {
        **gallery_data([], [row.run for row in board.runs]),
        "models": [printable(model) for model in board.models],
        "error_groups": [(group.value, group.meaning) for group in groups],
        "error_types": error_types,
        "too_few": TOO_FEW_IMAGES,
        "means": [],
        "pairs": [],
        "reported": [],
    }
    return {key: json_in_html(value) for key, value in values.items()}
