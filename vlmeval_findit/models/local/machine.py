"""What fits this machine: device, dtype and attention, and batches as large as memory allows.

Queries of similar length share a batch. A batch that runs out of memory is halved and tried again;
a query fails only if it does not fit alone. torch is imported only to ask for devices.
"""

from __future__ import annotations

import gc
import importlib.util
import logging
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ...core import error_line

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")


class Machine(NamedTuple):
    """What the machine has."""

    cuda_devices: int = 0
    cuda_bfloat16: bool = True
    mps: bool = False
    flash_attention: bool = False

    @property
    def best_device(self) -> str:
        if self.cuda_devices:
            return "cuda"
        return "mps" if self.mps else "cpu"


class DeviceChoice(NamedTuple):
    """What was chosen."""

    device: str
    dtype: str
    attention: str
    spread: bool = False  # layers over all CUDA devices

    def __str__(self) -> str:
        where = f"{self.device} (layers over all devices)" if self.spread else self.device
        return f"{where}, {self.dtype}, {self.attention} attention"


def this_machine() -> Machine:
    """Ask torch."""
    import torch

    cuda = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return Machine(
        cuda_devices=cuda,
        cuda_bfloat16=bool(cuda and torch.cuda.is_bf16_supported()),
        mps=torch.backends.mps.is_available(),
        flash_attention=importlib.util.find_spec("flash_attn") is not None,
    )


def choose_placement(
    machine: Machine,
    device: str | None = None,
    dtype: str | None = None,
    attention: str | None = None,
) -> DeviceChoice:
    """Return the placement for a machine; given values override.

    float32 on CPU, where it is fastest and some processors crash on bfloat16 products; bfloat16 on
    GPUs (float16 on old CUDA devices). ``sdpa``, unless flash-attention is installed, which needs
    CUDA and a half-width type. ValueError if the machine lacks the device.
    """
    device = device or machine.best_device
    kind, _, number = device.partition(":")
    count = {"cuda": machine.cuda_devices, "mps": int(machine.mps)}.get(kind, math.inf)
    if count <= int(number or 0):
        raise ValueError(
            f"device {device}: this machine has {count} {kind} devices; cpu always works"
        )
    half = "bfloat16" if machine.cuda_bfloat16 or kind != "cuda" else "float16"
    dtype = dtype or ("float32" if kind == "cpu" else half)
    flash = kind == "cuda" and machine.flash_attention and dtype != "float32"
    attention = attention or ("flash_attention_2" if flash else "sdpa")
    return DeviceChoice(device, dtype, attention, device == "cuda" and machine.cuda_devices > 1)


@dataclass(slots=True)
class BatchLimit:
    """Limits a batch to ``most`` items and to the memory that sufficed so far.

    Memory follows the padded size (items x longest), so a large query does not shrink later batches
    of small ones.
    """

    most: int
    padded: float = math.inf  # tokens

    def fitting(self, longest: float) -> int:
        """Return how many items of at most this length go together; at least one."""
        if not math.isfinite(self.padded) or longest <= 0:
            return self.most
        return max(1, min(self.most, int(self.padded // longest)))

    def did_not_fit(self, items: int, longest: float) -> None:
        self.padded = min(self.padded, items // 2 * longest)
        log.warning("FindIt: out of memory with %d at once, going on with %d", items, items // 2)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of torch (CUDA, MPS, CPU) or of Python means that memory ran out."""
    names = {each.__name__ for each in type(error).__mro__}
    if names & {"MemoryError", "OutOfMemoryError"}:
        return True
    words = str(error).lower()
    of_torch = "out of memory" in words or "can't allocate memory" in words
    return isinstance(error, RuntimeError) and of_torch


def in_batches(
    items: Sequence[Item],
    length: Callable[[Item], float],
    limit: BatchLimit,
    answer: Callable[[Sequence[Item]], Sequence[Result]],
    give_up: Callable[[Item, str], Result],
) -> list[Result]:
    """Return the results of all items, in order, computed in batches of similar length.

    Args:
        length: an item's expected length in tokens.
        limit: shrinks when memory runs out; belongs to the caller.
        answer: results of a batch, one per item.
        give_up: the result of an item that does not fit alone.
    """
    results: dict[int, Result] = {}
    lengths = [length(item) for item in items]
    # Longest first: a batch that is too large is noticed at the start.
    waiting = sorted(range(len(items)), key=lambda i: -lengths[i])
    while waiting:
        batch = waiting[: limit.fitting(lengths[waiting[0]])]
        answers: Sequence[Result] = ()
        why = ""
        try:
            answers = answer([items[i] for i in batch])
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            why = error_line(error)
        # Only now, as the error's traceback held tensors.
        if why:
            free_memory()
            if len(batch) > 1:
                limit.did_not_fit(len(batch), lengths[batch[0]])
                continue
            answers = [give_up(items[batch[0]], why)]
        results.update(zip(batch, answers, strict=True))
        waiting = waiting[len(batch) :]
    return [results[i] for i in range(len(items))]


def free_memory() -> None:
    """Release what a failed batch held."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
