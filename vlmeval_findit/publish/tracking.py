"""Scored runs in an MLflow experiment: each once, with figures, intervals, slices and files.

MLflow and not Weights & Biases: it has a store that is a file, which can be asked what is in it, so
that a run is logged once; the latter's offline files cannot.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from ..core.command import install
from ..core.files import sha256_of
from ..core.redaction import quoted
from ..leaderboard.slices import slices_of
from ..report.transcripts import gather
from ..runs.scored_run import Run
from .copies import copy_run, private_of
from .private import Private
from .tables import run_rows
from .worst import worst_answers

KEY = "findit.run"
"""The tag by which a logged run is known again."""

LOGGER = "findit.logger"
"""The tag that says which process is logging a run."""

_LEFT_AFTER = 3_600_000
"""Milliseconds after which a run that is not finished is left over, whoever was logging it."""

_AT_ONCE = 500
"""Metrics of one request; the server takes 1,000."""

_LONGEST = 500
"""Characters of a parameter; servers before 2.9 take no more."""


class TrackingError(RuntimeError):
    """The tracking server refused, or could not be reached; the message says why."""


class TrackingRefusedError(ValueError):
    """Nothing can be logged like this; the message says what to do."""


class Logged(Enum):
    """What became of a run."""

    NEW = "logged"
    KNOWN = "logged before: nothing changes"
    ELSEWHERE = "another track is logging it: nothing changes"


@dataclass(frozen=True, slots=True)
class Tracked:
    """One run and what became of it; ``note`` says why it has no pictures, where it has none."""

    run: Run
    logged: Logged
    note: str = ""


class Tracker:
    """An experiment of a tracking server.

    Args:
        uri: of the server or its store (None: what MLflow itself takes).
        experiment: its name; made where there is none.
        pictures: how many of a run's worst answers are logged.

    Raises:
        TrackingRefusedError: MLflow is not installed, or knows no such store.
        TrackingError: the server cannot be reached.
    """

    def __init__(self, uri: str | None, experiment: str, pictures: int) -> None:
        self._mlflow = _mlflow()
        self._pictures = pictures
        try:
            self._client = self._mlflow.MlflowClient(tracking_uri=uri)
        except self._mlflow.exceptions.MlflowException as error:
            raise TrackingRefusedError(f"--uri {uri}: {quoted(str(error), 500)}") from None
        with self._errors():
            found = self._client.get_experiment_by_name(experiment)
            self._experiment = (
                self._client.create_experiment(experiment) if found is None else found.experiment_id
            )

    def log(self, runs: Sequence[Run]) -> Iterator[Tracked]:
        """Log runs that are not there yet, one after the other.

        Raises:
            TrackingError: the server refused, or could not be reached; what came before is logged.
        """
        private = private_of(runs)
        for run in runs:
            key = key_of(run)
            with self._errors():
                known = self._known(key)
            if known is not None:
                yield Tracked(run, known)
                continue
            with self._errors():
                note, logged = self._log(run, key, private)
            yield Tracked(run, logged, note)

    def _of_key(self, key: str) -> Sequence[Any]:
        found: Sequence[Any] = self._client.search_runs(
            [self._experiment], f"tags.`{KEY}` = '{key}'"
        )
        return found

    def _known(self, key: str) -> Logged | None:
        """What there is of a run; what nobody is logging any more is deleted."""
        known = None
        for found in self._of_key(key):
            if found.info.status == "FINISHED":
                known = Logged.KNOWN
            elif _is_left(found):
                self._client.delete_run(found.info.run_id)
            else:
                known = known or Logged.ELSEWHERE
        return known

    def _is_kept(self, key: str, run_id: str) -> bool:
        """Whether a finished run is the one of its key that stays: whoever comes last sees all of
        those that were logged at once, and keeps one.
        """
        finished = [one for one in self._of_key(key) if one.info.status == "FINISHED"]
        kept, *others = sorted(one.info.run_id for one in finished)
        for other in others:
            self._client.delete_run(other)
        return bool(kept == run_id)

    def _log(self, run: Run, key: str, private: Private) -> tuple[str, Logged]:
        from mlflow.entities import Metric, Param, RunTag

        (row,) = run_rows([run], [run.path.stem])
        name = private.ours(f"{run.model} {run.question.name}")
        tags = {KEY: key, LOGGER: _this_process()}
        made = self._client.create_run(self._experiment, tags=tags, run_name=name)
        at = made.info.run_id
        try:
            numbers = dict(_metrics(row)) | dict(_of_slices(slices_of(run)))
            metrics = [Metric(name, value, 0, 0) for name, value in numbers.items()]
            params = [Param(name, private.ours(text)[:_LONGEST]) for name, text in _params(row)]
            self._client.log_batch(at, params=params, tags=[RunTag("model", run.model)])
            for start in range(0, len(metrics), _AT_ONCE):
                self._client.log_batch(at, metrics=metrics[start : start + _AT_ONCE])
            with TemporaryDirectory() as made_here:
                folder = Path(made_here)
                note = self._files(run, private, folder)
                self._client.log_artifacts(at, str(folder))
        except BaseException:
            self._client.set_terminated(at, "FAILED")
            raise
        self._client.set_terminated(at, "FINISHED")
        return note, Logged.NEW if self._is_kept(key, at) else Logged.KNOWN

    def _files(self, run: Run, private: Private, folder: Path) -> str:
        """Write the artifacts of a run; says why it has no pictures, where it has none."""
        copy_run(run, folder / "run", private)
        found, missing = gather([run])
        if missing:
            return missing[0].reason
        (folder / "worst").mkdir()
        said = []
        for place, one in enumerate(worst_answers(found[0], self._pictures), 1):
            name = f"{place:02}_row_{one.index}.png" if one.picture else None
            if one.picture and name:
                (folder / "worst" / name).write_bytes(one.picture)
            said.append(
                {
                    "index": one.index,
                    "goodness": one.goodness,
                    "reason": one.reason,
                    "picture": name,
                    "prompt": private.said(one.prompt),
                    "reply": private.said(one.reply),
                }
            )
        text = json.dumps(said, indent=1)
        (folder / "worst" / "answers.json").write_text(text, encoding="utf-8")
        return ""

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (self._mlflow.exceptions.MlflowException, OSError) as error:
            raise TrackingError(quoted(str(error), 500)) from None


def _this_process() -> str:
    return f"{os.getpid()} {socket.gethostname()}"


def _is_left(run: Any) -> bool:
    """Whether nobody goes on with a run that is not finished."""
    if run.info.status == "FAILED" or time.time() * 1000 - run.info.start_time > _LEFT_AFTER:
        return True
    pid, _, machine = run.data.tags.get(LOGGER, "").partition(" ")
    if machine != socket.gethostname() or not pid.isdecimal():
        return not machine
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


def key_of(run: Run) -> str:
    """What a run is known by: who was asked what, what was answered, and how that was scored."""
    basis = run.basis
    sums = sorted((name, round(value, 6)) for name, value in run.sums.items())
    said = [run.model, run.question.name, basis.digest, basis.predictions_sha256, sums]
    return sha256_of(json.dumps([*said, basis.spaces], sort_keys=True).encode())[:32]


def plain_name(text: str) -> str:
    """A name as MLflow takes it.

    >>> plain_name("F1@0.5 (failed calls as misses)")
    'F1 at 0.5 - failed calls as misses'
    """
    text = re.sub(r"\s*\((.*?)\)", r" - \1", text.replace("@", " at "))
    return re.sub(r"[^\w\-. :/]", "_", text)


def _metrics(row: Any) -> Iterator[tuple[str, float]]:
    """The figures of a run with their intervals, and its counts."""
    for name, value in row.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield plain_name(name), float(value)


def _of_slices(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    for row in rows:
        before = plain_name(f"{row['slice']}={row['value']}".replace("/", "_").replace("=", ": "))
        for name, value in row.items():
            if name not in ("slice", "value") and isinstance(value, int | float):
                yield f"{before}/{plain_name(name)}", float(value)


def _params(row: Any) -> Iterator[tuple[str, str]]:
    """What a run was: everything in its row that is no figure."""
    for name, value in row.items():
        if isinstance(value, str) and value:
            yield plain_name(name), value
        elif isinstance(value, dict | list) and value:
            yield plain_name(name), json.dumps(value, ensure_ascii=False)


def _mlflow() -> ModuleType:
    # Nobody is told that somebody logs, unless he wants it; a server that is down is said soon.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    try:
        import mlflow
        import mlflow.exceptions
    except ImportError:
        raise TrackingRefusedError(f"track needs MLflow: {install('track')}") from None
    module: ModuleType = mlflow
    return module
