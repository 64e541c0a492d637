"""Start a model as OpenAI-compatible servers on this machine's GPUs, and end them: ``--serve``.

Each server runs below a guard (:mod:`.server_guard`) which ends it when this process closes a pipe
or dies, however it dies.  What a server prints is appended to a log of its own.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from ..models.http.endpoint import Endpoint
from . import server_guard
from .server_programs import PROGRAMS, Launch, Serving

log = logging.getLogger(__name__)

START_SECONDS = 3600.0
"""Within which servers have to answer: the weights of the largest models take long to load."""

_LOOK_SECONDS = 0.5
_CALL_SECONDS = 300.0
_LAST_LINES = 12


class ServingError(RuntimeError):
    """A server cannot be started, or died before it answered; the message says why."""


class LocalServer:
    """One server below its guard.

    Args:
        command: starts it.
        name: what records call it: the same whatever its port is.
        url: its base URL, up to and with ``/v1``.
        log_file: what it prints is appended there.
        devices: its CUDA_VISIBLE_DEVICES (None: those of this process).
    """

    def __init__(
        self, command: Sequence[str], name: str, url: str, log_file: Path, devices: str | None
    ) -> None:
        self.name = name
        self.url = url
        self.log_file = log_file
        log_file.parent.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ)
        if devices is not None:
            environment["CUDA_VISIBLE_DEVICES"] = devices
        guard = [sys.executable, "-I", "-S", server_guard.__file__]
        with log_file.open("ab") as output:
            output.write(f"# {time.strftime('%F %T')} {shlex.join(command)}\n".encode())
            output.flush()
            self._log_begin = output.tell()
            # A session of its own: Ctrl-C at our terminal is not for it.
            self._guard = subprocess.Popen(
                [*guard, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._guard.poll() is None

    def end(self) -> None:
        """Tell it to end; it has :data:`.server_guard.GRACE` seconds, whether we live or not."""
        if self._guard.stdin is not None and not self._guard.stdin.closed:
            self._guard.stdin.close()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most so long."""
        try:
            self._guard.wait(seconds)
        except subprocess.TimeoutExpired:
            log.warning("a server takes long to end; its guard kills it: %s", self.log_file)

    def why_dead(self) -> str:
        """How it ended, and the last that it printed."""
        status = self._guard.returncode
        how = f"status {status}" if status < 129 else signal.Signals(status - 128).name
        return f"ended with {how}{self.last_lines()}"

    def last_lines(self) -> str:
        with self.log_file.open("rb") as file:
            file.seek(max(self._log_begin, self.log_file.stat().st_size - 20_000))
            lines = file.read().decode("utf-8", "replace").splitlines()
        shown = "\n  ".join(line[:300] for line in lines[-_LAST_LINES:])
        return f". The last lines of {self.log_file}:\n  {shown or '(nothing)'}"


class LocalServers:
    """Servers of one model on this machine, from :meth:`start` to :meth:`stop`.

    Args:
        serving: how it is served.
        checkpoint: a folder or an identifier.
        name: that of the results.
        log_folder: the servers' logs go there.
        revision, dtype: of the checkpoint (None: the program's choice).

    Raises:
        ValueError: as of :meth:`Serving.check`.
    """

    def __init__(
        self,
        serving: Serving,
        checkpoint: str,
        name: str,
        log_folder: Path,
        revision: str | None = None,
        dtype: str | None = None,
    ) -> None:
        serving.check()
        self._serving = serving
        self._program = PROGRAMS[serving.program]
        self._checkpoint = checkpoint
        self._name = name
        self._log_folder = log_folder
        self._how = revision, dtype
        self._servers: list[LocalServer] = []
        self._stopped = threading.Event()

    @property
    def served_name(self) -> str:
        """What requests call the model."""
        return self._program.served_name(self._name, self._checkpoint)

    def __enter__(self) -> LocalServers:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start them and wait until each has answered a call.

        Raises:
            ServingError: one of them did not come up, or :meth:`stop` was called meanwhile; none
                is left.
        """
        try:
            self._launch()
            deadline = time.monotonic() + START_SECONDS
            for server in self._servers:
                self._wait_for(server, deadline)
        except BaseException:
            self.give_up()
            raise

    def living(self) -> list[Endpoint]:
        """Those that live.

        Raises:
            ServingError: all of them died.
        """
        # No key and no header of the environment's: they are for servers elsewhere.
        living = [
            Endpoint(server.url, label=server.name) for server in self._servers if server.is_alive
        ]
        if not living and self._servers and not self._stopped.is_set():
            raise ServingError(f"{self._said} {self._servers[-1].why_dead()}")
        return living

    def give_up(self) -> None:
        """End them, and let their guards see to it; a signal handler may call this."""
        self.stop(wait=False)

    def is_like(self, other: LocalServers) -> bool:
        """Whether others would be started alike."""
        own = (self._serving, self._checkpoint, self._name, self._how)
        return own == (other._serving, other._checkpoint, other._name, other._how)

    def stop(self, wait: bool = True) -> None:
        """End them all; without ``wait`` their guards see to it."""
        self._stopped.set()
        for server in self._servers:
            server.end()
        for server in self._servers if wait else ():
            server.wait(server_guard.GRACE + 5)

    @property
    def _said(self) -> str:
        return f"--serve {self._program.name}: the server of {self._name}"

    def _launch(self) -> None:
        devices = self._serving.devices()
        revision, dtype = self._how
        for number, (port, own) in enumerate(zip(_free_ports(len(devices)), devices, strict=True)):
            launch = Launch(
                self._program.executable,
                self._checkpoint,
                self._name,
                port,
                self._serving.tensor_parallel,
                revision if self._program.takes_revision else None,
                dtype,
            )
            command = [*self._program.command(launch), *self._serving.arguments]
            url = f"http://127.0.0.1:{port}/v1"
            log_file = self._log_folder / f"{self._name}-{number}.log"
            log.info("starting %s; its log is %s", shlex.join(command), log_file)
            name = f"{self._program.name} {number}"
            self._servers.append(LocalServer(command, name, url, log_file, own))

    def _wait_for(self, server: LocalServer, deadline: float) -> None:
        """Wait until a server lists the model and answers a call."""
        why = "has not answered"
        while time.monotonic() < deadline:
            if self._stopped.is_set():
                raise ServingError(f"{self._said} was told to end before it answered")
            if not server.is_alive:
                raise ServingError(f"{self._said} {server.why_dead()}")
            try:
                self._ask(server.url)
                return
            except _RefusedError as error:
                status, words = error.args
                why = f"answers with HTTP {status}: {words}"
                if status not in (404, 408, 429, 502, 503, 504):
                    break
            except (OSError, HTTPException, ValueError, LookupError) as error:
                why = f"does not answer: {type(error).__name__}: {error}"
            self._stopped.wait(_LOOK_SECONDS)
        raise ServingError(f"{self._said} {why}{server.last_lines()}")

    def _ask(self, url: str) -> None:
        """Have a server list the model and answer one call.

        Raises:
            _RefusedError, OSError, HTTPException, ValueError, LookupError: it does not.
        """
        if self._program.names_models:
            listed = [one["id"] for one in _json(f"{url}/models", None, 10.0)["data"]]
            if self.served_name not in listed:
                raise LookupError(f"it lists {listed}, not {self.served_name}")
        asked = {
            "model": self.served_name,
            "messages": [{"role": "user", "content": "Say: yes."}],
            "max_tokens": 4,
            "temperature": 0.0,
        }
        _ = _json(f"{url}/chat/completions", asked, _CALL_SECONDS)["choices"][0]["message"]


_running: LocalServers | None = None
"""The servers that hold this machine's GPUs, which no two models do at a time."""


def serve(servers: LocalServers) -> Callable[[], list[Endpoint]]:
    """What lists the servers that live: of those that run already, else these are started.

    Raises:
        ServingError: as of :meth:`LocalServers.start`.
    """
    global _running
    if _running is not None and _running.is_like(servers):
        with suppress(ServingError):
            if _running.living():
                return _running.living
    end()
    _running = servers
    servers.start()
    return servers.living


def end(wait: bool = True) -> None:
    """End what :func:`serve` started."""
    global _running
    if _running is not None:
        _running.stop(wait)
    _running = None


def _json(url: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
    """What a server on this machine says, past any proxy.

    Raises:
        _RefusedError: it says no.
        OSError, ValueError: it does not say anything.
    """
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=seconds)
    with closing(connection):
        said = {"Content-Type": "application/json"}
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, parts.path, data, said)
        reply = connection.getresponse()
        text = reply.read(1 << 20)
    if reply.status != 200:
        raise _RefusedError(reply.status, text[:500].decode("utf-8", "replace"))
    return json.loads(text)


class _RefusedError(Exception):
    """A server's status and words."""


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]
