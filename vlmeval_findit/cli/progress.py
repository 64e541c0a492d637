"""How a sweep goes: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from ..core.replies import recorded
from ..core.spelling import duration
from ..core.work import Answer
from ..engine.sink import Planned
from ..runs.cell_results import CellResult
from .options import is_quiet

_LINE_EVERY = 10.0
"""Seconds between lines where nobody sees a bar."""


@dataclass(slots=True)
class State:
    """What is counted: of the model at work; failures and tokens of the whole sweep."""

    model: str = ""
    cells: int = 0
    cells_done: int = 0
    calls: int = 0
    calls_done: int = 0
    before: int = 0
    failures: int = 0
    started: float = 0.0
    tokens: Counter[str] = field(default_factory=Counter)
    at_once: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def line(self, now: float) -> str:
        """The state in words."""
        made, seconds = self.calls_done - self.before, max(now - self.started, 1e-9)
        rate = made / seconds
        left = (self.calls - self.calls_done) / rate if made else None
        return (
            f"{self.model}  cells {self.cells_done}/{self.cells}  "
            f"calls {self.calls_done}/{self.calls}  {rate:.1f}/s  "
            f"left {duration(left)}  failed {self.failures}"
        )


def at_once_lines(at_once: Mapping[str, Mapping[str, int]]) -> list[str]:
    """By model, how many calls at once each server took, in words.

    >>> at_once_lines({"Qwen3-VL": {"http://a/v1": 12, "http://b/v1": 3}})
    ['Qwen3-VL: calls at once that were taken: http://a/v1 12, http://b/v1 3']
    """
    return [
        f"{model}: calls at once that were taken: "
        + ", ".join(f"{name} {count}" for name, count in servers.items())
        for model, servers in at_once.items()
    ]


def tokens_line(tokens: Mapping[str, int]) -> str:
    """What was sent and answered, in words; empty where no service said it.

    >>> tokens_line({"prompt": 9_000, "completion": 400, "cached": 7_200})
    'tokens: 9,000 in, of which 7,200 from a cache; 400 out'
    """
    if not tokens.get("prompt"):
        return ""
    parts = [(tokens.get("cached"), "from a cache"), (tokens.get("cache_write"), "put into one")]
    cached = " and ".join(f"{count:,} {what}" for count, what in parts if count)
    which = f", of which {cached}" if cached else ""
    out = tokens.get("completion", tokens.get("reply", 0))
    return f"tokens: {tokens['prompt']:,} in{which}; {out:,} out"


class SweepProgress:
    """Watches a sweep (:class:`..engine.answering.Watcher`) and shows it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = State()
        self._clock = clock
        self._shown = 0.0
        self._bar: Progress | None = None
        self._quiet = is_quiet()
        if sys.stderr.isatty() and not self._quiet:
            console = Console(stderr=True)
            self._bar = Progress(TextColumn(""), BarColumn(), _Words(self), console=console)

    def __enter__(self) -> SweepProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def planned(self, model: str, planned: Planned) -> None:
        now = self._clock()
        self.state = State(
            model=model,
            cells=planned.cells,
            calls=planned.calls,
            calls_done=planned.finished,
            before=planned.finished,
            failures=self.state.failures,
            started=now,
            tokens=self.state.tokens,
            at_once=self.state.at_once,
        )
        if self._bar is None:
            self._say(now)
        else:
            self._bar.add_task(model, total=planned.calls, completed=planned.finished)

    def answered(self, answers: Sequence[Answer]) -> None:
        self.state.calls_done += len(answers)
        self.state.failures += sum(answer.error is not None for answer in answers)
        for answer in answers:
            self.state.tokens.update(recorded(answer.extra).tokens)
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[-1], len(answers))
        elif self._clock() - self._shown >= _LINE_EVERY:
            self._say(self._clock())

    def scored(self, result: CellResult) -> None:
        self.state.cells_done += 1
        if self._bar is None and self.state.cells_done == self.state.cells:
            self._say(self._clock())

    def took(self, model: str, servers: Mapping[str, int]) -> None:
        if servers:
            self.state.at_once[model] = servers

    def _say(self, now: float) -> None:
        self._shown = now
        if not self._quiet:
            print(self.state.line(now), file=sys.stderr, flush=True)


class _Words(ProgressColumn):
    """The state in words beside the bar; of models that are done, only their name."""

    def __init__(self, progress: SweepProgress) -> None:
        super().__init__()
        self._progress = progress

    def render(self, task: Task) -> Text:
        state = self._progress.state
        if task.description != state.model:
            return Text(f"{task.description}  calls {task.completed:.0f}/{task.total:.0f}")
        return Text(state.line(self._progress._clock()))
