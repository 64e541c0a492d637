"""``run_findit.py anatomy``: what a run's score lost, by cause.

Needs no model.  The points between the score, failed calls as misses, and 100 are divided among
causes, and add up.  Exits 2 where a run has no anatomy; the others are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.anatomy import Anatomy
from ..core.files import atomic_write
from ..core.metric import Better
from ..core.spelling import short, visible
from ..core.statistics import INTERVALS, Difference, Interval
from ..runs.anatomy import Loss, NoAnatomyError, Part, anatomy_of, compare, parts_of
from ..runs.intervals import StatisticsError
from ..runs.scored_run import Keep, Run, load_runs, with_details
from ..runs.twins import Syntax, syntax, twin_of
from .parsing import Parser
from .salvaged import rejection_lines, salvaged_lines

REFUSED = 2
"""The exit status where a run has to be scored again first."""

_MOST_PARTS = 20
_NAME = 32
_MOSTLY = 2


def main(argv: Sequence[str]) -> int:
    """Say of every run what its score lost."""
    parser = Parser(
        prog="run_findit.py anatomy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", help="scored prediction files, or folders of them"
    )
    parser.add_argument(
        "--by", metavar="PART", help="where it was lost: size, objects, label or a kind of slices"
    )
    parser.add_argument(
        "--against", type=Path, metavar="RUN", help="a run of the same rows: what differs, paired"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    args = parser.parse_args(argv)
    other = _one(args.against) if args.against is not None else None
    if other is not None:
        anatomy_of(other)  # what it lacks is said once, and not of every run beside it
    refused = False
    print(f"Intervals: {INTERVALS}.")
    runs = load_runs(args.runs, keep=Keep.SUMS)
    beside = runs if other is None else [*runs, other]
    with _list_in(args.json) as tell:
        for run in runs:
            try:
                losses = anatomy_of(run)
                lines, told = _said(run, losses, beside, other, args.by)
            except (NoAnatomyError, StatisticsError) as error:
                # What one run lacks is no reason to say nothing of the others.
                print(f"error: {error}", file=sys.stderr)
                refused = True
                continue
            print("\n".join(["", visible(f"{run.model} on {run.question.name}"), *lines]))
            tell(told)
    return REFUSED if refused else 0


def _said(
    run: Run, losses: Sequence[Loss], beside: Iterable[Run], other: Run | None, by: str | None
) -> tuple[list[str], dict[str, Any]]:
    """What there is to say of a run, for people and for programs.

    Only here are its details in memory; figures need none.
    """
    whole = with_details(run)
    parts = parts_of(whole, by) if by else ()
    differences = compare(run, other) if other is not None else {}
    lines = [*_table(run, losses)]
    if other is not None:
        lines += ["", *_difference_table(other, losses, differences)]
    twin = twin_of(run, beside)
    held = None if twin is None else syntax(run, twin)
    if held is not None:
        lines += ["", *_syntax_table(held)]
    if by:
        lines += ["", *_part_table(run.benchmark.anatomy, by, parts)]
    for table in filter(None, (salvaged_lines(whole), rejection_lines(run))):
        lines += ["", *table]
    told = _as_dict(run, losses, parts, other, differences)
    if held is not None:
        told["constrained"] = _held_as_dict(held)
    return lines, told


def _one(path: Path) -> Run:
    runs = load_runs([path], keep=Keep.SUMS)
    if len(runs) != 1:
        raise ValueError(f"--against {path}: {len(runs)} runs, and one is needed: name its file")
    return runs[0]


# --- tables ---------------------------------------------------------------------------------------


def _row(name: str, events: str, points: str, rest: str = "") -> str:
    return f"  {short(visible(name), _NAME):<{_NAME}}{events:>8}{points:>8}  {rest}".rstrip()


def _table(run: Run, losses: Sequence[Loss]) -> Iterator[str]:
    score = run.benchmark.anatomy.score
    value, lost = score.value(run.sums), sum(loss.points for loss in losses)
    yield _row("", "events", "points", "interval")
    yield _row(score.title, "", "–" if value is None else f"{value:.1f}")
    for loss in losses:
        if loss.events:
            yield _row(
                loss.cause.name, f"{loss.events:g}", f"{loss.points:.1f}", _bounds(loss.interval)
            )
    if not lost and not value:
        yield "  nothing to find, and nothing said: nothing is lost"
    elif score.better is Better.HIGHER:
        yield _row("sum", "", f"{(value or 0) + lost:.1f}")


def _bounds(interval: Interval | None) -> str:
    return f"{interval.low:.1f} to {interval.high:.1f}" if interval is not None else ""


def _difference_table(
    other: Run, losses: Sequence[Loss], differences: Mapping[str, Difference]
) -> Iterator[str]:
    yield visible(f"  against {other.model} on {other.question.name}:")
    yield _row("", "", "points", f"{'interval':<18}p (Holm)")
    for loss in losses:
        found = differences.get(loss.cause.key)
        if found is not None:
            tested = "" if found.corrected is None else f"{found.corrected:.3g}"
            mark = " *" if found.significant else ""
            bounds = f"{_bounds(found.interval):<18}{tested}{mark}"
            yield _row(loss.cause.name, "", f"{found.value:+.1f}", bounds)
    in_all = sum(found.value for found in differences.values())
    yield _row("lost in all", "", f"{in_all:+.1f}")


def _syntax_table(found: Syntax) -> Iterator[str]:
    """What of the loss the format's grammar would have saved."""
    yield _row("held to the format's grammar", "", f"{found.held:.1f}")
    yield _row("  syntax cost", "", f"{found.gain.value:+.1f}", _bounds(found.gain.interval))
    yield _row("  sight costs the rest", "", f"{found.sight:.1f}")


def _part_table(anatomy: Anatomy, by: str, parts: Sequence[Part]) -> Iterator[str]:
    names = {one.key: one.name for one in anatomy.causes}
    yield _row(f"by {by}", "events", "points", "mostly")
    for part in parts[:_MOST_PARTS]:
        most = sorted(part.points.items(), key=lambda item: -item[1])[:_MOSTLY]
        mostly = ", ".join(names[key] for key, points in most if points)
        events = f"{sum(part.events.values()):g}"
        yield _row(part.name, events, f"{part.total:.1f}", mostly)
    rest = parts[_MOST_PARTS:]
    if rest:
        more = sum(sum(part.events.values()) for part in rest)
        yield _row(f"{len(rest)} more", f"{more:g}", f"{sum(part.total for part in rest):.1f}")
    yield _row("lost in all", "", f"{sum(part.total for part in parts):.1f}")


# --- for programs ---------------------------------------------------------------------------------


@contextmanager
def _list_in(path: Path | None) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A file that lists in JSON what it is told, one after the other; none where there is no path.

    The parts of a thousand runs are not held together.
    """
    if path is None:
        yield lambda one: None
        return
    with atomic_write(path) as f:
        before = "[\n "

        def tell(one: Mapping[str, Any]) -> None:
            nonlocal before
            f.write(before + json.dumps(one, indent=1, ensure_ascii=False).replace("\n", "\n "))
            before = ",\n "

        yield tell
        f.write("[]\n" if before.startswith("[") else "\n]\n")


def _as_dict(
    run: Run,
    losses: Sequence[Loss],
    parts: Sequence[Part],
    other: Run | None,
    differences: Mapping[str, Difference],
) -> dict[str, Any]:
    anatomy = run.benchmark.anatomy
    names = {one.key: one.name for one in anatomy.causes}
    told: dict[str, Any] = {
        "run": str(run.path),
        "model": run.model,
        "dataset": run.question.name,
        "score": {"name": anatomy.score.name, "value": anatomy.score.value(run.sums)},
        "causes": [
            {
                "cause": loss.cause.name,
                "meaning": loss.cause.meaning,
                "events": loss.events,
                "points": loss.points,
                "low": loss.interval.low if loss.interval else None,
                "high": loss.interval.high if loss.interval else None,
            }
            for loss in losses
        ],
    }
    if parts:
        told["parts"] = [
            {
                "part": part.name,
                "points": part.total,
                "causes": {
                    names[key]: {"events": part.events[key], "points": points}
                    for key, points in part.points.items()
                },
            }
            for part in parts
        ]
    if other is not None:
        told["against"] = {
            "run": str(other.path),
            "causes": {
                names[key]: {
                    "points": d.value,
                    "low": d.interval.low if d.interval else None,
                    "high": d.interval.high if d.interval else None,
                    "p": d.p_value,
                    "p (Holm)": d.corrected,
                }
                for key, d in differences.items()
            },
        }
    return told


def _held_as_dict(found: Syntax) -> dict[str, Any]:
    bounds = found.gain.interval
    return {
        "score": found.held,
        "syntax": {
            "points": found.gain.value,
            "low": bounds.low if bounds else None,
            "high": bounds.high if bounds else None,
            "p": found.gain.p_value,
        },
        "sight": found.sight,
    }
