"""What the sets of a page hold, drawn: objects an image, their sizes, words a query."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ..core import counted
from ..data import SetStatistics, load_dataset, statistics_of
from ..leaderboard import Board
from ..storage import TableError
from .charts import COLOURS, TEXT, Fit, Spec, chart, layer, nominal, number

# Upper ends of bins: each holds what is above the one before, up to this
_COUNTS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40, 80)
_SIZES = (16, 32, 64, 128, 256, 512, 1024)


def sets_drawn(board: Board) -> Iterator[tuple[str, Spec]]:
    """Yield a chart of each table of a board that is on disk, by its name."""
    by_table = {run.run.variant.table: run.run.variant.name for run in board.runs}
    for table, name in by_table.items():
        # Runs are shown without their tables, too: an import may have been removed.
        with suppress(OSError, TableError):
            yield table, set_chart(statistics_of(load_dataset(name)))


def set_chart(shown: SetStatistics) -> Spec:
    """Draw the shares of images, objects and queries by size, in percent."""
    panels = {
        "objects an image": (shown.objects_an_image, _COUNTS, "images"),
        "size of objects (px)": (shown.sizes, _SIZES, "objects"),
        "words a query": (shown.words, _COUNTS, "queries"),
    }
    rows = []
    for what, (spread, ends, things) in panels.items():
        for at, (label, share) in enumerate(_bins(spread.values, ends) if spread else ()):
            text = f"{what} {label}: {share:.1f} % of {things}"
            row = {"what": what, "at": at, "bin": label, "share": round(share, 3), "text": text}
            rows.append(row)
    drawn = [what for what, (spread, *_) in panels.items() if spread]
    bars = {
        "x": nominal("bin", title=None, sort={"field": "at"}, axis={"labelAngle": -45}),
        "y": number("share", title="%"),
        **TEXT,
    }
    alt = (
        f"{shown.name}: {counted(shown.queries, 'query', 'queries')}, "
        f"{counted(shown.images, 'image')}, {counted(shown.objects, 'object')}"
    )
    return chart(
        alt,
        Fit(len(drawn), 300, 60, gap=60),
        rows,
        facet=nominal("what", title=None, sort=drawn),
        columns=3,
        spec={"width": 300, "height": 180, "layer": [layer("bar", bars, color=COLOURS[0])]},
        resolve={"scale": {"x": "independent", "y": "independent"}},
    )


def _bins(values: Sequence[float], ends: Sequence[int]) -> Iterator[tuple[str, float]]:
    """Yield the bins from the first to the last that has values, with their shares in percent."""
    # A bin ends with its upper end: 16 is still "up to 16".
    counts = Counter(bisect_right([end + 1e-9 for end in ends], value) for value in values)
    for at in range(min(counts), max(counts) + 1):
        low = ends[at - 1] if at else None
        if at == len(ends):
            label = f"> {ends[-1]}"
        elif low is None:
            label = f"≤ {ends[0]}" if ends[0] else "0"
        else:
            # Counts are whole: what is above 6 is 7.
            first = low + 1 if ends is _COUNTS else low
            label = str(first) if first == ends[at] else f"{first}–{ends[at]}"
        yield label, 100 * counts[at] / len(values)
