"""What answers cost: seconds, tokens, US dollars, pixels; of a call, a query, and a run.

A cost that is measured anew is a field of :class:`CallTime`; what a run sums up of it are fields of
:class:`RunCosts`, and all that is shown of it is a row of :data:`COSTS`.

Details have the cost of each query, provenances that of the run, so that boards read no details.
Calls that failed are left out: they brought nothing that a score is of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from ..core import Finite, Text, Whole, YesNo, count_of, number_of, object_or_empty, objects_of

COST_KEY = "cost"  # The key of a query's details that has what :func:`cost_values` returns

STATED = "stated by the service"


@dataclass(frozen=True, slots=True)
class CallTime:
    """How long the attempt took that was answered; None: not known.

    >>> CallTime(seconds=0.5).as_values()
    {'seconds': 0.5}
    """

    seconds: Finite | None = None  # From request to reply; of messages answered together, a share
    gpu_seconds: Finite | None = None  # Of all its GPUs, where the model runs on this machine
    cpu_seconds: Finite | None = None  # Of all cores, where the model runs without a GPU
    at_once: Finite | None = None  # Calls in flight at its server meanwhile, itself included
    shared: YesNo = False  # Of an equal call, which was made for another row or dataset

    def as_values(self) -> dict[str, Any]:
        """Return what is known of it as plain values."""
        values = {name: getattr(self, name) for name in _TIMES}
        # A time of 0 is known; it equals False.
        return {name: it for name, it in values.items() if it is not None and it is not False}


_TIMES = tuple(each.name for each in fields(CallTime))  # Listed once: every call has them
_MEASURED = tuple(name for name in _TIMES if name != "shared")

NOT_TIMED = CallTime()  # Of calls whose time is not known


@dataclass(frozen=True, slots=True)
class QueryCost:
    """What the answer to a query cost; None: not known."""

    time: CallTime = NOT_TIMED
    tokens_in: int | None = None
    tokens_out: int | None = None  # Thoughts count
    usd: float | None = None  # Of all attempts
    usd_source: str = ""
    sizes: tuple[tuple[int, int], ...] = ()  # (w, h) of each image in pixels, as sent
    is_cached: bool = False  # The service read a part of the prompt from its cache
    is_retried: bool = False
    is_batched: bool = False  # By a batch service: at its price, and without a time
    is_guessed: bool = False  # An attempt counts with the most that it can have cost

    @property
    def pixels(self) -> int | None:
        """The pixels of all images as sent."""
        return sum(width * height for width, height in self.sizes) if self.sizes else None


def cost_values(call: Mapping[str, Any], time: CallTime) -> dict[str, Any]:
    """Return what a query's details say of its cost, besides tokens and images; perhaps nothing.

    ``call`` is what was recorded of the call.
    """
    values = time.as_values()
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
        time=_time_in(cost),
        tokens_in=count_of(tokens.get("prompt")),
        tokens_out=count_of(answered),
        usd=number_of(cost.get("usd")),
        usd_source=source if isinstance(source, str) else "",
        sizes=_sizes(details),
        is_cached=bool(count_of(tokens.get("cached"))),
        is_retried=(count_of(cost.get("attempts")) or 1) > 1,
        is_batched=cost.get("batched") is True,
        is_guessed=cost.get("guessed") is True,
    )


def _time_in(cost: Mapping[str, Any]) -> CallTime:
    measured = {name: number_of(cost.get(name)) for name in _MEASURED}
    return CallTime(**measured, shared=cost.get("shared") is True)


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


class Summary(NamedTuple):
    """A column of a cost: how a run sums it up, and where that stands."""

    key: str  # A field of :class:`RunCosts`
    column: str  # In files
    short_column: str  # In tables for people, which have 80 characters
    share: float | None = None  # A quantile; None: the mean


class Cost(NamedTuple):
    """All that is known of a cost of a query; tables, charts and comparisons ask it.

    ``of_query`` is a query's; ``known_key`` the field of :class:`RunCosts` with the number of
    answers that it is known of.
    """

    name: str
    words: str  # In sentences
    of_query: Callable[[QueryCost], float | None]
    known_key: str
    summaries: tuple[Summary, ...]  # The first is shown in charts
    mean: str = ""  # Its mean, where that has another unit; what a query's value is multiplied by
    scale: float = 1.0
    short_unit: float = 1.0  # The unit of short columns in that of the others
    axis: str = ""  # In charts; empty: none has it
    source: Callable[[RunCosts], str] = lambda costs: ""  # Who states it
    note: str = ""  # What the reader of a table may take for something else

    def of_run(self, costs: RunCosts, summary: Summary | None = None) -> float | None:
        """Return a run's value in the unit of its column; None: not known."""
        value: float | None = getattr(costs, (summary or self.summaries[0]).key)
        return value

    def known(self, costs: RunCosts) -> int:
        """Return the number of answers of a run that it is known of."""
        number: int = getattr(costs, self.known_key)
        return number

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
        lambda cost: cost.time.seconds,
        "seconds_known",
        (
            Summary("seconds_median", "seconds (median)", "s median", 0.5),
            Summary("seconds_p95", "seconds (p95)", "s p95", 0.95),
        ),
        axis="seconds a query (median)",
        note="seconds are of the attempt that was answered",
    ),
    Cost(
        "tokens in",
        "tokens in",
        lambda cost: cost.tokens_in,
        "tokens_in_known",
        (Summary("tokens_in", "tokens in", "tokens in"),),
    ),
    Cost(
        "tokens out",
        "tokens out",
        lambda cost: cost.tokens_out,
        "tokens_out_known",
        (Summary("tokens_out", "tokens out", "tokens out"),),
        axis="tokens out a query",
        note="tokens out have thoughts",
    ),
    Cost(
        "USD",
        "dollars",
        lambda cost: cost.usd,
        "usd_known",
        (Summary("usd_per_1000", "USD per 1000", "USD/1000"),),
        mean="USD per 1000",
        scale=1000.0,
        axis="dollars for 1,000 queries",
        source=lambda costs: costs.usd_source,
        note="USD/1000: for 1,000 queries, of all attempts of the command that got the answer",
    ),
    Cost(
        "GPU seconds",
        "GPU seconds",
        lambda cost: cost.time.gpu_seconds,
        "gpu_seconds_known",
        (Summary("gpu_seconds", "GPU seconds", "GPU s"),),
        axis="GPU seconds a query",
    ),
    Cost(
        "CPU seconds",
        "CPU seconds",
        lambda cost: cost.time.cpu_seconds,
        "cpu_seconds_known",
        (Summary("cpu_seconds", "CPU seconds", "CPU s"),),
        axis="CPU seconds a query",
    ),
    Cost(
        "pixels",
        "pixels",
        lambda cost: cost.pixels,
        "pixels_known",
        (Summary("pixels", "pixels", "Mpx"),),
        short_unit=1e6,
        axis="pixels sent a query",
        note="Mpx: megapixels sent",
    ),
)


class CostKind(NamedTuple):
    """Answers whose cost is of another kind, and how a note says it of a model."""

    key: str  # A field of :class:`RunCosts`, and its column
    words: str
    of_query: Callable[[QueryCost], bool]

    def number(self, costs: RunCosts) -> int:
        """Return how many answers of a run are of this kind."""
        number: int = getattr(costs, self.key)
        return number


# Notes and files count the answers of each kind
COST_KINDS = (
    CostKind("cached", "with a prompt partly from a cache", lambda cost: cost.is_cached),
    CostKind("retried", "after several attempts", lambda cost: cost.is_retried),
    CostKind("batched", "by a batch service", lambda cost: cost.is_batched),
    CostKind("shared", "from an equal call", lambda cost: cost.time.shared),
    CostKind("guessed", "with an attempt at its greatest price", lambda cost: cost.is_guessed),
)


def sum_up(costs: Sequence[QueryCost]) -> RunCosts:
    """Return what the answers of a run cost, given the cost of each.

    >>> first, second = CallTime(seconds=1.0), CallTime(seconds=3.0)
    >>> costs = sum_up([QueryCost(first, usd=0.002), QueryCost(second), QueryCost()])
    >>> costs.queries, costs.seconds_known, costs.seconds_median
    (3, 2, 2.0)
    >>> costs.usd_known, costs.usd_per_1000
    (1, 2.0)
    """
    values: dict[str, Any] = {"queries": len(costs)}
    for cost in COSTS:
        numbers = _known(map(cost.of_query, costs))
        values[cost.known_key] = len(numbers)
        for summary in cost.summaries:
            values[summary.key] = _summed_up(numbers, summary.share, cost.scale)
    for kind in COST_KINDS:
        values[kind.key] = sum(map(kind.of_query, costs))
    sources = dict.fromkeys(cost.usd_source for cost in costs if cost.usd is not None)
    return RunCosts(
        **values,
        calls_at_once=_mean(_known(cost.time.at_once for cost in costs)),
        usd_source=", ".join(filter(None, sources)),
        image_size=_commonest_size(costs),
    )


def mean_costs(runs: Sequence[RunCosts]) -> RunCosts:
    """Return the mean over runs of what a query costs, and the sums of their counts.

    >>> mean = mean_costs([RunCosts(queries=2, tokens_out=10.0), RunCosts(1, tokens_out=30.0)])
    >>> mean.queries, mean.tokens_out
    (3, 20.0)
    """
    means = [summary.key for cost in COSTS for summary in cost.summaries]
    counts = [*(cost.known_key for cost in COSTS), *(kind.key for kind in COST_KINDS)]
    values: dict[str, Any] = {}
    for key in (*means, "calls_at_once"):
        values[key] = _mean_of_all([getattr(each, key) for each in runs])
    for key in ("queries", *counts):
        values[key] = sum(getattr(each, key) for each in runs)
    sources = "" if values["usd_per_1000"] is None else _each_once(each.usd_source for each in runs)
    sizes = _each_once(each.image_size for each in runs)
    return RunCosts(**values, usd_source=sources, image_size=sizes)


def _mean_of_all(values: Sequence[float | None]) -> float | None:
    """Return the mean; None unless all values are known."""
    known = _known(values)
    return fmean(known) if known and len(known) == len(values) else None


def _each_once(lists: Iterable[str]) -> str:
    """Return what lists in words have, each once."""
    words = dict.fromkeys(word for words in lists for word in words.split(", "))
    return ", ".join(filter(None, words))


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _summed_up(values: Sequence[float], share: float | None, scale: float) -> float | None:
    """Return the mean in another unit, or a quantile; None of no values."""
    if not values:
        return None
    if share is None:
        return scale * float(np.mean(values))
    # Not by NumPy's function of that name, which imports masked arrays: 10 ms of every command.
    quantile = np.interp(share * (len(values) - 1), range(len(values)), sorted(values))
    return scale * float(quantile)


def _commonest_size(costs: Iterable[QueryCost]) -> str:
    """Return the commonest size of an image; of several the largest."""
    times = Counter(size for cost in costs for size in cost.sizes)
    if not times:
        return ""
    width, height = max(times, key=lambda size: (times[size], size[0] * size[1], size))
    return f"{width} x {height}"
