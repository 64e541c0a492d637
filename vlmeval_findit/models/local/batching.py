"""Batches of queries of similar length, as large as memory allows; needs no torch.

A batch that runs out of memory is halved and tried again; a query fails only if it does not fit
alone.
"""

from __future__ import annotations

import gc
import logging
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchLimit:
    """Limits a batch to ``most`` items and to the memory that sufficed so far.

    Memory follows the padded size (items x longest), so a large query does not shrink later batches
    of small ones. ``padded`` is the initial limit in tokens.
    """

    def __init__(self, most: int, padded: float = math.inf) -> None:
        if most < 1:
            raise ValueError(f"a batch has at least one query, not {most}")
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
        limit: shrinks when memory runs out; kept by the caller.
        answer: results of a batch, one per item.
        give_up: the result of an item that does not fit alone.
        free: called after memory ran out.

    Raises:
        Exception: of ``answer``, except for running out of memory.
    """
    results: dict[int, Result] = {}
    lengths = [length(item) for item in items]
    # Longest first: a batch that is too large is found at the start.
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
