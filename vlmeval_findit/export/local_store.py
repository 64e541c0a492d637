"""A tracker's store on this machine, as those of Weights & Biases and trackio: nothing leaves it.

Both have the same interface: ``init(project, name, config)``, ``log``, ``finish``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from .trackers import CURVE_TAG, RUN_TAG, TrackedCurve, TrackedRun


class LocalStore(ABC):
    """A store on this machine. Its records have a key, those of curves also a tag of the curve."""

    @abstractmethod
    def has(self, key: str) -> bool:
        """Tell whether a record of this key is complete; remove an incomplete record."""

    @abstractmethod
    def remove_curve(self, curve: str) -> None:
        """Remove the earlier records of a curve."""

    @abstractmethod
    def new_record(
        self, name: str, key: str, config: Mapping[str, str]
    ) -> AbstractContextManager[Any]:
        """Begin a record with a method ``log``; it is finished at the end of the context."""

    @abstractmethod
    def image(self, picture: Any, caption: str) -> Any:
        """Return a picture that can be logged."""

    def log(self, tracked: TrackedRun) -> None:
        """Log a run with its worst answers."""
        values: dict[str, Any] = dict(tracked.metric_values)
        for answer in tracked.worst:
            if answer.picture:
                values[f"worst/{answer.place:02}"] = self.image(answer.picture, answer.caption)
        config = {RUN_TAG: tracked.key, **tracked.params}
        with self.new_record(tracked.name, tracked.key, config) as record:
            record.log(values)

    def log_curve(self, curve: TrackedCurve) -> None:
        """Log a curve; remove the earlier records of the same curve."""
        self.remove_curve(curve.curve)
        config = {RUN_TAG: curve.key, CURVE_TAG: curve.curve}
        with self.new_record(curve.name, f"{curve.curve}-{curve.key}", config) as record:
            for step, values in curve.points:
                record.log(values, step=step)
