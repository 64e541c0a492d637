"""From wrong labels to reviewed scores, on rendered scenes and with the models that ship.

Scenes have right labels, so the true scores are known: 14 % of the labels are made wrong, an audit
lists doubtful ones, and a scripted reviewer judges these and some random rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from review_files import Reviewer, write

from vlmeval_findit.analysis.label_audit import audit_labels, audit_record, draw_rows
from vlmeval_findit.analysis.run_statistics import compare, intervals
from vlmeval_findit.benchmarks.findit.annotation_tables import write_table
from vlmeval_findit.boxes.representation import Corners
from vlmeval_findit.cli import main
from vlmeval_findit.data.loading import load_dataset
from vlmeval_findit.engine.calls import prompts_of
from vlmeval_findit.models.local.local_runner import load_local
from vlmeval_findit.models.local.run_plan import RunSettings
from vlmeval_findit.models.model_table import MODELS, NANO, NANO_PX, SHIPPED
from vlmeval_findit.protocol.reviews import Answer, Drawn, Verdict, iou
from vlmeval_findit.scoring.pipeline import score_file
from vlmeval_findit.scoring.reviewed_runs import reviewed_runs
from vlmeval_findit.scoring.score_files import write_score
from vlmeval_findit.scoring.scored_run import Run, load_runs
from vlmeval_findit.storage.review_files import read_reviews

pytestmark = [pytest.mark.host, pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

SCENES = "Scenes_refexp"
TABLE = "RefCOCO"
"""The scenes under a name whose table is not made anew."""
FORMATS = {NANO: "xyxy_json_bbox_2d", NANO_PX: "xywh_json"}
"""What each was taught most."""
ROWS = 120
WRONG = 0.14
VOTERS = (NANO, "Warm")


@dataclass(frozen=True)
class Asked:
    """A model of the test: a shipped checkpoint, as it is asked."""

    name: str
    checkpoint: str
    settings: RunSettings


MODELS_ASKED = (
    Asked(NANO, NANO, RunSettings(device="cpu")),
    Asked("Warm", NANO_PX, RunSettings(device="cpu", temperature=1.2)),
    Asked("Hot", NANO, RunSettings(device="cpu", temperature=1.5)),
    Asked("Coarse", NANO_PX, RunSettings(device="cpu", max_pixels=16_000)),
)


@dataclass(frozen=True)
class Audited:
    """Runs over a table in which some labels are wrong."""

    runs: Path
    tables: Path
    wrong: frozenset[int]
    true: dict[str, float | None]  # F1 by model, had all labels been right
    labels: dict[int, Answer]  # The right ones


def ask(asked: Asked, folder: Path) -> Path:
    """Ask a model about the first rows, and write its prediction file."""
    format_ = FORMATS[asked.checkpoint]
    dataset = load_dataset(f"FindIt_{SCENES}_{format_}")
    prompts = prompts_of(dataset)
    indices = list(dataset.queries)[:ROWS]
    runner = load_local(SHIPPED[asked.checkpoint], MODELS[asked.checkpoint], asked.settings)
    messages = [prompts.message(index) for index in indices]
    rows = [
        {"index": index, "prediction": each.text, "extra_records": each.recorded.as_json()}
        for index, each in zip(indices, runner.answer_batch(messages, dataset.variant), strict=True)
    ]
    path = folder / f"{asked.name}_FindIt_{TABLE}_{format_}.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def spoiled(query: Any, random: np.random.Generator) -> Any:
    """Return a query whose label is somewhere else, or half as wide."""
    ((x1, y1, x2, y2),) = query.truth.boxes
    box: Corners = (x1, y1, (x1 + x2) / 2, y2)
    while random.random() < 0.7 or iou(box, (x1, y1, x2, y2)) > 0.5:
        left = random.uniform(0, query.width - (x2 - x1))
        top = random.uniform(0, query.height - (y2 - y1))
        box = (left, top, left + x2 - x1, top + y2 - y1)
    return replace(query, truth=replace(query.truth, boxes=(box,)))


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    folder = tmp_path_factory.mktemp("scenes")
    (folder / "runs").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        (folder / "lmu").mkdir()
        patch.setenv("LMUData", str(folder / "lmu"))
        paths = [ask(asked, folder / "runs") for asked in MODELS_ASKED]
        scenes: Any = load_dataset(f"FindIt_{SCENES}_{FORMATS[NANO]}")
        queries = list(scenes.queries.values())[:ROWS]
        write_table(folder / "true", TABLE, queries, {"source": "a test"})
        patch.setenv("FINDIT_TABLES", str(folder / "true"))
        true = {}
        for path in paths:
            scored = score_file(path)
            true[scored.model] = scored.metric_values["F1@0.5"]
        random = np.random.default_rng(5)
        chosen = random.choice(ROWS, round(WRONG * ROWS), replace=False)
        wrong = frozenset(queries[at].index for at in chosen)
        labels = {query.index: Answer(query.truth.boxes) for query in queries}
        table = [spoiled(each, random) if each.index in wrong else each for each in queries]
        write_table(folder / "tables", TABLE, table, {"source": "a test"})
        patch.setenv("FINDIT_TABLES", str(folder / "tables"))
        for path in paths:
            write_score(score_file(path), path)
        return Audited(folder / "runs", folder / "tables", wrong, true, labels)


def by_model(runs: list[Run]) -> dict[str, Run]:
    return {run.model: run for run in runs}


def test_a_reviewer_brings_the_true_scores_back(
    audited: Audited, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDIT_TABLES", str(audited.tables))
    runs = by_model(load_runs([audited.runs]))
    audit = audit_labels([runs[name] for name in VOTERS])
    listed = audit.listed()
    drawn = draw_rows(audit, listed)
    voters = audit_record(audit, listed).voters
    reviewer = Reviewer(runs[NANO].variant.name, voters)
    reviews = []
    for each in drawn:
        index = each.row.index
        verdict = Verdict.MODEL if index in audited.wrong else Verdict.LABEL
        reviews.append(reviewer.review(index, verdict, audited.labels[index], drawn=each.drawn))
    assert sum(each.drawn is Drawn.RANDOM for each in drawn) >= 15
    path = write(tmp_path / "reviews.jsonl", *reviews, audits=[audit_record(audit, listed)])
    reviewed = by_model(list(reviewed_runs(runs.values(), read_reviews([path])).runs))
    for name, run in reviewed.items():
        true = audited.true[name]
        as_labelled = runs[name].metric_values["F1@0.5"]
        interval = intervals(run)["F1@0.5"]
        value = run.metric_values["F1@0.5"]
        assert true is not None
        assert as_labelled is not None
        assert value is not None
        assert interval is not None
        print(
            name,
            true,
            as_labelled,
            value,
            interval,
            run.provenance.reviews and run.provenance.reviews.counts,
            run.failed,
        )
        if name != "Coarse":
            assert as_labelled < true - 7
        assert interval.low <= true <= interval.high
    # Voters are no better than they are.
    for other in ("Hot", "Coarse"):
        test = compare(reviewed[NANO], reviewed[other])["F1@0.5"]
        known = (audited.true[NANO] or 0) - (audited.true[other] or 0)
        assert test.interval is not None
        assert test.interval.low <= known <= test.interval.high
    out = tmp_path / "board"
    flags = ["--reviews", str(path), "--out", str(out)]
    assert main(["leaderboard", str(audited.runs), *flags]) == 0
    assert f"{TABLE} [reviewed " in (out / "leaderboard.csv").read_text()
