"""Scored runs in trackio's store on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from ..scoring import Run
from .export_folder import make_store
from .local_store import LocalStore
from .trackers import CURVE_TAG, RUN_TAG, log_new


def to_trackio(
    runs: Sequence[Run], out: Path, project: str = "findit", pictures: int = 8
) -> Iterator[str]:
    """Log new runs in trackio's store in ``out``."""
    make_store(out, "trackio")
    yield from log_new(runs, _TrackioStore(_import_trackio(out), project), pictures)
    yield "show them with:"
    yield f"  TRACKIO_DIR={out.absolute()} trackio show --project {project}"


class _TrackioStore(LocalStore):
    """Runs in the folder for which ``trackio`` was imported."""

    def __init__(self, trackio: Any, project: str) -> None:
        self._trackio = trackio
        self._project = project

    def has(self, key: str) -> bool:
        return bool(self._logged(RUN_TAG, key))

    def remove_curve(self, curve: str) -> None:
        for older in self._logged(CURVE_TAG, curve):
            older.delete()

    @contextmanager
    def new_record(self, name: str, key: str, config: Mapping[str, str]) -> Iterator[Any]:
        quiet = {"embed": False, "auto_log_cpu": False, "auto_log_gpu": False}
        with redirect_stdout(StringIO()):
            yield self._trackio.init(project=self._project, name=name, config=dict(config), **quiet)
            self._trackio.finish()

    def image(self, picture: Any, caption: str) -> Any:
        return self._trackio.Image(picture, caption=caption)

    def _logged(self, tag: str, value: str) -> list[Any]:
        """Return the runs with a value in their configuration."""
        with suppress(ValueError):  # The project does not exist yet
            runs = self._trackio.Api().runs(self._project)
            return [run for run in runs if (run.config or {}).get(tag) == value]
        return []


def _import_trackio(out: Path) -> Any:
    """Import trackio for this folder: it reads the variable once, when it is imported."""
    for name, module in list(sys.modules.items()):
        if module and name.partition(".")[0] == "trackio":
            del sys.modules[name]
    os.environ["TRACKIO_DIR"] = str(out.absolute())
    for remote in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        os.environ.pop(remote, None)
    import trackio

    return trackio
