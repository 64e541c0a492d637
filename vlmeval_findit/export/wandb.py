"""Scored runs as offline runs of Weights & Biases."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..core import quoted_line
from ..scoring import Run
from .export_folder import make_store
from .local_store import LocalStore
from .targets import ExportError, NotExportableError
from .trackers import log_new

_HEADER = 7  # bytes of a record without entries
_WRITES = 60.0  # seconds


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


class _WandbStore(LocalStore):
    """Offline runs in a folder, each a folder whose name ends with its key."""

    def __init__(self, folder: Path, project: str) -> None:
        self._folder = folder
        self._project = project

    def has(self, key: str) -> bool:
        is_written = False
        for written in self._folder.glob(f"offline-run-*-{key}"):
            # Without its record, ``wandb sync`` has nothing to send.
            if any(map(_has_entries, written.glob(f"run-*{key}.wandb"))):
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
            _wait_for_entries(written, name)
            for unused in ("logs", "tmp"):
                shutil.rmtree(written / unused, ignore_errors=True)
            written.replace(self._folder / written.name)

    def image(self, picture: Any, caption: str) -> Any:
        import wandb

        return wandb.Image(picture, caption=caption)


def _has_entries(record: Path) -> bool:
    return record.stat().st_size > _HEADER


def _wait_for_entries(written: Path, name: str) -> None:
    """Wait for wandb's own process, which may write a run's record after the run is finished.

    Raises ExportError.
    """
    end = time.monotonic() + _WRITES
    while not any(map(_has_entries, written.glob("run-*.wandb"))):
        if time.monotonic() > end:
            raise ExportError(f"{name}: wandb wrote nothing within {_WRITES:g} seconds")
        time.sleep(0.05)
