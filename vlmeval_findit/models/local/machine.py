"""What fits this machine: device, dtype and attention, and batches as large as memory allows.

Queries of similar length share a batch. A batch that runs out of memory is halved and tried again;
a query fails only if it does not fit alone. torch is imported only to ask for devices.
"""

from __future__ import annotations

import gc
import importlib.util
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Machine:
    """What the machine has."""

    cuda_devices: int = 0
    cuda_bfloat16: bool = True
    mps: bool = False
    flash_attention: bool = False


@dataclass(frozen=True, slots=True)
class DeviceChoice:
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


def choose(
    machine: Machine,
    device: str | None = None,
    dtype: str | None = None,
    attention: str | None = None,
) -> DeviceChoice:
    """Return the placement for a machine; given values override.

    float32 on CPU, where it is fastest and some processors crash on bfloat16 products; bfloat16 on
    GPUs (float16 on old CUDA devices). ``sdpa``, unless flash-attention is installed, which needs
    CUDA and a half-width type.

    Raises:
        ValueError: the machine has no such device.
    """
    if device is None:
        device = "cuda" if machine.cuda_devices else "mps" if machine.mps else "cpu"
    kind, _, number = device.partition(":")
    count = {"cuda": machine.cuda_devices, "mps": int(machine.mps)}.get(kind, math.inf)
    if count <= int(number or 0):
        raise ValueError(f"device {device}: this machine has {count} of {kind}; cpu always works")
    if dtype is None:
        half = "bfloat16" if machine.cuda_bfloat16 or kind != "cuda" else "float16"
        dtype = "float32" if kind == "cpu" else half
    if attention is None:
        flash = kind == "cuda" and machine.flash_attention and dtype != "float32"
        attention = "flash_attention_2" if flash else "sdpa"
    chosen = DeviceChoice(device, dtype, attention)
    return replace(chosen, spread=device == "cuda" and machine.cuda_devices > 1)


def first_try(placement: DeviceChoice) -> tuple[int, float]:
    """Return the first batch's limits in queries and tokens; a GPU reports if it is too large.

    On a CPU more than eight gain nothing (prefill is bound by arithmetic), and running out of
    memory may kill the process without an error.
    """
    return (8, 16_384) if placement.device == "cpu" else (32, math.inf)


class BatchLimit:
    """Limits a batch to ``most`` items and to the memory that sufficed so far.

    Memory follows the padded size (items x longest), so a large query does not shrink later batches
    of small ones. ``padded`` is the initial limit in tokens.
    """

    def __init__(self, most: int, padded: float = math.inf) -> None:
        self.most = most
        self.padded = padded

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
    if isinstance(error, MemoryError):
        return True
    if any(cls.__name__ == "OutOfMemoryError" for cls in type(error).__mro__):
        return True
    words = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in words or "can't allocate memory" in words
    )


def in_batches(
    items: Sequence[Item],
    length: Callable[[Item], float],
    limit: BatchLimit,
    answer: Callable[[Sequence[Item]], Sequence[Result]],
    give_up: Callable[[Item, str], Result],
    free: Callable[[], object] = gc.collect,
) -> list[Result]:
    """Return the results of all items, in order, computed in batches of similar length.

    Args:
        length: an item's expected length in tokens.
        limit: shrinks when memory runs out; belongs to the caller.
        answer: results of a batch, one per item.
        give_up: the result of an item that does not fit alone.
        free: called after memory ran out.

    Raises:
        Exception: of ``answer``, except for running out of memory.
    """
    results: dict[int, Result] = {}
    lengths = [length(item) for item in items]
    # Longest first: a batch that is too large is noticed at the start.
    waiting = sorted(range(len(items)), key=lambda i: -lengths[i])
    while waiting:
        batch = waiting[: limit.fitting(lengths[waiting[0]])]
        answers, error = _try(answer, [items[i] for i in batch])
        if answers is not None:
            results.update(zip(batch, answers, strict=True))
        else:
            free()
            if len(batch) > 1:
                limit.did_not_fit(len(batch), lengths[batch[0]])
                continue
            results[batch[0]] = give_up(items[batch[0]], error)
        waiting = waiting[len(batch) :]
    return [results[i] for i in range(len(items))]


def _try(
    answer: Callable[[Sequence[Item]], Sequence[Result]], batch: Sequence[Item]
) -> tuple[Sequence[Result] | None, str]:
    """Return the results, or None and the reason: a traceback would keep tensors alive."""
    try:
        return answer(batch), ""
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None, f"{type(error).__name__}: {error}"
