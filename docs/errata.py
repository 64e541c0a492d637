"""The page of errata, made of the table in the package: ``python docs/errata.py`` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vlmeval_findit.scoring import Erratum, errata

PAGE = Path(__file__).resolve().parent / "reference" / "errata.md"

INTRODUCTION = """\
# What earlier versions computed wrongly

`score`, `leaderboard`, `compare` and `report` name the errata that may affect your runs, by the \
names in the first column. They tell it by the files of a run: versions, model, server, \
coordinates, data, and why replies do not adhere. Rows with "—" cannot be told from these: read \
whether they concern you.

This page is made of `vlmeval_findit/scoring/errata.yaml`.
"""

SECTIONS = {
    "score": (
        "Scores",
        "Score again, which asks no model: `findit score outputs`. Where a row names more to type, "
        "that is needed too.",
    ),
    "run": ("Answers", "What was asked or recorded was wrong: scoring again does not mend it."),
    "data": (
        "Imported data",
        "Import again, then ask again. Data that 1.0 imported has no `ledger` in its `.meta.json`.",
    ),
    "cost": ("Costs", "Amounts that were recorded stay as they are."),
    "board": (
        "What is made of scores",
        "Tables, tests, reports and exports are right as soon as you make them again.",
    ),
}


def errata_page() -> str:
    """Return the page: a section for each kind of erratum."""
    return "\n".join([INTRODUCTION, *(line for kind in SECTIONS for line in _section(kind))])


def _section(kind: str) -> Iterator[str]:
    title, advice = SECTIONS[kind]
    yield f"## {title}\n"
    yield f"{advice}\n"
    yield "| name | versions | what | what was wrong | how to tell, what to do |"
    yield "|---|---|---|---|---|"
    for row in errata():
        if row.of == kind:
            yield _line(row)
    yield ""


def _line(row: Erratum) -> str:
    name = row.name if row.when or row.of == "board" else f"{row.name} —"
    versions = ", ".join(sorted(row.versions))
    cells = (name, versions, row.what, row.wrong, row.remedy)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(errata_page(), encoding="utf-8")
