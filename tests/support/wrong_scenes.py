"""Scenes with injected label errors, runs of shipped models, and a scripted reviewer.

Models answer the right scenes; their replies are scored over tables with wrong labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from simulated_labels import SHARE, Scene, Task, apart, label_of

from vlmeval_findit.analysis import LabelAudit, audit_record, classed_boxes, draw_rows
from vlmeval_findit.benchmarks.findit import FindItQuery, write_table
from vlmeval_findit.boxes import Truth
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import Answer, Review, Reviews, ReviewVerdict, Settings, row_hash
from vlmeval_findit.scoring import load_runs, score_file, write_score
from vlmeval_findit.statistics import LabelFault
from vlmeval_findit.storage import RunFiles, image_folder, read_identity, write_identity

# Scenes' tables, the tables that have their wrong labels, and what they ask for
TABLES = {
    "Scenes_refexp": ("RefCOCO", Task.ONE),
    "Scenes": ("Pascal", Task.SET),
    "Scenes_multilabel": ("Pascal_multilabel", Task.CLASSES),
}


@dataclass(frozen=True)
class WrongScenes:
    """A folder of tables and runs, and what is right."""

    folder: Path
    truth: Mapping[str, Mapping[int, Answer]]  # By table, by row
    faults: Mapping[str, Mapping[int, LabelFault]]

    @property
    def runs(self) -> Path:
        return self.folder / "runs"


def with_wrong_labels(
    runs: Path, folder: Path, patch: pytest.MonkeyPatch, seed: int = 0, share: float = SHARE
) -> WrongScenes:
    """Write tables of Scenes with wrong labels, and score runs over Scenes with them."""
    patch.setenv("FINDIT_TABLES", str(folder))
    scenes = image_folder("Scenes").path
    patch.setenv("FINDIT_IMAGES", f"Pascal={scenes},COCO_train2014={scenes}")
    truth: dict[str, dict[int, Answer]] = {}
    faults: dict[str, dict[int, LabelFault]] = {}
    for run in load_runs([runs]):
        table = run.variant.table
        name, task = TABLES[table]
        if name not in truth:
            queries = load_dataset(run.variant.name).queries
            rows = [queries[index] for index in sorted(run.provenance.rows)]
            truth[name] = {row.index: Answer(row.truth.boxes, row.truth.labels) for row in rows}
            faults[name] = _write(folder, name, task, rows, share, np.random.default_rng(seed))
        path = folder / "runs" / run.model / f"{run.model}_FindIt_{name}_{run.variant.format}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(run.path.read_bytes())
        identity = read_identity(run.path)
        assert identity is not None
        dataset = f"FindIt_{name}_{run.variant.format}"
        changed = replace(
            identity, dataset=dataset, table=None, table_sha256=None, prompt_hash=None
        )
        write_identity(RunFiles(path).identity, changed)
        write_score(score_file(path, Settings(force=True)), path)
    return WrongScenes(folder, truth, faults)


def scripted_reviews(wrong: WrongScenes, audit: LabelAudit, listed: int) -> Reviews:
    """Review the first listed rows, and the random rows that are drawn with them, rightly."""
    table = audit.dataset.variant.table
    rows = audit.listed(listed)
    reviews = []
    for row, drawn in ((each.row, each.drawn) for each in draw_rows(audit, rows)):
        right = wrong.truth[table][row.index]
        verdict, accepted = ReviewVerdict.LABEL, row.label
        if row.index in wrong.faults[table]:
            is_proposed = row.proposal.is_like(right)
            verdict = ReviewVerdict.MODEL if is_proposed else ReviewVerdict.EDITED
            accepted = row.proposal if is_proposed else right
        review = Review(
            table=audit.table,
            index=row.index,
            row=row_hash(audit.dataset.queries[row.index], row.label),
            verdict=verdict,
            accept=(accepted,),
            kind=row.fault.value if row.fault is not None else "",
            reviewer="script",
            date="2026-01-31",
            drawn=drawn,
            voters=row.voters,
        )
        reviews.append(review)
    return Reviews(tuple(reviews), (audit_record(audit, rows),))


def _write(
    folder: Path,
    name: str,
    task: Task,
    rows: Sequence[FindItQuery],
    share: float,
    chance: np.random.Generator,
) -> dict[int, LabelFault]:
    """Write a table with wrong labels; return what is wrong by row."""
    classes = sorted({label for row in rows for label in row.truth.labels}) or [""]
    wrong = set(chance.permutation(len(rows))[: round(share * len(rows))].tolist())
    faults: dict[int, LabelFault] = {}
    written = []
    for place, row in enumerate(rows):
        labels = row.truth.labels or ("",) * len(row.truth.boxes)
        numbers = [classes.index(label) for label in labels]
        boxes = np.array(row.truth.boxes)
        others = apart(4, list(boxes), 0.3, chance, (row.width, row.height))
        scene = Scene(
            classed_boxes(boxes, numbers), classed_boxes(others, chance.choice(numbers, 4))
        )
        is_wrong = place in wrong
        label = label_of(task, scene, is_wrong, chance, len(classes))
        # Two expressions of a drawn scene never fit one object.
        while label.fault is LabelFault.AMBIGUOUS:
            label = label_of(task, scene, is_wrong, chance, len(classes))
        if label.fault is not None:
            faults[row.index] = label.fault
        corners = [tuple(box) for box in label.written.boxes.round(2).tolist()]
        names = [classes[number] for number in label.written.classes]
        truth = Truth(tuple(corners), (0,) * len(corners), tuple(names) if row.truth.labels else ())
        written.append(replace(row, truth=truth))
    write_table(folder, name, written, {"source": "scenes with wrong labels"})
    return faults
