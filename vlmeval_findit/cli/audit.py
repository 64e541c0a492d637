"""``run_findit.py audit``: labels that are probably wrong, by the answers of several models."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ..analysis import (
    AuditedRow,
    LabelAudit,
    Voter,
    audit_labels,
    audit_record,
    known_family,
    with_reviews,
)
from ..core import as_called, atomic_write, counted, printable, suffix_of
from ..leaderboard import (
    ExcludedRun,
    calibration_text,
    choose_voters,
    doubts_table,
    group_by,
    kinds_line,
)
from ..protocol import Answer, RowChoice
from ..report import MOST_REVIEW_ROWS, make_review_page, rows_to_review
from ..scoring import PluginMissingError, RowData, load_runs
from ..storage import read_reviews
from .command_base import (
    FILE,
    WRITTEN_FILE,
    Command,
    complete_datasets,
    json_option,
    option,
    results_argument,
    say,
)
from .printing import print_folded, print_lines, print_table, write_json

_REST = "--json FILE"
_MOST_NOT_FOUND = 20  # Rows named with a box that few models found
_TOO_FEW = "it says nothing about more than half of the rows"


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py audit outputs --data Scenes_mini",
        "python run_findit.py audit outputs --data Scenes_mini --top 100 --json doubts.json",
        "python run_findit.py audit outputs --data Scenes_mini --review review.html",
    ],
)
@results_argument
@option(
    "--data",
    "NAME",
    "The dataset, where the runs are of several.",
    shell_complete=complete_datasets,
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help="List the N most doubtful rows, whatever their probability.",
)
@option(
    "--review",
    "FILE.html",
    "Write a page on which a person judges the listed rows, blind, and random ones.",
    type=WRITTEN_FILE,
)
@option(
    "--reviews",
    "FILE",
    "Reviews of its rows: they calibrate the probabilities, and leave the page (repeatable).",
    type=FILE,
    multiple=True,
)
@json_option
def command(
    runs: tuple[Path, ...],
    data: str | None,
    top: int | None,
    review: Path | None,
    reviews: tuple[Path, ...],
    json_file: Path | None,
) -> int:
    """List labels that are probably wrong, by what several models answered.

    RUN is a scored prediction file, or a folder of them. One run of each model is compared; models
    of two families are needed to tell their errors from those of the labels. A listed label is to
    be looked at, not wrong: nothing is dropped from a score, and none changes.
    """

    def report_plugin(error: PluginMissingError) -> None:
        say(f"left out: {as_called(str(error))}", file=sys.stderr)

    if review is not None:
        _check_page(review)
    known = read_reviews(reviews)  # Before the runs: a file that is refused is refused at once
    loaded = load_runs(runs, report_plugin, RowData.SUMS)
    chosen = choose_voters(loaded, data)
    audit = audit_labels(chosen.runs)
    if reviews:
        audit = with_reviews(
            audit, known, {f"sha256:{run.provenance.table_sha256}" for run in loaded}
        )
    listed = audit.listed(top)
    _print_audit(audit, listed)
    _print_voters(audit, chosen.left_out)
    if json_file is not None:
        write_json(json_file, _as_json(audit, listed, chosen.left_out))
    if review is not None:
        _write_page(review, audit, listed, top or MOST_REVIEW_ROWS)
    return 0


def _print_audit(audit: LabelAudit, listed: Sequence[AuditedRow]) -> None:
    table = doubts_table(audit, listed)
    judged = counted(len(audit.rows), "row")
    name = audit.dataset.variant.board_dataset
    if audit.has_probabilities:
        say(f"{name}: {counted(len(listed), 'label')} of {judged} listed as doubtful")
    else:
        say(f"{name}: the first {len(listed)} of {judged} to look at, in this order")
    if listed:
        print_table(table, _REST)
        print_folded(f"By kind: {kinds_line(listed)}")
    elif audit.rows and audit.has_probabilities:
        print_folded("--top 20 lists the first 20 all the same")
    print_lines([note.text for note in table.notes], _REST)
    if not audit.has_probabilities:
        print_folded(_no_probabilities(audit))
    if not_found := audit.not_found(listed):
        rows = counted(len(not_found), "row")
        order = ", ".join(str(row.index) for row in not_found[:_MOST_NOT_FOUND])
        more = ", …" if len(not_found) > _MOST_NOT_FOUND else ""
        print_folded(
            f"Few or no models found a box of {rows} not listed: it is on nothing, or hard for "
            f"all, and answers do not tell which. The most doubtful first: {order}{more}"
        )
    if audit.unjudged:
        first = audit.unjudged[0]
        count = counted(len(audit.unjudged), "row")
        print_folded(f"Not judged, as no run has a readable answer: {count} (first: {first})")


def _no_probabilities(audit: LabelAudit) -> str:
    first = audit.voters[0].run
    name = first.variant.name
    return as_called(
        f"No probabilities: all compared runs are of one family ({audit.families[0]}), whose "
        "errors look like those of labels. Ask a model of another family about these rows: "
        f"python run_findit.py run --data {name} --model MODEL"
    )


def _print_voters(audit: LabelAudit, left_out: Sequence[ExcludedRun]) -> None:
    say(f"Compared: {counted(len(audit.voters), 'run')}")
    print_lines([f"  {_voter_line(voter)}" for voter in audit.voters], _REST)
    if not left_out and not audit.unheard:
        return
    say(f"Left out: {counted(len(left_out) + len(audit.unheard), 'run')}")
    lines = [f"  {_voter_line(voter)}: {_TOO_FEW}" for voter in audit.unheard]
    for reason, members in group_by(left_out, lambda each: each.reason).items():
        first = members[0].run
        more = f" and {len(members) - 1:,} more" if len(members) > 1 else ""
        lines.append(f"  {first.model} {first.variant.name} ({first.path}){more}: {reason}")
    print_lines(lines, _REST)


def _voter_line(voter: Voter) -> str:
    run = voter.run
    line = f"{printable(run.model)} {run.variant.format}"
    line += f", family {voter.family}"
    if known_family(run) is None:
        line += " (not in the model table: taken for a family)"
    if voter.silent:
        line += f"; {counted(voter.silent, 'answer')} failed or not readable"
    return line


# --- the page of a review ---


def _check_page(path: Path) -> None:
    """Refuse a name that is not one of a page: ``--reviews`` is a letter away."""
    if suffix_of(path) in (".html", ".htm"):
        return
    if path.is_file():
        raise ValueError(
            f"--review {path}: that is a page to be written, and this file is there: for reviews "
            f"type --reviews {path}"
        )
    raise ValueError(f"--review {path} should be a page: --review {path.with_suffix('.html')}")


def _write_page(path: Path, audit: LabelAudit, listed: Sequence[AuditedRow], most: int) -> None:
    """Write the page, and say what is on it and how to go on."""
    rows = rows_to_review(audit, listed, most)
    if not rows:
        print_folded(f"{path}: not written, as all rows that it would have are decided")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    name = audit.dataset.variant.board_dataset
    with atomic_write(path) as f:
        f.write(make_review_page(name, audit_record(audit, listed), rows, datetime.now(UTC)))
    doubted = sum(row.drawn is RowChoice.LISTED for row in rows)
    counts = f"{doubted} listed rows and {len(rows) - doubted} random ones"
    print_folded(
        f"{path}: {counts}, {path.stat().st_size / 1e6:.1f} MB. Open it in a browser, and save "
        "reviews.jsonl"
    )
    missing = sorted({row.image for row in rows if not row.image.is_file()})
    if missing:
        print_folded(
            f"Missing images: {len(missing):,} (first: {missing[0]}). Nobody can "
            "judge their rows: put them there, and write the page again"
        )
    left = sum(row.index not in audit.decided for row in listed) - doubted
    if left:
        print_folded(
            f"{counted(left, 'more listed row')}: with --reviews reviews.jsonl, the next page "
            "begins there"
        )


# --- JSON -----------------------------------------------------------------------------------------


def _as_json(
    audit: LabelAudit, listed: Sequence[AuditedRow], left_out: Sequence[ExcludedRun]
) -> dict[str, Any]:
    """Return what is printed, with all rows."""
    return {
        "dataset": audit.dataset.variant.board_dataset,
        "table": audit.table,
        "rows": len(audit.rows),
        "not judged": list(audit.unjudged),
        "not found": [row.index for row in audit.not_found(listed)],
        "calibration": calibration_text(audit) if audit.has_probabilities else None,
        "voters": [
            {
                "model": voter.run.model,
                "format": voter.run.variant.format,
                "family": voter.family,
                "run": voter.run.provenance.voter,
                "path": str(voter.run.path),
                "silent": voter.silent,
            }
            for voter in audit.voters
        ],
        "left out": [
            *({"path": str(each.run.path), "reason": each.reason} for each in left_out),
            *({"path": str(voter.run.path), "reason": _TOO_FEW} for voter in audit.unheard),
        ],
        "listed": [
            {
                "index": row.index,
                "asked": audit.dataset.queries[row.index].label,
                "kind": row.fault.value if row.fault is not None else "",
                "p": row.p,
                "p calibrated": audit.calibrated(row),
                "reviewed": row.index in audit.decided,
                "agreeing": row.agreeing,
                "models": row.models,
                "label": _answer(row.label),
                "proposal": _answer(row.proposal),
                "voters": list(row.voters),
            }
            for row in listed
        ],
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {"boxes": list(map(list, answer.boxes)), "labels": list(answer.labels)}
