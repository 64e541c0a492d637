"""What the calibration error of models with known errors is, beyond chance and with its interval.

    python -m pytest benchmarks/test_calibration_error.py --benchmark-enable -s

prints the table of benchmarks/README.md. Without ``--benchmark-enable`` few models are drawn,
and only gross faults are found.
"""

from __future__ import annotations

import numpy as np
import pytest

from vlmeval_findit.statistics import (
    CalibrationError,
    ConfidentBoxes,
    bootstrap_weights,
    estimate_calibration_error,
)

OFF = (0.0, 0.05, 0.15)  # By how much confidences are too high
SIZES = ((30, 1), (100, 2), (400, 4), (2000, 2))  # Boxes, boxes an image
ALIKE = 0.3  # How many images have hits that are alike


def drawn(random: np.random.Generator, boxes: int, by_image: int, off: float) -> CalibrationError:
    """Return the error of a model whose confidences are too high by ``off``."""
    images = boxes // by_image
    image = np.repeat(np.arange(images), by_image)
    confidence = random.beta(8, 2, boxes)
    alike = random.random(images) < ALIKE
    luck = np.where(alike[image], random.random(images)[image], random.random(boxes))
    hit = luck < confidence - off
    answered = ConfidentBoxes(confidence, hit, image, np.full(images, float(by_image)))
    error = estimate_calibration_error(answered, bootstrap_weights(images))
    assert error is not None
    assert error.by_chance is not None
    assert error.beyond_chance is not None
    assert error.interval is not None
    return error


@pytest.mark.parametrize("off", OFF)
def test_the_true_error_is_found(off: float, measures: bool) -> None:
    times = 500 if measures else 30
    print("\n| too high by, boxes | ECE | beyond chance | interval holds |")
    print("|---|---|---|---|")
    for boxes, by_image in SIZES:
        random = np.random.default_rng(boxes)
        errors = [drawn(random, boxes, by_image, off) for _ in range(times)]
        usual = 100 * float(np.mean([each.value for each in errors]))
        beyond = 100 * float(np.mean([each.beyond_chance or 0.0 for each in errors]))
        held = []
        for each in errors:
            assert each.interval is not None
            held.append(each.interval.low - 1e-9 <= off <= each.interval.high + 1e-9)
        share = 100 * float(np.mean(held))
        print(f"| {100 * off:g}, {boxes:,} | {usual:.1f} | {beyond:.1f} | {share:.1f} % |")
        assert share >= (90 if measures else 75), (off, boxes)
        # The mean of few models is far off by itself
        slack = 1.5 if measures else 5.0
        assert abs(beyond - 100 * off) < abs(usual - 100 * off) + slack, (off, boxes)
