"""VLMEvalKit's loop over datasets in two processes; the second fails in a dataset.

``torchrun --nproc-per-node 2 two_ranks.py FOLDER``.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import torch.distributed as dist
import vlmeval.dataset
import vlmeval.inference

from vlmeval_findit.engine import answering
from vlmeval_findit.host import register

DATASETS = ("FindIt_Demo_xyxy_json", "FindIt_Demo_xywh_json")


class Mine:
    """A custom model."""

    def generate(self, message: object, dataset: str) -> str:
        return "[]"


def fails(*anything: object) -> None:
    raise RuntimeError("this rank cannot go on")


def main(folder: Path) -> None:
    register()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=600))
    if dist.get_rank() == 1:
        answering.Plan = fails  # type: ignore[assignment,misc]
    for name in DATASETS:
        dist.barrier()
        try:
            dataset = vlmeval.dataset.build_dataset(name)
            vlmeval.inference.infer_data_job(Mine(), str(folder), "Mine", dataset)
            dist.barrier()
        except Exception as error:  # as the host does
            print(f"rank {dist.get_rank()}: {error}", flush=True)
            continue
        print(f"rank {dist.get_rank()}: {name} is through", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
