"""Why no row is dropped, replaced or weighted by a doubt: it favours the models that were asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from simulated_labels import Label, Scene, Task, World, iou_of, simulate

from vlmeval_findit.analysis import ClassedBoxes
from vlmeval_findit.statistics import LabelFault, label_doubts

pytestmark = pytest.mark.slow

VOTERS, SEEDS, ROWS = 2, 3, 1000
HIT = 0.5

Accuracies = NDArray[np.float64]  # Of models, in percent


def is_hit(answer: ClassedBoxes, right: Sequence[NDArray[np.float64]]) -> bool:
    if not len(answer.boxes):
        return False
    return bool(iou_of(answer.boxes[0], np.array(right)).max() >= HIT)


def right_answers(scene: Scene, label: Label) -> list[NDArray[np.float64]]:
    both = label.fault is LabelFault.AMBIGUOUS
    return [scene.asked.boxes[0], *(scene.others.boxes[:1] if both else ())]


def hits(world: World, truly: bool) -> NDArray[np.bool_]:
    """Return whether each model (columns) hits in each row, the label or the truth."""
    rows = []
    for place, (scene, label) in enumerate(zip(world.scenes, world.labels, strict=True)):
        right = right_answers(scene, label) if truly else [label.written.boxes[0]]
        rows.append([is_hit(of_model[place], right) for of_model in world.answers])
    return np.array(rows)


def lead_of_voters(accuracies: Accuracies) -> float:
    """Return how far the voters are ahead of the model that was held out, in points."""
    return float(accuracies[:VOTERS].mean() - accuracies[VOTERS])


def leads(correlation: float, share: float) -> dict[str, float]:
    """Return leads beyond the true one, by what is done with doubtful rows; means over seeds."""
    found: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        world = simulate(
            Task.ONE, ROWS, seed, VOTERS + 1, correlation=correlation, share=share, spread=0.0
        )
        doubted = label_doubts(world.votes(VOTERS)).wrong > 0.5
        by_label, truly = hits(world, truly=False), hits(world, truly=True)
        true_lead = lead_of_voters(100 * truly.mean(0))
        reviewed = np.where(doubted[:, None], truly, by_label)
        ways = {
            "as they are": by_label.mean(0),
            "dropped": by_label[~doubted].mean(0),
            "reviewed": reviewed.mean(0),
        }
        for name, shares in ways.items():
            found.setdefault(name, []).append(lead_of_voters(100 * shares) - true_lead)
    return {name: float(np.mean(values)) for name, values in found.items()}


@pytest.mark.parametrize(
    ("correlation", "share", "least"), [(0.3, 0.14, 1.0), (0.6, 0.14, 1.0), (0.6, 0.0, 0.4)]
)
def test_dropping_doubtful_rows_favours_voters(
    correlation: float, share: float, least: float
) -> None:
    """Of models that are equally good: by more than differences that boards rank by.

    The study has 0.4 to 4.2 points, on labels that are all right too.
    """
    lead = leads(correlation, share)
    assert abs(lead["as they are"]) < 0.8
    assert lead["dropped"] - lead["as they are"] > least


def test_even_a_perfect_review_of_listed_rows_favours_voters() -> None:
    """What voters share with wrong labels stays unseen: random rows are needed as well."""
    lead = leads(correlation=0.3, share=0.14)
    assert 0.2 < lead["reviewed"] - lead["as they are"] < 1.5
