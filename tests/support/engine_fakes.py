"""Models in this process and sweeps over the demonstration, for the tests of the engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vlmeval_findit.engine import (
    Asking,
    AtServer,
    Backend,
    CallOptions,
    CancelToken,
    Deployment,
    JournalView,
    LocalBackend,
    PlannedCalls,
    ThreadedBackend,
)
from vlmeval_findit.models import GenerateClient, ModelEntry
from vlmeval_findit.protocol import (
    Answering,
    CallResult,
    DatasetVariant,
    Described,
    ModelClient,
)
from vlmeval_findit.scoring import CellResult, read_sums
from vlmeval_findit.storage import run_of
from vlmeval_findit.sweeps import Sweep, parse_sweep, run_sweep

Message = list[dict[str, str]]


class Killed(BaseException):
    """Stands for kill -9 in a test that has only this process."""


def dying_at(number: int) -> Callable[[int, str], None]:
    """Return an ``on_call`` that dies at a call, and at every later one."""

    def die(call: int, text: str) -> None:
        if call >= number:
            raise Killed

    return die


class FakeModel:
    """Answers with a box; counts its calls.

    ``on_call`` is called with the number of the call (from 1) and its text before it is answered,
    and may raise.
    """

    def __init__(self, on_call: Callable[[int, str], None] | None = None) -> None:
        self.calls = 0
        self._on_call = on_call

    def generate(self, message: Message, dataset: str) -> Any:
        self.calls += 1
        if self._on_call is not None:
            self._on_call(self.calls, message[-1]["value"])
        return reply_to(message, dataset)


def reply_to(message: Message, dataset: str) -> str:
    """Return the same words to the same message."""
    size = 100 + len(message[-1]["value"]) % 800
    return f"object: [10, 20, {size}, 900] \ud83d" if "text" in dataset else f"[1, {size}]"


class FakeDeployment(Deployment):
    """A model object that answers for every model of a sweep, whatever its name."""

    called = "a fake"

    def __init__(self, model: Any, backend: Callable[[Any], Any] | None = None) -> None:
        super().__init__(ModelEntry("Nobody"))
        self.__dict__["model"] = model
        self.__dict__["make"] = backend or _local

    def of(self, entry: ModelEntry) -> FakeDeployment:
        """Return it for a model of a sweep."""
        made = copy(self)
        made.__dict__["entry"] = entry
        return made

    def check(self) -> None:
        pass

    def describe(self, variant: DatasetVariant) -> Described:
        return Described(Answering("FakeModel", settings=dict(self.entry.settings)), None)

    @property
    def version(self) -> Mapping[str, str]:
        return {"a host": "1"}

    def backend(self) -> Backend:
        return self.make(self.model)


def _local(model: Any) -> Backend:
    return of_client(GenerateClient(model))


def of_client(client: ModelClient) -> Backend:
    """Return the backend of a client in this process."""
    return LocalBackend(lambda: client)


@dataclass(frozen=True)
class Servers:
    """Servers that answer for every model of a sweep."""

    url: str
    asking: Asking = field(default_factory=Asking)

    def of(self, entry: ModelEntry) -> Deployment:
        """Return them for a model of a sweep."""
        return AtServer(replace(entry, base_url=self.url), self.asking)


def servers(url: str, **calls: Any) -> Servers:
    """Return servers that are asked with options of calls."""
    return Servers(url, Asking(calls=CallOptions(**calls)))


def deployments(sweep: Sweep, host: Any) -> list[Deployment]:
    """Return the same host for all models of a sweep."""
    return [host.of(entry) for entry in sweep.models]


def threaded(threads: int) -> Callable[[Any], ThreadedBackend]:
    """Return a backend of a model object that so many threads ask at a time."""
    return lambda model: ThreadedBackend(lambda: GenerateClient(model), threads)


class Silent:
    """Watches and prints nothing."""

    def __init__(self) -> None:
        self.finished: list[int] = []
        self.answers: list[CallResult] = []

    def planned(self, model: str, planned: PlannedCalls) -> None:
        self.finished.append(planned.finished)

    def answered(self, answers: Sequence[CallResult]) -> None:
        self.answers += answers

    def scored(self, result: CellResult) -> None:
        pass

    def stopped(self, why: str) -> None:
        pass


CONFIG = """
models: FullImage
datasets: [Demo, Demo_multilabel]
representations: [xyxy, cxcywh]
"""


CALLS = 4 * (19 + 6)
"""Of that sweep: formats by rows."""


def demo_sweep(folder: Path, text: str = CONFIG, **fields: Any) -> Sweep:
    """Return a sweep over the demonstration whose files lie in a folder."""
    sweep = replace(parse_sweep(text), work_dir=folder / "out", journal=folder / "calls.jsonl")
    return replace(sweep, **fields)


def go(
    sweep: Sweep,
    host: Any,
    stop: CancelToken | None = None,
    watcher: Silent | None = None,
) -> list[CellResult]:
    """Run a sweep in this process."""
    return run_sweep(sweep, deployments(sweep, host), watcher or Silent(), stop or CancelToken())


def files(work_dir: Path) -> dict[str, str]:
    """Return the content of all result files, without the times that are in them.

    What answers took is a time, too, and the seal of a score hashes all of them.
    """
    contents = {}
    for path in sorted(work_dir.rglob("*")):
        if path.is_dir() or path.name == ".sweep.lock":
            continue
        if path.name.endswith("_sums.msgpack"):
            sums = read_sums(run_of(path))
            assert sums is not None
            contents[str(path.relative_to(work_dir))] = f"{[*sums.rows]} {sums.shown}"
            continue
        text = path.read_text(encoding="utf-8")
        if path.name.endswith("_provenance.json"):
            # Who answered is part of it, and another host of the same model is somebody else.
            values = json.loads(text)
            values["costs"] = {}
            values["predictions"].pop("sha256")
            values.pop("seal", None)
            text = json.dumps(values)
        text = re.sub(r',\s*"call_time": "(?:[^"\\]|\\.)*"', "", text)
        if path.name.endswith("_details.jsonl"):
            text = re.sub(r', "cost": \{[^}]*\}', "", text)
        if path.name.endswith(("_provenance.json", "_identity.json")):
            text = re.sub(r',?\s*"(scored|asked)_at": "[^"]*"', "", text)
        contents[str(path.relative_to(work_dir))] = text
    return contents


def records(journal: Path) -> Iterator[dict[str, Any]]:
    """Yield what a journal has, in its order."""
    with JournalView(journal) as view:
        yield from view.records()


def answered_keys(journal: Path) -> list[str]:
    """Return the keys of all answers in a journal, in its order."""
    return [record["key"] for record in records(journal) if not record["error"]]


def assert_answered_once(journal: Path, calls: int) -> None:
    """Check that a journal has one answer to each of so many calls."""
    keys = answered_keys(journal)
    assert len(keys) == len(set(keys)) == calls
