"""``run_findit.py confidences``: what a model's own probabilities say of its boxes.

Average precision of boxes ranked by each definition of confidence, in the order of the replies and
in random order; whether the confidences mean what they say; the threshold of the best F1.  Needs no
model, and runs that were made with --confidences.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..boxes.confidences import DEFINITIONS
from ..core.evidence import FEWEST
from ..core.files import atomic_write, write_once
from ..core.settings import settings_from
from ..core.spelling import visible
from ..core.statistics import DRAWN, Interval
from ..doctor.of_run import NotBoxesError
from ..runs.confidences import ORDERS, Figure, Judged, Ranked, Sureness, judge
from ..runs.prediction_names import prediction_files
from ..runs.results import as_scored
from ..runs.score import score_file
from .parsing import Parser

NOTHING = 1
"""No run has answers that are boxes."""


def main(argv: Sequence[str]) -> int:
    """Say of every run what its confidences are worth."""
    parser = Parser(
        prog="run_findit.py confidences",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="prediction files, or folders of them"
    )
    parser.add_argument("--dataset", help="the dataset's name, for files of any other name")
    parser.add_argument("--space", help="coordinate space (see: score --help)")
    parser.add_argument("--force", action="store_true", help="see: score --help")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE.png", help="draw calibration and F1 there"
    )
    args = parser.parse_args(argv)
    settings = settings_from({"space": args.space, "force": args.force})
    told: list[Judged] = []
    for path in prediction_files(args.runs):
        try:
            told.append(judge(score_file(path, as_scored(path, settings), args.dataset), path))
        except NotBoxesError as error:
            print(f"{path}: left out: {error}", file=sys.stderr)
            continue
        print("\n".join(text_of(told[-1])) + "\n")
    if not told:
        return NOTHING
    print("\n".join(legend(told)))
    if args.json is not None:
        with atomic_write(args.json) as f:
            f.write(json.dumps([one.as_dict() for one in told], indent=1) + "\n")
    if args.picture is not None:
        from ..report.confidences import picture

        write_once(args.picture, picture(told))
        print(f"{args.picture}: calibration and F1 of {len(told)} runs")
    return 0


def text_of(run: Judged) -> Iterator[str]:
    """What is printed of a run, in 80 columns."""
    yield f"{visible(run.model)} on {run.dataset}"
    yield f"{run.boxes} boxes in {run.queries} replies about {run.pictures} pictures"
    yield ""
    yield f"{'boxes ranked':<15}{'AP':>5}{'gain':>23}{'AP50':>12}{'gain':>21}"
    ap, ap50 = _spread(run.at_random.ap), _spread(run.at_random.ap50)
    yield f"{'at random':<15}{ap}{'':13}{ap50}".rstrip()
    yield _ranked("as output", run.as_output)
    for one in run.by_definition:
        yield _ranked(f"by {one.definition}", one.ranked)
    yield ""
    yield (
        f"{'confidence':<12}{'ECE':>5}{'best cut':>9}{'':18}"
        f"{'F1 there':>9}{'elsewhere':>11}{'uncut':>7}{'unsure':>8}"
    )
    for one in run.by_definition:
        yield _calibrated(one)


def legend(runs: Sequence[Judged]) -> Iterator[str]:
    """What the words of the tables mean."""
    there = {one.definition for run in runs for one in run.by_definition}
    for name, row in DEFINITIONS.items():
        if name in there:
            yield f"{name}: {row.means}"
    yield f"at random: mean, least and most of {ORDERS} orders"
    yield "gain: over the order of output; ≈: not significant"
    yield f"brackets: 95 %, {DRAWN} times the pictures drawn again; none of fewer than {FEWEST}"
    yield "best cut: the confidence from which boxes are kept for the highest F1, which was"
    yield "chosen on these boxes; elsewhere: F1 with each half cut where the other is best"


def _ranked(name: str, one: Ranked) -> str:
    return (
        f"{name:<15}{_figure(one.ap)}{_gain(one.ap)}{_figure(one.ap50)}{_gain(one.ap50)}".rstrip()
    )


def _figure(one: Figure) -> str:
    return f"{one.value:5.1f} {_between(one.interval):<13}"


def _gain(one: Figure) -> str:
    """The gain, and whether it could as well be none."""
    if one.gain is None:
        return " " * 13
    near = one.gain_interval is not None and one.gain_interval.low <= 0 <= one.gain_interval.high
    return f"{one.gain:>+8.1f} {'≈' if near else '':<4}"


def _between(interval: Interval | None) -> str:
    return "" if interval is None else f"({interval.low:.1f}–{interval.high:.1f})"


def _short(value: float) -> str:
    """Two digits: a product of many probabilities may be tiny."""
    return f"{value:.2g}"


def _range(interval: Interval | None) -> str:
    return "" if interval is None else f"({_short(interval.low)}–{_short(interval.high)})"


def _spread(values: tuple[float, float, float]) -> str:
    mean, least, most = values
    return f"{mean:5.1f} {f'[{least:.1f}–{most:.1f}]':<13}"


def _calibrated(one: Sureness) -> str:
    error = "–" if one.error is None else f"{100 * one.error:.1f}"
    cut = one.threshold
    if cut is None:
        return f"{one.definition:<12}{error:>5}"
    elsewhere = "–" if cut.elsewhere is None else f"{cut.elsewhere:.1f}"
    return (
        f"{one.definition:<12}{error:>5}{_short(cut.value):>9} {_range(cut.interval):<17}"
        f"{cut.f1:>9.1f}{elsewhere:>11}{cut.without:>7.1f}{one.unsure:>8}"
    )
