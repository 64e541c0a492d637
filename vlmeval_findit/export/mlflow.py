"""Scored runs in an MLflow experiment: each once, with values, intervals, slices and files."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..core.redaction import quoted
from ..scoring.scored_run import Run
from .export_folder import copy_run, make_store
from .targets import ExportError, NotExportableError
from .trackers import CURVE, KEY, TrackedCurve, TrackedRun, log_new

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

        errors, where = (*errors, SQLAlchemyError), str(out)
        uri = f"sqlite:///{out.absolute()}/mlflow.db"
        artifacts = (out.absolute() / "files").as_uri()
    try:
        client = mlflow.MlflowClient(tracking_uri=uri)
    except errors as error:
        raise NotExportableError(f"{where}: {quoted(str(error), 500)}") from None
    try:
        existing = client.get_experiment_by_name(project)
        new = existing is None
        experiment = client.create_experiment(project, artifacts) if new else existing.experiment_id
        yield from log_new(
            runs,
            pictures,
            lambda key: _known(client, experiment, key),
            lambda tracked: _log(client, experiment, tracked),
            lambda curve: _log_curve(client, experiment, curve),
        )
    except errors as error:
        raise ExportError(quoted(str(error), 500)) from None
    if out is not None:
        yield "show them with:"
        yield f"  mlflow ui --backend-store-uri {uri}"


def _known(client: Any, experiment: str, key: str) -> bool:
    """Tell whether a run was logged; delete an unfinished record of it."""
    known = False
    for record in client.search_runs([experiment], f"tags.`{KEY}` = '{key}'"):
        if record.info.status == "FINISHED":
            known = True
        else:
            client.delete_run(record.info.run_id)
    return known


def _log_curve(client: Any, experiment: str, curve: TrackedCurve) -> None:
    from mlflow.entities import Metric

    for older in client.search_runs([experiment], f"tags.`{CURVE}` = '{curve.curve}'"):
        client.delete_run(older.info.run_id)
    tags = {KEY: curve.key, CURVE: curve.curve}
    at = client.create_run(experiment, tags=tags, run_name=curve.name).info.run_id
    _log_metrics(
        client, at, [Metric(n, v, 0, step) for step, of in curve.points for n, v in of.items()]
    )
    client.set_terminated(at, "FINISHED")


def _log_metrics(client: Any, at: str, metrics: Sequence[Any]) -> None:
    for start in range(0, len(metrics), _AT_ONCE):
        client.log_batch(at, metrics=metrics[start : start + _AT_ONCE])


def _log(client: Any, experiment: str, tracked: TrackedRun) -> None:
    from mlflow.entities import Metric, Param

    tags = {KEY: tracked.key, "model": tracked.run.model}
    at = client.create_run(experiment, tags=tags, run_name=tracked.name).info.run_id
    params = [Param(name, text[:_LONGEST]) for name, text in tracked.params.items()]
    client.log_batch(at, params=params)
    _log_metrics(client, at, [Metric(n, v, 0, 0) for n, v in tracked.metric_values.items()])
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_run(tracked.run, folder / "run", tracked.private)
        (folder / "worst").mkdir()
        for answer in tracked.worst:
            if answer.picture:
                answer.picture.save(folder / "worst" / answer.file)
        answers = json.dumps([answer.as_dict() for answer in tracked.worst], indent=1)
        (folder / "worst" / "answers.json").write_text(answers, encoding="utf-8")
        client.log_artifacts(at, str(folder))
    client.set_terminated(at, "FINISHED")
