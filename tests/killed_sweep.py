"""A sweep in a process of its own that is slow enough to be killed in the middle.

``python killed_sweep.py KIND FOLDER URL``; the kinds are those of :data:`HOSTS`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_fakes import FakeHost, FakeModel, demo_sweep, go

from vlmeval_findit.engine.backend import LocalBackend, ThreadedBackend
from vlmeval_findit.engine.config import Inference
from vlmeval_findit.engine.servers import ServersHost
from vlmeval_findit.models.model_asker import ModelAsker

SECONDS = 0.01
"""Of a call."""


def _asker(*anything: Any) -> ModelAsker:
    return ModelAsker(FakeModel(lambda number, text: time.sleep(SECONDS)))


HOSTS: dict[str, Callable[[str], Any]] = {
    "local": lambda url: FakeHost(None, lambda _: LocalBackend(_asker)),
    "threads": lambda url: FakeHost(None, lambda _: ThreadedBackend(_asker, 3)),
    "http": lambda url: ServersHost([url], Inference(threads=3)),
}
"""By the kind of backend the host; the URL is of a server."""


if __name__ == "__main__":
    kind, folder, url = sys.argv[1:]
    go(demo_sweep(Path(folder)), HOSTS[kind](url))
