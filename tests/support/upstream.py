"""A stand-in laid out like upstream's repository: ``run.py`` at the top, no runner in the package.

The package is the installed one, linked file by file; the runner is ours, and does what upstream's
does as far as an extension can tell: it hands a dataset nothing but its name, begins a folder with
every run, links files into the model's folder, logs whatever goes wrong, writes it into the run's
status, and ends with status 0.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"

RUNNER = """\
import argparse
import json
import logging
import sys
import time
from functools import partial
from pathlib import Path

from vlmeval.config import supported_VLM
from vlmeval.dataset import build_dataset
from vlmeval.inference import infer_data_job
from vlmeval.smp import (
    get_pred_file_path, is_prediction_complete, prepare_reuse_files, setup_logger,
    upsert_dataset_status, upsert_run_status
)


def load_env():
    pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", required=True)
    parser.add_argument("--model", nargs="+", required=True)
    parser.add_argument("--work-dir", default="./outputs")
    parser.add_argument("--mode", default="all")
    parser.add_argument("--api-nproc", type=int, default=32)
    parser.add_argument("--judge-args", default="{}")
    parser.add_argument("--reuse", action="store_true")
    args = parser.parse_args()
    setup_logger()
    run = time.strftime("T%Y%m%d-%H%M%S")
    for name in args.model:
        model, home = None, Path(args.work_dir) / name
        folder = home / run
        folder.mkdir(parents=True, exist_ok=True)
        upsert_run_status(folder, api_mode=False, mode=args.mode, model_name=name)
        for data in args.data:
            say = partial(upsert_dataset_status, run_dir=folder, model_name=name, dataset_name=data)
            try:
                model = evaluate(args, name, model, data, home, folder, say) or model
            except Exception as error:
                logging.exception("skipped: %s", error)
                say(status="done", error_message=str(error))


def evaluate(args, name, model, data, home, folder, say):
    path = get_pred_file_path(str(folder), name, data)
    say(status="pending")
    dataset = build_dataset(data)
    if dataset is None:
        return say(status="done", skip_reason="invalid_dataset") and model
    prepare_reuse_files(
        str(home), folder.name, name, data, dataset, path, args.reuse, "all", True, "", 1
    )
    indices = list(dataset.data["index"])
    if args.mode == "eval" and not is_prediction_complete(path, indices):
        logging.error("no finished predictions of %s", data)
        found = Path(path).exists()
        why = "Incomplete infer result" if found else "No infer result found"
        return say(status="done", skip_reason=why) and model
    if args.mode != "eval":
        model = infer_data_job(
            model or name, work_dir=folder, model_name=name, dataset=dataset,
            api_nproc=args.api_nproc, retry_failed=True, use_vllm=False,
        )
    if args.mode != "infer":
        metrics = dataset.evaluate(path, **json.loads(args.judge_args))
        print(json.dumps(metrics, indent=4))
        say(status="done")
    for file in folder.iterdir():
        link = home / file.name
        if link.is_symlink() or link.exists():
            link.unlink()
        link.symlink_to(Path(folder.name) / file.name)
    return model


if __name__ == "__main__":
    load_env()
    main()
"""


def make_clone(folder: Path) -> Path:
    """Lay a stand-in out in a folder; returns it."""
    spec = importlib.util.find_spec("vlmeval")
    assert spec is not None
    assert spec.submodule_search_locations
    package = folder / "vlmeval"
    package.mkdir(parents=True)
    for path in Path(spec.submodule_search_locations[0]).iterdir():
        if path.name not in ("run.py", "__main__.py", "__pycache__"):
            (package / path.name).symlink_to(path)
    (folder / "run.py").write_text(RUNNER)
    for part in ("objects", "refs"):
        (folder / ".git" / part).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(f"{COMMIT}\n")
    return folder
