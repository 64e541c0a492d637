"""Replicas on several machines, which are raylets of this one: what goes wrong costs no answer."""

from __future__ import annotations

import logging
import os
import pickle
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import FakeHost, FakeModel, Silent, answered_keys, demo_sweep, files, go

from vlmeval_findit.engine import ray_backend
from vlmeval_findit.engine.answering import StoppedError
from vlmeval_findit.engine.backend import Inference
from vlmeval_findit.engine.cancel import CancelToken
from vlmeval_findit.engine.ray_backend import _LOOPBACK, RayBackend
from vlmeval_findit.models.model_asker import ModelAsker
from vlmeval_findit.sweeps.run import UnfinishedError

psutil = pytest.importorskip("psutil")
ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[cluster]'")

HERE = Path(__file__).parent
SECONDS = 0.02
"""What a call takes."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster whose head runs no replica; machines are added by tests."""
    from ray.cluster_utils import Cluster

    quick = {
        "health_check_initial_delay_ms": 500,
        "health_check_period_ms": 300,
        "health_check_timeout_ms": 1000,
        "health_check_failure_threshold": 3,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(_LOOPBACK, "0")
        patch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
        places = [str(HERE.parent), str(HERE), *sys.path]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        head = {"num_cpus": 0, "_system_config": quick, **MACHINE}
        made = Cluster(initialize_head=True, head_node_args=head)
        before = signal.getsignal(signal.SIGTERM)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        signal.signal(signal.SIGTERM, before)
        yield made
        ray.shutdown()
        made.shutdown()


MACHINE: Mapping[str, Any] = {
    "include_dashboard": False,
    "node_ip_address": "127.0.0.1",
    "object_store_memory": 100 << 20,
}


class Machines:
    """Machines of one test; each has room for one replica."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.nodes: list[Any] = []

    def add(self, count: int = 1, **resources: Any) -> list[str]:
        """Their names, when they are there."""
        new = [
            self._cluster.add_node(**{"num_cpus": 1, **MACHINE, **resources}) for _ in range(count)
        ]
        self.nodes += new
        self._until(lambda: {one.node_id for one in new} <= self._alive())
        return [one.node_id for one in new]

    def kill(self, name: str) -> None:
        (node,) = (one for one in self.nodes if one.node_id == name)
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def remove_all(self) -> None:
        for node in self.nodes:
            self._cluster.remove_node(node, allow_graceful=True)
        gone = {node.node_id for node in self.nodes}
        self._until(lambda: not gone & self._alive())

    def _alive(self) -> set[str]:
        return {one["NodeID"] for one in ray.nodes() if one["Alive"]}

    def _until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            time.sleep(0.05)


@pytest.fixture
def machines(cluster: Any) -> Iterator[Machines]:
    made = Machines(cluster)
    yield made
    made.remove_all()


def load(how: Mapping[str, str], marks: Path) -> ModelAsker:
    """A model that does on each machine what is said of that, and writes down its calls."""
    here = ray.get_runtime_context().get_node_id()
    kind = how.get(here, "")
    (marks / f"loading-{here}-{os.getpid()}").touch()
    if kind == "does not load":
        raise OSError("no such checkpoint")
    if kind.startswith("late"):
        time.sleep(float(kind.removeprefix("late ")))

    def on_call(number: int, text: str) -> None:
        if (marks / "poison").exists() and '"horse"' in text:
            os._exit(1)
        with (marks / "calls").open("a") as file:
            file.write(f"{here} {os.getpid()} {time.time()}\n")
        if kind == "warns":
            logging.getLogger("a model").warning("it is hot in here")
        if kind == "fails":
            raise RuntimeError("CUDA error: an illegal memory access")
        if kind == "dies" and number == 6 and not (marks / "died").exists():
            (marks / "died").touch()
            time.sleep(1)  # what is before it in its item has come home
            os._exit(1)
        time.sleep(10 * SECONDS if kind == "slow" else SECONDS)

    return ModelAsker(FakeModel(on_call))


class Run:
    """A sweep over machines, and what is seen of it."""

    def __init__(self, folder: Path, how: Mapping[str, str], inference: Inference) -> None:
        self.folder = folder
        self.marks = folder / "marks"
        self.marks.mkdir(parents=True)
        self.watcher = Silent()
        self._host = FakeHost(
            None, lambda _: RayBackend(partial(load, dict(how), self.marks), inference)
        )

    def go(self, cancel: CancelToken | None = None) -> Run:
        go(demo_sweep(self.folder), self._host, stop=cancel, watcher=self.watcher)
        return self

    def calls(self) -> Counter[str]:
        """By machine, the calls that its replica was asked."""
        path = self.marks / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(line.split()[0] for line in lines)

    def until(self, calls: int) -> None:
        while sum(self.calls().values()) < calls:
            time.sleep(0.02)


@pytest.fixture(scope="module")
def undisturbed(lmu_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of a run on one machine."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(lmu_data))
        go(demo_sweep(folder), FakeHost(FakeModel()))
    return files(folder / "out")


def check(run: Run, undisturbed: Mapping[str, str]) -> None:
    """Every call has its answer once, and the files are those of one machine."""
    keys = answered_keys(run.folder / "calls.jsonl")
    assert len(keys) == len(set(keys)) == 100
    assert files(run.folder / "out") == undisturbed


@pytest.mark.parametrize("victim", ["process", "node", "process, by itself"])
def test_who_dies_in_the_middle_costs_no_answer(
    victim: str, machines: Machines, tmp_path: Path, undisturbed: Mapping[str, str]
) -> None:
    one, other = machines.add(2)
    how = {one: "dies"} if victim == "process, by itself" else {}
    run = Run(tmp_path, how, Inference(replicas=2))

    def kill() -> None:
        run.until(25)
        if victim == "node":
            machines.kill(one)
        else:
            lines = (run.marks / "calls").read_text().split("\n")
            pids = [line.split()[1] for line in lines if line.startswith(one)]
            os.kill(int(pids[-1]), signal.SIGKILL)

    if not how:
        thread = threading.Thread(target=kill)
        thread.start()
    run.go()
    if not how:
        thread.join()
    check(run, undisturbed)
    assert run.calls()[other] > 30
    assert sum(run.calls().values()) < 100 + 32, "what one item had is asked again at most"


def test_an_item_that_kills_its_replica_fails_and_takes_nothing_else_with_it(
    machines: Machines, tmp_path: Path, undisturbed: Mapping[str, str]
) -> None:
    machines.add(2)
    run = Run(tmp_path, {}, Inference(replicas=2))
    (run.marks / "poison").touch()
    run.go()
    failed = sum(answer.error is not None for answer in run.watcher.answers)
    assert 0 < failed < 100
    assert len(run.watcher.answers) == 100
    (run.marks / "poison").unlink()
    run.go()
    check(run, undisturbed)


def test_a_replica_of_another_version_is_refused(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.add()
    monkeypatch.setattr(ray_backend, "code_sha256", lambda: "another")
    with pytest.raises(ValueError, match="has another version of this package"):
        Run(tmp_path, {}, Inference(replicas=1)).go()
    assert not answered_keys(tmp_path / "calls.jsonl")


def test_where_replicas_are_sick_others_do_their_work(
    machines: Machines,
    tmp_path: Path,
    undisturbed: Mapping[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One does not load, one fails every call: it is retired after three items."""
    bad, sick, well = machines.add(3)
    run = Run(tmp_path, {bad: "does not load", sick: "fails"}, Inference(replicas=3)).go()
    check(run, undisturbed)
    assert not any(answer.error for answer in run.watcher.answers)
    assert run.calls()[bad] == 0
    assert run.calls()[well] == 100
    assert "does not load its model: OSError: no such checkpoint" in caplog.text
    assert len(list(run.marks.glob(f"loading-{sick}-*"))) == 1, "it is not started again"


def test_a_slow_one_and_one_that_comes_late_hold_up_nobody(
    machines: Machines, tmp_path: Path, undisturbed: Mapping[str, str]
) -> None:
    slow, late, _ = machines.add(3)
    run = Run(tmp_path, {slow: "slow", late: "late 2"}, Inference(replicas=3)).go()
    check(run, undisturbed)
    assert run.calls()[slow] < 40
    lines = (run.marks / "calls").read_text().splitlines()
    seen = [(line.split()[0], float(line.split()[2])) for line in lines]
    first = min(at for _, at in seen)
    lates = [at for node, at in seen if node == late]
    assert not lates or min(lates) > first + 1.5, "the first began at once"


@pytest.mark.parametrize("kind", ["does not load", "killed for good"])
def test_where_no_replica_is_left_the_end_is_clear(
    kind: str, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = machines.add()
    run = Run(tmp_path, {one: kind}, Inference(replicas=1))
    start = ray_backend.replicas

    @contextmanager
    def noted(*args: Any) -> Iterator[list[Any]]:
        with start(*args) as handles:

            def kill() -> None:
                run.until(20)
                ray.kill(handles[0])

            if kind == "killed for good":
                threading.Thread(target=kill).start()
            yield handles

    monkeypatch.setattr(ray_backend, "replicas", noted)
    with pytest.raises(UnfinishedError, match="it cannot be loaded"):
        run.go()
    keys = answered_keys(tmp_path / "calls.jsonl")
    assert (len(keys) > 0) == (kind == "killed for good")


def test_gpus_that_would_stand_idle_are_refused(machines: Machines, tmp_path: Path) -> None:
    machines.add(num_gpus=2)
    with pytest.raises(ValueError, match=r"--gpus 0: .* has 2 GPUs. Type --gpus 1"):
        Run(tmp_path, {}, Inference(replicas=1)).go()


def test_what_a_replica_starts_for_tensor_parallelism_is_on_its_machine(
    machines: Machines, tmp_path: Path, undisturbed: Mapping[str, str]
) -> None:
    """Two GPUs on two machines are not enough; two on one are."""
    machines.add(2, num_gpus=1, num_cpus=2)
    (both,) = machines.add(num_gpus=2, num_cpus=2)
    run = Run(tmp_path, {}, Inference(replicas=1, gpus=2)).go()
    check(run, undisturbed)
    assert set(run.calls()) == {both}


def test_words_reach_the_log_and_keys_stay_here(
    machines: Machines,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (one,) = machines.add()
    sent: list[Any] = []
    remote = ray.remote

    def noted(cls: Any) -> Any:
        made = remote(cls)
        options = made.options

        def with_options(**how: Any) -> Any:
            kind = options(**how)
            create = kind.remote
            kind.remote = lambda *args: sent.append(args) or create(*args)
            return kind

        made.options = with_options
        return made

    monkeypatch.setattr(ray, "remote", noted)
    monkeypatch.setenv("FINDIT_SERVER_KEY", "a-key-of-a-server")
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", '{"X-Auth": "a-key-of-a-server"}')
    monkeypatch.setenv("FINDIT_SCENES_MB", "77")
    Run(tmp_path, {one: "warns"}, Inference(replicas=1)).go()
    assert re.search(r"replica 1 on \S+: it is hot in here", caplog.text)
    ((_, environment),) = sent
    assert environment["FINDIT_SCENES_MB"] == "77"
    assert b"a-key-of-a-server" not in pickle.dumps(environment)


def test_a_stop_takes_two_seconds_and_what_was_begun_is_kept(
    machines: Machines, tmp_path: Path, undisturbed: Mapping[str, str]
) -> None:
    slow = dict.fromkeys(machines.add(2), "slow")
    run, cancel = Run(tmp_path, slow, Inference(replicas=2)), CancelToken()
    asked_at, asked = 0.0, 0

    def stop() -> None:
        nonlocal asked_at, asked
        run.until(10)
        asked_at, asked = time.monotonic(), sum(run.calls().values())
        cancel.request()

    threading.Thread(target=stop).start()
    with pytest.raises(StoppedError):
        run.go(cancel)
    assert time.monotonic() - asked_at < 2.0
    kept = len(answered_keys(tmp_path / "calls.jsonl"))
    assert kept == sum(run.calls().values())
    assert kept <= asked + 4, "no item is worked off"
    run.go()
    check(run, undisturbed)
    assert sum(run.calls().values()) == 100


def test_all_calls_of_an_item_may_fail_without_a_replica_being_sick(
    machines: Machines, tmp_path: Path
) -> None:
    """Two say so: it is the item."""
    one, other = machines.add(2)
    run = Run(tmp_path, {one: "fails", other: "fails"}, Inference(replicas=2)).go()
    assert len(run.watcher.answers) == 100
    assert all(answer.error for answer in run.watcher.answers)
