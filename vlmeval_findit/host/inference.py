"""VLMEvalKit's inference of one model over a FindIt dataset, done by the engine.

VLMEvalKit asks through ``vlmeval.inference.infer_data_job``. For FindIt's datasets it is replaced:
calls are made as in a sweep and stored in the run's journal (``<model>_<dataset>_calls.jsonl`` in
the model's folder), from which the prediction file is written. So no answered call is made again,
and identity conflicts are refused before the first call.
"""

from __future__ import annotations

import inspect
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from tqdm import tqdm
from vlmeval.smp import get_logger

from ..core import (
    EXIT_INTERRUPTED,
    EXIT_LIMIT_REACHED,
    EXIT_SOME_FAILED,
    error_line,
    host_version,
    is_disk_full,
    repeated,
)
from ..engine import (
    Backend,
    Deployment,
    HttpBackend,
    JobSpec,
    Journal,
    LocalBackend,
    ModelStoppedError,
    Output,
    OverHttp,
    PendingBatches,
    PlannedCalls,
    StoppedError,
    ThreadedBackend,
    answer_cells,
    cancelled_by_signals,
    count_failed,
    merge_predictions,
    prediction_rows,
    prepare_output,
)
from ..models import GenerateClient, find_model, refuse_unreachable, with_logprobs
from ..protocol import CallResult, ModelClient, wants_logprobs
from ..scoring import CellResult
from ..storage import RunFiles, check_model_name, write_rows
from .api import DeployedModel, FindItOpenRouter
from .baseline_models import FindItBaseline, FindItModel
from .datasets import VariantDataset
from .free_questions import refuse_conversations, refused_by_baseline
from .model_descriptions import Entry, entry_of, entry_of_object, refuse_another_row
from .model_objects import attributes_of, note_calls
from .outcomes import OUTCOMES
from .runner_reports import prediction_format, replace_everywhere
from .space_when_scored import recorded_space
from .vlmevalkit_backends import ASKED, VLMEvalKitModel, asked, judged_loading
from .who_answered import (
    files_of,
    is_finished,
    set_aside_cut,
    table_of,
    who_answers,
    write_record,
)

log = get_logger("FindIt")

_REDRAWN_EVERY = 10.0  # seconds, though nothing ended

_RUN_FOLDER = re.compile(r"T\d{8}(-\d{6}|_G[0-9a-fA-F]+)")
"""How upstream names the folder of a run below the model's."""

_TAKES_VLLM = ("Llama-4", "Qwen2-VL", "Qwen2.5-VL")
"""Parts of the names of the host's models that take ``use_vllm``."""


_RUNNERS = ("vlmeval.run", "run", "__main__")
"""The loggers of upstream's runner: in the package, in a clone, and started in a clone."""


def _without_traceback(record: logging.LogRecord) -> bool:
    """Show a model that is stopped as its sentence: a spending limit is no fault."""
    if record.exc_info and isinstance(record.exc_info[1], ModelStoppedError):
        record.exc_info = record.exc_text = None
    return True


def install(inference: ModuleType) -> None:
    """Replace what asks in the host: for FindIt's datasets, and before others are asked."""
    if hasattr(inference.infer_data_job, "answers_findit"):
        return
    # Imported late: they import the module that is being given to us.
    import vlmeval.inference_api
    import vlmeval.inference_mt
    import vlmeval.inference_video

    for name in _RUNNERS:
        logging.getLogger(name).addFilter(_without_traceback)
    _replace_job(inference.infer_data_job)
    _replace_job(vlmeval.inference_mt.infer_data_job_mt)
    _replace_job(vlmeval.inference_video.infer_data_job_video)
    _replace_pipeline(vlmeval.inference_api.APIEvalPipeline)


def _replace_job(in_vlmevalkit: Callable[..., Any]) -> None:
    """Replace a function of the host that asks one model about one dataset."""
    signature = inspect.signature(in_vlmevalkit)

    def infer_data_job(*arguments: Any, **named: Any) -> Any:
        given = signature.bind(*arguments, **named)
        given.apply_defaults()
        if isinstance(given.arguments["dataset"], VariantDataset):
            return _job(given.arguments)
        return _job_of_others(in_vlmevalkit, given)

    infer_data_job.answers_findit = True  # type: ignore[attr-defined]
    replace_everywhere(in_vlmevalkit, infer_data_job)


def _replace_pipeline(pipeline: Any) -> None:
    """Let the host's ``--api-mode`` begin as its other jobs do."""
    begin = pipeline.__init__
    signature = inspect.signature(begin)

    def begin_alone(*arguments: Any, **named: Any) -> None:
        given = signature.bind(*arguments, **named)
        given.apply_defaults()
        asks = given.arguments["run_infer"]
        for config in given.arguments["dataset_configs"] if asks else ():
            with OUTCOMES.of(config.model_name, config.dataset_name):
                _begin_others(
                    {
                        "model": config.model_obj,
                        "model_name": config.model_name,
                        "dataset": config.dataset_obj,
                        "work_dir": config.work_dir,
                        "result_file": config.result_file,
                        "api_nproc": given.arguments["concurrency"],
                    }
                )
        begin(*arguments, **named)

    pipeline.__init__ = begin_alone


def _name_of(dataset: Any) -> str:
    return str(getattr(dataset, "dataset_name", type(dataset).__name__))


def _job_of_others(in_vlmevalkit: Callable[..., Any], given: inspect.BoundArguments) -> Any:
    """Let VLMEvalKit ask about a dataset that is not FindIt's, if nobody else answered before."""
    model = given.arguments["model"]
    with OUTCOMES.of(str(given.arguments["model_name"]), _name_of(given.arguments["dataset"])):
        _refuse_baseline(given.arguments)
        _begin_others(given.arguments)
        asked_model = model_for_others(given.arguments)
    if not isinstance(asked_model, str):
        attributes_of(asked_model)  # As they are before any call
    given.arguments["model"] = asked_model
    result = in_vlmevalkit(*given.args, **given.kwargs)
    note_calls(result)
    return model if isinstance(asked_model, DeployedModel) else result


def _begin_others(given: Mapping[str, Any]) -> None:
    """Record who answers a dataset that is not FindIt's; IdentityError where another did.

    VLMEvalKit's own models under its own runner have no record, unless one is there already.
    """
    files = files_of(given)
    is_findit = _is_findit(given["model"], files.model)
    if not is_findit and not files.record.is_file():
        return
    set_aside_cut(files)
    dataset = given["dataset"]
    asks = not is_finished(files, dataset)
    if is_findit and asks:
        refuse_conversations(files.model, dataset, files.dataset)
    who = who_answers(files, _asked_of(given), table_of(dataset), here=asks)
    if Ranks.of_this_process().is_first:
        write_record(files, who)


def _is_findit(model: Any, name: str) -> bool:
    """Return whether a model is of FindIt's classes, or of its command line."""
    if name in ASKED or isinstance(model, DeployedModel):
        return True
    return entry_of(name).is_findit if isinstance(model, str) else hasattr(model, "describe")


def _refuse_baseline(given: Mapping[str, Any]) -> None:
    model = given["model"]
    name = str(given["model_name"])
    is_named = isinstance(model, str)
    if isinstance(model, FindItBaseline) or (is_named and entry_of(name).cls is FindItBaseline):
        raise refused_by_baseline(name)


def model_for_others(given: Mapping[str, Any]) -> Any:
    """Return what VLMEvalKit asks about a dataset of its own or a user's: an object, or a name.

    Models of FindIt's are made here where its entry alone would make another: those that the engine
    asks, and those with what the command line says.
    """
    model = given["model"]
    name = str(given["model_name"])
    if not isinstance(model, str):
        return model
    deployment = asked(name)
    if isinstance(deployment, OverHttp):
        return DeployedModel(deployment)
    if not isinstance(deployment, VLMEvalKitModel) or not deployment.made.is_findit:
        return model
    arguments = _of_run(deployment.made)
    if not arguments and not any(part in name for part in _TAKES_VLLM):
        return model
    return HostModel(model, name, False, given["dataset"].dump_image).load(arguments)


def _job(given: Mapping[str, Any]) -> Any:
    dataset = given["dataset"]
    name = str(given["model_name"])
    passed = given["model"]
    with OUTCOMES.of(name, dataset.dataset_name) as outcome:
        dataset.take(given.get("limit"))
        deployment = _asked_of(given)
        model = HostModel(passed, name, bool(given.get("use_vllm")), dataset.dump_image)
        run = prepare_run(dataset, name, Path(given["work_dir"]), deployment)
    with Ranks.of_this_process().ending_together(), OUTCOMES.of(name, dataset.dataset_name):
        try:
            outcome.failed_calls, outcome.why_failed = answer_dataset(
                run, model, threads=int(given["api_nproc"]), again=bool(given["retry_failed"])
            )
        finally:
            note_calls(model.loaded)
    return passed if model.loaded is None else model.loaded


def _asked_of(given: Mapping[str, Any]) -> Deployment:
    """Return what answers: the object that VLMEvalKit passes, or what it will make of a name."""
    model = given["model"]
    name = str(given["model_name"])
    if hasattr(model, "asked"):
        passed: Deployment = model.asked
        entry = passed.entry
        refuse_another_row(name, find_model(entry.like or entry.name), entry.name)
        calls = replace(passed.asking.calls, threads=int(given["api_nproc"]))
        return replace(passed, asking=replace(passed.asking, calls=calls))
    deployment = asked(name)
    entry = deployment.entry
    if not isinstance(model, str):
        return VLMEvalKitModel(entry, passed=entry_of_object(model, name))
    if given.get("use_vllm") and _takes_vllm(name):
        settings = {**entry.settings, "use_vllm": True}
        return replace(deployment, entry=replace(entry, settings=settings))
    return deployment


def _takes_vllm(name: str) -> bool:
    """Return whether VLMEvalKit tells a model of this name to use vLLM or not."""
    is_of_vlmevalkit = not entry_of(name).is_findit
    return is_of_vlmevalkit and any(part in name for part in _TAKES_VLLM)


# --- a run --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostRun:
    """One model over one dataset under the host."""

    path: Path  # The prediction file in the model's folder, which later runs read
    output: Output  # VLMEvalKit puts its file into a folder below
    deployment: Deployment

    @property
    def paths(self) -> Sequence[Path]:
        """The prediction files in the model's folder and, under upstream, of this run."""
        return [*dict.fromkeys((self.path, self.output.path))]


def prepare_run(
    dataset: VariantDataset, model: str, work_dir: Path, deployment: Deployment | None = None
) -> HostRun:
    """Prepare a run over a dataset's rows, or refuse it; ``work_dir`` is for the predictions.

    Raises SpaceError, IdentityError where the folder has another run, or another ValueError.
    """
    check_model_name(model)
    deployment = (deployment or asked(model)).in_space(dataset.settings.space)
    entry = deployment.entry
    described_run = deployment.describe(dataset.loaded.variant)
    cell = dataset.cell(model, deployment.key(dataset.loaded.variant), entry.prompt)
    cell = replace(cell, logprobs=wants_logprobs())
    if cell.logprobs:
        with_logprobs(entry.settings)
    path = work_dir / f"{model}_{dataset.dataset_name}.{prediction_format()}"
    settings = replace(dataset.settings, space=entry.space)
    is_theirs = described_run.answering.in_vlmevalkit
    later = dataset.space_may_come and is_theirs and described_run.space is None
    if later:
        settings = recorded_space(path, settings)
    output = prepare_output(path, cell, settings, described_run, host_version(), space_later=later)
    if later and output.identity.space is None:
        log.warning(
            "the coordinate space of %s is not known: its replies are not scored unless "
            "--judge-args '{\"space\": …}' says it, or FINDIT_SPACE=…",
            model,
        )
    model_folder = work_dir.parent if _RUN_FOLDER.fullmatch(work_dir.name) else work_dir
    run = HostRun(model_folder / path.name, output, deployment)
    PendingBatches.of(model_folder.parent).refuse(output.cell, RunFiles(run.path).calls)
    return run


def answer_dataset(
    run: HostRun, model: HostModel, *, threads: int, again: bool
) -> tuple[int, str | None]:
    """Make the calls that are left, and write the prediction file.

    ``threads`` are calls at a time to an API; ``again`` repeats failed calls. Returns the number of
    failed calls and the reason of the first. Raises SystemExit if stopped: every answer is in the
    journal.
    """
    ranks = Ranks.of_this_process()
    path = RunFiles(run.path).calls
    if not ranks.is_first:
        ranks.wait()
        with Journal(path, shared=True) as journal:
            _make_calls(run, model, threads, again, journal)
        ranks.wait()
        return 0, None
    with Journal(path, has_others=ranks.world > 1) as journal:
        for predictions in run.paths:
            merge_predictions(replace(run.output, path=predictions), journal)
        ranks.wait()
        _make_calls(run, model, threads, again, journal)
        ranks.wait()
        journal.catch_up()
        cell = run.output.cell
        keys = list(cell.call_keys())
        write_rows(run.output.path, lambda: prediction_rows(cell, keys, journal))
        errors = ((journal.get(key) or {}).get("error") for key in keys)
        return count_failed(cell, keys, journal), next(filter(None, errors), None)


class HostModel:
    """A model of the host, by name or as an object: loaded for its first call, and only once."""

    def __init__(self, model: Any, name: str, use_vllm: bool, dump_image: Any) -> None:
        self.loaded: Any = None if isinstance(model, str) else model
        self._name = name
        self._use_vllm = use_vllm
        self._dump_image = dump_image

    def load(self, arguments: Mapping[str, Any]) -> Any:
        """Return the model, loaded with ``arguments`` besides those of its entry."""
        if self.loaded is None:
            self.loaded = self._load(dict(arguments))
            attributes_of(self.loaded)  # As they are before any call
        if hasattr(self.loaded, "set_dump_image"):
            self.loaded.set_dump_image(self._dump_image)
        return self.loaded

    def _load(self, arguments: dict[str, Any]) -> Any:
        from vlmeval.config import supported_VLM

        maker = supported_VLM[self._name]
        if not hasattr(getattr(maker, "func", maker), "describe"):
            checkpoint = getattr(maker, "keywords", {}).get("model_path")
            if isinstance(checkpoint, str):
                refuse_unreachable(checkpoint)
            if _takes_vllm(self._name):
                arguments["use_vllm"] = self._use_vllm
        # With it set, transformers would spread one model over the processes of torchrun.
        world = os.environ.pop("WORLD_SIZE", None)
        judged = nullcontext() if entry_of(self._name).is_api else judged_loading()
        try:
            with judged:
                return maker(**arguments)
        finally:
            if world is not None:
                os.environ["WORLD_SIZE"] = world


def _make_calls(
    run: HostRun, model: HostModel, threads: int, again: bool, journal: Journal
) -> None:
    """Make this process's share of the calls that are left."""
    ranks = Ranks.of_this_process()
    deployment = run.deployment
    cell = replace(run.output.cell, rows=tuple(ranks.share(run.output.cell.rows)))
    if isinstance(deployment, VLMEvalKitModel):
        backend = _host_backend(deployment.made, model, threads)
    else:
        backend = deployment.backend()
    with CallsBar(f"{cell.model}/{cell.dataset.name}") as bar, cancelled_by_signals() as cancel:
        job = JobSpec(
            outputs=[replace(run.output, cell=cell)],
            backend=backend,
            journal=journal,
            again=again,
            window=deployment.window,
            watcher=bar,
            answering=lambda output: deployment.on_this_machine(output.identity.answering),
            identities=lambda output: run.paths if ranks.is_first else (),
        )
        last = None
        is_stopped = True
        with suppress(KeyboardInterrupt, StoppedError):
            last = answer_cells(job, cancel).last
            is_stopped = cancel.requested
    if last is not None:
        raise ModelStoppedError(cell.model, last, [])
    if is_stopped:
        log.warning("stopped; finished calls are in %s: run again to go on", journal.path)
        raise SystemExit(EXIT_INTERRUPTED)


def _of_run(entry: Entry) -> dict[str, Any]:
    """Return the arguments of a model that its entry in ``supported_VLM`` lacks."""
    return {k: v for k, v in entry.arguments.items() if k in ("space", "system_prompt")}


def _host_backend(entry: Entry, model: HostModel, threads: int) -> Backend:
    arguments = _of_run(entry)

    def load() -> ModelClient:
        loaded = model.load(arguments)
        if isinstance(loaded, FindItModel):
            return loaded.client()
        return GenerateClient(loaded, runs_here=not entry.is_api)

    if entry.cls is FindItOpenRouter:
        return HttpBackend(lambda: model.load(arguments).service, threads)
    return ThreadedBackend(load, threads) if entry.is_api else LocalBackend(load)


# --- the processes of torchrun --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among the ``world`` processes of torchrun: each asks its share of the rows.

    They meet at barriers before and after, and the first writes the files. If one fails, VLMEvalKit
    goes on with the next dataset and would meet the others at the wrong barrier: a share would be
    missing, and a process could wait for an hour. So a process that fails ends all of them.
    """

    rank: int = 0
    world: int = 1

    @classmethod
    def of_this_process(cls) -> Ranks:
        return cls(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, items: Sequence[int]) -> Sequence[int]:
        """Return every ``world``-th item from this process's first."""
        return items[self.rank :: self.world]

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """End this process with a status if it fails and is not alone; torchrun ends the others."""
        try:
            yield
        except Exception as error:
            if self.world == 1:
                raise
            log.error("rank %d failed, so all processes end: %s", self.rank, error_line(error))
            raise SystemExit(
                EXIT_LIMIT_REACHED if is_disk_full(error) else EXIT_SOME_FAILED
            ) from error

    def wait(self) -> None:
        """Wait for the other processes."""
        if self.world > 1:
            import torch.distributed as dist

            dist.barrier()


class CallsBar:
    """A progress bar like the host's, over the calls of a run.

    A thread draws it also when nothing ends: a server may refuse everything for minutes.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._bar: Any = None
        self._thread = ExitStack()

    def __enter__(self) -> CallsBar:
        return self

    def __exit__(self, *stopped: object) -> None:
        self._thread.close()
        if self._bar is not None:
            self._bar.close()

    def planned(self, model: str, planned: PlannedCalls) -> None:
        if planned.calls == planned.finished:
            log.info("FindIt: nothing is left to ask of %s", self._label)
        else:
            desc = f"Infer {self._label}"
            self._bar = tqdm(total=planned.calls, initial=planned.finished, desc=desc)
            self._thread.enter_context(repeated(self._bar.refresh, _REDRAWN_EVERY))

    def answered(self, answers: Sequence[CallResult]) -> None:
        self._bar.update(len(answers))

    def scored(self, result: CellResult) -> None: ...

    def stopped(self, why: str) -> None: ...
