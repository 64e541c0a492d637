"""The card of a published dataset: its README.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from .. import __version__
from ..core import counted, printable
from ..leaderboard import boards, dull_counts, grouped, md, remarks, runs_table, to_markdown
from ..reproduction import badge, reproductions_of
from ..scoring import Run
from ..statistics import INTERVALS_LEGEND

# The tables of a dataset by the names of their configurations; the first is the default
TABLES = {"queries": "data/queries.parquet", "runs": "data/runs.parquet"}

_REPEAT = """```sh
pip install vlmeval-findit
findit leaderboard runs   # the values above, from the files in here
findit score runs         # the values from the replies; needs the annotations
```"""

_TAGS = ("vlmeval-findit", "visual-grounding", "evaluation-results")


def make_card(runs: Sequence[Run], licence: str | None, hidden: Sequence[str]) -> str:
    """Make the card of runs as Markdown, with the front matter that the hub reads.

    Args:
        runs: the published runs.
        licence: the hub's name of the licence (None: none is named).
        hidden: the files from which private parts were removed.
    """
    models = list(dict.fromkeys(run.model for run in runs))
    puts = "puts" if len(models) == 1 else "put"
    parts = [
        f"---\n{_front(models, licence)}---",
        f"# Where {_listed(models)} {puts} boxes",
        f"{counted(len(runs), 'scored run')} of {counted(len(models), 'model')}, written by "
        f"`findit export` of vlmeval_findit {__version__}. `queries` has a row for each query with "
        "the unchanged reply; `runs` a row for each run; the folder `runs` the files of the runs. "
        "Images and annotations are not in here: they belong to their publishers.",
        "## Values",
        "\n\n".join(_values(runs)),
        f"Metrics are in percent, with 95 % intervals; costs are those of a query. Intervals: "
        f"{INTERVALS_LEGEND}. Failed calls count in no value unless its name says so.",
        *_reproductions(runs),
        *_doubts(runs),
        "## How it was measured",
        "Prompts, annotations, coordinates and versions of each run are columns of `runs`. "
        "Everything that an answer depends on is in `runs/…_identity.json`, everything that a "
        "score depends on in `runs/…_provenance.json`, and checksums of all files are in "
        "`checksums.json`.",
        "## Repeat it",
        _REPEAT,
        "## Licence",
        _licence(licence),
    ]
    if hidden:
        parts += [
            "## Removed",
            "Paths or secrets of the machine that wrote them are replaced by `…/` or `***` in: "
            + ", ".join(f"`{name}`" for name in hidden)
            + ". Checksums in the provenance are those of the files in here.",
        ]
    return "\n\n".join(parts) + "\n"


def _front(models: Sequence[str], licence: str | None) -> str:
    configs = [
        {"config_name": name, "data_files": [{"split": "test", "path": path}]}
        | ({"default": True} if name == "queries" else {})
        for name, path in TABLES.items()
    ]
    values: dict[str, Any] = {"pretty_name": printable(f"FindIt runs: {', '.join(models)}")}
    values |= {"license": licence} if licence else {}
    values |= {"tags": list(_TAGS), "configs": configs}
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1000)
    return text


def _listed(models: Sequence[str]) -> str:
    names = [md(model) for model in models]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _licence(licence: str | None) -> str:
    if licence:
        return f"`{licence}`, as named by the publisher."
    return (
        "None is named: the use of these replies depends on the terms of the model and of the "
        "images' publishers. Ask the publisher of this dataset."
    )


# --- values ---------------------------------------------------------------------------------------


def _values(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a table for each benchmark, with a row for each run."""
    for group in grouped(runs, lambda run: run.benchmark.name).values():
        table = runs_table(group)
        rows = table.records()
        filled = [name for name in table.header if any(row[name] not in (None, "") for row in rows)]
        dull = dull_counts([run.provenance.costs for run in group])
        yield to_markdown(table.only(*({*filled} - dull - {"column", "format", "path"})))


def _reproductions(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a section about published figures that runs were judged against."""
    nearby = reproductions_of({run.path: run.provenance.predictions_sha256 for run in runs})
    lines = []
    for each in nearby:
        line = f"* {md(each.stored.model)}: {md(badge(each.stored))}"
        if each.changed:
            line += f". The replies to {md(', '.join(each.changed))} have changed since"
        lines.append(line)
    if lines:
        yield "## Against published figures"
        yield "\n".join(lines)


def _doubts(runs: Sequence[Run]) -> Iterator[str]:
    """Yield sections about doubts of the values."""
    by_title: dict[str, list[str]] = {}
    excluded: list[str] = []
    for board in boards(runs):
        for title, lines in remarks(board):
            by_title.setdefault(title, []).extend(lines)
        excluded += [f"{x.run.model}, {x.run.variant.name}: {x.reason}" for x in board.excluded]
    for title, lines in {**by_title, "Not to be compared with the rest": excluded}.items():
        if lines:
            yield f"## {title}"
            yield "\n".join(f"* {md(line)}" for line in lines)
