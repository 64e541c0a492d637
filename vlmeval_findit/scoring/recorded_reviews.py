"""What a score with reviews records of them: which reviews, how many, and what random rows were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core import Config, PlainNumber, Text, Whole, YesNo, counted
from ..protocol import ErrorAnalysis, ScoredRow, SumName, sum_rows, with_events
from ..statistics import RandomRows


@dataclass(frozen=True, slots=True)
class LabelledRow(Config):
    """The sums of a random row as it is labelled, where its review decided otherwise."""

    index: Whole
    sums: Mapping[str, PlainNumber]
    slices: Mapping[str, Text] = field(default_factory=dict)
    parts: tuple[tuple[Text, Text, Mapping[str, PlainNumber]], ...] = ()
    failed: YesNo = False
    reason: Text | None = None

    @property
    def row(self) -> ScoredRow:
        parts = {(kind, value): sums for kind, value, sums in self.parts}
        return ScoredRow(
            self.index, "", self.sums, self.failed, self.reason, self.slices, {}, parts
        )


def labelled_row(row: ScoredRow) -> LabelledRow:
    """Return what is recorded of a row as it is labelled."""
    parts = tuple((kind, value, sums) for (kind, value), sums in row.parts.items())
    return LabelledRow(row.index, row.sums, row.slices, parts, row.failed, row.reason)


@dataclass(frozen=True, slots=True)
class ScoreReviews(Config):
    """The reviews that a score was made with; counts are of rows of its run."""

    digest: Text
    reviewed: Whole
    changed: Whole  # Another answer than the label counts, or counts too
    excluded: Whole
    unsure: Whole  # Their label stays
    random: Whole
    rows: Whole  # With a reply, excluded ones too
    unlisted: Whole | None = None  # Rows that random ones were drawn from (None: not known)
    not_reviewed: Whole = 0  # Listed rows without a review: their label stays
    voters: tuple[Text, ...] = ()  # Digests of the runs whose answers reviewers saw
    voting_models: tuple[Text, ...] = ()  # Their models, as far as the audit recorded them
    labelled: tuple[LabelledRow, ...] = ()
    why_unknown: Text = ""  # Why it is not known which rows random ones were drawn from

    @property
    def column(self) -> str:
        """The end of the names of what is scored with these reviews.

        >>> ScoreReviews("1a2b3c4d", 0, 0, 0, 0, 0, 0).column
        '[reviewed 1a2b3c4d]'
        """
        return f"[reviewed {self.digest}]"

    @property
    def is_weighted(self) -> bool:
        """Whether random rows stand for all rows that were not listed."""
        return bool(self.random and self.unlisted)

    @property
    def favours_voters(self) -> bool:
        """Whether voters gain: mistakes that all of them share with a label were not looked for."""
        is_whole = self.unlisted == 0 and not self.not_reviewed
        return bool(self.voters) and not self.is_weighted and not is_whole

    @property
    def counts(self) -> str:
        """Say how many rows were reviewed, and what became of them."""
        parts = [f"{self.changed:,} changed", f"{self.excluded:,} excluded"]
        if self.unsure:
            parts.append(f"{self.unsure:,} unsure, whose label stays")
        text = f"{self.reviewed:,} of {counted(self.rows, 'row')} reviewed: {', '.join(parts)}"
        if self.is_weighted:
            text += f"; {self.random:,} random rows stand for {self.unlisted:,} unlisted ones"
        elif self.random:
            text += f"; {counted(self.random, 'random row')}, standing for no others"
            text += f", as {self.why_unknown}" if self.why_unknown else ""
        if self.not_reviewed:
            text += f"; {counted(self.not_reviewed, 'listed row')} not reviewed"
        return text

    def random_rows(
        self, reviewed: Iterable[ScoredRow], analysis: ErrorAnalysis
    ) -> RandomRows | None:
        """Return what random rows changed; None where they do not stand for others.

        Args:
            reviewed: the rows of the score; excluded rows are not among them.
            analysis: counts the error events of rows, which are sums like the others.
        """
        if not self.is_weighted or self.unlisted is None:
            return None
        labelled = {each.index: each.row for each in self.labelled}
        after = {row.index: row for row in reviewed if row.index in labelled}
        changes: list[Mapping[SumName, float]] = []
        for index, row in labelled.items():
            as_reviewed = [after[index]] if index in after else []
            before = with_events(analysis, [row])
            changes.append(_difference(with_events(analysis, as_reviewed), before))
        changes += [{}] * (self.random - len(changes))
        return RandomRows(tuple(changes), self.unlisted, self.rows)


def _difference(after: Sequence[ScoredRow], before: Sequence[ScoredRow]) -> dict[SumName, Any]:
    """Return the sums of rows minus those of others."""
    old = sum_rows(before)
    new = sum_rows(after)
    keys = dict.fromkeys((*old, *new))
    return {key: new.get(key, 0) - old.get(key, 0) for key in keys}
