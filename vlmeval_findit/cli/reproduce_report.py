"""Output of a reproduction: the figure, what is asked as published, the verdict; and of two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from math import ceil
from pathlib import Path
from textwrap import wrap

from ..core import as_called, counted, printable
from ..data import PublishedFigure
from ..reproduction import (
    PICTURES_A_DATASET,
    Attempt,
    CauseLook,
    ConditionAgreement,
    ConditionSet,
    FigureJudgement,
    FigureVerdict,
    Setup,
    SharedRows,
    StoredReproduction,
    TwoReproductions,
    another_model,
    capitalised,
    dataset_notes,
    reproduction_line,
)
from ..statistics import TOO_FEW_IMAGES
from .command_base import is_quiet, say
from .coordinate_lines import folded

_NAME_WIDTH = 10
"""Of the names of conditions."""

_OF_LENGTH = re.compile("max_(?:completion_)?tokens|context length|max_model_len", re.IGNORECASE)
"""Errors of servers whose context is shorter than the published limit of a reply."""


def print_setup(setup: Setup) -> None:
    """Print the figure and its conditions, in lines of at most 80 characters."""
    lines = [_figure(setup.figure), f"  {_source(setup.figure)}"]
    for each in setup.conditions:
        name = "hit" if each.name == "iou" else each.name
        lines.append(f"  {name:{_NAME_WIDTH}}{_condition(each)}")
    if note := setup.figure.conditions.note:
        lines.append(f"  {'more':{_NAME_WIDTH}}{note}")
    lines += [f"  {'data':{_NAME_WIDTH}}{note}" for note in dataset_notes(setup)]
    _print([*map(printable, lines), ""])


def _figure(figure: PublishedFigure) -> str:
    return f"{figure.model} on {figure.set_name}: {figure.set.metric} {figure.value:g} is published"


def _source(figure: PublishedFigure) -> str:
    told = [f"by {figure.measured_by}", figure.source, figure.date, figure.note]
    return "; ".join(filter(None, told))


def _condition(condition: ConditionSet) -> str:
    here = condition.here or "not known"
    if condition.name == "iou":
        here = f"IoU {here} the threshold"
    match condition.agreement:
        case ConditionAgreement.AS_PUBLISHED:
            return here
        case ConditionAgreement.NOT_TOLD:
            words = f"not told; here {here}"
        case ConditionAgreement.CANNOT_BE_SET:
            words = f"{condition.published}: cannot be set"
            words += f"; here {here}" if condition.here else ""
        case ConditionAgreement.YOURS:
            return f"{here} (yours; published: {condition.published})"
    return f"{words}. {capitalised(condition.advice)}" if condition.advice else words


def print_earlier_answers(folder: Path) -> None:
    """Say that answers of an earlier run are used."""
    _print([f"answers of an earlier run are in {folder}: delete it to ask again", ""])


def print_further_calls(setup: Setup) -> None:
    """Say which conditions are asked as published, too, where the value is lower."""
    yours = [each.name for each in setup.conditions if each.agreement is ConditionAgreement.YOURS]
    asked = [name for name in yours if name in ("prompt", "format", "bounds", "decoding")]
    if asked:
        _print(
            [
                f"If the value is lower, what is yours ({', '.join(asked)}) is asked as published, "
                f"too: about {PICTURES_A_DATASET} pictures of each dataset"
            ]
        )


# --- what was measured ----------------------------------------------------------------------------


def print_failed(attempt: Attempt) -> None:
    """Say that no call was answered, and why."""
    _print([f"none of {counted(attempt.queries, 'call')} was answered", *_errors(attempt)])


def _errors(attempt: Attempt) -> Iterator[str]:
    replies = chain.from_iterable(each.replies for each in attempt.predictions)
    failed = [reply for reply in replies if reply.failed]
    errors = Counter(str(reply.recorded.call.get("error") or reply.text) for reply in failed)
    for error, count in errors.most_common(3):
        yield f"  {count} failed: {printable(error)[:200]}"
    if any(_OF_LENGTH.search(error) for error in errors):
        yield "  the server allows fewer tokens than the figure had: type --max-tokens 4096"


def print_judgement(attempt: Attempt, judgement: FigureJudgement) -> None:
    """Print the measured value, and whether it agrees with the published one."""
    value = f"{attempt.setup.figure.set.metric} {judgement.measured:.1f}"
    if (interval := judgement.interval) is not None:
        value += f" ({interval.low:.1f} to {interval.high:.1f})"
    sample = attempt.setup.sample
    lines = [
        f"{value} over {counted(attempt.pictures, 'picture')} (seed {sample.seed}) with "
        f"{counted(attempt.queries, 'query', 'queries')}"
    ]
    if (orders := attempt.over_orders) is not None:
        range_of = f"{orders.low:.1f} to {orders.high:.1f}"
        if orders.beyond >= 0.05:
            range_of += f" (another order may be {orders.beyond:.1f} beyond)"
        lines.append(f"over all orders of equal boxes: {range_of}, expected {orders.expected:.1f}")
    if attempt.failed:
        failed = counted(attempt.failed, "failed call")
        lines += [f"{failed} as misses; run again to ask again", *_errors(attempt)]
    lines += _verdict(attempt, judgement)
    # Where the value is lower, this is looked at among the causes.
    other = another_model(attempt)
    if other and judgement.verdict is not FigureVerdict.LOWER:
        lines.append(other)
    _print(lines)


_VERDICTS = {
    FigureVerdict.AGREES: "AGREES with the published",
    FigureVerdict.LOWER: "LOWER than the published",
    FigureVerdict.HIGHER: "HIGHER than the published",
    FigureVerdict.CANNOT_BE_TOLD: "CANNOT BE TOLD if it agrees with the published",
}


def _verdict(attempt: Attempt, judgement: FigureJudgement) -> Iterator[str]:
    words = f"{_VERDICTS[judgement.verdict]} {judgement.published:g}"
    words += f": {judgement.difference:+.1f} points"
    if (ends := judgement.difference_interval) is not None:
        words += (
            f" ({ends.low:+.1f} to {ends.high:+.1f}, with the {judgement.tolerance:.1f} points by "
            "which repetitions differ)"
        )
    yield words
    if judgement.enough is not None:
        yield _what_would_do(attempt, judgement.enough)


def _what_would_do(attempt: Attempt, pictures: int) -> str:
    """Say how many pictures would tell what cannot be told, as far as there are so many."""
    if attempt.is_whole:
        return "all pictures of the set were asked, and are too few to tell"
    datasets = len(attempt.setup.variants)
    queries = ceil(pictures * attempt.queries / max(attempt.pictures, 1) / datasets)
    most = attempt.most_queries
    if queries > most:
        return f"about {counted(pictures, 'picture')} would do, and there are fewer: --limit {most}"
    return f"about {counted(pictures, 'picture')} would do: --limit {queries}"


# --- why ------------------------------------------------------------------------------------------


def print_checked(checked: CauseLook) -> None:
    """Print one look for a cause, and what to do about the cause."""
    cause = checked.cause
    if cause is None:
        _print([f"{checked.name}: {checked.result}"])
        return
    lines = [f"{checked.name}: {cause.finding}"]
    words = "a CAUSE" if cause.sure else "perhaps a cause"
    if cause.part:
        words = "explains a part"
    if cause.explains is not None:
        words += f": without it the value would be {cause.explains:.1f}"
    _print([*lines, f"  {words}", f"  {cause.advice}"])


def print_unexplained(looks: Sequence[CauseLook]) -> None:
    """Say that no cause was found, or no sure one, and what tells next."""
    causes = [look.cause for look in looks if look.cause is not None]
    if any(cause.sure for cause in causes):
        return
    found = "No cause was found." if not causes else "No cause is sure."
    _print(
        [
            "",
            f"{found} What tells next: the same pictures (the same --seed and --limit) asked of "
            "this model on this machine or with --serve vllm, and --against the file below",
        ]
    )


def print_badge(stored: StoredReproduction, path: Path) -> None:
    """Print the line for a model's card, and where everything else is."""
    lines = [] if is_quiet() else [f"all of it: {path}"]
    _print(["", reproduction_line(stored), *lines])


def _print(lines: Iterable[str]) -> None:
    """Print lines folded at 80 columns."""
    # Before a command is folded: its name may be shorter here.
    say("\n".join(folded([as_called(line) for line in lines])))


_WIDTHS = (24, 26, 26)  # Of the columns: with two blanks between them 80
_HEADER = ("differs", "here", "there")


def print_against(compared: TwoReproductions, theirs: str) -> None:
    """Print by how much two reproductions differ, and in which conditions."""
    say("\n".join(["", f"Compared with {printable(theirs)}:", *against_lines(compared)]))


def against_lines(compared: TwoReproductions) -> list[str]:
    """Return the lines of a comparison, each of at most 80 columns."""
    return [*_values(compared.shared), *_conditions(compared)]


def _values(shared: SharedRows | None) -> Iterator[str]:
    if shared is None:
        yield "no row was asked in both: type the same --limit and --seed"
        return
    rows = f"{counted(shared.rows, 'row')} of {counted(shared.pictures, 'picture')} in both"
    of = f" ({shared.of})" if shared.of else ""
    yield from wrap(f"{rows}{of}: here {shared.here:.1f}, there {shared.there:.1f}", 80)
    test = shared.difference
    if test.interval is None:
        yield f"difference {test.value:+.1f} points; no interval: {TOO_FEW_IMAGES}"
        return
    ends = f"{test.interval.low:+.1f} to {test.interval.high:+.1f}"
    zero = test.interval.low <= 0 <= test.interval.high
    verdict = "may be chance" if zero else "is more than chance"
    yield f"difference {test.value:+.1f} points ({ends}), which {verdict}"


def _conditions(compared: TwoReproductions) -> Iterator[str]:
    same = f"the same in both: {counted(len(compared.same), 'condition')}"
    if not compared.differences:
        yield f"no condition that is known differs; {same}"
        return
    yield from _row(_HEADER)
    for each in compared.differences:
        yield from _row((each.name, each.here or "not known", each.there or "not known"))
    yield same


def _row(cells: tuple[str, str, str]) -> Iterator[str]:
    """Yield the lines of a row of the table: cells are folded, and nothing is cut."""
    folded = [wrap(printable(cell), width) for cell, width in zip(cells, _WIDTHS, strict=True)]
    for parts in zip_longest(*folded, fillvalue=""):
        padded = [f"{part:{width}}" for part, width in zip(parts, _WIDTHS, strict=True)]
        yield "  ".join(padded).rstrip()
