"""Scored runs in the local stores of Weights & Biases and of trackio: nothing leaves the machine.

The two have one interface: ``init(project, name, config)``, ``log``, ``finish``.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..runs.scored_run import Run
from .export_folder import make_store
from .trackers import KEY, TrackedRun, log_each


def to_wandb(
    runs: Sequence[Run], out: Path, project: str = "findit", pictures: int = 8
) -> Iterator[str]:
    """Write runs that are not there yet as offline runs, which ``wandb sync`` sends."""
    import wandb

    make_store(out, "wandb")
    there = out.absolute() / "wandb"
    there.mkdir(exist_ok=True)

    def log(one: TrackedRun) -> None:
        # Written elsewhere first: what lies in the folder is whole.
        with TemporaryDirectory(prefix=".", dir=there) as made:
            # Neither this machine's name and hardware, nor its code, output or packages.
            settings = wandb.Settings(
                mode="offline",
                root_dir=made,
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
                project=project, name=one.name, id=one.key, config=_config(one), settings=settings
            )
            run.log(_logged(one, wandb.Image))
            run.finish()
            (folder,) = Path(made, "wandb").glob(f"offline-run-*-{one.key}")
            for name in ("logs", "tmp"):
                shutil.rmtree(folder / name, ignore_errors=True)
            folder.replace(there / folder.name)

    yield from log_each(runs, pictures, lambda key: any(there.glob(f"offline-run-*-{key}")), log)
    yield "send them, for whoever may see the project, with:"
    yield f"  wandb sync {there}/offline-run-*"


def to_trackio(
    runs: Sequence[Run], out: Path, project: str = "findit", pictures: int = 8
) -> Iterator[str]:
    """Log runs that are not there yet in trackio's store in ``out``."""
    make_store(out, "trackio")
    trackio = _trackio(out)

    def known(key: str) -> bool:
        with suppress(ValueError):  # There is no such project yet
            return any((r.config or {}).get(KEY) == key for r in trackio.Api().runs(project))
        return False

    def log(one: TrackedRun) -> None:
        with redirect_stdout(StringIO()):
            run = trackio.init(
                project=project,
                name=one.name,
                config=_config(one),
                embed=False,
                auto_log_cpu=False,
                auto_log_gpu=False,
            )
            run.log(_logged(one, trackio.Image))
            trackio.finish()

    yield from log_each(runs, pictures, known, log)
    yield "look at them with:"
    yield f"  TRACKIO_DIR={out.absolute()} trackio show --project {project}"


def _trackio(out: Path) -> Any:
    """Import trackio for this folder: it looks for its folder once, when it is imported."""
    for name, module in list(sys.modules.items()):
        if module and name.partition(".")[0] == "trackio":
            del sys.modules[name]
    os.environ["TRACKIO_DIR"] = str(out.absolute())
    for remote in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        os.environ.pop(remote, None)
    import trackio

    return trackio


def _config(one: TrackedRun) -> dict[str, str]:
    return {KEY: one.key, **one.params}


def _logged(one: TrackedRun, image: Any) -> dict[str, Any]:
    """Return all of a run at once, so that it is there or not."""
    worst = {
        f"worst/{answer.place:02}": image(answer.picture, caption=answer.caption)
        for answer in one.worst
        if answer.picture
    }
    return {**one.metric_values, **worst}
