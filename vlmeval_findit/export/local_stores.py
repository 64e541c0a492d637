"""Scored runs in the local stores of Weights & Biases and of trackio: nothing leaves the machine.

Both have the same interface: ``init(project, name, config)``, ``log``, ``finish``.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..core.redaction import quoted
from ..scoring.scored_run import Run
from .export_folder import make_store
from .targets import ExportError, NotExportableError
from .trackers import CURVE, KEY, TrackedCurve, TrackedRun, log_new


def to_wandb(
    runs: Sequence[Run], out: Path, project: str = "findit", pictures: int = 8
) -> Iterator[str]:
    """Write new runs as offline runs, which ``wandb sync`` sends."""
    import wandb
    from wandb.errors import Error, UsageError

    try:
        wandb.Settings(project=project)
    except (UsageError, ValueError) as error:
        raise NotExportableError(f"--project {project}: {quoted(str(error), 300)}") from None
    make_store(out, "wandb")
    there = out.absolute() / "wandb"
    there.mkdir(exist_ok=True)

    @contextmanager
    def new_run(name: str, key: str, config: dict[str, str]) -> Iterator[Any]:
        # Written elsewhere first: runs in the folder are complete.
        with TemporaryDirectory(prefix=".", dir=there) as temporary:
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
            run = wandb.init(project=project, name=name, id=key, config=config, settings=settings)
            yield run
            run.finish()
            (folder,) = Path(temporary, "wandb").glob(f"offline-run-*-{key}")
            for unused in ("logs", "tmp"):
                shutil.rmtree(folder / unused, ignore_errors=True)
            folder.replace(there / folder.name)

    def known(key: str) -> bool:
        """Tell whether a run was written; remove what is left of a damaged one."""
        known = False
        for written in there.glob(f"offline-run-*-{key}"):
            # Without its record, ``wandb sync`` has nothing to send.
            if any(record.stat().st_size for record in written.glob(f"run-*{key}.wandb")):
                known = True
            elif written.is_dir():
                shutil.rmtree(written)
            else:
                written.unlink()
        return known

    def remove(curve: str) -> None:
        for older in there.glob(f"offline-run-*-{curve}-*"):
            shutil.rmtree(older)

    try:
        yield from log_new(runs, pictures, known, *_loggers(new_run, wandb.Image, remove))
    except Error as error:
        raise ExportError(quoted(str(error), 500)) from None
    yield "send them, for whoever may see the project, with:"
    yield f"  wandb sync {there}/offline-run-*"


def to_trackio(
    runs: Sequence[Run], out: Path, project: str = "findit", pictures: int = 8
) -> Iterator[str]:
    """Log new runs in trackio's store in ``out``."""
    make_store(out, "trackio")
    trackio = _trackio(out)

    def logged(tag: str, value: str) -> list[Any]:
        with suppress(ValueError):  # The project does not exist yet
            return [r for r in trackio.Api().runs(project) if (r.config or {}).get(tag) == value]
        return []

    @contextmanager
    def new_run(name: str, key: str, config: dict[str, str]) -> Iterator[Any]:
        quiet = {"embed": False, "auto_log_cpu": False, "auto_log_gpu": False}
        with redirect_stdout(StringIO()):
            yield trackio.init(project=project, name=name, config=config, **quiet)
            trackio.finish()

    def known(key: str) -> bool:
        return bool(logged(KEY, key))

    def remove(curve: str) -> None:
        for older in logged(CURVE, curve):
            older.delete()

    yield from log_new(runs, pictures, known, *_loggers(new_run, trackio.Image, remove))
    yield "show them with:"
    yield f"  TRACKIO_DIR={out.absolute()} trackio show --project {project}"


def _trackio(out: Path) -> Any:
    """Import trackio for this folder: it reads the variable once, when it is imported."""
    for name, module in list(sys.modules.items()):
        if module and name.partition(".")[0] == "trackio":
            del sys.modules[name]
    os.environ["TRACKIO_DIR"] = str(out.absolute())
    for remote in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        os.environ.pop(remote, None)
    import trackio

    return trackio


def _loggers(
    new_run: Callable[[str, str, dict[str, str]], AbstractContextManager[Any]],
    image: Any,
    remove: Callable[[str], None],
) -> tuple[Callable[[TrackedRun], None], Callable[[TrackedCurve], None]]:
    """Return what logs runs and curves; ``remove`` removes earlier records of a curve."""

    def log(tracked: TrackedRun) -> None:
        values = dict(tracked.metric_values)
        for answer in tracked.worst:
            if answer.picture:
                picture = image(answer.picture, caption=answer.caption)
                values[f"worst/{answer.place:02}"] = picture
        with new_run(tracked.name, tracked.key, {KEY: tracked.key, **tracked.params}) as run:
            run.log(values)

    def log_curve(curve: TrackedCurve) -> None:
        remove(curve.curve)
        tags = {KEY: curve.key, CURVE: curve.curve}
        with new_run(curve.name, f"{curve.curve}-{curve.key}", tags) as run:
            for step, values in curve.points:
                run.log(values, step=step)

    return log, log_curve
