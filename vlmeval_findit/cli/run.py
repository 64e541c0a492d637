"""VLMEvalKit's runner, after what can be refused has been refused."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..benchmarks import is_meant, load
from ..core.exit_status import SOME_FAILED
from ..core.extras import install
from ..core.image_checks import rows_to_leave_out, skips_missing
from ..core.places import image_folder
from ..core.settings import CONFIDENCES_VARIABLE, FORCE_VARIABLE
from ..sweep.host_config import is_ours
from .parsing import Parser
from .printing import report_spending
from .provider import check_models


def main(argv: Sequence[str]) -> int:
    """Hand a command line over to VLMEvalKit, after refusing what can be refused."""
    ours, rest = _our_flags().parse_known_args(argv)
    _set_environment(ours)
    said = _datasets(ours)
    names = list(said)
    if ours.provider and not names:
        raise ValueError(
            "--provider is for FindIt's datasets (--data FindIt_…); an entry of a --config file "
            "says it itself (class FindItProvider)"
        )
    if ours.data and not ours.model:
        raise ValueError(
            "--data without --model: which model is asked? (names: run_findit.py models)"
        )
    if _is_our_server(ours):
        _check_server(ours, rest)
    if "--api-mode" in rest and names:
        raise ValueError(
            "--api-mode is VLMEvalKit's own way of asking. FindIt's datasets are asked by FindIt, "
            "--api-nproc calls at a time: leave the flag out"
        )
    if ours.provider:
        check_models(ours.model, ours)
    _check_data(names, ours.mode)
    if ours.dry_run:
        from .dry_run import of_data

        return of_data(names, ours)
    os.environ.setdefault("PRED_FORMAT", "json")
    try:
        from ..host import register
        from ..host.outcomes import OUTCOMES
        from ..host.preflight import WantedRuns, preflight, share_budget
        from ..host.runner import find_runner
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): {install('run')}, "
            "or install a clone of it into this environment"
        ) from None
    runner = find_runner(argv)
    register()
    models = [_made_known(model, names, ours) for model in ours.model or _config(ours, "model")]
    work_dir = Path(ours.work_dir)
    preflight(WantedRuns(models, said, ours.mode, work_dir, ours.judge_args, ours.limit))
    budget = share_budget(models, ours.mode, ours.max_usd, ours.timeout)
    print(f"VLMEvalKit: {runner.what}", file=sys.stderr)
    runner.run([*rest, *_host_flags(ours, models)])
    expected = [(model, name) for model in models for name in names]
    missing = OUTCOMES.missing(expected, scored=ours.mode != "infer")
    for line in [*map(str, OUTCOMES.bad()), *missing]:
        print(f"FindIt: {line}", file=sys.stderr)
    return report_spending(budget) or OUTCOMES.status or (SOME_FAILED if missing else 0)


def _set_environment(ours: argparse.Namespace) -> None:
    if ours.images:
        os.environ["FINDIT_IMAGES"] = ",".join(ours.images)
    if ours.skip_missing_images:
        os.environ["FINDIT_SKIP_MISSING"] = "1"
    if ours.prompts:
        os.environ["FINDIT_PROMPTS"] = str(ours.prompts)
    if ours.force:
        os.environ[FORCE_VARIABLE] = "1"
    if ours.confidences:
        os.environ[CONFIDENCES_VARIABLE] = "1"


def _datasets(ours: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The datasets of ours that a command line asks for, with what its ``--config`` says of each.

    Raises:
        ValueError: the configuration gives one another name than its own.
    """
    if ours.config is None:
        return {name: {} for name in ours.data or () if is_meant(name)}
    found = {}
    for name, entry in _config(ours, "data").items():
        if not is_ours(name, entry):
            continue
        if entry.get("dataset", name) != name:
            raise ValueError(
                f"{ours.config}: data {name!r} is the dataset {entry['dataset']}: VLMEvalKit looks "
                f"for its predictions under the one name and writes them under the other. Call it "
                f"{entry['dataset']}"
            )
        found[name] = {k: v for k, v in entry.items() if k not in ("class", "dataset")}
    return found


def _config(ours: argparse.Namespace, section: str) -> dict[str, Any]:
    """A section of the ``--config`` file; empty without one.

    Raises:
        ValueError: there is none such in it.
    """
    if ours.config is None:
        return {}
    try:
        values = json.loads(Path(ours.config).read_text(encoding="utf-8"))
        entries = values[section]
        if not all(isinstance(entry, dict) for entry in entries.values()):
            raise TypeError(f"{section} should have an object a name")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{ours.config}: no configuration of VLMEvalKit: {error}") from None
    return dict(entries)


def _our_flags() -> argparse.ArgumentParser:
    """Our flags, and those of the host's that are looked at before it gets them."""
    parser = Parser(prog="run_findit.py", add_help=False, allow_abbrev=False)
    parser.add_argument("--images", action="append", metavar="KEY=DIR")
    parser.add_argument("--skip-missing-images", action="store_true")
    parser.add_argument("--prompts", type=Path)
    parser.add_argument("--data", nargs="+")
    parser.add_argument("--model", nargs="+")
    parser.add_argument("--row")
    parser.add_argument("--config")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--confidences", action="store_true")
    parser.add_argument("--judge-args")
    parser.add_argument("--mode", default="all")
    parser.add_argument("--work-dir", default="./outputs")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--max-usd", type=float)
    parser.add_argument("--base-url", "--endpoints")
    parser.add_argument("--provider")
    parser.add_argument("--header", action="append")
    parser.add_argument("--key")
    parser.add_argument("--timeout", type=int)
    parser.add_argument("--extra-body")
    parser.add_argument("--limit", type=int)
    return parser


def _host_flags(ours: argparse.Namespace, models: Sequence[str]) -> list[str]:
    flags = ["--mode", ours.mode, "--work-dir", ours.work_dir]
    flags += ["--data", *ours.data] if ours.data else []
    flags += ["--model", *models] if ours.model else []
    handed_on = ["judge_args", "limit", "config"]
    if not _is_our_server(ours):
        # A server of FindIt's never sees these again, and the host would record the key.
        handed_on += ["base_url", "key", "timeout", "extra_body"]
    for name in handed_on:
        value = getattr(ours, name)
        flags += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    return flags + ["--reuse"] * ours.reuse


def _is_our_server(ours: argparse.Namespace) -> bool:
    return bool(ours.base_url or ours.provider) and any(map(is_meant, ours.data or ()))


_SAMPLING = ("--temperature", "--top-k", "--top-p", "--repetition-penalty", "--max-tokens")


def _check_server(ours: argparse.Namespace, rest: Sequence[str]) -> None:
    """What would be left unheard is refused."""
    if not all(map(is_meant, ours.data)):
        raise ValueError("--base-url or --provider: run FindIt's datasets and others apart")
    for flag in _SAMPLING:
        if any(word.partition("=")[0] == flag for word in rest):
            raise ValueError(
                f"{flag}: FindIt is asked greedily, within the variant's limit of tokens "
                "(--extra-body sets other fields of the request)"
            )


def _check_data(names: Iterable[str], mode: str) -> None:
    """Names, tables and images, before the seconds that it takes to import the host."""
    for name in names:
        task = load(name)
        if mode != "eval":
            folder = image_folder(task.question.images)
            rows_to_leave_out(list(task.queries.values()), folder, skips_missing())


def _made_known(model: str, names: Sequence[str], ours: argparse.Namespace) -> str:
    """The name of a model, which the host knows from now on.

    ``Replay=PATH`` answers from there, ``NAME=CHECKPOINT`` from a checkpoint, like the row of the
    model table that NAME or ``--row`` names; with ``--base-url`` or ``--provider``, ``NAME=SERVED``
    is what the server or the provider calls SERVED.
    """
    from ..host.local import make_known
    from ..host.preflight import add_provider, add_replay, add_server

    if ours.provider:
        return add_provider(model, names, ours)
    if _is_our_server(ours):
        return add_server(model, names, ours)
    name, given, path = model.partition("=")
    if given and name == "Replay":
        add_replay(path)
    elif given:
        make_known(name, path, ours.row)
    return name
