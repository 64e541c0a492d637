"""Replicas on several machines, which are raylets of this machine: no fault costs an answer."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import (
    FakeDeployment,
    FakeModel,
    Silent,
    assert_answered_once,
    demo_sweep,
    files,
    go,
)
from fake_program import is_alive
from paths import ROOT, SUPPORT
from waits import until

from vlmeval_findit.engine import LOOPBACK, CallOptions, RayBackend
from vlmeval_findit.models import GenerateClient
from vlmeval_findit.sweeps import UnfinishedError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[cluster]'")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Return a cluster whose head runs no replica; machines are added by tests."""
    from ray.cluster_utils import Cluster

    quick = {
        "health_check_initial_delay_ms": 500,
        "health_check_period_ms": 300,
        "health_check_timeout_ms": 1000,
        "health_check_failure_threshold": 3,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOOPBACK, "0")
        patch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
        places = [str(ROOT), str(SUPPORT), *sys.path]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        head = {"num_cpus": 0, "_system_config": quick, **MACHINE}
        built = Cluster(initialize_head=True, head_node_args=head)
        before = signal.getsignal(signal.SIGTERM)
        ray.init(address=built.address, log_to_driver=False, logging_level="ERROR")
        signal.signal(signal.SIGTERM, before)
        yield built
        ray.shutdown()
        built.shutdown()


MACHINE: Mapping[str, Any] = {
    "include_dashboard": False,
    "node_ip_address": "127.0.0.1",
    "object_store_memory": 100 << 20,
}


class Machines:
    """Machines of one test; each has room for one replica."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._nodes: dict[str, Any] = {}

    def add(self, count: int = 1, **resources: Any) -> list[str]:
        """Return their names, when they are there."""
        given = {"num_cpus": 1, **MACHINE, **resources}
        nodes = [self._cluster.add_node(**given) for _ in range(count)]
        new = {node.node_id: node for node in nodes}
        self._nodes |= new
        until(lambda: new.keys() <= self._alive())
        return [*new]

    def kill(self, name: str) -> None:
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=False)

    def remove_all(self) -> None:
        for node in self._nodes.values():
            self._cluster.remove_node(node, allow_graceful=True)
        until(lambda: not self._nodes.keys() & self._alive())

    def _alive(self) -> set[str]:
        return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


@pytest.fixture
def machines(cluster: Any) -> Iterator[Machines]:
    built = Machines(cluster)
    yield built
    built.remove_all()


def load(behaviours: Mapping[str, str], marks: Path) -> GenerateClient:
    """Return a model that behaves on each machine as told, and writes down its calls."""
    here = ray.get_runtime_context().get_node_id()
    kind = behaviours.get(here, "")
    calls = marks / "calls"
    (marks / f"{kind or 'well'}-{os.getpid()}").touch()
    if kind == "does not load":
        raise OSError("no such checkpoint")
    if kind == "late":
        until(lambda: is_gone("fails", marks))

    def on_call(number: int, text: str) -> None:
        if (marks / "poison").exists() and '"horse"' in text:
            os._exit(1)
        with calls.open("a") as file:
            file.write(f"{here}\n")
        if kind == "warns" and number == 1:
            until(lambda: is_gone("fails", marks))
            (marks / "environment").write_text(repr(dict(os.environ)))
            logging.getLogger("a model").warning("it is hot in here")
        if kind == "fails":
            raise RuntimeError("CUDA error: an illegal memory access")
        if kind == "slow":
            until(lambda: len(asked(marks)) > 60)
        if kind == "dies" and number == 6 and not (marks / "died").exists():
            (marks / "died").touch()
            time.sleep(1)  # what is before it in its item has come home
            os._exit(1)
        time.sleep(0.02)

    return GenerateClient(FakeModel(on_call))


def asked(marks: Path) -> list[str]:
    """Return the machine of every call that began."""
    calls = marks / "calls"
    return calls.read_text().splitlines() if calls.exists() else []


def is_gone(kind: str, marks: Path) -> bool:
    """Return whether there was a replica of a kind, and is no more."""
    pids = [int(path.name.rpartition("-")[2]) for path in marks.glob(f"{kind}-*")]
    return bool(pids) and not any(map(is_alive, pids))


class OneBatch(FakeDeployment):
    """Hands over one batch at a time, as Ray's deployments do."""

    window = 8


class LargeBatches(FakeDeployment):
    """Hands over so many images at a time that a replica's first item says: no call will do."""

    window = 32


class Run:
    """A sweep over machines, and what is seen of it."""

    def __init__(
        self,
        folder: Path,
        behaviours: Mapping[str, str],
        deployment: type[FakeDeployment] = OneBatch,
        **inference: Any,
    ) -> None:
        self.folder, self.marks = folder, folder / "marks"
        self.marks.mkdir(parents=True)
        self.watcher = Silent()
        client = partial(load, behaviours, self.marks)
        options = CallOptions(**inference)
        self._host = deployment(None, lambda _: RayBackend(client, options))

    def go(self) -> Run:
        go(demo_sweep(self.folder), self._host, watcher=self.watcher)
        return self

    def calls(self) -> Counter[str]:
        return Counter(asked(self.marks))


@pytest.fixture(scope="module")
def undisturbed(lmu_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the files of a run on one machine."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(lmu_data))
        go(demo_sweep(folder), FakeDeployment(FakeModel()))
    return files(folder / "out")


def check(run: Run, undisturbed: Mapping[str, str]) -> None:
    """Check that every call has an answer, and the files are those of a single machine."""
    assert_answered_once(run.folder / "calls.jsonl", 100)
    assert files(run.folder / "out") == undisturbed


def test_a_replica_that_dies_costs_no_answer(
    machines: Machines, tmp_path: Path, undisturbed: Mapping[str, str]
) -> None:
    """A process by itself, and a machine with all that is on it."""
    first, two, other = machines.add(3)
    run = Run(tmp_path, {first: "dies"}, replicas=3)

    def kill() -> None:
        until(lambda: len(asked(run.marks)) >= 25)
        machines.kill(two)

    threading.Thread(target=kill).start()
    run.go()
    check(run, undisturbed)
    assert run.calls()[other] > 20
    assert run.calls().total() < 100 + 32, "at most the calls of an item are repeated"


def test_an_item_that_kills_its_replica_fails_alone(
    machines: Machines, tmp_path: Path, undisturbed: Mapping[str, str]
) -> None:
    machines.add(2)
    run = Run(tmp_path, {}, replicas=2)
    (run.marks / "poison").touch()
    run.go()
    failed = sum(answer.error is not None for answer in run.watcher.answers)
    assert 0 < failed < 100 == len(run.watcher.answers)
    (run.marks / "poison").unlink()
    check(run.go(), undisturbed)


def test_replicas_that_are_sick_slow_or_late_hold_up_nobody(
    machines: Machines,
    tmp_path: Path,
    undisturbed: Mapping[str, str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One is late, and one begins its work, when the sick one is retired; the slow one goes on when
    others have done most.
    """
    bad, sick, slow, late, well = machines.add(5)
    monkeypatch.setenv("FINDIT_SERVER_KEY", "a-key-of-a-server")
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", '{"X-Auth": "a-key-of-a-server"}')
    monkeypatch.setenv("FINDIT_SOMETHING", "77")
    behaviours = {bad: "does not load", sick: "fails", slow: "slow", late: "late", well: "warns"}
    run = Run(tmp_path, behaviours, replicas=5).go()
    check(run, undisturbed)
    assert not any(answer.error for answer in run.watcher.answers)
    calls = run.calls()
    assert calls[bad] == 0 < calls[sick]
    assert 0 < calls[well] == 100 - calls[slow] - calls[late]
    assert "does not load its model: OSError: no such checkpoint" in caplog.text
    assert "fails every call and is retired: RuntimeError: RuntimeError: CUDA error" in caplog.text
    assert len(list(run.marks.glob("fails-*"))) == 1, "it is not started again"
    assert re.search(r"replica \d on \S+: it is hot in here", caplog.text)
    environment = (run.marks / "environment").read_text()
    assert "'FINDIT_SOMETHING': '77'" in environment
    assert "a-key-of-a-server" not in environment


def test_the_gpus_of_a_replica_share_a_machine(
    machines: Machines, tmp_path: Path, undisturbed: Mapping[str, str]
) -> None:
    """Tensor parallelism needs its GPUs on the same machine."""
    machines.add(2, num_gpus=1, num_cpus=2)
    (both,) = machines.add(num_gpus=2, num_cpus=2)
    with pytest.raises(ValueError, match=r"--gpus 0: .* has 4 GPUs. Type --gpus 1"):
        Run(tmp_path / "without", {}, replicas=1).go()
    run = Run(tmp_path, {}, replicas=1, gpus=2).go()
    check(run, undisturbed)
    assert set(run.calls()) == {both}


@pytest.mark.parametrize(("deployment", "behaviour"), [(OneBatch, "late"), (LargeBatches, "warns")])
def test_a_replica_without_hope_speaks_for_itself(
    deployment: type[FakeDeployment],
    behaviour: str,
    machines: Machines,
    tmp_path: Path,
    undisturbed: Mapping[str, str],
) -> None:
    """It is retired while the other waits in its first call, or loads its model."""
    sick, other = machines.add(2)
    run = Run(tmp_path, {sick: "fails", other: behaviour}, deployment, replicas=2).go()
    check(run, undisturbed)
    assert not any(answer.error for answer in run.watcher.answers)
    assert run.calls()[other] == 100 > run.calls()[sick] > 0


@pytest.mark.parametrize(
    ("deployment", "other"), [(OneBatch, "does not load"), (LargeBatches, "fails")]
)
def test_replicas_that_answer_nothing_end_the_run(
    deployment: type[FakeDeployment], other: str, machines: Machines, tmp_path: Path
) -> None:
    """Their first calls fail in the same words, so the others would fail, too."""
    one, two = machines.add(2)
    run = Run(tmp_path, {one: "fails", two: other}, deployment, replicas=2)
    with pytest.raises(UnfinishedError, match=r"no further call would be answered either: .*CUDA"):
        run.go()
