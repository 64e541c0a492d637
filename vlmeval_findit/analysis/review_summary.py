"""What reviews of a table say: counts, where reviewers disagree, how many labels are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ..protocol import Decision, Review, Reviews, ReviewVerdict, RowChoice, rows_drawn_from
from ..statistics import CONFIDENCE_LEVEL, CountEstimate, cohens_kappa, count_wrong


@dataclass(frozen=True, slots=True)
class ReviewerAgreement:
    """How two reviewers agree in the rows that both reviewed."""

    one: str
    other: str
    rows: int
    agreed: int  # In the verdict and, nearly, in the boxes
    kappa: float | None  # Of the verdicts; see :func:`.cohens_kappa`


@dataclass(frozen=True, slots=True)
class WrongLabels:
    """Wrong labels among random rows, and what follows for all rows."""

    random: int  # Judged rows that were drawn at random
    random_wrong: int
    unsure: int  # Further random rows: nobody is sure, or reviewers disagree
    share_low: float | None  # 95 % interval of the share; None: of audits of different rows
    share_high: float | None
    listed: int  # Rows of the list; 0 without the record of an audit
    listed_judged: int
    listed_wrong: int
    rows: int  # That were judged, listed or not
    total: CountEstimate | None  # In all rows; rows of the list that nobody judged count as right
    why_no_total: str = ""


@dataclass(frozen=True, slots=True)
class ReviewSummary:
    """What is in the reviews of one table."""

    table: str
    lines: int
    superseded: int  # Lines that a later one of the same row and reviewer replaced
    digest: str
    decisions: Mapping[int, Decision]
    reviewers: Mapping[str, int]  # Number of rows, by name
    agreements: tuple[ReviewerAgreement, ...]
    wrong: WrongLabels | None  # None without random rows

    @property
    def counts(self) -> list[tuple[str, str, int]]:
        """List what the reviews are, by what, with numbers of rows."""
        decisions = self.decisions.values()
        verdicts = Counter(decision.verdict for decision in decisions)
        drawn = Counter(decision.drawn for decision in decisions)
        kinds = Counter(decision.kind for decision in decisions if decision.kind)
        rows = [("verdict", each.value, verdicts[each]) for each in ReviewVerdict if verdicts[each]]
        rows += [("drawn", each.value, drawn[each]) for each in RowChoice if drawn[each]]
        rows += [("kind", kind, number) for kind, number in kinds.most_common()]
        return rows + [("reviewer", name, rows_) for name, rows_ in self.reviewers.items()]

    @property
    def disputed(self) -> list[Decision]:
        """List the rows where reviewers disagree: their labels stay."""
        return [decision for decision in self.decisions.values() if decision.is_disputed]


def reviews_by_table(reviews: Reviews) -> dict[str, Reviews]:
    """Split reviews by the table that they name."""
    result: dict[str, Reviews] = {}
    for table in dict.fromkeys(review.table for review in reviews.reviews):
        of_table = tuple(review for review in reviews.reviews if review.table == table)
        audits = tuple(audit for audit in reviews.audits if audit.table == table)
        result[table] = Reviews(of_table, audits)
    return result


def summarise_reviews(table: str, reviews: Reviews) -> ReviewSummary:
    """Summarise the reviews of one table's rows."""
    in_force = reviews.in_force()
    decisions = reviews.decisions()
    reviewers = Counter(review.reviewer for each in in_force.values() for review in each)
    return ReviewSummary(
        table=table,
        lines=len(reviews.reviews),
        superseded=len(reviews.reviews) - reviewers.total(),
        digest=reviews.digest,
        decisions=decisions,
        reviewers=dict(sorted(reviewers.items())),
        agreements=_agreements(sorted(reviewers), list(in_force.values())),
        wrong=estimate_wrong(reviews),
    )


def _agreements(
    reviewers: Sequence[str], rows: Sequence[Sequence[Review]]
) -> tuple[ReviewerAgreement, ...]:
    result = []
    by_reviewer = [{review.reviewer: review for review in reviews} for reviews in rows]
    for one, other in combinations(reviewers, 2):
        both = [row for row in by_reviewer if one in row and other in row]
        if not both:
            continue
        agreed = sum(row[one].agrees_with(row[other]) for row in both)
        verdicts = [[row[name].verdict.value for row in both] for name in (one, other)]
        result.append(ReviewerAgreement(one, other, len(both), agreed, cohens_kappa(*verdicts)))
    return tuple(result)


# --- wrong labels ---------------------------------------------------------------------------------


def estimate_wrong(reviews: Reviews) -> WrongLabels | None:
    """Estimate how many labels of a table are wrong; None where no random row was judged.

    Only random rows say anything of the rows that nobody judged. Listed rows count as they were
    judged, and probabilities not at all. :func:`.rows_drawn_from` says what random rows stand for.
    """
    decisions = reviews.decisions()
    drawn_from = rows_drawn_from(reviews.audits)
    listed = drawn_from.listed
    random = [
        decision
        for index, decision in decisions.items()
        if decision.drawn is RowChoice.RANDOM and index not in listed
    ]
    judged = _judged(random)
    if not judged:
        return None
    wrong = _wrong(judged)
    low, high = None, None
    # Random rows of audits that cannot be put together are no sample of any rows.
    if len(reviews.audits) < 2 or drawn_from.number is not None:
        low, high = _exact_interval(wrong, len(judged))
    listed_judged = _judged(decisions[index] for index in listed if index in decisions)
    listed_wrong = _wrong(listed_judged)
    total: CountEstimate | None = None
    why = drawn_from.why_unknown
    if drawn_from.number is not None:
        total = count_wrong(listed_wrong, wrong, len(judged), drawn_from.number)
    return WrongLabels(
        random=len(judged),
        random_wrong=wrong,
        unsure=len(random) - len(judged),
        share_low=low,
        share_high=high,
        listed=len(listed),
        listed_judged=len(listed_judged),
        listed_wrong=listed_wrong,
        rows=drawn_from.rows,
        total=total,
        why_no_total=why,
    )


def _judged(decisions: Iterable[Decision]) -> list[Decision]:
    return [decision for decision in decisions if decision.verdict is not ReviewVerdict.UNSURE]


def _wrong(decisions: Iterable[Decision]) -> int:
    return sum(decision.verdict.is_error for decision in decisions)


def _exact_interval(part: int, whole: int) -> tuple[float, float]:
    """Return the ends of the exact interval of a share (Clopper and Pearson's)."""
    # SciPy's statistics take half a second to import.
    from scipy.stats import binomtest

    interval = binomtest(part, whole).proportion_ci(CONFIDENCE_LEVEL)
    return float(interval.low), float(interval.high)
