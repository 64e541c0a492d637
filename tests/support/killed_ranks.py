"""VLMEvalKit's loop over datasets in several processes, of which one may be killed, late or hang.

``torchrun --nproc-per-node 2 killed_ranks.py FOLDER``. A process is meant by its rank:

* ``FAKE_KILLED=RANK:CALLS``: it is killed before it answers its next call (``FAKE_SIGNAL``: by
  another signal than KILL), unless torchrun started it again.
* ``FAKE_KILLED_WRITING=RANK:0``: it is killed before the predictions are written; 1: afterwards.
* ``FAKE_LATE=RANK:SECONDS``: it starts late.
* ``FAKE_HANGS=RANK:CALLS``: it never answers its next call.

``FAKE_PAUSE`` are seconds of each call, ``FAKE_PATIENCE`` those after which processes that wait for
others give up, and with ``FAKE_BACKWARDS`` the datasets come in the other order.
"""

from __future__ import annotations

import datetime
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.distributed as dist
import vlmeval.dataset
import vlmeval.inference

from vlmeval_findit.host import inference, register

DATASETS = ("FindIt_Demo_xyxy_json", "FindIt_Demo_xywh_json")


def of_this_rank(variable: str) -> int | None:
    """Return the number that a variable has for this process."""
    rank, is_pair, number = os.environ.get(variable, "").partition(":")
    return int(number) if is_pair and rank == os.environ["RANK"] else None


def end() -> None:
    """Kill this process, but for one that torchrun started again."""
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        os.kill(os.getpid(), signal.Signals[f"SIG{os.environ.get('FAKE_SIGNAL', 'KILL')}"])


class Mine:
    """A custom model, which notes what it is asked."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes
        self._calls = 0
        self._pause = float(os.environ.get("FAKE_PAUSE", "0"))

    def generate(self, message: object, dataset: str) -> str:
        with self._notes.open("a") as f:
            f.write(f"{dataset} {message}\n")
        if self._calls == of_this_rank("FAKE_KILLED"):
            end()
        if self._calls == of_this_rank("FAKE_HANGS"):
            signal.pause()
        self._calls += 1
        time.sleep(self._pause)
        return "[]"


def killed_writing(write: Callable[..., Any], afterwards: bool) -> Callable[..., Any]:
    """Return what writes predictions, and kills this process before it does or afterwards."""

    def write_rows(*arguments: Any) -> None:
        if not afterwards:
            end()
        write(*arguments)
        end()

    return write_rows


def main(folder: Path) -> None:
    time.sleep(of_this_rank("FAKE_LATE") or 0)
    register()
    patience = datetime.timedelta(seconds=float(os.environ.get("FAKE_PATIENCE", "600")))
    dist.init_process_group("gloo", timeout=patience)
    writing = of_this_rank("FAKE_KILLED_WRITING")
    if writing is not None:
        inference.write_rows = killed_writing(inference.write_rows, bool(writing))
    model = Mine(folder / f"asked.{dist.get_rank()}")
    names = DATASETS[::-1] if "FAKE_BACKWARDS" in os.environ else DATASETS
    for name in names:
        dist.barrier()
        dataset = vlmeval.dataset.build_dataset(name)
        vlmeval.inference.infer_data_job(model, str(folder), "Mine", dataset)
        dist.barrier()
        print(f"rank {dist.get_rank()}: {name} is through", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
