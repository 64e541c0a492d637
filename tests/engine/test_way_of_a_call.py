"""How many files of engine and models a call over HTTP visits, from the plan to the journal."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from chat_server import ChatServer, completion, in_turn
from engine_fakes import Silent, demo_sweep, deployments, servers
from paths import ROOT

from vlmeval_findit.engine import CancelToken, Journal, plan
from vlmeval_findit.sweeps import run_sweep

SWEEP = """
models: Qwen3-VL
datasets: [Demo]
representations: [xyxy]
"""

# The item whose way is followed: servers are known by then, and its variant was asked before.
ITEM = 24

PACKAGE = f"{ROOT / 'vlmeval_findit'}{os.sep}"


class Way:
    """Profiles a run, and notes the files in which functions are called for one item."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._items = 0
        self._keys: set[str] = set()  # of calls that are on their way

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if event == "return" and code is plan.single_calls.__code__ and value is not None:
            self._items += 1
            if self._items == ITEM:
                self._keys = {call.key for call in value.calls}
        if self._keys and event == "call" and code.co_filename.startswith(PACKAGE):
            self.files.add(code.co_filename.removeprefix(PACKAGE))
        if self._keys and event == "return" and code is Journal.append.__code__:
            self._keys -= {record["key"] for record in frame.f_locals["new"]}


def test_a_call_visits_few_files(tmp_path: Path) -> None:
    way = Way()
    with ChatServer(in_turn(completion("[1, 2, 3, 4]"))) as server:
        sweep = demo_sweep(tmp_path, SWEEP)
        asked = deployments(sweep, servers(server.url, threads=1))
        before = sys.getprofile()
        threading.setprofile(way)
        sys.setprofile(way)
        try:
            run_sweep(sweep, asked, Silent(), CancelToken())
        finally:
            sys.setprofile(before)
            threading.setprofile(None)
    visited = {name for name in way.files if name.startswith(("engine/", "models/"))}
    assert "models/http/asked_server.py" in visited
    assert len(visited) <= 23, " ".join(sorted(visited))
