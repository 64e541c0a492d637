"""``data reviews``: what reviews of labels say, joined files, and lists of others as reviews."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..analysis import (
    ReviewerAgreement,
    ReviewSummary,
    WrongLabels,
    reviews_by_table,
    summarise_reviews,
)
from ..benchmarks import benchmark_of, benchmarks
from ..benchmarks.refl4 import (
    PublishedEntry,
    PublishedReviews,
    is_published_list,
    join_reviews,
    read_published,
)
from ..core import agreeing, counted
from ..data import load_dataset
from ..protocol import Answer, AnyDataset, Decision, Reviews, ReviewsError, rows_text
from ..storage import read_review_file, table_hash, write_reviews
from .command_base import (
    PATH,
    WRITTEN_FILE,
    Command,
    complete_datasets,
    json_option,
    option,
    say,
)
from .printing import print_columns, print_folded, print_lines, write_json


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py data reviews ab.jsonl cd.jsonl --out both.jsonl  # yours",
        "python run_findit.py data reviews reviewed.json --data RefCOCOFull_testA  # yours",
    ],
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@option("--out", "FILE", "Write the reviews of all files to a new file.", type=WRITTEN_FILE)
@option(
    "--data",
    "NAME",
    "The dataset: check the rows, and print what they ask.",
    shell_complete=complete_datasets,
)
@json_option
def command(
    files: tuple[Path, ...], out: Path | None, data: str | None, json_file: Path | None
) -> int:
    """Print what reviews of labels say: verdicts, agreement, an estimate of wrong labels.

    Where reviewers disagree the row's label stays. Files …_reviewed.json of Ref-L4's authors (wrong
    expressions in RefCOCO, RefCOCO+, RefCOCOg) become reviews of the dataset.
    """
    table = None if data is None else ReviewedTable(_dataset_of(data))
    reviews = Reviews(())
    lists = [path for path in files if is_published_list(path)]
    for path in files:
        if path in lists:
            continue
        file = read_review_file(path)
        if file.cut:
            say(f"{file.cut}: left out", file=sys.stderr)
        reviews = reviews.joined(file.reviews)
    if lists:
        reviews = reviews.joined(_reviews_of(lists, table))
    if not reviews.reviews:
        raise ReviewsError(f"{', '.join(map(str, files))}: no reviews")
    results = _summaries(reviews, table)
    for result in results:
        _print_summary(result, table)
    if out is not None:
        write_reviews(out, reviews)
        print_folded(f"{out}: {counted(len(reviews.reviews), 'review')}")
    if json_file is not None:
        write_json(json_file, [_plain(result) for result in results])
    return 0


def _dataset_of(name: str) -> AnyDataset:
    """Load a dataset by the name of its table, or of it in a format: labels are the same in all."""
    for benchmark in benchmarks():
        for listed in benchmark.variant_names():
            if benchmark.parse(listed).table == name:
                return load_dataset(listed)
    return load_dataset(name)


class ReviewedTable:
    """A dataset's table: its rows as reviews know them."""

    def __init__(self, dataset: AnyDataset) -> None:
        benchmark = benchmark_of(dataset.variant)
        self.dataset = dataset
        self.hash = table_hash(dataset.table)
        self.rows = benchmark.row_hashes(dataset)
        self.labels: dict[int, Answer] = {}
        for index, query in dataset.queries.items():
            label = benchmark.label(dataset, query)
            if label is not None:
                self.labels[index] = label
        if not self.labels:
            raise ReviewsError(f"{dataset.name}: its labels cannot be reviewed: no boxes in images")


def _summaries(reviews: Reviews, table: ReviewedTable | None) -> list[ReviewSummary]:
    if table is None:
        return [
            summarise_reviews(name, of_table)
            for name, of_table in reviews_by_table(reviews).items()
        ]
    name = table.dataset.variant.table
    matched = reviews.match_table(table.hash, table.rows, name)
    for message in matched.changed:
        print_folded(message)
    for whose, others in (
        (f"of rows that {name} lacks", matched.absent),
        (f"of other tables than {name}", matched.elsewhere),
    ):
        if others:
            indices = rows_text({review.index for review in others})
            print_folded(f"{counted(len(others), 'review')} {whose}, by index: {indices}")
    if not matched.reviews.reviews:
        raise ReviewsError(f"no review is of a row of {name}: are they of another dataset?")
    return [summarise_reviews(table.hash, matched.reviews)]


# --- printing -------------------------------------------------------------------------------------


def _print_summary(result: ReviewSummary, table: ReviewedTable | None) -> None:
    name = result.table[:15] + "…" if table is None else table.dataset.variant.table
    rows = counted(len(result.decisions), "row")
    say(f"{rows} of {name} reviewed, in {counted(result.lines, 'line')}; hash {result.digest}")
    if result.superseded:
        say(f"{counted(result.superseded, 'line')} replaced by later ones")
    say()
    cells = [(what, value, f"{number:,}") for what, value, number in result.counts]
    print_columns(cells, "what", "", "rows", numbers=["rows"])
    say()
    for agreement in result.agreements:
        print_folded(_agreement_text(agreement))
    if result.disputed:
        _print_disputed(result.disputed, list(result.reviewers), table)
    if result.wrong is not None:
        print_lines(_wrong_lines(result.wrong), "--json FILE")
        say()


def _agreement_text(agreement: ReviewerAgreement) -> str:
    kappa = "none: one verdict for all" if agreement.kappa is None else f"{agreement.kappa:.2f}"
    return (
        f"{agreement.one} and {agreement.other} agree in {agreement.agreed:,} of "
        f"{counted(agreement.rows, 'row')} that both reviewed; Cohen's kappa {kappa}"
    )


def _print_disputed(
    disputed: Sequence[Decision], reviewers: Sequence[str], table: ReviewedTable | None
) -> None:
    say(f"They disagree in {counted(len(disputed), 'row')}: labels stay there")
    say()
    cells = []
    for decision in disputed:
        verdicts = {review.reviewer: review.verdict.value for review in decision.reviews}
        query = None if table is None else table.dataset.queries[decision.index]
        asked = "" if query is None else query.label
        by_reviewer = [verdicts.get(name, "") for name in reviewers]
        cells.append((str(decision.index), *by_reviewer, decision.kind, asked))
    print_columns(cells, "index", *reviewers, "kind", "asked", numbers=["index"])
    say()


def _wrong_lines(wrong: WrongLabels) -> list[str]:
    share = wrong.random_wrong / wrong.random
    has = agreeing(wrong.random_wrong, "has", "have")
    text = f"{wrong.random_wrong} of {counted(wrong.random, 'random row')} {has} a wrong label"
    if wrong.share_low is not None:
        interval = f"{wrong.share_low:.1%} to {wrong.share_high:.1%}"
        text += f": {share:.1%} ({interval}) of the rows not listed"
    lines = [text]
    if wrong.unsure:
        lines.append(f"{counted(wrong.unsure, 'random row')} not counted: nobody is sure of them")
    if wrong.total is None:
        lines.append(f"No estimate for all rows: {wrong.why_no_total}")
        return lines
    total = wrong.total
    lines.append(
        f"With {wrong.listed_wrong:,} of {wrong.listed_judged:,} listed rows: about "
        f"{total.value:,.0f} of {wrong.rows:,} labels are wrong ({total.low:,} to {total.high:,})"
    )
    if open_rows := wrong.listed - wrong.listed_judged:
        lines.append(f"{counted(open_rows, 'listed row')} not judged, so there may be more")
    return lines


# --- lists of others ------------------------------------------------------------------------------


def _reviews_of(lists: Sequence[Path], table: ReviewedTable | None) -> Reviews:
    names = ", ".join(map(str, lists))
    if table is None:
        raise ReviewsError(
            f"{names}: a list of Ref-L4's authors becomes reviews of a dataset: say which, with "
            "--data (for example RefCOCOFull_testA)"
        )
    entries: list[PublishedEntry] = []
    for path in lists:
        entries += read_published(path)
    name = table.dataset.variant.table
    result = join_reviews(entries, table.dataset, table.labels)
    if not result.reviews:
        what = f"no expression is one of {name}: is the list of another dataset or split?"
        raise ReviewsError(f"{names}: {what}")
    for line in _join_lines(result, name, len(table.labels)):
        print_folded(line)
    say()
    return Reviews(result.reviews)


_MOST_EXAMPLES = 3


def _join_lines(result: PublishedReviews, name: str, rows: int) -> list[str]:
    ways = [f"{number:,} by {way.value}" for way, number in result.ways.items() if number]
    lines = [
        f"{len(result.reviews):,} of {rows:,} rows of {name} are in the list, identified by their "
        f"expressions: {', '.join(ways)}"
    ]
    if result.contradicted:
        indices = rows_text(result.contradicted)
        lines.append(f"left as they are, since entries contradict each other: {indices}")
    if result.without_entry:
        lines.append(f"{counted(len(result.without_entry), 'row')} without an entry")
    lines += _examples(f"{name} has no row of", result.without_row)
    lines += _examples("no caption_quality have", result.unjudged)
    return lines


def _examples(what: str, entries: Sequence[PublishedEntry]) -> list[str]:
    if not entries:
        return []
    shown = [f"  {entry.place}: {entry.expression}" for entry in entries[:_MOST_EXAMPLES]]
    return [f"{what} {counted(len(entries), 'expression')}, for example", *shown]


# --- JSON -----------------------------------------------------------------------------------------


def _plain(result: ReviewSummary) -> Mapping[str, Any]:
    wrong = result.wrong
    return {
        "table": result.table,
        "digest": result.digest,
        "reviews": result.lines,
        "superseded": result.superseded,
        "counts": [
            {"what": what, "value": value, "rows": rows} for what, value, rows in result.counts
        ],
        "agreements": [asdict(agreement) for agreement in result.agreements],
        "disputed": [
            {
                "index": decision.index,
                "kind": decision.kind,
                "verdicts": {each.reviewer: each.verdict.value for each in decision.reviews},
            }
            for decision in result.disputed
        ],
        "wrong": None if wrong is None else asdict(wrong),
    }
