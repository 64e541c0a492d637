"""Score a run with reviews of labels: next to its score, never instead of it.

Each accepted answer of a row is tried as its label, for every model, and the best query score
counts. Excluded rows are left out; where reviewers are unsure the label stays. Nothing depends on
how likely an audit thinks a label to be wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..protocol import (
    Answer,
    AnyDataset,
    AuditRecord,
    Benchmark,
    Decision,
    Predictions,
    Reply,
    Reviews,
    ReviewsError,
    ReviewVerdict,
    RowChoice,
    RowsDrawnFrom,
    ScoredRow,
    rows_drawn_from,
    sum_rows,
    with_events,
)
from ..statistics import sums_of_all_rows
from ..storage import table_hash
from .recorded_reviews import ScoreReviews, labelled_row
from .row_scoring import RunScore, score_rows

REVIEW = "review"  # Key of a row's details: what its review decided


@dataclass(frozen=True, slots=True)
class TableDecisions:
    """What reviews decide about the rows of one table."""

    digest: str
    decisions: Mapping[int, Decision]
    audits: tuple[AuditRecord, ...]

    @property
    def voters(self) -> tuple[str, ...]:
        """Digests of the runs whose answers reviewers saw."""
        seen = {voter for decision in self.decisions.values() for voter in decision.voters}
        seen |= {voter for audit in self.audits for voter in audit.voters}
        return tuple(sorted(seen))

    @property
    def voting_models(self) -> tuple[str, ...]:
        """Models of these runs, as far as audits recorded them."""
        return tuple(sorted({model for audit in self.audits for model in audit.models}))

    @property
    def drawn_from(self) -> RowsDrawnFrom:
        """The rows that random rows stand for."""
        return rows_drawn_from(self.audits)


@dataclass(frozen=True, slots=True)
class FoundDecisions:
    """What reviews decide about a dataset's rows, if they are of it."""

    decisions: TableDecisions | None  # None: no review is of this table
    why_none: str = ""  # Of a dataset that shares rows with a reviewed table at hand


def find_decisions(
    dataset: AnyDataset, benchmark: Benchmark, reviews: Reviews, at_hand: Collection[str] = ()
) -> FoundDecisions:
    """Find what reviews decide about a dataset's rows; ``at_hand``: hashes of the runs' tables.

    Raises:
        ReviewsError: a reviewed row has changed, and the table that was reviewed is not at hand.
    """
    shared = dataset.shared_dataset
    hashes = benchmark.row_hashes(shared)
    name = dataset.variant.board_dataset
    of_table = reviews.of_table(table_hash(shared.table), hashes, name, at_hand)
    selected = of_table.reviews
    why = of_table.why_none(name)
    if why or not selected.reviews:
        return FoundDecisions(None, why)
    return FoundDecisions(TableDecisions(selected.digest, selected.decisions(), selected.audits))


def decisions_of(
    dataset: AnyDataset, benchmark: Benchmark, reviews: Reviews, at_hand: Collection[str] = ()
) -> TableDecisions:
    """Return what reviews decide about a dataset's rows.

    Raises:
        ReviewsError: no review is of this table, or a row has changed.
    """
    decided = find_decisions(dataset, benchmark, reviews, at_hand).decisions
    if decided is None:
        table = dataset.shared_dataset.table
        others = sorted({review.table for review in reviews.reviews})
        theirs = f"they are of {_named(others)}" if others else "there are none"
        raise ReviewsError(
            f"no review is of a row of {table} ({table_hash(table)[:19]}…): {theirs}. Name "
            "reviews of this table, or leave out --reviews"
        )
    return decided


def _named(tables: Sequence[str]) -> str:
    more = f" and {len(tables) - 2} more" if len(tables) > 2 else ""
    return ", ".join(f"{table[:19]}…" for table in tables[:2]) + more


def score_reviewed(opened: Predictions, decided: TableDecisions) -> RunScore:
    """Score replies with the decisions about their rows.

    Raises:
        ValueError: as :func:`.score_rows`; or an accepted answer cannot be a row's label.
    """
    by_row = {
        reply.index: decided.decisions[reply.index]
        for reply in opened.replies
        if reply.index in decided.decisions
    }
    excluded = {index for index, each in by_row.items() if each.verdict is ReviewVerdict.EXCLUDE}
    counted = [reply for reply in opened.replies if reply.index not in excluded]
    labelled = score_rows(replace(opened, replies=counted))
    best = _best_rows(opened, by_row)
    rows = [best.get(row.index, row) for row in labelled.rows]
    rows = [_with_verdict(row, by_row.get(row.index)) for row in rows]
    before = {row.index: row for row in labelled.rows if row.index in best}
    before |= {row.index: row for row in _score_some(opened, excluded)}
    record = _record(opened.replies, decided, by_row, before)
    analysis = opened.benchmark.errors
    random = record.random_rows(rows, analysis)
    sums = sum_rows(rows)
    if random is not None:
        sums = sums_of_all_rows(sum_rows(with_events(analysis, rows)), random)
    return replace(labelled, rows=tuple(rows), sums=sums, reviews=record)


def _best_rows(opened: Predictions, by_row: Mapping[int, Decision]) -> dict[int, ScoredRow]:
    """Score rows under each of their accepted answers, and return the best of each row."""
    accepted = {
        index: decision.accept
        for index, decision in by_row.items()
        if not decision.verdict.keeps_label
    }
    best: dict[int, ScoredRow] = {}
    for place in range(max(map(len, accepted.values()), default=0)):
        answers = {index: some[place] for index, some in accepted.items() if place < len(some)}
        labelled = replace(opened, dataset=_with_answers(opened, answers))
        for row in _score_some(labelled, answers):
            tried = _with_answer(row, place, accepted[row.index])
            known = best.get(row.index)
            if known is None or _order(opened.benchmark, tried) > _order(opened.benchmark, known):
                best[row.index] = tried
    return best


def _with_answers(opened: Predictions, answers: Mapping[int, Answer]) -> AnyDataset:
    """Return the dataset with other labels of some rows."""
    dataset = opened.dataset
    queries = dict(dataset.queries)
    for index, answer in answers.items():
        try:
            queries[index] = opened.benchmark.with_label(dataset, queries[index], answer)
        except ValueError as error:
            raise ReviewsError(
                f"{dataset.table}, {error}: review the row again, or leave out --reviews"
            ) from None
    return replace(dataset, queries=queries)


def _score_some(opened: Predictions, indices: Iterable[int]) -> tuple[ScoredRow, ...]:
    """Score the replies to some rows."""
    some = frozenset(indices)
    replies = [reply for reply in opened.replies if reply.index in some]
    return score_rows(replace(opened, replies=replies)).rows if replies else ()


def _order(benchmark: Benchmark, row: ScoredRow) -> list[float]:
    """Return what the best row has most of: its query score, then the other metrics."""
    sums = sum_rows([row])
    order = [benchmark.query_score(row)]
    for metric in benchmark.ranking:
        order.append(-metric.better.order(metric.rank_value(sums)))
    return order


def _with_answer(row: ScoredRow, place: int, accepted: Sequence[Answer]) -> ScoredRow:
    """Note in a row's details which accepted answer it was scored under."""
    answer = accepted[place]
    review: dict[str, Any] = {
        "accepted": place,
        "of": len(accepted),
        "boxes": [list(box) for box in answer.boxes],
    }
    if answer.labels:
        review["labels"] = list(answer.labels)
    return replace(row, details={**row.details, REVIEW: review})


def accepted_answer(row: ScoredRow) -> Answer | None:
    """Return the accepted answer that a row was scored by; None: by its label."""
    review = row.details.get(REVIEW, {})
    if "accepted" not in review:
        return None
    boxes = tuple((x1, y1, x2, y2) for x1, y1, x2, y2 in review["boxes"])
    return Answer(boxes, tuple(review.get("labels", ())))


def _with_verdict(row: ScoredRow, decision: Decision | None) -> ScoredRow:
    if decision is None:
        return row
    review = {"verdict": decision.verdict.value, **row.details.get(REVIEW, {})}
    return replace(row, details={**row.details, REVIEW: review})


def _record(
    replies: Sequence[Reply],
    decided: TableDecisions,
    by_row: Mapping[int, Decision],
    before: Mapping[int, ScoredRow],
) -> ScoreReviews:
    """Return what a score records of its reviews; ``before``: changed rows as labelled."""
    verdicts = [decision.verdict for decision in by_row.values()]
    excluded = verdicts.count(ReviewVerdict.EXCLUDE)
    drawn_from = decided.drawn_from
    listed = drawn_from.listed
    rows = [reply.index for reply in replies]
    # In one order for all runs, as their differences are paired by row.
    random = sorted(
        index
        for index, decision in by_row.items()
        if decision.drawn is RowChoice.RANDOM and index not in listed
    )
    return ScoreReviews(
        digest=decided.digest,
        reviewed=len(verdicts),
        changed=sum(not verdict.keeps_label for verdict in verdicts) - excluded,
        excluded=excluded,
        unsure=verdicts.count(ReviewVerdict.UNSURE),
        random=len(random),
        rows=len(rows),
        unlisted=drawn_from.number_in(rows),
        why_unknown=drawn_from.why_unknown,
        not_reviewed=len(listed.intersection(rows).difference(by_row)),
        voters=decided.voters,
        voting_models=decided.voting_models,
        labelled=tuple(labelled_row(before[index]) for index in random if index in before),
    )
