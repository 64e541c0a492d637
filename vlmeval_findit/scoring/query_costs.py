"""What answers cost: seconds, tokens, US dollars, pixels; of a query, and of a run.

Details have the cost of each query, provenances that of the run, so that boards read no details.
Calls that failed are left out: they brought nothing that a score is of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core import Finite, Text, Whole, count_of, number_of, object_or_empty, objects_of
from ..protocol import Reply

COST_KEY = "cost"  # The key of a query's details that has what :func:`cost_values` returns

STATED = "stated by the service"


@dataclass(frozen=True, slots=True)
class QueryCost:
    """What the answer to a query cost; None: not known."""

    seconds: float | None = None  # Of the attempt that was answered; its share of a batch
    at_once: float | None = None  # Calls in flight at its server meanwhile, itself included
    gpu_seconds: float | None = None
    cpu_seconds: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None  # Thoughts count
    usd: float | None = None  # Of all attempts
    usd_source: str = ""
    sizes: tuple[tuple[int, int], ...] = ()  # (w, h) of each image in pixels, as sent
    is_cached: bool = False  # The service read a part of the prompt from its cache
    is_retried: bool = False
    is_batched: bool = False  # By a batch service: at its price, and without a time
    is_shared: bool = False  # Of an equal call, which was made for another row or dataset
    is_guessed: bool = False  # An attempt counts with the most that it can have cost

    @property
    def pixels(self) -> int | None:
        """The pixels of all images as sent."""
        return sum(width * height for width, height in self.sizes) if self.sizes else None


def cost_values(reply: Reply) -> dict[str, Any]:
    """Return what a query's details say of its cost, besides tokens and images; perhaps nothing."""
    call = reply.recorded.call
    values = reply.time.as_values()
    usd = number_of(call.get("cost"))
    if usd is not None:
        values |= {"usd": usd, "usd_source": _source(call)}
    attempts = count_of(call.get("attempts")) or 1
    if attempts > 1:
        values["attempts"] = attempts
    if call.get("batch"):
        values["batched"] = True
    if call.get("cost_guessed"):
        values["guessed"] = True
    return values


def _source(call: Mapping[str, Any]) -> str:
    prices = call.get("cost_from")
    if not isinstance(prices, str):
        return STATED
    return f"half of {prices}" if call.get("batch") else prices


def cost_in(details: Mapping[str, Any]) -> QueryCost:
    """Return the cost of a query, given its details; those of earlier versions have less."""
    cost = object_or_empty(details.get(COST_KEY))
    tokens = object_or_empty(details.get("tokens"))
    if tokens.get("prompt") == 0:  # Of a server that does not count: earlier versions kept it
        tokens = {}
    source = cost.get("usd_source")
    answered = tokens.get("completion", tokens.get("reply"))
    return QueryCost(
        seconds=number_of(cost.get("seconds")),
        at_once=number_of(cost.get("at_once")),
        gpu_seconds=number_of(cost.get("gpu_seconds")),
        cpu_seconds=number_of(cost.get("cpu_seconds")),
        tokens_in=count_of(tokens.get("prompt")),
        tokens_out=count_of(answered),
        usd=number_of(cost.get("usd")),
        usd_source=source if isinstance(source, str) else "",
        sizes=_sizes(details),
        is_cached=bool(count_of(tokens.get("cached"))),
        is_retried=(count_of(cost.get("attempts")) or 1) > 1,
        is_batched=cost.get("batched") is True,
        is_shared=cost.get("shared") is True,
        is_guessed=cost.get("guessed") is True,
    )


def _sizes(details: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """Return the sizes of the images as sent; none unless all are known."""
    images = objects_of(details.get("images"))
    sizes = []
    for image in images:
        size = image.get("sent")
        if not isinstance(size, list | tuple) or len(size) != 2 or None in map(count_of, size):
            return ()
        sizes.append((size[0], size[1]))
    return tuple(sizes)


# --- of a run -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunCosts:
    """What the answers of a run cost; None: not known.

    Each value is over those answers of which it is known, as many as its field ``…_known`` says.
    """

    queries: Whole = 0  # That were answered
    seconds_known: Whole = 0
    seconds_median: Finite | None = None
    seconds_p95: Finite | None = None
    calls_at_once: Finite | None = None  # Mean over the timed calls to servers
    tokens_in_known: Whole = 0
    tokens_in: Finite | None = None  # Mean a query
    tokens_out_known: Whole = 0
    tokens_out: Finite | None = None
    usd_known: Whole = 0
    usd_per_1000: Finite | None = None
    usd_source: Text = ""
    gpu_seconds_known: Whole = 0
    gpu_seconds: Finite | None = None  # Mean a query, where the model runs here
    cpu_seconds_known: Whole = 0
    cpu_seconds: Finite | None = None
    pixels_known: Whole = 0
    pixels: Finite | None = None  # Mean of all that is sent with a query
    image_size: Text = ""  # The commonest, as ``640 x 480``
    cached: Whole = 0  # A part of the prompt came from the service's cache
    retried: Whole = 0
    batched: Whole = 0  # By a batch service
    shared: Whole = 0  # An equal call of another row or dataset brought the answer
    guessed: Whole = 0  # An attempt counts with the most that it can have cost


class Cost(NamedTuple):
    """A cost of a query: what tables and charts call it, and where its values are.

    ``of_query`` is a query's, ``of_run`` a run's in the unit of ``column``; ``known`` is the number
    of answers of a run that it is known of.
    """

    name: str
    words: str  # In sentences
    column: str  # In files
    short_column: str  # In tables for people, which have 80 characters
    of_query: Callable[[QueryCost], float | None]
    of_run: Callable[[RunCosts], float | None]
    known: Callable[[RunCosts], int]
    mean: str = ""  # Its mean, where that has another unit; what a query's value is multiplied by
    scale: float = 1.0
    axis: str = ""  # In charts; empty: none has it
    source: Callable[[RunCosts], str] = lambda costs: ""  # Who states it
    note: str = ""  # What the reader of a table may take for something else
    short_value: Callable[[float], float] = lambda value: value  # In the unit of the short column

    def of_all(self, costs: RunCosts) -> float | None:
        """Return a run's value if it is known of every answer.

        Only such values are compared: means over different queries differ by the queries, too.
        """
        return self.of_run(costs) if self.known(costs) == costs.queries else None


# Tables, notes, charts and comparisons of runs have each of them, in this order.
COSTS = (
    Cost(
        "seconds",
        "seconds",
        "seconds (median)",
        "s median",
        lambda cost: cost.seconds,
        lambda costs: costs.seconds_median,
        lambda costs: costs.seconds_known,
        axis="seconds a query (median)",
        note="seconds are of the attempt that was answered",
    ),
    Cost(
        "tokens in",
        "tokens in",
        "tokens in",
        "tokens in",
        lambda cost: cost.tokens_in,
        lambda costs: costs.tokens_in,
        lambda costs: costs.tokens_in_known,
    ),
    Cost(
        "tokens out",
        "tokens out",
        "tokens out",
        "tokens out",
        lambda cost: cost.tokens_out,
        lambda costs: costs.tokens_out,
        lambda costs: costs.tokens_out_known,
        axis="tokens out a query",
        note="tokens out have thoughts",
    ),
    Cost(
        "USD",
        "dollars",
        "USD per 1000",
        "USD/1000",
        lambda cost: cost.usd,
        lambda costs: costs.usd_per_1000,
        lambda costs: costs.usd_known,
        mean="USD per 1000",
        scale=1000.0,
        axis="dollars for 1,000 queries",
        source=lambda costs: costs.usd_source,
        note="USD/1000: for 1,000 queries, of all attempts of the command that got the answer",
    ),
    Cost(
        "GPU seconds",
        "GPU seconds",
        "GPU seconds",
        "GPU s",
        lambda cost: cost.gpu_seconds,
        lambda costs: costs.gpu_seconds,
        lambda costs: costs.gpu_seconds_known,
        axis="GPU seconds a query",
    ),
    Cost(
        "CPU seconds",
        "CPU seconds",
        "CPU seconds",
        "CPU s",
        lambda cost: cost.cpu_seconds,
        lambda costs: costs.cpu_seconds,
        lambda costs: costs.cpu_seconds_known,
        axis="CPU seconds a query",
    ),
    Cost(
        "pixels",
        "pixels",
        "pixels",
        "Mpx",
        lambda cost: cost.pixels,
        lambda costs: costs.pixels,
        lambda costs: costs.pixels_known,
        axis="pixels sent a query",
        note="Mpx: megapixels sent",
        short_value=lambda pixels: pixels / 1e6,
    ),
)


def sum_up(costs: Sequence[QueryCost]) -> RunCosts:
    """Return what the answers of a run cost, given the cost of each.

    >>> costs = sum_up([QueryCost(seconds=1.0, usd=0.002), QueryCost(seconds=3.0), QueryCost()])
    >>> costs.queries, costs.seconds_known, costs.seconds_median
    (3, 2, 2.0)
    >>> costs.usd_known, costs.usd_per_1000
    (1, 2.0)
    """
    seconds = _known(cost.seconds for cost in costs)
    dollars = _known(cost.usd for cost in costs)
    tokens_in = _known(cost.tokens_in for cost in costs)
    tokens_out = _known(cost.tokens_out for cost in costs)
    gpu_seconds = _known(cost.gpu_seconds for cost in costs)
    cpu_seconds = _known(cost.cpu_seconds for cost in costs)
    sources = dict.fromkeys(cost.usd_source for cost in costs if cost.usd is not None)
    pixels = _known(cost.pixels for cost in costs)
    usd = _mean(dollars)
    return RunCosts(
        queries=len(costs),
        seconds_known=len(seconds),
        seconds_median=_quantile(seconds, 0.5),
        seconds_p95=_quantile(seconds, 0.95),
        calls_at_once=_mean(_known(cost.at_once for cost in costs)),
        tokens_in_known=len(tokens_in),
        tokens_in=_mean(tokens_in),
        tokens_out_known=len(tokens_out),
        tokens_out=_mean(tokens_out),
        usd_known=len(dollars),
        usd_per_1000=None if usd is None else 1000 * usd,
        usd_source=", ".join(filter(None, sources)),
        gpu_seconds_known=len(gpu_seconds),
        gpu_seconds=_mean(gpu_seconds),
        cpu_seconds_known=len(cpu_seconds),
        cpu_seconds=_mean(cpu_seconds),
        pixels_known=len(pixels),
        pixels=_mean(pixels),
        image_size=_commonest_size(costs),
        cached=sum(cost.is_cached for cost in costs),
        retried=sum(cost.is_retried for cost in costs),
        batched=sum(cost.is_batched for cost in costs),
        shared=sum(cost.is_shared for cost in costs),
        guessed=sum(cost.is_guessed for cost in costs),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _quantile(values: Sequence[float], share: float) -> float | None:
    if not values:
        return None
    # Not by NumPy's function of that name, which imports masked arrays: 10 ms of every command.
    return float(np.interp(share * (len(values) - 1), range(len(values)), sorted(values)))


def _commonest_size(costs: Iterable[QueryCost]) -> str:
    """Return the commonest size of an image; of several the largest."""
    times = Counter(size for cost in costs for size in cost.sizes)
    if not times:
        return ""
    width, height = max(times, key=lambda size: (times[size], size[0] * size[1], size))
    return f"{width} x {height}"
