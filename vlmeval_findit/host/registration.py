"""Register datasets and inference in VLMEvalKit's tables, and start its runner."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core import RESULTS_VARIABLE, Runner, make_logs_printable
from ..engine import Deployment, InProcess
from .model_registration import register_models as register_models


def register_datasets(dataset_module: ModuleType) -> None:
    """Register the dataset classes in ``vlmeval.dataset``, once."""
    import vlmeval.smp

    from .datasets import dataset_classes
    from .prediction_tables import give_tables
    from .runner_reports import listen
    from .who_answered import copy_records
    from .whole_files import write_whole

    listen(vlmeval.smp)
    give_tables(vlmeval.smp)
    write_whole(vlmeval.smp)
    copy_records(vlmeval.smp)
    for cls in dataset_classes():
        if cls in dataset_module.DATASET_CLASSES:
            continue
        # In front: a host's dataset that claims every name must not be asked before us.
        dataset_module.DATASET_CLASSES.insert(0, cls)
        dataset_module.IMAGE_DATASET.append(cls)
        dataset_module.SUPPORTED_DATASETS.extend(cls.supported_datasets())
        setattr(dataset_module, cls.__name__, cls)


def register_inference(inference_module: ModuleType) -> None:
    """Let the engine make the calls of FindIt's datasets; see :mod:`.inference`."""
    from .config_keys import refuse_dropped_keys
    from .config_runs import refuse_later_runs
    from .inference import install
    from .outcomes import leave_with_a_status
    from .runner_reports import RUNNER

    install(inference_module)
    if _is_the_runner(sys.modules.get("__main__")):
        refuse_dropped_keys()
        RUNNER.refuse = refuse_later_runs
        leave_with_a_status()
        make_logs_printable()


def register_tools(tools_module: ModuleType) -> None:
    """Let VLMEvalKit's command ``vlmutil`` find the prediction files of FindIt's datasets."""
    from .prediction_tables import scan_findit_files

    scan_findit_files(tools_module)


def _is_the_runner(program: ModuleType | None) -> bool:
    """Return whether this process runs VLMEvalKit's runner, not a program that calls it."""
    file = Path(getattr(program, "__file__", None) or "")
    return file.name == "run.py" or file.parent.name == "vlmeval"


def register() -> None:
    """Import VLMEvalKit (or raise ImportError) and register everything in it."""
    import vlmeval.config
    import vlmeval.dataset
    import vlmeval.inference
    import vlmeval.tools

    register_datasets(vlmeval.dataset)
    register_models(vlmeval.config)
    register_inference(vlmeval.inference)
    register_tools(vlmeval.tools)


def made_in_vlmevalkit(deployment: Deployment) -> InProcess:
    """Return a model as VLMEvalKit makes it; ImportError if VLMEvalKit is not installed."""
    register()
    from .vlmevalkit_backends import VLMEvalKitModel

    return VLMEvalKitModel(deployment.entry, deployment.asking)


def run_host(runner: Runner, arguments: Sequence[str], work_dir: Path) -> None:
    """Run a command line; results go to ``work_dir``, whatever variables and ``.env`` say."""
    sys.argv = [str(runner.path), *arguments]
    module = _module(runner.path)
    module.load_env()
    os.environ[RESULTS_VARIABLE] = str(work_dir)
    if not (runner.path.parent / ".git").exists() and hasattr(module, "githash"):
        # An installed VLMEvalKit has no git revision, and git would complain about it.
        module.githash = lambda *_, **__: "unknown"
    module.main()


def _module(path: Path) -> Any:
    if path.parent.name == "vlmeval":
        return importlib.import_module("vlmeval.run")
    spec = importlib.util.spec_from_file_location("run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["run"] = module
    spec.loader.exec_module(module)
    return module
