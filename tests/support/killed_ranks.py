"""VLMEvalKit's loop over datasets in two processes, of which one may be killed or late.

``torchrun --nproc-per-node 2 killed_ranks.py FOLDER``; ``FAKE_KILLED=RANK:CALLS`` kills a process
before it answers, ``FAKE_LATE=RANK:SECONDS`` lets it start late.
"""

from __future__ import annotations

import datetime
import os
import signal
import sys
import time
from pathlib import Path

import torch.distributed as dist
import vlmeval.dataset
import vlmeval.inference

from vlmeval_findit.host import register

DATASETS = ("FindIt_Demo_xyxy_json", "FindIt_Demo_xywh_json")


def of_this_rank(variable: str) -> int | None:
    """Return the number that a variable has for this process."""
    rank, is_pair, number = os.environ.get(variable, "").partition(":")
    return int(number) if is_pair and rank == os.environ["RANK"] else None


class Mine:
    """A custom model, which notes what it is asked."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes
        self._left = of_this_rank("FAKE_KILLED")

    def generate(self, message: object, dataset: str) -> str:
        with self._notes.open("a") as f:
            f.write(f"{dataset} {message}\n")
        if self._left is not None:
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1
        return "[]"


def main(folder: Path) -> None:
    time.sleep(of_this_rank("FAKE_LATE") or 0)
    register()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=600))
    model = Mine(folder / f"asked.{dist.get_rank()}")
    for name in DATASETS:
        dist.barrier()
        dataset = vlmeval.dataset.build_dataset(name)
        vlmeval.inference.infer_data_job(model, str(folder), "Mine", dataset)
        dist.barrier()
        print(f"rank {dist.get_rank()}: {name} is through", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
