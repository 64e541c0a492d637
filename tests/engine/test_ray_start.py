"""A Ray that does not start, or is not reached, is one line that says what to type."""

from __future__ import annotations

import asyncio
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engine_fakes import FakeDeployment, demo_sweep, go

from vlmeval_findit.engine import CallOptions, RayBackend, ray_backend, ray_cluster
from vlmeval_findit.sweeps import UnfinishedError

FAULTS = [
    RuntimeError("Module: foo does not exist.\nThis module was parsed from Address: foo://x"),
    ConnectionError("Could not find any running Ray instance."),
    ValueError("Invalid address format: nonsense"),
    TimeoutError("Timed out while waiting for GCS to become available."),
    Exception("The current node timed out during startup."),
    FileNotFoundError(2, "No such file or directory", "raylet"),
    PermissionError(13, "Permission denied", "/dev/shm"),
    OSError(28, "No space left on device"),
    AssertionError(),
    KeyError("GPU"),
    TypeError("unexpected keyword"),
]


def fake_ray(fault: Exception) -> Any:
    def init(**options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as Ray does
        raise fault

    constants = SimpleNamespace(ENABLE_RAY_CLUSTER=True)
    private = SimpleNamespace(ray_constants=constants)
    return SimpleNamespace(
        is_initialized=lambda: False, init=init, shutdown=lambda: None, _private=private
    )


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Return a port at which nothing listens, held so that nobody else takes it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize("address", ["", "auto", "foo://x", "nonsense", "127.0.0.1:99999"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_start_that_fails_says_what_to_type(
    fault: Exception, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    handler = signal.getsignal(signal.SIGTERM)
    with (
        pytest.raises(ValueError, match=type(fault).__name__) as raised,
        ray_cluster.cluster(fake_ray(fault)),
    ):
        pytest.fail("it did not start")
    said = str(raised.value)
    assert "\n" not in said
    expected = "Type ray stop" if not address else f"RAY_ADDRESS={address}: no Ray cluster"
    assert expected in said
    assert raised.value.__cause__ is fault
    assert signal.getsignal(signal.SIGTERM) is handler
    assert not list(tmp_path.iterdir()), "its folder is gone"


@pytest.fixture
def server() -> Iterator[Callable[[bytes | None], int]]:
    """Return what starts a server that says something and closes, or nothing; its port."""
    with ExitStack() as undo:

        def start(says: bytes | None) -> int:
            listens = undo.enter_context(socket.create_server(("127.0.0.1", 0)))

            def answer() -> None:
                client, _ = listens.accept()
                undo.callback(client.close)
                client.recv(100)
                if says is not None:
                    client.sendall(says)
                    client.shutdown(socket.SHUT_WR)

            threading.Thread(target=answer, daemon=True).start()
            return int(listens.getsockname()[1])

        yield start


OTHERS = [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9\r\n", bytes(4), None]


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
@pytest.mark.parametrize("says", OTHERS)
def test_a_server_that_is_no_ray_is_known_at_once(
    says: bytes | None,
    form: str,
    server: Callable[[bytes | None], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ray itself waits for over four minutes."""
    monkeypatch.setattr(ray_cluster, "_CONNECT", 0.5 if says is None else 30.0)
    monkeypatch.setenv("RAY_ADDRESS", form.format(server(says)))
    never = AssertionError("Ray is not asked")
    with (
        pytest.raises(ValueError, match=r"no Ray cluster is reached .*unset RAY") as raised,
        ray_cluster.cluster(fake_ray(never)),
    ):
        pytest.fail("it did not start")
    assert isinstance(raised.value.__cause__, OSError)


def test_a_server_of_grpc_is_left_to_ray(
    server: Callable[[bytes | None], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = bytes(3) + b"\x04" + bytes(5)
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{server(settings)}")
    asked = RuntimeError("Ray is asked")
    with pytest.raises(ValueError, match="Ray is asked"), ray_cluster.cluster(fake_ray(asked)):
        pytest.fail("it did not start")


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "localhost:{}", "ray://127.0.0.1:{}", "[::1]:{}"])
def test_an_address_without_a_cluster_is_known_at_once(
    form: str, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray itself waits for over a minute."""
    address = form.format(closed_port)
    monkeypatch.setenv("RAY_ADDRESS", address)
    never = AssertionError("Ray is not asked")
    with (
        pytest.raises(ValueError, match="unset RAY_ADDRESS") as raised,
        ray_cluster.cluster(fake_ray(never)),
    ):
        pytest.fail("it did not start")
    assert isinstance(raised.value.__cause__, OSError)


class Method:
    """A method of an actor: its first call returns one thing, all others another."""

    def __init__(self, first: Callable[[], Any], then: Callable[[], Any]) -> None:
        self._results = [first]
        self._then = then

    def options(self, **anything: Any) -> Method:
        return self

    def remote(self, *anything: Any) -> Any:
        return (self._results.pop() if self._results else self._then)()


class DiedError(Exception):
    """Stands for Ray's."""


async def dies() -> AsyncIterator[Any]:
    raise DiedError
    yield


class FakeCluster(SimpleNamespace):
    """Stands for Ray: a cluster that has so many processors at each look, the last for ever."""

    def __init__(self, *processors: int) -> None:
        super().__init__(exceptions=SimpleNamespace(RayActorError=DiedError))
        self._processors = processors
        self.looks = 0

    def kill(self, actor: Any) -> None:
        pass

    def cluster_resources(self) -> dict[str, float]:
        self.looks += 1
        return {"CPU": self._processors[min(self.looks, len(self._processors)) - 1]}


@pytest.fixture
def run_on(
    lmu_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[FakeCluster, Method], None]:
    """Return what runs a sweep with a replica of a cluster; its calls end as it dies."""
    monkeypatch.setenv("LMUData", str(lmu_data))
    monkeypatch.setattr(ray_backend, "_COMES_BACK", 0.01)
    monkeypatch.setattr(ray_backend, "_LOOKS", 0.001)

    def run(cluster: FakeCluster, loads: Method) -> None:
        handle = SimpleNamespace(ready=loads, ask=Method(dies, dies), stop=Method(dies, dies))
        monkeypatch.setattr(ray_backend, "_ray", lambda: cluster)
        monkeypatch.setattr(ray_backend, "cluster", lambda ray: nullcontext())
        monkeypatch.setattr(ray_backend, "replicas", lambda *anything: nullcontext([handle]))
        options = CallOptions()
        go(demo_sweep(tmp_path), FakeDeployment(None, lambda _: RayBackend(lambda: None, options)))

    return run


LOADED = partial(asyncio.sleep, 0, "a machine")
NEVER = asyncio.Future

# What loading a model does, at first and when a replica is started again, and what a cluster has
LOST = {
    "a replica that answers, its machine stays": (LOADED, NEVER, (1,)),
    "a replica that answers, with its machine": (LOADED, NEVER, (1, 1, 0)),
    "a replica that loads, with its machine": (NEVER, NEVER, (1, 1, 0)),
    "a machine that came late": (NEVER, NEVER, (0, 0, 1, 0)),
}


@pytest.mark.parametrize("what", LOST)
def test_replicas_without_a_machine_say_what_to_type(
    what: str, run_on: Callable[[FakeCluster, Method], None]
) -> None:
    first, then, processors = LOST[what]
    with pytest.raises(UnfinishedError, match=r"no machine had room .* Type ray status"):
        run_on(FakeCluster(*processors), Method(first, then))


def test_a_cluster_that_may_yet_grow_is_waited_for(
    run_on: Callable[[FakeCluster, Method], None],
) -> None:
    cluster = FakeCluster(0)

    async def load() -> None:
        while cluster.looks < 50:
            await asyncio.sleep(0.001)
        raise ValueError("loaded at last")

    with pytest.raises(UnfinishedError, match="loaded at last"):
        run_on(cluster, Method(load, load))
