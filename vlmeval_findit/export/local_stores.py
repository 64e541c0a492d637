"""Scored runs in the local stores of Weights & Biases and of trackio: nothing leaves the machine.

Both have the same interface: ``init(project, name, config)``, ``log``, ``finish``.
"""

from __future__ import annotations

import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..core import quoted_line
from ..scoring import Run
from .export_folder import make_store
from .targets import ExportError, NotExportableError
from .trackers import CURVE_TAG, RUN_TAG, TrackedCurve, TrackedRun, log_new


def to_wandb(
    runs: Sequence[Run], out: Path, project: str = "findit", pictures: int = 8
) -> Iterator[str]:
    """Write new runs as offline runs, which ``wandb sync`` sends."""
    import wandb
    from wandb.errors import Error, UsageError

    try:
        wandb.Settings(project=project)
    except (UsageError, ValueError) as error:
        raise NotExportableError(f"--project {project}: {quoted_line(str(error), 300)}") from None
    make_store(out, "wandb")
    folder = out.absolute() / "wandb"
    folder.mkdir(exist_ok=True)
    try:
        yield from log_new(runs, _WandbStore(folder, project), pictures)
    except Error as error:
        raise ExportError(quoted_line(str(error), 500)) from None
    yield "send them, for whoever may see the project, with:"
    yield f"  wandb sync {folder}/offline-run-*"


def to_trackio(
    runs: Sequence[Run], out: Path, project: str = "findit", pictures: int = 8
) -> Iterator[str]:
    """Log new runs in trackio's store in ``out``."""
    make_store(out, "trackio")
    yield from log_new(runs, _TrackioStore(_import_trackio(out), project), pictures)
    yield "show them with:"
    yield f"  TRACKIO_DIR={out.absolute()} trackio show --project {project}"


class _LocalStore(ABC):
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


class _WandbStore(_LocalStore):
    """Offline runs in a folder, each a folder whose name ends with its key."""

    def __init__(self, folder: Path, project: str) -> None:
        self._folder = folder
        self._project = project

    def has(self, key: str) -> bool:
        is_written = False
        for written in self._folder.glob(f"offline-run-*-{key}"):
            # Without its record, ``wandb sync`` has nothing to send.
            if any(record.stat().st_size for record in written.glob(f"run-*{key}.wandb")):
                is_written = True
            elif written.is_dir():
                shutil.rmtree(written)
            else:
                written.unlink()
        return is_written

    def remove_curve(self, curve: str) -> None:
        for older in self._folder.glob(f"offline-run-*-{curve}-*"):
            shutil.rmtree(older)

    @contextmanager
    def new_record(self, name: str, key: str, config: Mapping[str, str]) -> Iterator[Any]:
        import wandb

        # Written elsewhere first: runs in the folder are complete.
        with TemporaryDirectory(prefix=".", dir=self._folder) as temporary:
            # No name, hardware, code, output or packages of this machine.
            settings = wandb.Settings(
                mode="offline",
                root_dir=temporary,
                silent=True,
                console="off",
                host="",
                username="",
                disable_code=True,
                disable_git=True,
                x_disable_machine_info=True,
                x_disable_meta=True,
                x_disable_stats=True,
                x_save_requirements=False,
            )
            run = wandb.init(
                project=self._project, name=name, id=key, config=dict(config), settings=settings
            )
            yield run
            run.finish()
            (written,) = Path(temporary, "wandb").glob(f"offline-run-*-{key}")
            for unused in ("logs", "tmp"):
                shutil.rmtree(written / unused, ignore_errors=True)
            written.replace(self._folder / written.name)

    def image(self, picture: Any, caption: str) -> Any:
        import wandb

        return wandb.Image(picture, caption=caption)


class _TrackioStore(_LocalStore):
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
