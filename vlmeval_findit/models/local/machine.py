"""What fits this machine: device, dtype and attention, and batches as large as memory allows.

How many queries are answered at once is one number, which the user states or this module decides.
Queries of similar length share a batch, those over one image go next to each other. A batch that
runs out of memory is halved and tried again; a query fails only if it does not fit alone. torch is
imported only to ask for devices.
"""

from __future__ import annotations

import gc
import importlib.util
import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
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


# On a CPU more than eight gain nothing (prefill is bound by arithmetic).
_MOST_ON_A_CPU = 8
_MOST = 32

WINDOW = 4
"""Batches of which a model is handed the queries at a time, to sort them by length and size."""


def window_of(batch_size: int | None) -> int:
    """Return how many queries a model is handed at a time; ``batch_size``: as its user says."""
    return WINDOW * (batch_size or _MOST)


@dataclass(slots=True)
class BatchLimit:
    """Limits a batch to ``most`` queries and to the memory that sufficed so far.

    Memory follows the padded size (queries x longest), so a large query does not shrink later
    batches of small ones. Queries over one image share its pixels: so many of them (``sharing``)
    count as one, until memory runs out.
    """

    most: int
    padded: float = math.inf  # tokens
    sharing: int = 1

    def fitting(self, images: Sequence[object], longest: float) -> int:
        """Return how many of the next queries go together; at least one.

        Args:
            images: of each query.
            longest: the length of the longest.
        """
        shown = set()
        for count, image in enumerate(images, start=1):
            shown.add(image)
            size = max(len(shown), count / self.sharing)
            if size > self.most or size * longest > self.padded:
                return max(1, count - 1)
        return len(images)

    def did_not_fit(self, items: int, longest: float) -> None:
        self.sharing = 1
        self.padded = min(self.padded, items // 2 * longest)
        log.warning("FindIt: out of memory with %d at once, going on with %d", items, items // 2)


def limit_on(device: str, batch_size: int | None) -> BatchLimit:
    """Return the limit of batches on a device; ``batch_size``: as the user says."""
    if batch_size is not None:
        return BatchLimit(batch_size, _padded_on(device))
    most = _MOST_ON_A_CPU if device == "cpu" else _MOST
    return BatchLimit(most, _padded_on(device), sharing=4)


def _padded_on(device: str) -> float:
    # Running out of memory may kill the process on a CPU; a GPU reports it.
    return 16_384 if device == "cpu" else math.inf


class Asked(NamedTuple):
    """What is known of a query before it is read."""

    length: float  # expected, in tokens
    images: object  # equal for queries over the same images


def in_order(queries: Sequence[Asked]) -> list[int]:
    """Return the places of queries, the longest first; those over the same images stay together.

    The longest come first so that a batch that is too large is noticed at the start.
    """
    longest: dict[object, float] = {}
    first: dict[object, int] = {}
    for at, query in enumerate(queries):
        longest[query.images] = max(query.length, longest.get(query.images, 0))
        first.setdefault(query.images, at)
    places = range(len(queries))
    return sorted(places, key=lambda at: _rank(queries[at], longest, first))


def _rank(
    query: Asked, longest: Mapping[object, float], first: Mapping[object, int]
) -> tuple[float, int, float]:
    return -longest[query.images], first[query.images], -query.length


def next_batch(waiting: Sequence[int], queries: Sequence[Asked], limit: BatchLimit) -> list[int]:
    """Return the places of the queries that go together next, of those that wait in order."""
    ahead = [queries[at].images for at in waiting]
    count = limit.fitting(ahead, queries[waiting[0]].length)
    return list(waiting[:count])


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
    asked: Callable[[Item], Asked],
    limit: BatchLimit,
    answer: Callable[[Sequence[Item]], Sequence[Result]],
    give_up: Callable[[Item, str], Result],
) -> list[Result]:
    """Return the results of all items, in order, computed in batches of similar length.

    Args:
        asked: what is known of an item.
        limit: shrinks when memory runs out; belongs to the caller.
        answer: results of a batch, one per item.
        give_up: the result of an item that does not fit alone.
    """
    results: dict[int, Result] = {}
    queries = [asked(item) for item in items]
    waiting = in_order(queries)
    while waiting:
        batch = next_batch(waiting, queries, limit)
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
                limit.did_not_fit(len(batch), queries[batch[0]].length)
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
