"""Start and stop OpenAI-compatible servers of a model on this machine's GPUs (``--serve``).

Each runs below a :mod:`.guard`, which stops it when this process closes a pipe or dies. Its output
is appended to a log file.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..core import error_line
from . import guard
from .programs import PROGRAMS, ServeOptions

log = logging.getLogger(__name__)

START_SECONDS = 3600.0  # to load the weights of the largest models
_LOOK_SECONDS = 0.5
_CALL_SECONDS = 300.0
_LAST_LINES = 12
_LOADING = frozenset({404, 408, 429, 502, 503, 504})


JudgeLog = Callable[[str], str | None]
"""Says why a server may not answer, by the text that it has logged; None if it may."""


class ServingError(RuntimeError):
    """No server of a model answers any more."""


class ServerProcess:
    """One server below its guard: what ``command`` starts at a base URL.

    Records have its ``name``, not its port; ``devices`` is CUDA_VISIBLE_DEVICES (None: inherited).
    """

    def __init__(
        self,
        command: Sequence[str],
        name: str,
        url: str,
        log_file: Path,
        devices: str | None,
        judge: JudgeLog = lambda text: None,
    ) -> None:
        self.name = name
        self.url = url
        self.answers = False
        self.failed = ""  # why it will not answer
        self.gpus = len(devices.split(",")) if devices else 0
        self._log_file = log_file
        self._judge = judge
        extra = {} if devices is None else {"CUDA_VISIBLE_DEVICES": devices}
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("ab") as output:
            output.write(f"# {time.strftime('%F %T')} {shlex.join(command)}\n".encode())
            output.flush()
            self._log_begin = output.tell()
            # A new session, so that our terminal's Ctrl-C does not reach it.
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **extra},
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._guard.poll() is None

    def watch(self, model: str, closed: threading.Event) -> None:
        """Wait until it answers a call; end it if it does not."""
        import requests

        message = {"role": "user", "content": "Say: yes."}
        asked = {"model": model, "messages": [message], "max_tokens": 4, "temperature": 0.0}
        session = requests.Session()
        address = f"{self.url}/chat/completions"
        session.trust_env = False  # past any proxy
        why = "has not answered"
        deadline = time.monotonic() + START_SECONDS
        while self.is_alive and time.monotonic() < deadline and not closed.wait(_LOOK_SECONDS):
            try:
                reply = session.post(address, json=asked, timeout=_CALL_SECONDS)
                if not reply.ok:
                    why = f"answers with HTTP {reply.status_code}: {reply.text[:500]}"
                    if reply.status_code not in _LOADING:
                        break
                    continue
                _ = reply.json()["choices"][0]["message"]
                # Some programs load a model with its first call.
                refusal = self._judge(self._log_text())
                if refusal is not None:
                    why = f"has not the whole model: {refusal}"
                    break
                self.answers = True
                self._guard.wait()
            except (OSError, ValueError, LookupError, TypeError) as error:
                why = f"does not answer: {error_line(error)}"
        if not self.is_alive:
            status = self._guard.returncode
            how = f"status {status}" if status < 129 else signal.Signals(status - 128).name
            why = f"ended with {how}"
        self.failed = f"{why}. The last lines of {self._log_file}:\n  {self._last_lines()}"
        self.end()
        if not closed.is_set():
            log.warning("%s %s", self.name, self.failed)

    def _log_text(self, most: int = 10_000_000) -> str:
        """Return the end of what it has logged: at most so many bytes."""
        with self._log_file.open("rb") as file:
            file.seek(max(self._log_begin, self._log_file.stat().st_size - most))
            return file.read().decode("utf-8", "replace")

    def _last_lines(self) -> str:
        lines = self._log_text(20_000).splitlines()
        return "\n  ".join(line[:300] for line in lines[-_LAST_LINES:]) or "(nothing)"

    def end(self) -> None:
        """Ask it to end; the guard kills it after :data:`.guard.GRACE` seconds."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()

    def wait(self) -> None:
        try:
            self._guard.wait(guard.GRACE + 5)
        except subprocess.TimeoutExpired:
            log.warning("a server is slow to end; its guard kills it: %s", self._log_file)


@dataclass
class LocalServers:
    """Servers of one model on this machine; equal if they would be started in the same way."""

    serving: ServeOptions
    checkpoint: str
    name: str  # of results
    log_folder: Path = field(compare=False)
    revision: str | None = None
    dtype: str | None = None
    adapter_flags: Sequence[str] = ()  # make ``name`` an adapter over ``checkpoint``, its base
    judge: JudgeLog = field(default=lambda text: None, compare=False)
    _servers: list[ServerProcess] = field(default_factory=list, init=False, compare=False)
    _closed: threading.Event = field(default_factory=threading.Event, init=False, compare=False)

    def start(self) -> None:
        """Start all without waiting; raises as :meth:`ServeOptions.check`."""
        program = PROGRAMS[self.serving.program]
        devices = self.serving.devices()
        served = program.served_name(self.name, self.checkpoint, self.revision)
        flags = [*program.model_flags(self.revision, self.dtype), *self.adapter_flags]
        # An adapter has the name that is asked for; requests to its base's would go to that.
        name = f"{served}-base" if self.adapter_flags else served
        for number, (port, gpus) in enumerate(zip(_free_ports(len(devices)), devices, strict=True)):
            command = program.command(port, self.checkpoint, name, self.serving, flags)
            log_file = self.log_folder / f"{self.name}-{number}.log"
            log.info("starting %s; its log is %s", shlex.join(command), log_file)
            label = f"{program.name} {number}"
            url = f"http://127.0.0.1:{port}/v1"
            server = ServerProcess(command, label, url, log_file, gpus, self.judge)
            self._servers.append(server)
            threading.Thread(target=server.watch, args=(served, self._closed), daemon=True).start()

    def living(self) -> list[ServerProcess]:
        """Return the servers that answer; ServingError if none does, and none will."""
        if not self._closed.is_set() and all(server.failed for server in self._servers):
            what = f"--serve {self.serving.program}: the server of {self.name}"
            raise ServingError(f"{what} {self._servers[-1].failed}")
        return [server for server in self._servers if server.answers and server.is_alive]

    def close(self, wait: bool = True) -> None:
        """End all; without ``wait`` it is safe in a signal handler."""
        self._closed.set()
        for server in self._servers:
            server.end()
        for server in self._servers if wait else ():
            server.wait()


# The servers that hold this machine's GPUs: one model at a time.
_running: LocalServers | None = None


def start_servers(servers: LocalServers) -> LocalServers:
    """Start these servers, and end others; return equal ones if they are running."""
    global _running
    if _running is not None and _running == servers:
        with suppress(ServingError):
            _running.living()
            return _running
    end_servers()
    _running = servers
    servers.start()
    return servers


def end_servers(wait: bool = True) -> None:
    """End what :func:`start_servers` started."""
    global _running
    if _running is not None:
        _running.close(wait)
    _running = None


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [opened.getsockname()[1] for opened in sockets]
