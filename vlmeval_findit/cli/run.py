"""VLMEvalKit's runner, after what can be refused has been refused."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..images import rows_to_leave_out, skips_missing
from ..models.spending import Budget
from ..places import image_folder
from ..tasks import load_task

STOPPED = 3
"""The exit status of a run that a spending limit stopped."""


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
    if ours.base_url and names:
        _check_server(ours, rest)
    if ours.max_usd is not None and "--api-mode" in rest:
        # Its pipeline waits for ever for a dataset that a model refuses to begin.
        raise ValueError("--max-usd does not go with --api-mode; --api-nproc asks as many at once")
    _check_data(names, ours.mode)
    if ours.dry_run:
        from .dry_run import of_data

        return of_data(names, ours)
    os.environ.setdefault("PRED_FORMAT", "json")
    try:
        import vlmeval.run

        from ..host import register
        from ..host.continuing import keep_records
        from ..host.preflight import preflight, share_budget
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): pip install 'vlmeval-findit[vlmeval]', "
            "or install a clone of it into this environment"
        ) from None
    register()
    model_names = [_made_known(model, names, ours) for model in ours.model or ()]
    preflight(names, model_names, ours)
    budget = share_budget(model_names, ours.mode, ours.max_usd)
    if ours.mode != "eval" and "--keep-failed" not in rest:
        keep_records(Path(ours.work_dir), model_names, names)
    sys.argv = ["run_findit.py", *rest, *_host_flags(ours, model_names)]
    vlmeval.run.main()
    return _report_spending(budget)


def _report_spending(budget: Budget) -> int:
    """Say what was spent; status 3 where the limit stopped the run."""
    if budget.spent:
        print(f"spent: ${budget.spent:.4f}", file=sys.stderr)
    if not budget.exhausted:
        return 0
    print(
        f"stopped at --max-usd {budget.limit:g}. What was paid for is kept: run the same command "
        "again to go on; --max-usd counts afresh.",
        file=sys.stderr,
    )
    return STOPPED


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
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--max-usd", type=float)
    parser.add_argument("--base-url")
    parser.add_argument("--key")
    parser.add_argument("--timeout", type=int)
    parser.add_argument("--extra-body")
    parser.add_argument("--limit", type=int)
    return parser


def _host_flags(ours: argparse.Namespace, models: Sequence[str]) -> list[str]:
    flags = ["--mode", ours.mode, "--work-dir", ours.work_dir]
    flags += ["--data", *ours.data] if ours.data else []
    flags += ["--model", *models] if models else []
    handed_on = ["judge_args", "limit"]
    if not _is_our_server(ours):
        # A server of FindIt's never sees these again, and the host would record the key.
        handed_on += ["base_url", "key", "timeout", "extra_body"]
    for name in handed_on:
        value = getattr(ours, name)
        flags += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    return flags + ["--reuse"] * ours.reuse


def _is_our_server(ours: argparse.Namespace) -> bool:
    return bool(ours.base_url) and any(name.startswith("FindIt") for name in ours.data or ())


_SAMPLING = ("--temperature", "--top-k", "--top-p", "--repetition-penalty", "--max-tokens")


def _check_server(ours: argparse.Namespace, rest: Sequence[str]) -> None:
    """What would be left unheard is refused."""
    if any(not name.startswith("FindIt") for name in ours.data):
        raise ValueError("--base-url: run FindIt's datasets and others apart")
    for flag in _SAMPLING:
        if any(word.partition("=")[0] == flag for word in rest):
            raise ValueError(
                f"{flag}: FindIt is asked greedily, within the variant's limit of tokens "
                "(--extra-body sets other fields of the request)"
            )


def _check_data(names: Iterable[str], mode: str) -> None:
    """Names, tables and images, before the seconds that it takes to import the host."""

    for name in names:
        task = load_task(name)
        if mode != "eval":
            folder = image_folder(task.variant.row.images)
            rows_to_leave_out(list(task.queries.values()), folder, skips_missing())


def _made_known(model: str, names: Sequence[str], ours: argparse.Namespace) -> str:
    """The name of a model, which the host knows from now on.

    ``Replay=PATH`` answers from there, ``Qwen3-VL=CHECKPOINT`` from a checkpoint; with
    ``--base-url``, ``NAME=SERVED`` is what the server calls SERVED.
    """
    from ..host.preflight import add_checkpoint, add_replay, add_server

    if _is_our_server(ours):
        return add_server(model, names, ours)
    name, given, path = model.partition("=")
    if given:
        if name == "Replay":
            add_replay(path)
        else:
            add_checkpoint(name, path)
    return name
