"""Scored runs in an MLflow experiment: each once, with values, intervals, slices and files."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..core import quoted_line
from ..scoring import Run
from .export_folder import copy_run, make_store
from .targets import ExportError, NotExportableError
from .trackers import CURVE_TAG, RUN_TAG, LoggedAnswer, TrackedCurve, TrackedRun, log_new

_AT_ONCE = 500  # Metrics of a request; the server takes 1,000
_LONGEST = 500  # Characters of a parameter; servers before 2.9 take no more


def to_mlflow(
    runs: Sequence[Run], out: Path | None, project: str = "findit", pictures: int = 8
) -> Iterator[str]:
    """Log new runs in an experiment, tracked after the other.

    ``out`` is the folder of a store in a file (None: the server of MLFLOW_TRACKING_URI). An
    ExportError says that the server refused, or could not be reached; earlier runs are logged.
    """
    # No telemetry unless the user sets it; a server that is down is reported soon.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    import mlflow
    import mlflow.exceptions

    logging.getLogger("mlflow").setLevel(logging.WARNING)
    uri = artifacts = None
    errors: tuple[type[Exception], ...] = (mlflow.exceptions.MlflowException, OSError)
    where = f"MLFLOW_TRACKING_URI={os.environ.get('MLFLOW_TRACKING_URI')}"
    if out is not None:
        make_store(out, "mlflow")
        # A database that another program locks is no error of MLflow's while it is opened.
        from sqlalchemy.exc import SQLAlchemyError

        errors = (*errors, SQLAlchemyError)
        where = str(out)
        uri = f"sqlite:///{out.absolute()}/mlflow.db"
        artifacts = (out.absolute() / "files").as_uri()
    try:
        client = mlflow.MlflowClient(tracking_uri=uri)
    except errors as error:
        raise NotExportableError(f"{where}: {quoted_line(str(error), 500)}") from None
    try:
        yield from log_new(runs, _Experiment(client, project, artifacts), pictures)
    except errors as error:
        raise ExportError(quoted_line(str(error), 500)) from None
    if out is not None:
        yield "show them with:"
        yield f"  mlflow ui --backend-store-uri {uri}"


class _Experiment:
    """An experiment, made if it does not exist.

    Args:
        client: of the server or store.
        project: its name.
        artifacts: where a new experiment has its files (None: where the server says).
    """

    def __init__(self, client: Any, project: str, artifacts: str | None) -> None:
        self._client = client
        existing = client.get_experiment_by_name(project)
        if existing is None:
            self._id = client.create_experiment(project, artifacts)
        else:
            self._id = existing.experiment_id

    def has(self, key: str) -> bool:
        """Tell whether a run was logged; delete an unfinished record of it."""
        is_logged = False
        for record in self._client.search_runs([self._id], f"tags.`{RUN_TAG}` = '{key}'"):
            if record.info.status == "FINISHED":
                is_logged = True
            else:
                self._client.delete_run(record.info.run_id)
        return is_logged

    def log(self, tracked: TrackedRun) -> None:
        """Log a run with its files and worst answers."""
        from mlflow.entities import Metric, Param

        tags = {RUN_TAG: tracked.key, "model": tracked.run.model}
        run_id = self._new_run(tracked.name, tags)
        params = [Param(name, text[:_LONGEST]) for name, text in tracked.params.items()]
        self._client.log_batch(run_id, params=params)
        values = tracked.metric_values.items()
        self._log_metrics(run_id, [Metric(name, value, 0, 0) for name, value in values])
        with TemporaryDirectory() as temporary:
            folder = Path(temporary)
            copy_run(tracked.run, folder / "run", tracked.private)
            _write_worst(tracked.worst, folder / "worst")
            self._client.log_artifacts(run_id, str(folder))
        self._client.set_terminated(run_id, "FINISHED")

    def log_curve(self, curve: TrackedCurve) -> None:
        """Log a curve; delete the earlier records of the same curve."""
        from mlflow.entities import Metric

        for older in self._client.search_runs([self._id], f"tags.`{CURVE_TAG}` = '{curve.curve}'"):
            self._client.delete_run(older.info.run_id)
        run_id = self._new_run(curve.name, {RUN_TAG: curve.key, CURVE_TAG: curve.curve})
        metrics = []
        for step, values in curve.points:
            metrics += [Metric(name, value, 0, step) for name, value in values.items()]
        self._log_metrics(run_id, metrics)
        self._client.set_terminated(run_id, "FINISHED")

    def _new_run(self, name: str, tags: Mapping[str, str]) -> str:
        run_id: str = self._client.create_run(self._id, tags=tags, run_name=name).info.run_id
        return run_id

    def _log_metrics(self, run_id: str, metrics: Sequence[Any]) -> None:
        for start in range(0, len(metrics), _AT_ONCE):
            self._client.log_batch(run_id, metrics=metrics[start : start + _AT_ONCE])


def _write_worst(answers: Sequence[LoggedAnswer], folder: Path) -> None:
    folder.mkdir()
    for answer in answers:
        if answer.picture:
            answer.picture.save(folder / answer.file)
    text = json.dumps([answer.as_dict() for answer in answers], indent=1)
    (folder / "answers.json").write_text(text, encoding="utf-8")
