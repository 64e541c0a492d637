"""Audit the labels of a dataset: which are probably wrong, by the answers of several scored runs.

A run is a voter: one of each model. Failed calls and replies that cannot be read say nothing; a
reply without boxes says that there is no object. :func:`sums_if_wrong` is what a score would be
were all doubts true. :mod:`..statistics.label_doubts` has the method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean

import numpy as np

from ..benchmarks.findit import Family, FindItVariant
from ..boxes import BoxAnswer, FormatFailure, MatchRule, finite_corners
from ..coords import NotBoxesError
from ..models import find_model
from ..protocol import (
    Answer,
    AnyDataset,
    AuditRecord,
    Decision,
    Reviews,
    ReviewVerdict,
    RowChoice,
    ScoredRow,
    SumName,
    as_ranges,
    indices,
    settings_from,
    sum_rows,
)
from ..scoring import (
    UNANSWERED,
    Run,
    TableDecisions,
    open_predictions,
    read_details,
    score_reviewed,
    settings_of_score,
)
from ..statistics import (
    CORRELATION,
    FAMILY_CORRELATION,
    LIKELY,
    DoubtCalibration,
    LabelDoubts,
    LabelFault,
    Votes,
    calibrate_doubts,
    label_doubts,
)
from .label_proposals import ClassNumbers, LabelProposals
from .label_votes import ClassedBoxes, classed_boxes, count_votes
from .scored_tables import load_scored_dataset

MOST_BY_ORDER = 50  # Rows that are listed where only their order is known
RANDOM_ROWS_SEED = 48  # Of the draw of random rows
FEWEST_LISTED = 30  # Reviewed rows, listed as doubtful, that a calibration needs
FEWEST_RANDOM = 20  # Reviewed rows, drawn at random, that a calibration needs
_EVERY = 5  # One row in so many is a random one

# Replies that end before their boxes do
_CUT = (FormatFailure.TRUNCATED.value, FormatFailure.TRUNCATED_THINKING.value)


@dataclass(frozen=True, slots=True)
class Voter:
    """A run whose answers are compared with the labels."""

    run: Run
    family: str  # Its row of the model table; the model's name, if no row is known
    silent: int  # Rows about which it says nothing: failed calls and unreadable replies


@dataclass(frozen=True, slots=True)
class AuditedRow:
    """What the models say about one label."""

    index: int
    p: float | None  # How far models contradict the label; None: only the order is known
    fault: LabelFault | None  # The likeliest fault (None: no model contradicts the label)
    label: Answer
    proposal: Answer  # The corrected label; of an ambiguous one the other right answer
    agreeing: int  # Models whose answer fits the correction
    models: int  # Models that answered about the row
    voters: tuple[str, ...]  # Digests of the runs of these
    unfound: int = 0  # Labelled boxes that fewer than half of these models found
    on_nothing: float = 0.0  # How doubtful the most doubtful of these is: its order is what it says

    @property
    def is_doubtful(self) -> bool:
        """Return whether the label is to be looked at: models contradict it, or find nothing."""
        if self.fault is LabelFault.SUPERFLUOUS:
            return self.on_nothing > LIKELY
        return (self.p or 0) > LIKELY


@dataclass(frozen=True)
class LabelAudit:
    """The audited rows of a dataset, the most doubtful first."""

    dataset: AnyDataset
    table: str  # ``sha256:…`` of the table's content
    voters: tuple[Voter, ...]
    unheard: tuple[Voter, ...]  # Runs that say nothing about more than half of the rows: left out
    rows: tuple[AuditedRow, ...]
    unjudged: tuple[int, ...]  # Rows that no voter answered
    decided: Mapping[int, Decision] = field(default_factory=dict)  # Reviewed rows
    calibration: ReviewedRows | None = None  # None: there are no reviews

    @property
    def families(self) -> tuple[str, ...]:
        """Return the families of the voters, each once."""
        return _families(self.voters)

    @property
    def has_probabilities(self) -> bool:
        """Return whether voters of two families can tell their errors from those of the labels."""
        return len(self.families) > 1

    @property
    def asks_for_one(self) -> bool:
        """Return whether each query asks for exactly one object."""
        return _asks_for_one(self.dataset.variant, (row.label for row in self.rows))

    def listed(self, most: int | None = None) -> tuple[AuditedRow, ...]:
        """Return the rows to review: the first ``most`` that any model contradicts.

        By default those that models contradict, then those with a box that they should have found
        were something there, each the most doubtful first; or the first fifty where only their
        order is known. Reviews do not change the list: random rows weigh as many rows as it leaves
        out.
        """
        doubted = [row for row in self.rows if row.fault is not None]
        if most is not None:
            return tuple(doubted[:most])
        if not self.has_probabilities:
            return tuple(doubted[:MOST_BY_ORDER])
        return tuple(row for row in doubted if row.is_doubtful)

    def not_found(self, listed: Sequence[AuditedRow]) -> tuple[AuditedRow, ...]:
        """Return the rows not listed with a box that few models found, the most doubtful first.

        The box is on nothing, or the object hard for all models, and answers do not tell which:
        people look at these rows in this order. Where each query asks for one object there are
        none: what all models miss is another object, or hard.
        """
        if self.asks_for_one:
            return ()
        known = {row.index for row in listed}
        rows = [row for row in self.rows if row.unfound and row.index not in known]
        return tuple(sorted(rows, key=lambda row: -row.on_nothing))

    def calibrated(self, row: AuditedRow) -> float | None:
        """Return the probability that a label is wrong; None where no reviews calibrate it."""
        if row.p is None or self.calibration is None or self.calibration.fit is None:
            return None
        return float(self.calibration.fit.apply(np.array([row.p]))[0])


@dataclass(frozen=True, slots=True)
class ReviewedRows:
    """The reviewed rows that probabilities are calibrated by."""

    listed: int
    random: int
    fit: DoubtCalibration | None  # None: too few


def _families(voters: Iterable[Voter]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(voter.family for voter in voters))


# --- voters ---------------------------------------------------------------------------------------


def why_no_voter(run: Run) -> str:
    """Say why a run's answers cannot be held against labels; "" where they can."""
    variant = run.variant
    if not isinstance(variant, FindItVariant):
        return f"the answers of {run.benchmark.name} are no boxes"
    if variant.match_rule is not MatchRule.BOX_OVERLAP:
        return "its answers are points, which do not show how far an object reaches"
    if variant.frames > 1:
        return "its boxes lie in the frames of a video, which cannot be reviewed"
    if run.provenance.reviews is not None:
        return "a score with reviews: the run votes by its score without them"
    if run.other_space:
        return "scored in another space than the run recorded"
    if run.provenance.coords_doubt:
        return f"its coordinates are in doubt: {run.provenance.coords_doubt}"
    if not run.rows:
        return "no row was scored"
    if run.is_unanswered:
        return UNANSWERED
    return ""


def family_of(run: Run) -> str:
    """Return the family of a run's model: its row of the model table, else its name."""
    return known_family(run) or run.model


def known_family(run: Run) -> str | None:
    """Return the row of the model table of a run's model, by its record or its name."""
    identity = run.provenance.identity
    if identity is not None:
        recorded = identity.answering.row or identity.reads_like
        if recorded:
            return recorded
    row = find_model(run.model)
    return row.name if row is not None else None


# --- the audit ------------------------------------------------------------------------------------


def audit_labels(runs: Sequence[Run], dataset: AnyDataset | None = None) -> LabelAudit:
    """Audit the labels of a dataset by runs over the same rows, one of each model.

    The dataset is loaded unless it is given, as :func:`.load_scored_dataset` returns it.

    Raises:
        NotBoxesError: a run cannot vote; the message says why.
        FileNotFoundError, ValueError: the table is nowhere, or cannot be read.
        RunError: it is another than was scored, or details are gone.
    """
    for run in runs:
        if why := why_no_voter(run):
            raise NotBoxesError(f"{run.path}: {why}")
    dataset = dataset or load_scored_dataset(runs[0])
    labels = _labels(runs[0], dataset)
    classes = ClassNumbers(label.labels for label in labels.values())
    answers = []
    voters = []
    unheard = []
    for run in runs:
        of_run = _answers(run, labels, classes)
        voter = Voter(run, family_of(run), of_run.count(None))
        if 2 * voter.silent > len(of_run):
            unheard.append(voter)
        else:
            voters.append(voter)
            answers.append(of_run)
    if not voters:
        first = unheard[0]
        count = f"{first.silent} of {len(labels)} answers"
        raise NotBoxesError(f"{first.run.path}: {count} failed or are not readable")
    given = [classes.boxes_of(label) for label in labels.values()]
    votes = count_votes(given, answers, _asks_for_one(runs[0].variant, labels.values()))
    doubts = label_doubts(votes, _correlation([voter.family for voter in voters]))
    rows = _rows(voters, labels, classes, votes, doubts)
    return LabelAudit(
        dataset=dataset,
        table=f"sha256:{runs[0].provenance.table_sha256}",
        voters=tuple(voters),
        unheard=tuple(unheard),
        rows=tuple(row for row in rows if row.models),
        unjudged=tuple(sorted(row.index for row in rows if not row.models)),
    )


def _rows(
    voters: Sequence[Voter],
    labels: Mapping[int, Answer],
    classes: ClassNumbers,
    votes: Votes,
    doubts: LabelDoubts,
) -> list[AuditedRow]:
    """Make the record of each label, the most doubtful first."""
    names = [voter.run.provenance.voter for voter in voters]
    has_probabilities = len(_families(voters)) > 1
    indices = list(labels)
    proposals = LabelProposals(list(labels.values()), classes, votes, doubts)
    labelled = votes.labelled
    few = 2 * labelled.detected.sum(1) < votes.spoke[labelled.row].sum(1)
    unfound = np.bincount(labelled.row, few, len(indices))
    rows = []
    for place in doubts.order.tolist():
        label = labels[indices[place]]
        proposal = proposals.of_row(place)
        spoke = np.flatnonzero(votes.spoke[place]).tolist()
        has_p = has_probabilities and not (proposal and proposal.fault is LabelFault.SUPERFLUOUS)
        rows.append(
            AuditedRow(
                index=indices[place],
                p=float(doubts.contradicted[place]) if has_p else None,
                fault=proposal.fault if proposal else None,
                label=label,
                proposal=proposal.answer if proposal else label,
                agreeing=proposal.agreeing if proposal else 0,
                models=len(spoke),
                voters=tuple(names[at] for at in spoke),
                unfound=int(unfound[place]),
                on_nothing=float(doubts.on_nothing[place]),
            )
        )
    return rows


def _answers(
    run: Run, labels: Mapping[int, Answer], classes: ClassNumbers
) -> list[ClassedBoxes | None]:
    """Return what a run says about each label; None: nothing."""
    by_index = {row.index: row for row in read_details(run)}
    return [_said(by_index[index], classes) for index in labels]


def _labels(run: Run, dataset: AnyDataset) -> dict[int, Answer]:
    """Return the label of each row of a run by its index."""
    labels = {}
    for index in sorted(run.provenance.rows):
        label = run.benchmark.label(dataset, dataset.queries[index])
        if label is None:
            raise NotBoxesError(f"{run.path}: the labels of {dataset.name} cannot be reviewed")
        labels[index] = label
    return labels


def _asks_for_one(variant: object, labels: Iterable[Answer]) -> bool:
    """Return whether each query of a dataset asks for exactly one object."""
    if not isinstance(variant, FindItVariant):
        return False
    if variant.family not in (Family.REFEXP, Family.INSDET):
        return False
    return all(len(label.boxes) == 1 for label in labels)


def _correlation(families: Sequence[str]) -> float:
    """Return how correlated the models' errors are, over all pairs of models."""
    pairs = combinations(families, 2)
    each = [FAMILY_CORRELATION if one == other else CORRELATION for one, other in pairs]
    return fmean(each) if each else CORRELATION


def _said(row: ScoredRow, classes: ClassNumbers) -> ClassedBoxes | None:
    """Return the boxes of a reply; None if it says nothing that could be held against a label.

    Boxes on objects that do not count are left out, and so are boxes without an area.
    """
    answer = BoxAnswer.of(row)
    if row.failed or row.reason in _CUT or (row.reason is not None and not answer.boxes):
        return None
    numbers = classes.numbers(answer.labels, len(answer.boxes))
    boxes = []
    classes_of_boxes = []
    for place, box in enumerate(answer.boxes):
        corners = finite_corners(box)
        if place in answer.ignored or corners is None:
            continue
        x1, y1, x2, y2 = corners
        if x1 < x2 and y1 < y2:
            boxes.append(corners)
            classes_of_boxes.append(numbers[place])
    return classed_boxes(boxes, classes_of_boxes)


# --- reviews --------------------------------------------------------------------------------------


def with_reviews(audit: LabelAudit, reviews: Reviews, at_hand: Collection[str] = ()) -> LabelAudit:
    """Add reviews to an audit, and calibrate its probabilities if they are enough.

    Rows of a published list calibrate nothing: it may have been made of wrong labels. Of a table
    ``at_hand`` (hashes) that was reviewed the audited one may be a corrected copy: it takes the
    reviews of equal rows.

    Raises:
        ReviewsError: a review is of another row than the table has.
    """
    benchmark = audit.voters[0].run.benchmark
    hashes = benchmark.row_hashes(audit.dataset)
    name = audit.dataset.variant.board_dataset
    decided = reviews.of_table(audit.table, hashes, name, at_hand).reviews.decisions()
    usable = [
        (row, decided[row.index])
        for row in audit.rows
        if row.index in decided and decided[row.index].verdict is not ReviewVerdict.UNSURE
    ]
    counts = Counter(decision.drawn for _, decision in usable)
    fit = None
    enough = counts[RowChoice.LISTED] >= FEWEST_LISTED and counts[RowChoice.RANDOM] >= FEWEST_RANDOM
    if audit.has_probabilities and enough:
        drawn = [
            (row, decision)
            for row, decision in usable
            if row.p is not None and decision.drawn is not RowChoice.PUBLISHED
        ]
        p = np.array([row.p for row, _ in drawn], float)
        wrong = np.array([_was_wrong(row, decision) for row, decision in drawn])
        fit = calibrate_doubts(p, wrong)
    calibration = ReviewedRows(counts[RowChoice.LISTED], counts[RowChoice.RANDOM], fit)
    return replace(audit, decided=decided, calibration=calibration)


def _was_wrong(row: AuditedRow, decision: Decision) -> bool:
    """Return whether a doubt was justified: two right answers make a label ambiguous."""
    if decision.verdict is ReviewVerdict.BOTH:
        return row.fault is LabelFault.AMBIGUOUS
    return decision.verdict.is_error


# --- rows to review -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """A row to review, and how it was drawn."""

    row: AuditedRow
    drawn: RowChoice


def draw_rows(
    audit: LabelAudit, listed: Sequence[AuditedRow], seed: int = RANDOM_ROWS_SEED
) -> tuple[DrawnRow, ...]:
    """Put a random row that is not listed after every four listed rows.

    Only random rows say how many labels are wrong, and whether the models that voted gained by it:
    where the list is short, random rows follow it until there are twenty.
    """
    rest = _unlisted(audit, listed)
    shuffled = np.random.default_rng(seed).permutation(len(rest)).tolist()
    random = [DrawnRow(rest[at], RowChoice.RANDOM) for at in shuffled]
    drawn: list[DrawnRow] = []
    taken = 0
    for row in listed:
        if len(drawn) % _EVERY == _EVERY - 1 and taken < len(random):
            drawn.append(random[taken])
            taken += 1
        drawn.append(DrawnRow(row, RowChoice.LISTED))
    return (*drawn, *random[taken : max(taken, FEWEST_RANDOM)])


def _unlisted(audit: LabelAudit, listed: Sequence[AuditedRow]) -> list[AuditedRow]:
    indices = {row.index for row in listed}
    return sorted(
        (row for row in audit.rows if row.index not in indices), key=lambda row: row.index
    )


def audit_record(
    audit: LabelAudit, listed: Sequence[AuditedRow], seed: int = RANDOM_ROWS_SEED
) -> AuditRecord:
    """Say what the rows of :func:`draw_rows` were drawn from, for the reviews' first line."""
    return AuditRecord(
        table=audit.table,
        rows=len(audit.rows),
        listed=tuple(row.index for row in listed),
        unlisted=len(audit.rows) - len(listed),
        seed=seed,
        voters=tuple(voter.run.provenance.voter for voter in audit.voters),
        models=tuple(voter.run.model for voter in audit.voters),
        judged=as_ranges(row.index for row in audit.rows),
    )


def sums_if_wrong(run: Run, listed: Sequence[AuditedRow]) -> Mapping[SumName, float]:
    """Return a run's sums with the labels of listed rows replaced by what models propose.

    It is a bound, and no score: the models were asked what is right, and are judged by it.

    Raises:
        OSError, ValueError: the predictions are gone, or cannot be scored any more.
    """
    doubted = {row.index: _decision(row) for row in listed}
    opened = open_predictions(
        run.path, settings_of_score(run.path, settings_from({})), run.variant.name
    )
    replies = [reply for reply in opened.replies if reply.index in doubted]
    decided = TableDecisions("", doubted, ())
    changed = score_reviewed(replace(opened, replies=replies), decided)
    places = [place for place, index in enumerate(indices(run.rows)) if index in doubted]
    before = sum_rows([run.rows[place] for place in places])
    after = sum_rows(changed.rows)
    keys = {**run.sums, **after}
    return {key: run.sums.get(key, 0) - before.get(key, 0) + after.get(key, 0) for key in keys}


def _decision(row: AuditedRow) -> Decision:
    """Return what reviewers would decide who follow the models."""
    is_both = row.fault is LabelFault.AMBIGUOUS
    return Decision(
        index=row.index,
        row="",
        verdict=ReviewVerdict.BOTH if is_both else ReviewVerdict.MODEL,
        accept=(row.label, row.proposal) if is_both else (row.proposal,),
        drawn=RowChoice.LISTED,
        kind=row.fault.value if row.fault is not None else "",
        voters=row.voters,
        reviews=(),
    )
