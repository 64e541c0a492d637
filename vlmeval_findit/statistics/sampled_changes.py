"""How far a value may be off because its correction was measured on random rows alone.

Most random rows change nothing, so a standard error says little: as many more rows may change as in
Wilson's interval of a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..protocol import Array
from .share_intervals import UNSEEN, quantile, reaches_of_share


@dataclass(frozen=True, slots=True)
class SampledChanges:
    """What would change in each metric, were all rows that random rows were drawn from like one."""

    change: Array  # (random rows, metrics), in hundredths of the metrics
    drawn_from: int
    rows: int  # Of the run

    def minus(self, other: SampledChanges) -> SampledChanges:
        """Return the changes of a difference of two runs over the same random rows."""
        return replace(self, change=self.change - other.change)


def reaches_of_changes(changes: SampledChanges, place: int) -> tuple[float, float]:
    """Return how far the 95 % interval of the mean change of a metric reaches down, and up."""
    sampled = len(changes.change)
    unsampled = 1 - sampled / changes.drawn_from
    if unsampled <= 0:
        return 0.0, 0.0
    # What a row does to its score, from -1 to 1
    scale = changes.drawn_from / changes.rows
    by_row = changes.change[:, place] / scale
    mean = float(by_row.mean())
    variance = float(by_row.var(ddof=1)) / sampled if sampled > 1 else 1.0
    unseen = 2 * (UNSEEN / 2 / sampled) ** 2 * (1 + mean**2)
    error = float(np.sqrt((variance + unseen) * unsampled))
    reach = float(quantile(max(sampled - 1, 1))) * error
    to_zero, away = reaches_of_share(min(abs(mean), 1.0), reach, error, sampled / unsampled)
    down, up = (to_zero, away) if mean >= 0 else (away, to_zero)
    return scale * down, scale * up


def reaches_of_mean(datasets: Sequence[SampledChanges | None], place: int) -> tuple[float, float]:
    """Return the same for the mean over datasets, whose random rows were drawn apart."""
    reaches = [reaches_of_changes(each, place) for each in datasets if each is not None]
    down = float(np.linalg.norm([each[0] for each in reaches])) / len(datasets)
    up = float(np.linalg.norm([each[1] for each in reaches])) / len(datasets)
    return down, up
