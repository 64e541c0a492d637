"""Several queries at once: similar lengths together, as many as memory holds.

The batch size is found by trying.  A batch that does not fit is cut in half and tried again, so
nothing is lost; a query fails only when it does not fit alone.  Needs no torch.
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
    """How much goes into one batch: at most ``most`` items, at most what memory held so far.

    Memory follows the padded size of a batch (items x the longest of them), so this is what is
    remembered: one large query that forces a small batch does not make those after it small.
    ``padded`` is what to begin with, in tokens.
    """

    def __init__(self, most: int, padded: float = math.inf) -> None:
        if most < 1:
            raise ValueError(f"a batch has at least one query, not {most}")
        self.most = most
        self.padded = padded

    def fitting(self, longest: float) -> int:
        """How many items of at most this length go together; at least one."""
        if not math.isfinite(self.padded) or longest <= 0:
            return self.most
        return max(1, min(self.most, int(self.padded // longest)))

    def did_not_fit(self, items: int, longest: float) -> None:
        """Remember a batch that ran out of memory."""
        self.padded = min(self.padded, items // 2 * longest)
        log.warning("FindIt: out of memory with %d at once, going on with %d", items, items // 2)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch (CUDA, MPS, CPU) or of Python means that memory ran out."""
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
    """The results of all items, in their order, worked out in batches of similar lengths.

    Args:
        items: what is to be answered.
        length: its expected length in tokens, for sorting and for what memory holds.
        limit: grows smaller where memory runs out, and is kept by the caller.
        answer: results of a batch, one an item.
        give_up: the result of an item that does not fit alone.
        free: called after memory ran out.

    Raises:
        Exception: whatever ``answer`` raises besides running out of memory.
    """
    results: dict[int, Result] = {}
    lengths = [length(item) for item in items]
    # The longest first: when a batch is too large this is known at the start, not at the end.
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
    """The results, or None and what went wrong.

    The error itself is not handed on: its traceback would keep the tensors of the batch alive.
    """
    try:
        return answer(batch), ""
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None, f"{type(error).__name__}: {error}"
