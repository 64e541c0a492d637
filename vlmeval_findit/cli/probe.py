"""``run_findit.py probe``: in which coordinates a deployment answers, asked about forty scenes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..benchmarks import parse
from ..benchmarks.findit.variant import Variant
from ..boxes.spaces import SpaceError, space_from
from ..core.command import INTERRUPTED
from ..core.files import atomic_write, sha256_of
from ..core.predictions import check_model_name
from ..core.question import Question
from ..core.settings import Settings, settings_from
from ..core.spelling import nearest
from ..data.probe.scenes import COUNT, SIZES
from ..doctor.conventions import SPACES, Convention, row_of
from ..doctor.of_run import RunReplies, replies_of_run
from ..doctor.probe import FEWEST, by_size, examine, other_form
from ..models.entry import ModelEntry
from ..models.http.chat import extra_fields, server_name, server_space
from ..models.table import MODELS, find_model, known_model
from ..runs.opening import open_predictions
from ..sweeps.config import Sweep, read_sweep
from .parsing import Parser
from .printing import report_spending
from .probe_saving import saved
from .probe_text import Instead, Probed, as_dict, needed, text_of
from .provider import with_provider
from .serve import serving_from
from .sweep import add_executor_flags, budget_for, hosts_for, results_of

EPILOG = f"""\
exit status:
  0    the declared convention is confirmed, or none was declared and one that runs can be scored in
       was named
  1    another convention, two of them, a scale or an offset: boxes are not where they should be
  2    undecided: fewer than {FEWEST} boxes, boxes that follow nothing, rivals that are not
       excluded; also, as everywhere, a command line that is refused
  3    calls failed, so that nothing is confirmed (run again: what was answered is not asked again)
  130  stopped
Elsewhere 1 says that something failed; here it says that something was found.

A deployment is asked once: the same command again reads what it said. After a change of the
deployment say --anew.
"""

CONFIRMED, FAULT, UNDECIDED, FAILED = 0, 1, 2, 3
"""Exit statuses."""

_FORMAT = "xyxy_json"
_STAND_IN = "grid1000"
"""Where nothing is declared: pictures are sent as they are, numbers are taken as they come."""


def main(argv: Sequence[str]) -> int:
    """Ask a deployment about the scenes of the probe and name its convention."""
    parser = Parser(
        prog="run_findit.py probe",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_flags(parser)
    add_executor_flags(parser)
    args = parser.parse_args(argv)
    question = parse(f"FindIt_Probe_{args.format}")
    if not FEWEST <= args.limit <= COUNT:
        raise ValueError(f"--limit {args.limit}: from {FEWEST} to {COUNT} scenes")
    wanted = _wanted(args, question)
    sweep = _sweep(wanted, question, args)
    if args.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep, bool(args.endpoints))
    if args.anew:
        _set_aside(sweep.journal.parent)
    elif sweep.journal.exists():
        print(f"answers of an earlier probe lie in {sweep.journal.parent}: --anew asks again\n")
    if args.limit < COUNT:
        print(needed(args.limit))
    budget = budget_for(sweep, args)
    results, status = results_of(sweep, hosts_for(sweep, args, budget))
    report_spending(budget)
    if status == INTERRUPTED or not results:
        return status if status == INTERRUPTED else FAILED
    probed = _probed(results[0].path, wanted)
    print("\n".join(text_of(probed)))
    _write(probed, wanted, args)
    return _status(probed)


def _add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        help="a name, NAME=CHECKPOINT, or with --base-url or --provider NAME=THE_SERVERS_NAME",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a sweep's file, as --save writes: its model"
    )
    parser.add_argument("--like", help="the row of the model table that the model is like")
    parser.add_argument(
        "--space",
        help="what is declared: a name, or JSON with bounds (default: the model table's; "
        "a server's model that the table does not have is named without)",
    )
    parser.add_argument(
        "--format", default=_FORMAT, help=f"how boxes are asked for (default: {_FORMAT})"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=COUNT,
        metavar="N",
        help=f"the first N scenes, {FEWEST} to {COUNT}; every {len(SIZES)} have all sizes. A "
        f"finding needs {FEWEST} boxes: of {FEWEST} scenes every one has to give its box",
    )
    parser.add_argument("--extra-body", metavar="JSON", help="more fields of every request")
    parser.add_argument("--work-dir", type=Path, default=Path("probes"), help="default: probes")
    parser.add_argument("--anew", action="store_true", help="ask again what was asked before")
    parser.add_argument("--dry-run", action="store_true", help="count, and ask nothing")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="plot true against said")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FILE.yaml",
        help="write what was named as a sweep's file, for `sweep` and `probe --config`",
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Who is probed.

    ``entry`` is the model as it is asked; ``said`` the space that the user declares (None: what the
    run says of itself, or, where ``is_declared`` is not set, nothing).
    """

    entry: ModelEntry
    said: Any
    is_declared: bool


# --- who is asked ---------------------------------------------------------------------------------


def _wanted(args: argparse.Namespace, question: Question) -> _Wanted:
    entry = with_provider(_entry(args), args)
    said = settings_from({"space": args.space or entry.space}).space
    if said is not None:
        space_from(said)
    row = find_model(entry.like or entry.name)
    if args.endpoints or entry.provider is not None:
        # How pictures are sent depends on what is declared, as in every run.
        declared = said is not None or _row_says(entry, question)
        return _Wanted(replace(entry, space=said if declared else _STAND_IN), said, declared)
    if row is None:
        if said is None:
            raise ValueError(
                f"no model {entry.like or entry.name!r} in the model table"
                f"{nearest(entry.like or entry.name, MODELS)}; one that the table does not have "
                "needs --like or --space, or --base-url"
            )
        return _Wanted(replace(entry, space=said), said, True)
    # A model of ours records its own space; what is said is held against it afterwards.
    return _Wanted(replace(entry, space=None), said, True)


def _row_says(entry: ModelEntry, question: Question) -> bool:
    try:
        server_space(entry.like or entry.name, None)(question)
    except SpaceError:
        return False
    return True


def _entry(args: argparse.Namespace) -> ModelEntry:
    if args.like is not None:
        known_model(args.like, "--like")
    if args.config is not None:
        return _configured(args)
    if args.model is None:
        raise ValueError("--model or --config: who is asked?")
    if args.endpoints and args.provider is None:
        name, served = server_name(args.model)
        settings = extra_fields(args.extra_body)
        return ModelEntry(check_model_name(name), settings=settings, like=args.like, served=served)
    if args.extra_body and args.provider is None:
        raise ValueError("--extra-body is for the servers of --base-url, and there are none")
    name, given, checkpoint = args.model.partition("=")
    return ModelEntry(
        check_model_name(name),
        settings=extra_fields(args.extra_body),
        checkpoint=checkpoint if given else None,
        like=args.like,
    )


def _configured(args: argparse.Namespace) -> ModelEntry:
    """The model of a sweep's file."""
    known = {one.name: one for one in read_sweep(args.config).models}
    name = args.model or next(iter(known))
    if name not in known or (args.model is None and len(known) > 1):
        raise ValueError(
            f"{args.config}: which model? --model {' or '.join(known)}{nearest(name, known)}"
        )
    if args.extra_body:
        raise ValueError("--extra-body stands in the file of --config, as `settings`")
    return replace(known[name], like=args.like or known[name].like, line=0)


def _sweep(wanted: _Wanted, question: Question, args: argparse.Namespace) -> Sweep:
    """The probe as a sweep of one cell.

    What makes it another run is part of the folder's name, so that nothing is refused for being
    another one; scenes that are added share the journal.
    """
    entry = wanted.entry
    parts = [entry.name, entry.served, entry.like, entry.checkpoint, args.endpoints, args.header]
    parts += [dict(entry.settings), entry.space]
    parts += [entry.provider] if entry.provider else []
    serving = serving_from(args)
    parts += [serving.program, serving.arguments] if serving is not None else []
    digest = sha256_of(json.dumps(parts, sort_keys=True, default=str).encode())[:8]
    folder = args.work_dir / digest
    return Sweep(
        models=(entry,),
        questions=(question,),
        limit=args.limit,
        work_dir=folder / f"{args.limit}",
        journal=folder / "calls.jsonl",
        serve=serving,
    )


def _set_aside(folder: Path) -> None:
    """Give an earlier probe another name: what was paid for is kept."""
    if folder.exists():
        number = 1
        while (aside := folder.with_name(f"{folder.name}.{number}")).exists():
            number += 1
        folder.rename(aside)


# --- what is found --------------------------------------------------------------------------------


def _probed(path: Path, wanted: _Wanted) -> Probed:
    found = open_predictions(path, Settings())
    own = found.settings
    run = replies_of_run(found.model, found.task, found.replies, own, found.identity)
    question = found.task.question
    assert isinstance(question, Variant)  # else its answers were no boxes
    asked = Convention(SPACES[_STAND_IN], run.declared.order)
    finding = examine(run.queries, _declared(wanted, run), asked)
    other = other_form(question, found.replies)
    instead = None
    if other is not None and other.question is not None:
        task = replace(found.task, question=other.question)
        read_so = replies_of_run(found.model, task, found.replies, own, found.identity)
        made = examine(read_so.queries, _declared(wanted, read_so), asked)
        instead = Instead(other, read_so, made)
    elif other is not None:
        instead = Instead(other)
    return Probed(
        model=found.model,
        dataset=found.task.name,
        path=path,
        run=run,
        finding=finding,
        sizes=by_size(run.queries, finding, asked),
        asked=asked,
        instead=instead,
    )


def _declared(wanted: _Wanted, run: RunReplies) -> Convention | None:
    if not wanted.is_declared:
        return None
    if wanted.said is None:
        return run.declared
    return Convention(row_of(space_from(wanted.said)), run.declared.order)


def _status(probed: Probed) -> int:
    finding = probed.finding
    if finding.outcome.is_fault or (finding.declared is None and probed.unusable is not None):
        return FAULT
    if probed.failed:
        return FAILED
    return CONFIRMED if probed.is_named else UNDECIDED


def _write(probed: Probed, wanted: _Wanted, args: argparse.Namespace) -> None:
    """Write the files that were asked for."""
    if args.picture is not None:
        from ..report.probe_plot import draw

        args.picture.parent.mkdir(parents=True, exist_ok=True)
        draw(probed.run.queries, probed.finding, probed.asked, args.picture)
        print(f"picture: {args.picture}")
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(args.json) as f:
            json.dump({**as_dict(probed), "exit_status": _status(probed)}, f, indent=1)
            f.write("\n")
    if args.save is not None:
        print(saved(probed, wanted.entry, args.save, args.endpoints))
