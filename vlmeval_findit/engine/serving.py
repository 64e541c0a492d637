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
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from ..models.http.endpoint import Endpoint
from . import server_guard
from .server_programs import PROGRAMS, Serving

log = logging.getLogger(__name__)

START_SECONDS = 3600.0
"""Within which servers have to answer: the weights of the largest models take long to load."""

_LOOK_SECONDS = 0.5
_CALL_SECONDS = 300.0
_LAST_LINES = 12
_LOADING = frozenset({404, 408, 429, 502, 503, 504})


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
        # No key and no header of the environment's: they are for servers elsewhere.
        self.endpoint = Endpoint(url, label=name)
        self._log_file = log_file
        own = {} if devices is None else {"CUDA_VISIBLE_DEVICES": devices}
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("ab") as output:
            output.write(f"# {time.strftime('%F %T')} {shlex.join(command)}\n".encode())
            output.flush()
            self._log_begin = output.tell()
            # A session of its own: Ctrl-C at our terminal is not for it.
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", server_guard.__file__, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **own},
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._guard.poll() is None

    def end(self) -> None:
        """Tell it to end; it has :data:`.server_guard.GRACE` seconds, whether we live or not."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()

    def wait(self) -> None:
        """Wait until it has ended, or its guard should have killed it."""
        try:
            self._guard.wait(server_guard.GRACE + 5)
        except subprocess.TimeoutExpired:
            log.warning("a server takes long to end; its guard kills it: %s", self._log_file)

    def why_dead(self) -> str:
        """How it ended, and the last that it printed."""
        status = self._guard.returncode
        how = f"status {status}" if status < 129 else signal.Signals(status - 128).name
        return f"ended with {how}{self.last_lines()}"

    def last_lines(self) -> str:
        with self._log_file.open("rb") as file:
            file.seek(max(self._log_begin, self._log_file.stat().st_size - 20_000))
            lines = file.read().decode("utf-8", "replace").splitlines()
        shown = "\n  ".join(line[:300] for line in lines[-_LAST_LINES:])
        return f". The last lines of {self._log_file}:\n  {shown or '(nothing)'}"


@dataclass
class LocalServers:
    """Servers of one model on this machine, from :meth:`start` to :meth:`close`.

    They are equal where they would be started alike.

    Raises:
        ValueError: as of :meth:`Serving.check`.
    """

    serving: Serving
    checkpoint: str
    """A folder or an identifier."""
    name: str
    """That of the results."""
    log_folder: Path = field(compare=False)
    revision: str | None = None
    """Of the checkpoint, as ``dtype`` is; None: the program's choice."""
    dtype: str | None = None
    _servers: list[LocalServer] = field(default_factory=list, init=False, compare=False)
    _closed: threading.Event = field(default_factory=threading.Event, init=False, compare=False)

    def __post_init__(self) -> None:
        self.serving.check()

    def start(self) -> None:
        """Start them and wait until each has answered a call.

        Raises:
            ServingError: one of them did not come up, or :meth:`close` was called meanwhile; none
                is left.
        """
        try:
            self._launch()
            deadline = time.monotonic() + START_SECONDS
            for server in self._servers:
                self._wait_for(server, deadline)
        except BaseException:
            self.close(wait=False)
            raise

    def living(self) -> list[Endpoint]:
        """Those that live.

        Raises:
            ServingError: all of them died.
        """
        if self._closed.is_set():
            return []
        living = [server.endpoint for server in self._servers if server.is_alive]
        if not living and self._servers:
            raise ServingError(f"{self._said} {self._servers[-1].why_dead()}")
        return living

    def close(self, wait: bool = True) -> None:
        """End them all; without ``wait`` their guards see to it.  A signal handler may call it."""
        self._closed.set()
        for server in self._servers:
            server.end()
        for server in self._servers if wait else ():
            server.wait()

    @property
    def _said(self) -> str:
        return f"--serve {self.serving.program}: the server of {self.name}"

    def _launch(self) -> None:
        program, devices = PROGRAMS[self.serving.program], self.serving.devices()
        for number, (port, own) in enumerate(zip(_free_ports(len(devices)), devices, strict=True)):
            how = self.serving.tensor_parallel, self.revision, self.dtype
            command = program.command(self.checkpoint, self.name, port, *how)
            command += self.serving.arguments
            log_file = self.log_folder / f"{self.name}-{number}.log"
            log.info("starting %s; its log is %s", shlex.join(command), log_file)
            name, url = f"{program.name} {number}", f"http://127.0.0.1:{port}/v1"
            self._servers.append(LocalServer(command, name, url, log_file, own))

    def _wait_for(self, server: LocalServer, deadline: float) -> None:
        """Wait until a server lists the model and answers a call."""
        why = "has not answered"
        while time.monotonic() < deadline:
            if self._closed.is_set():
                raise ServingError(f"{self._said} was told to end before it answered")
            if not server.is_alive:
                raise ServingError(f"{self._said} {server.why_dead()}")
            try:
                self._ask(server.endpoint.base_url)
                return
            except HTTPError as error:
                words = ""
                with suppress(OSError, HTTPException):  # its connection may break
                    words = error.read(500).decode("utf-8", "replace")
                why = f"answers with HTTP {error.code}: {words}"
                if error.code not in _LOADING:
                    break
            except (OSError, HTTPException, ValueError, LookupError) as error:
                why = f"does not answer: {type(error).__name__}: {error}"
            self._closed.wait(_LOOK_SECONDS)
        raise ServingError(f"{self._said} {why}{server.last_lines()}")

    def _ask(self, url: str) -> None:
        """Have a server list the model and answer one call.

        Raises:
            OSError, HTTPException, ValueError, LookupError: it does not.
        """
        program = PROGRAMS[self.serving.program]
        served = program.served_name(self.name, self.checkpoint)
        if program.names_models:
            listed = [one["id"] for one in _json(f"{url}/models", None, 10.0)["data"]]
            if served not in listed:
                raise LookupError(f"it lists {listed}, not {served}")
        asked = {
            "model": served,
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
    if _running is not None and _running == servers:
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
        _running.close(wait)
    _running = None


def _json(url: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
    """What a server on this machine says, past any proxy.

    Raises:
        HTTPError, OSError, HTTPException, ValueError: it says no, or nothing.
    """
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"})
    with build_opener(ProxyHandler({})).open(request, timeout=seconds) as reply:
        return json.load(reply)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]
