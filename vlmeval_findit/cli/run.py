"""VLMEvalKit's runner, after what can be refused has been refused."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..images import rows_to_leave_out, skips_missing
from ..places import image_folder
from ..tasks import load_task


def main(argv: Sequence[str]) -> int:
    """Hand a command line over to VLMEvalKit, after refusing what can be refused."""
    ours, rest = _our_flags().parse_known_args(argv)
    if ours.images:
        os.environ["FINDIT_IMAGES"] = ",".join(ours.images)
    if ours.skip_missing_images:
        os.environ["FINDIT_SKIP_MISSING"] = "1"
    if ours.prompts:
        os.environ["FINDIT_PROMPTS"] = str(ours.prompts)
    names = [name for name in ours.data or () if name.startswith("FindIt")]
    _check_data(names, ours.mode)
    os.environ.setdefault("PRED_FORMAT", "json")
    try:
        import vlmeval.run

        from ..host import register
        from ..host.preflight import preflight
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): pip install 'vlmeval-findit[vlmeval]', "
            "or install a clone of it into this environment"
        ) from None
    register()
    model_names = [_with_source(model) for model in ours.model or ()]
    preflight(names, model_names, ours)
    sys.argv = ["run_findit.py", *rest, *_host_flags(ours, model_names)]
    vlmeval.run.main()
    return 0


def _our_flags() -> argparse.ArgumentParser:
    """Our flags, and those of the host's that are looked at before it gets them."""
    parser = argparse.ArgumentParser(prog="run_findit.py", add_help=False, allow_abbrev=False)
    parser.add_argument("--images", action="append", metavar="KEY=DIR")
    parser.add_argument("--skip-missing-images", action="store_true")
    parser.add_argument("--prompts", type=Path)
    parser.add_argument("--data", nargs="+")
    parser.add_argument("--model", nargs="+")
    parser.add_argument("--judge-args")
    parser.add_argument("--mode", default="all")
    parser.add_argument("--work-dir", default="./outputs")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--base-url")
    return parser


def _host_flags(ours: argparse.Namespace, models: Sequence[str]) -> list[str]:
    flags = ["--mode", ours.mode, "--work-dir", ours.work_dir]
    flags += ["--data", *ours.data] if ours.data else []
    flags += ["--model", *models] if models else []
    flags += ["--judge-args", ours.judge_args] if ours.judge_args else []
    flags += ["--base-url", ours.base_url] if ours.base_url else []
    return flags + ["--reuse"] * ours.reuse


def _check_data(names: Iterable[str], mode: str) -> None:
    """Names, tables and images, before the seconds that it takes to import the host."""

    for name in names:
        task = load_task(name)
        if mode != "eval":
            folder = image_folder(task.variant.row.images)
            rows_to_leave_out(list(task.queries.values()), folder, skips_missing())


def _with_source(model: str) -> str:
    """``Replay=PATH``: make the model that answers from there; the name without the path."""
    name, given, path = model.partition("=")
    if given:
        from ..host.preflight import add_replay

        if name != "Replay":
            raise ValueError(f"--model {model}: only Replay takes a path")
        add_replay(path)
    return name
