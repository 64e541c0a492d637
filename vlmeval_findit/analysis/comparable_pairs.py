"""Which two runs can be compared: over the same rows, of the same images, by the same scorer.

A command that names two runs refuses others. A board has many runs and sorts those out that do not
fit the rest, by the rules of :mod:`..leaderboard.comparable`.

What a run did not record contradicts nothing: scores need no images on disk, and files of other
programs can be compared.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from shlex import quote

from ..scoring import UNANSWERED, Provenance, Run, other_scorer
from ..storage import changed_images, is_transparent


class StatisticsError(ValueError):
    """Runs that cannot be compared; the message says what differs."""


def check_comparable(run: Run, other: Run) -> None:
    """Raise StatisticsError for runs over other rows or images, or scored by something else.

    So are scores with other reviews, a favoured run and one that is not, and a run without answers.
    """
    for each in (run, other):
        if each.is_unanswered:
            raise StatisticsError(f"{each.path}: {UNANSWERED}")
    _check_reviews(run, other)
    left, right = _images(run), _images(other)
    if run.provenance.rows != other.provenance.rows or left != right:
        raise StatisticsError(
            f"{other.path} has {len(other.provenance.rows)} rows of {len(right)} images, "
            f"{run.path} has {len(run.provenance.rows)} of {len(left)}: "
            "only runs over the same rows can be compared"
        )
    check_one_measure(run, other)


def check_one_measure(run: Run, other: Run) -> None:
    """Raise StatisticsError for runs that showed other images, or were scored by something else."""
    if why := other_images(other.provenance, run.provenance):
        raise StatisticsError(
            f"{other.path} and {run.path}: {why}: only answers about the same images can be "
            "compared. Ask one of them again"
        )
    if why := other_scorer(run, other):
        raise StatisticsError(why)
    if run.provenance.scored_under != other.provenance.scored_under:
        raise StatisticsError(
            f"{other.path} was scored by {other.provenance.scorer}, {run.path} by "
            f"{run.provenance.scorer}: score both again by the same"
        )


def _images(run: Run) -> set[tuple[str, str]]:
    return {(run.variant.images, row.source) for row in run.rows}


# --- the same reviews -----------------------------------------------------------------------------


def is_favoured(run: Run) -> bool:
    """Return whether reviews favour a run: its answers chose their rows, and no random rows.

    What all voters get wrong together no reviewer saw, so a voter leads others as good.
    """
    reviews = run.provenance.reviews
    return reviews is not None and run.voted and reviews.favours_voters


def _check_reviews(run: Run, other: Run) -> None:
    its, others = run.provenance.reviews, other.provenance.reviews
    if (its and its.digest) != (others and others.digest):
        kinds = [f"reviewed {each.digest}" if each else "not reviewed" for each in (its, others)]
        raise StatisticsError(
            f"{run.files.score} is {kinds[0]}, {other.files.score} is {kinds[1]}: a difference "
            "would be that of the labels. Compare both with the same reviews: python "
            f"run_findit.py compare {quote(str(run.path))} {quote(str(other.path))} --reviews FILE"
        )
    for voter, rest in ((run, other), (other, run)):
        if is_favoured(voter) and not is_favoured(rest):
            raise StatisticsError(
                f"reviewers saw the answers of {voter.model}, not those of {rest.model}, and no "
                "random rows were reviewed: the difference would favour "
                f"{voter.model}. Review the random rows of an audit's page, too, every fifth row "
                "(python run_findit.py audit RUN... --review FILE.html), or leave out --reviews"
            )


# --- the same images ------------------------------------------------------------------------------


def other_images(its: Provenance, others: Provenance) -> str:
    """Say that a run showed other images than another run; "" if that is not known."""
    if its.shown is others.shown:
        return ""
    if rows := list(_changed_rows(its, others)):
        return f"other images: {len(rows)} of {len(its.rows)} rows (first: row {min(rows)})"
    for older, newer in ((its, others), (others, its)):
        if not _did_not_lay_on_white(older):
            continue
        if rows := [row for row in transparent_rows(newer) if row in older.rows]:
            return (
                f"other images: {len(rows)} of {len(its.rows)} rows (first: row {min(rows)}) are "
                "transparent, which version 1.0 did not lay on white, and one of both was asked by "
                "it"
            )
    return ""


def known_images(provenance: Provenance) -> Hashable:
    """Return a key of what :func:`other_images` knows of a run.

    Runs of one key are alike in it. Runs that :func:`..scoring.load_runs` loaded together and that
    showed the same have one key.
    """
    return id(provenance.shown), provenance.rows, _did_not_lay_on_white(provenance)


def transparent_rows(provenance: Provenance) -> list[int]:
    """List the rows that showed a transparent image."""
    return [
        row for row, shown in provenance.shown.items() if any(map(is_transparent, shown.values()))
    ]


def _changed_rows(its: Provenance, others: Provenance) -> Iterator[int]:
    for row, shown in its.shown.items():
        if changed_images(shown, others.shown.get(row, {})):
            yield row


def _did_not_lay_on_white(provenance: Provenance) -> bool:
    """Return whether FindIt's version 1.0 showed the images; it recorded none of them."""
    run = provenance.identity
    return run is not None and not provenance.shown and not run.answering.in_vlmevalkit
