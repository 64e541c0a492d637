"""How well doubtful labels are found, against cleanlab's ObjectLab and a plain count of votes.

::

    python -m pytest benchmarks/test_label_audit.py --benchmark-enable -s

prints the table of benchmarks/README.md: average precision by task and number of models; the
seconds of 10,000 queries and five models; and the same from runs of the shipped models over Scenes,
at a lower resolution and with sampled replies too, to a reviewed score. Annotations of the first
are made up, errors are injected. The comparison needs cleanlab, which the extra ``test`` has.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from many_runs import make_runs
from numpy.typing import NDArray
from simulated_labels import Task, World, simulate
from wrong_scenes import TABLES, WrongScenes, scripted_reviews, with_wrong_labels

from vlmeval_findit.analysis import ClassedBoxes, LabelAudit, audit_labels, run_intervals
from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import choose_voters
from vlmeval_findit.models import SHIPPED
from vlmeval_findit.scoring import load_runs, reviewed_runs
from vlmeval_findit.statistics import LIKELY, label_doubts

Scores = NDArray[np.float64]

SEEDS, ROWS = 3, 1000
FEW_ROWS = 250
MODELS = (2, 3, 5)


def average_precision(scores: Scores, wrong: NDArray[np.bool_]) -> float:
    """Return the average precision of an order; equal scores are in random order."""
    order = np.lexsort([np.random.default_rng(0).random(len(scores)), -scores])
    hits = wrong[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].mean())


def by_likelihood(world: World) -> Scores:
    """Return how early each label stands in the order in which people should look."""
    order = label_doubts(world.votes()).order
    scores = np.empty(len(order))
    scores[order] = -np.arange(len(order))
    return scores


def by_count(world: World) -> Scores:
    """Return for each label how many models contradict it in one and the same way."""
    votes = world.votes()
    labelled = votes.labelled
    counts = np.zeros(len(world.labels))
    np.maximum.at(counts, votes.others.row, votes.others.seen.sum(1))
    if world.task is not Task.ONE:
        np.maximum.at(counts, labelled.row, (~labelled.detected).sum(1))
        np.maximum.at(counts, labelled.row, labelled.misnamed.sum(1))
    return counts


def by_objectlab(world: World) -> Scores:
    """Return 1 minus cleanlab's label quality, averaged over models."""
    labels = [label.written for label in world.labels]
    by_model = [quality_by_objectlab(labels, of_model) for of_model in world.answers]
    return 1 - np.mean(by_model, axis=0)


def quality_by_objectlab(
    written: Sequence[ClassedBoxes], answers: Sequence[ClassedBoxes]
) -> Scores:
    """Return cleanlab's quality of each label, by the answers of one model."""
    rank = pytest.importorskip("cleanlab.object_detection.rank")
    classes = 2 + max(int(each.classes.max(initial=0)) for each in (*written, *answers))
    labels = [{"bboxes": label.boxes, "labels": label.classes} for label in written]
    predictions = [_prediction(answer, classes) for answer in answers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quality: Scores = rank.get_label_quality_scores(labels, predictions, verbose=False)
    return quality


def _prediction(answer: ClassedBoxes, classes: int) -> NDArray[np.object_]:
    """Return an answer as cleanlab has it: an array (n, 5) of boxes and confidences by class."""
    by_class = np.empty(classes, object)
    for number in range(classes):
        boxes = answer.boxes[answer.classes == number].reshape(-1, 4)
        by_class[number] = np.column_stack([boxes, np.ones(len(boxes))])
    return by_class


WAYS = {"likelihood": by_likelihood, "ObjectLab": by_objectlab, "count": by_count}


def precisions(rows: int, seeds: int, models: int) -> dict[tuple[str, Task], float]:
    """Return the mean average precision of each way and task."""
    found: dict[tuple[str, Task], list[float]] = {}
    for task in Task:
        for seed in range(seeds):
            world = simulate(task, rows, seed, models)
            for name, way in WAYS.items():
                value = average_precision(way(world), world.wrong)
                found.setdefault((name, task), []).append(value)
    return {key: float(np.mean(values)) for key, values in found.items()}


@pytest.mark.parametrize("models", MODELS)
def test_average_precision_is_at_least_that_of_others(
    models: int, measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = precisions(ROWS if measures else FEW_ROWS, SEEDS if measures else 1, models)
    if measures:
        with capsys.disabled():
            print(f"\naverage precision, {models} models: {', '.join(task.value for task in Task)}")
            for name in WAYS:
                print(f"{name:12}", *(f"{found[name, task]:.2f}" for task in Task))
    for task in Task:
        for other in ("ObjectLab", "count"):
            assert found["likelihood", task] >= found[other, task]


def test_right_labels_are_hardly_ever_doubted(
    measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 1,000 right labels, by the correlation of models that the method does not know."""
    rows = ROWS if measures else FEW_ROWS
    for correlation, most in ((0.0, 0.005), (0.3, 0.012), (0.6, 0.03)):
        shares = []
        for task in Task:
            for models in MODELS:
                world = simulate(task, rows, 0, models, correlation=correlation, share=0.0)
                shares.append(float((label_doubts(world.votes()).contradicted > LIKELY).mean()))
        if measures:
            with capsys.disabled():
                print(f"\nright labels doubted, correlation {correlation}: {np.mean(shares):.4f}")
        assert np.mean(shares) <= most


def test_ten_thousand_queries_take_less_than_a_minute(
    tmp_path: Path,
    measures: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The whole command, from the files of five models' runs to the list."""
    rows = 10_000 if measures else 200
    runs = make_runs(tmp_path, 5, rows, formats=("xyxy_json",))
    for path in runs.glob("*_provenance.json"):
        # The mixed rows of these runs are shifted, which the coordinate check noticed.
        values = json.loads(path.read_text("utf-8")) | {"coords_doubt": None}
        path.write_text(json.dumps(values), "utf-8")
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    start = time.process_time()
    assert main(["audit", str(runs)]) == 0
    seconds = time.process_time() - start
    assert "Compared: 5 runs" in capsys.readouterr().out
    if measures:
        with capsys.disabled():
            print(f"\n{rows:,} queries, 5 models: {seconds:.1f} s of the processor")
        assert seconds < 60


# --- shipped models over Scenes -------------------------------------------------------------------

SCENES, FEW_SCENES = 240, 30
FORMATS = {"FindIt-Nano": "xyxy", "FindIt-Nano-px": "xywh"}
SMALLER = 15_552  # Most pixels that the models of a lower resolution see
FIRST = 50  # Rows of the list that are reviewed


@pytest.fixture(scope="module")
def scene_runs(tmp_path_factory: pytest.TempPathFactory, measures: bool) -> Path:
    """Return runs over Scenes: two models, each at a lower resolution and with sampled replies."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("scenes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(folder / "data"))
        for name, representation in FORMATS.items():
            checkpoint = {"checkpoint": SHIPPED[name], "like": name}
            models: list[object] = [
                name,
                {"name": f"{name}-sampled", "temperature": 0.7, **checkpoint},
                {"name": f"{name}-small", "settings": {"max_pixels": SMALLER}, **checkpoint},
            ]
            sweep = {
                "models": models if measures else models[:2],
                "datasets": list(TABLES) if measures else ["Scenes_refexp"],
                "representations": [representation],
                "outputs": "json",
                "limit": SCENES if measures else FEW_SCENES,
                "work_dir": str(folder / "runs"),
            }
            file = folder / f"{name}.yaml"
            file.write_text(json.dumps(sweep), encoding="utf-8")
            assert main(["sweep", str(file)]) == 0
    return folder


def audits(runs: Path) -> list[LabelAudit]:
    """Audit every dataset of a folder of runs."""
    scored = load_runs([runs])
    names = sorted({run.variant.board_dataset for run in scored})
    return [audit_labels(choose_voters(scored, name).runs) for name in names]


def test_right_scenes_are_hardly_ever_doubted(
    scene_runs: Path,
    measures: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LMUData", str(scene_runs / "data"))
    found = audits(scene_runs / "runs")
    listed = sum(len(audit.listed()) for audit in found)
    rows = sum(len(audit.rows) for audit in found)
    if measures:
        with capsys.disabled():
            print(f"\n{listed} of {rows} right labels of Scenes are listed")
    assert listed <= rows / 200


@pytest.fixture
def wrong(scene_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WrongScenes:
    monkeypatch.setenv("LMUData", str(scene_runs / "data"))
    return with_wrong_labels(scene_runs / "runs", tmp_path, monkeypatch)


def test_wrong_labels_come_first_and_reviews_bring_scores_back(
    scene_runs: Path,
    wrong: WrongScenes,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A reviewer of the first rows and of random ones; true scores are those of right labels."""
    true_runs = {
        (run.model, TABLES[run.variant.table][0]): run for run in load_runs([scene_runs / "runs"])
    }
    for audit in audits(wrong.runs):
        table = audit.dataset.variant.table
        faults = wrong.faults[table]
        first = audit.rows[: len(faults)]
        hits = sum(row.index in faults for row in first)
        if measures:
            with capsys.disabled():
                print(f"\n{table}: of the first {len(first)} rows {hits} are wrong")
        assert hits > 0.6 * len(faults)
        reviews = scripted_reviews(wrong, audit, FIRST if measures else len(faults))
        scored = [run for run in load_runs([wrong.runs]) if run.variant.table == table]
        for run in reviewed_runs(scored, reviews).runs:
            metric = run.benchmark.metrics[0]
            interval = run_intervals(run)[metric.name]
            truth = metric.value(true_runs[run.model, table].sums)
            assert truth is not None
            assert interval is not None
            if measures:
                with capsys.disabled():
                    value = run.value(metric)
                    print(f"  {run.model}: reviewed {value:.1f} {interval}, true {truth:.1f}")
            assert interval.low <= truth <= interval.high
