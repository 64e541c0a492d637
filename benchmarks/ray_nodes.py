"""Let machines of a Ray cluster come and go, one by one, in a sweep, and check what is left.

``python ray_nodes.py FOLDER`` starts raylets on this machine, of which the head runs no replica.
In each variant a sweep of 100 calls asks replicas of a small model, while machines are killed,
leave, and join, each after so many calls.  Then each call has one answer, all files are those of a
run without Ray, and no more was asked twice than was in flight where a machine ended.  A sweep
that ends with an error is continued by the same command once there is a machine.

Prints a line of JSON for each variant.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
SUPPORT = ROOT / "tests" / "support"
sys.path[:0] = [str(ROOT), str(SUPPORT)]

import ray  # noqa: E402
from engine_fakes import (  # noqa: E402
    FakeDeployment,
    FakeModel,
    Silent,
    assert_answered_once,
    demo_sweep,
    files,
    go,
)
from waits import until  # noqa: E402

from vlmeval_findit.engine import (  # noqa: E402
    LOOPBACK,
    CallOptions,
    CancelToken,
    RayBackend,
    ray_backend,
    ray_cluster,
)
from vlmeval_findit.models import GenerateClient  # noqa: E402

CALLS = 100
IN_FLIGHT = 16  # of a machine

# Seconds in place of 15 minutes, and where a machine joins: its start may take long
COMES_BACK = 15.0
JOINS = 150.0
RESTARTS = 3  # of a replica, in place of 20

MACHINE: Mapping[str, Any] = {
    "include_dashboard": False,
    "node_ip_address": "127.0.0.1",
    "object_store_memory": 100 << 20,
}

KINDS: Mapping[str, Mapping[str, Any]] = {
    "machine": {"num_cpus": 1},
    "pair": {"num_cpus": 2},
    "without-cpu": {"num_cpus": 0},
    "lean": {"num_cpus": 1, "memory": 1 << 20},
    "gpu": {"num_cpus": 2, "num_gpus": 1},
    "gpus": {"num_cpus": 2, "num_gpus": 2},
}


@dataclass(frozen=True)
class Variant:
    """What happens: the machines that are there, and steps.

    A step is a number of calls after which it is made, and ``kill N``, ``leave N``, ``add KIND``,
    ``hang N`` (its raylet, until it is given up), ``shoot`` (the process of the last replica),
    ``pause SECONDS`` (the head's GCS), ``wait SECONDS``, ``loop TIMES`` (a machine joins and is
    killed), or ``stop`` (the run).
    """

    machines: str
    steps: str
    replicas: int = 2
    gpus: int = 0
    slow: bool = False  # the model takes seconds to load
    pause: float = 0.08  # seconds of a call
    # Calls after which the model has been loaded so often: later ones wait for that.
    holds: Mapping[int, int] = field(default_factory=dict)
    later: str = "machine"  # what the same command finds


VARIANTS: Mapping[str, Variant] = {
    "one of two killed at the first call": Variant("machine machine", "1 kill 0"),
    "one of two killed midway": Variant("machine machine", "30 kill 0"),
    "one of two killed near the end": Variant("machine machine", "92 kill 0"),
    "one of two leaves": Variant("machine machine", "30 leave 0"),
    "one of two killed while it loads": Variant("machine machine", "0 kill 0", slow=True),
    "two of three, one after the other": Variant(
        "machine machine machine", "20 kill 0, 45 kill 1", replicas=3
    ),
    "two of three at once": Variant("machine machine machine", "30 kill 0, 30 kill 1", replicas=3),
    "all but one of four, one by one": Variant(
        "machine machine machine machine", "15 kill 0, 30 kill 1, 45 leave 2", replicas=4
    ),
    "one killed, another joins": Variant(
        "machine machine", "25 kill 0, 26 add machine", holds={50: 3}
    ),
    "always one of two is new": Variant(
        "machine machine",
        "15 kill 0, 16 add machine, 45 kill 1, 46 add machine, 75 kill 2, 76 add machine",
        holds={30: 3, 60: 4, 90: 5},
    ),
    "two replicas on a machine that is killed, beside another": Variant(
        "pair machine", "30 kill 0", replicas=3
    ),
    "all killed, one joins": Variant(
        "machine machine", "30 kill 0, 30 kill 1, 30 wait 3, 30 add machine"
    ),
    "the only one killed again and again, another joins": Variant(
        "machine",
        "10 kill 0, 10 add machine, 35 kill 1, 35 add machine, 60 kill 2, 60 add machine",
        replicas=1,
    ),
    "all killed, none joins": Variant("machine machine", "30 kill 0, 30 kill 1"),
    "all leave, one by one, none joins": Variant("machine machine", "20 leave 0, 50 leave 1"),
    "all killed while they load": Variant("machine machine", "0 kill 0, 0 kill 1", slow=True),
    "all killed, and the run is to stop": Variant(
        "machine machine", "30 kill 0, 30 kill 1, 30 wait 3, 30 stop"
    ),
    "none at the start, one joins": Variant("", "0 wait 2, 0 add machine", replicas=1),
    "replicas wait for machines that join one by one": Variant(
        "machine",
        "10 add machine, 30 add machine, 50 add machine",
        replicas=4,
        holds={20: 2, 40: 3, 60: 4},
    ),
    "one joins and is killed, three times, beside another": Variant(
        "machine machine", "10 kill 0, 10 loop 3", holds={40: 5}
    ),
    "the only one is killed more often than a replica is restarted": Variant(
        "", "0 loop 5", replicas=1
    ),
    "a machine without processors joins": Variant(
        "machine", "20 kill 0, 20 add without-cpu", replicas=1
    ),
    "a machine without processors joins, then another": Variant(
        "machine", "20 kill 0, 20 add without-cpu, 20 wait 2, 20 add machine", replicas=1
    ),
    "a machine with little memory joins": Variant("machine", "20 kill 0, 20 add lean", replicas=1),
    "the process of a replica is killed, its machine stays": Variant("machine machine", "30 shoot"),
    "the processes of both replicas, by turns": Variant(
        "machine machine", "20 shoot, 45 shoot", holds={40: 3}
    ),
    "the only process is killed again and again": Variant(
        "machine", "15 shoot, 40 shoot, 65 shoot", replicas=1, holds={40: 2, 65: 3}
    ),
    "the head's GCS hangs for seconds": Variant("machine machine", "30 pause 4"),
    "the head's GCS hangs while one is killed": Variant("machine machine", "30 kill 0, 30 pause 4"),
    "one of two hangs": Variant("machine machine", "30 hang 0"),
    "the machine with the GPU killed, another joins": Variant(
        "gpu machine", "20 kill 0, 20 add gpu", replicas=1, gpus=1
    ),
    "the machine with both GPUs killed, another joins": Variant(
        "gpus", "20 kill 0, 20 add gpus", replicas=1, gpus=2
    ),
    "the machine with both GPUs killed, two with one each join": Variant(
        "gpus", "20 kill 0, 20 add gpu, 20 add gpu", replicas=1, gpus=2, later="gpus"
    ),
}


class Machines:
    """Machines of one variant, by the order in which they joined."""

    def __init__(self, cluster: Any, hands: ThreadPoolExecutor) -> None:
        self.ended = 0  # machines, and processes of replicas
        self._hands = hands
        self._cluster = cluster
        self._nodes: list[Any] = []
        self._left: set[int] = set()

    def add(self, kind: str) -> int:
        # What a thread starts ends with it: all machines are of one that stays.
        node = self._hands.submit(self._added, kind).result()
        self._nodes.append(node)
        until(lambda: node.node_id in self._alive())
        return len(self._nodes) - 1

    def _added(self, kind: str) -> Any:
        # Ray sets a handler of signals, which it may do in the main thread only.
        with mock.patch("ray._private.utils.set_sigterm_handler"):
            return self._cluster.add_node(**MACHINE, **KINDS[kind])

    def end(self, number: int, *, graceful: bool) -> None:
        self._left.add(number)
        self.ended += 1
        self._cluster.remove_node(self._nodes[number], allow_graceful=graceful)

    def hang(self, number: int) -> None:
        """Stop a machine's raylet until it is given up, then let it find that out."""
        self._left.add(number)
        self.ended += 1
        node = self._nodes[number]
        pid = _pid_of(node, "raylet")
        os.kill(pid, signal.SIGSTOP)
        until(lambda: node.node_id not in self._alive())
        os.kill(pid, signal.SIGCONT)

    def pause(self, seconds: float) -> None:
        """Stop the head's GCS for a while."""
        pid = _pid_of(self._cluster.head_node, "gcs_server")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)

    def end_all(self) -> None:
        for number, _ in enumerate(self._nodes):
            if number not in self._left:
                self.end(number, graceful=True)
        until(lambda: not {node.node_id for node in self._nodes} & self._alive())

    def _alive(self) -> set[str]:
        return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def _pid_of(node: Any, program: str) -> int:
    (process,) = node.all_processes[program]
    return int(process.process.pid)


class OneBatch(FakeDeployment):
    """Hands over one batch at a time, as Ray's deployments do."""

    window = 8


def load(calls: Path, variant: Variant) -> GenerateClient:
    """Return a model that writes down its calls."""
    loads = calls.with_name("loads")
    with loads.open("a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(4 if variant.slow else 0)

    def on_call(number: int, text: str) -> None:
        with calls.open("a") as file:
            file.write("a call begins\n")
        for most, needed in variant.holds.items():
            until(lambda most=most, needed=needed: lines(calls) < most or lines(loads) >= needed)
        time.sleep(variant.pause)

    return GenerateClient(FakeModel(on_call))


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


@dataclass
class Run:
    """A sweep over machines that come and go."""

    variant: Variant
    folder: Path
    machines: Machines
    stop: CancelToken = field(default_factory=CancelToken)
    over: threading.Event = field(default_factory=threading.Event)
    wrong: BaseException | None = None  # in a step

    def count(self, what: str = "calls") -> int:
        return lines(self.folder / what)

    def go(self, stop: CancelToken) -> str:
        """Run the sweep; return how it ended."""
        given = self.variant
        options = CallOptions(replicas=given.replicas, gpus=given.gpus)
        client = partial(load, self.folder / "calls", given)
        host = OneBatch(None, lambda _: RayBackend(client, options))
        try:
            go(demo_sweep(self.folder), host, stop, Silent())
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "stopped" if stop.requested else "whole"

    def steps(self) -> None:
        """Make all steps, each when it is due, until the sweep is over."""
        try:
            self._steps()
        except BaseException as error:
            self.wrong = error
            self.stop.request()

    def _steps(self) -> None:
        if self.variant.slow:
            self._until("loads", 1)
        for step in self.variant.steps.split(", "):
            calls, what, *rest = step.split()
            self._until("calls", int(calls))
            if not self.over.is_set():
                self._make(what, *rest)

    def _until(self, what: str, number: int) -> None:
        until(lambda: self.over.is_set() or self.count(what) >= number)

    def _make(self, what: str, which: str = "") -> None:
        if what == "add":
            self.machines.add(which)
        elif what == "wait":
            time.sleep(float(which))
        elif what == "stop":
            self.stop.request()
        elif what == "hang":
            self.machines.hang(int(which))
        elif what == "pause":
            self.machines.pause(float(which))
        elif what == "shoot":
            self.machines.ended += 1
            os.kill(int((self.folder / "loads").read_text().split()[-1]), signal.SIGKILL)
        elif what == "loop":
            for _ in range(int(which)):
                loads = self.count("loads")
                number = self.machines.add("machine")
                self._until("loads", loads + 1)
                self.machines.end(number, graceful=False)
        else:
            self.machines.end(int(which), graceful=what == "leave")


def check(
    variant: Variant,
    folder: Path,
    cluster: Any,
    hands: ThreadPoolExecutor,
    expected: Mapping[str, str],
) -> object:
    """Run a variant, continue it, check what is left, and return figures."""
    folder.mkdir(parents=True)
    is_joined = "add" in variant.steps or "loop" in variant.steps
    ray_backend._COMES_BACK = JOINS if is_joined else COMES_BACK
    machines = Machines(cluster, hands)
    run = Run(variant, folder, machines)
    try:
        for kind in variant.machines.split():
            machines.add(kind)
        steps = threading.Thread(target=run.steps, daemon=True)
        start = time.monotonic()
        steps.start()
        ended = run.go(run.stop)
        seconds = time.monotonic() - start
        run.over.set()
        steps.join(60)
        assert run.wrong is None, f"a step failed: {run.wrong}"
        calls = run.count()
        if ended != "whole":
            machines.add(variant.later)
            again = run.go(CancelToken())
            assert again == "whole", again
        assert_answered_once(folder / "calls.jsonl", CALLS)
        assert files(folder / "out") == expected
        twice = run.count() - CALLS
        assert twice <= IN_FLIGHT * machines.ended, f"{twice} calls were made twice"
        return {
            "ended": ended,
            "seconds": round(seconds, 1),
            "calls": calls,
            "twice": twice,
            "loads": run.count("loads"),
            "ends": machines.ended,
        }
    finally:
        machines.end_all()


@contextmanager
def cluster_of_this_machine() -> Iterator[Any]:
    """Start a head that runs no replica, and connect to it."""
    from ray.cluster_utils import Cluster

    # Ray's defaults wait longer; less, and a busy machine makes living ones look dead.
    quick = {
        "health_check_initial_delay_ms": 5000,
        "health_check_period_ms": 500,
        "health_check_timeout_ms": 8000,
        "health_check_failure_threshold": 3,
    }
    os.environ |= {LOOPBACK: "0", "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # A busy machine is no fault
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(SUPPORT), *filter(None, sys.path)])
    with mock.patch("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False):
        head = {"num_cpus": 0, "_system_config": quick, **MACHINE}
        built = Cluster(initialize_head=True, head_node_args=head)
        before = signal.getsignal(signal.SIGTERM)
        ray.init(address=built.address, log_to_driver=False, logging_level="ERROR")
        signal.signal(signal.SIGTERM, before)
        try:
            yield built
        finally:
            ray.shutdown()
            built.shutdown()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--begin", default=next(iter(VARIANTS)), help="with this variant")
    given = parser.parse_args(arguments)
    folder = given.folder.resolve()
    ray_cluster._RESTARTS = RESTARTS
    os.environ |= {"LMUData": str(folder / "lmu")}
    go(demo_sweep(folder / "alone"), FakeDeployment(FakeModel()))
    expected = files(folder / "alone" / "out")
    with cluster_of_this_machine() as cluster, ThreadPoolExecutor(1) as hands:
        for number in range([*VARIANTS].index(given.begin), len(VARIANTS)):
            name, variant = [*VARIANTS.items()][number]
            try:
                figures = check(variant, folder / str(number), cluster, hands, expected)
            except AssertionError as error:
                figures = {"wrong": str(error)[:2000]}
            print(json.dumps({"variant": name, "figures": figures}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
