"""VLMEvalKit's runner, after what can be refused has been refused."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..benchmarks import baselines, benchmark_of, is_meant, is_ours_entry, parse
from ..core.command import SOME_FAILED, install
from ..core.question import Question
from ..core.settings import (
    CONFIDENCES_VARIABLE,
    FORCE_VARIABLE,
    judge_args,
    settings_from,
    skips_missing,
)
from ..core.settings import NAMES as SETTING_NAMES
from ..core.spelling import nearest
from ..core.vlmevalkit import Runner, find_runner, host_flags, package_folder
from ..engine.backend import Inference
from ..engine.served import served_model
from ..engine.servers import ServersHost
from ..models.entry import ModelEntry
from ..models.http.chat import extra_fields, server_name
from ..models.http.endpoints import provider_endpoints
from ..models.http.providers.table import OPENROUTER
from ..models.http.spending import Budget
from ..models.table import check_settings, known_model
from ..serving.processes import end
from .parsing import HostParser, Parser
from .printing import report_spending
from .provider import with_prices
from .refusals import (
    MODEL_COMMAND,
    check_amounts,
    check_answers,
    check_here,
    check_hosts_dataset,
    check_rows,
)
from .serve import add_serve_flags, serving_from
from .ways import (
    OURS_ONLY,
    REPLAY,
    Way,
    flag_name,
    given_flags,
    refuse_unused,
    way_of,
)

MODES = ("all", "infer", "eval")

COUNTS = ("api_nproc", "nproc", "retry")


def main(argv: Sequence[str]) -> int:
    """Hand a command line over to VLMEvalKit, after refusing what can be refused."""
    ours, rest = _our_flags().parse_known_args(argv)
    _set_environment(ours)
    check_amounts({"limit": ours.limit, "timeout": ours.timeout, "max_usd": ours.max_usd})
    said = _datasets(ours)
    questions = [parse(name) for name in said]
    runner = None if ours.dry_run and package_folder() is None else find_runner(argv)
    theirs = _hosts_flags(runner, rest, ours)
    _check_named(ours)
    check_amounts({name: value for name, value in vars(theirs).items() if name in COUNTS})
    entries = _entries(ours)
    own = (_way(entry, ours, bool(said)) in (Way.LOCAL, Way.CHECKPOINT) for entry in entries)
    if getattr(theirs, "use_vllm", False) and any(own):
        ours.serve = "vllm"
    ways = {entry.name: _way(entry, ours, bool(said)) for entry in entries}
    if said:
        _check_ours(ours, [*given_flags(theirs), *given_flags(ours)], entries, ways, questions)
        check_rows(questions if ours.mode != "eval" else (), skips_missing())
    else:
        _check_theirs(ours, vars(theirs))
    if ours.dry_run or runner is None:
        from .dry_run import of_data

        return of_data(list(said), entries, ours)
    return _run(ours, rest, runner, said, entries)


def _run(
    ours: argparse.Namespace,
    rest: Sequence[str],
    runner: Runner,
    said: Mapping[str, Mapping[str, Any]],
    entries: Sequence[ModelEntry],
) -> int:
    """Import the host, hold the runs against what lies there, and start its runner."""
    os.environ.setdefault("PRED_FORMAT", "json")
    try:
        from ..host import register
        from ..host.outcomes import OUTCOMES
        from ..host.preflight import (
            WantedRuns,
            add_served,
            check_datasets,
            preflight,
            share_budget,
        )
        from ..host.runner import run_host
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): {install('run')}, "
            "or install a clone of it into this environment"
        ) from None
    register()
    names = list(said)
    serving = serving_from(ours)
    for entry in entries if ours.model else ():
        if serving is not None and _way(entry, ours, bool(said)) is Way.SERVED:
            add_served(entry, ours, serving)
        else:
            _make_known(entry, ours, bool(said))
    models = [entry.name for entry in entries] or list(_config(ours, "model"))
    if not any(word.partition("=")[0] == "--data-config" for word in rest):
        check_datasets([name for name in ours.data or () if name not in said])
    work_dir = Path(ours.work_dir)
    preflight(WantedRuns(models, said, ours.mode, work_dir, ours.judge_args, ours.limit))
    budget = share_budget(models, ours.mode, ours.max_usd, ours.timeout)
    print(f"VLMEvalKit: {runner.what}", file=sys.stderr)
    if serving is not None and "--api-nproc" not in rest:
        rest = [*rest, "--api-nproc", str(serving.calls)]
    try:
        run_host(runner, [*rest, *_host_flags(ours, models)])
    finally:
        end()
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
        if not is_ours_entry(name, entry):
            continue
        if entry.get("dataset", name) != name:
            raise ValueError(
                f"{ours.config}: data {name!r} is the dataset {entry['dataset']}: VLMEvalKit looks "
                f"for its predictions under the one name and writes them under the other. Call it "
                f"{entry['dataset']}"
            )
        _check_class(ours, name, entry)
        found[name] = {k: v for k, v in entry.items() if k not in ("class", "dataset")}
    return found


def _check_class(ours: argparse.Namespace, name: str, entry: Mapping[str, Any]) -> None:
    question = parse(name)
    wanted = benchmark_of(question).host_class(question)
    if entry.get("class") != wanted:
        raise ValueError(
            f"{ours.config}: data {name!r}: its class is {wanted}, not {entry.get('class')}. "
            f'Type: "class": "{wanted}"'
        )


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
    parser.add_argument("--like")
    parser.add_argument("--config")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--confidences", action="store_true")
    parser.add_argument("--judge-args")
    parser.add_argument("--mode", default="all")
    parser.add_argument("--work-dir", default="./outputs")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--max-usd", type=float)
    parser.add_argument("--prices")
    parser.add_argument("--base-url", "--endpoints")
    parser.add_argument("--provider")
    parser.add_argument("--header", action="append")
    parser.add_argument("--key")
    parser.add_argument("--timeout", type=int)
    parser.add_argument("--extra-body")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--gpus", type=float)
    add_serve_flags(parser)
    return parser


def _host_flags(ours: argparse.Namespace, models: Sequence[str]) -> list[str]:
    flags = ["--mode", ours.mode, "--work-dir", ours.work_dir]
    flags += ["--data", *ours.data] if ours.data else []
    flags += ["--model", *models] if ours.model else []
    handed_on = ["judge_args", "limit", "config"]
    if not _is_called(ours) and ours.serve is None:
        # A server of FindIt's never sees these again, and the host would record the key.
        handed_on += ["base_url", "key", "timeout", "extra_body"]
    for name in handed_on:
        value = getattr(ours, name)
        flags += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    return flags + ["--reuse"] * ours.reuse


# --- what is refused before the host is imported --------------------------------------------------


def _check_named(ours: argparse.Namespace) -> None:
    """Refuse a command line that does not say what is asked, or whom."""
    if ours.mode not in MODES:
        raise ValueError(f"--mode {ours.mode}{nearest(ours.mode, MODES)}")
    if ours.config is not None and (ours.data or ours.model):
        raise ValueError("--config names datasets and models: leave --data and --model out")
    if ours.config is None and not ours.data:
        raise ValueError(
            "--model without --data: which dataset is asked? "
            "(for example --data FindIt_Scenes_mini_xyxy_json)"
            if ours.model
            else "nothing is asked: --data and --model, or --config"
        )
    if ours.data and not ours.model:
        raise ValueError(f"--data without --model: which model is asked? {MODEL_COMMAND}")


def _hosts_flags(
    runner: Runner | None, rest: Sequence[str], ours: argparse.Namespace
) -> argparse.Namespace:
    """What a command line says in flags of the host's runner.

    Raises:
        ValueError: it has no such flag, or the flag no such value.
    """
    parser = HostParser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    own = {name for action in _our_flags()._actions for name in action.option_strings}
    flags = host_flags(runner.path) if runner is not None else ()
    theirs = {name for flag in flags for name in flag.names}
    names = own | theirs
    for flag in flags:
        if not own & set(flag.names):
            parser.add_argument(*flag.names, **flag.settings)
    if not theirs:
        return argparse.Namespace()  # no runner, or one that says its flags in another way
    found, unknown = parser.parse_known_args(rest)
    if unknown:
        flag_said = unknown[0].partition("=")[0]
        raise ValueError(f"no flag {flag_said!r}{nearest(flag_said, sorted(names))}")
    if ours.limit is not None and "--limit" not in theirs:
        raise ValueError("--limit: the runner of this VLMEvalKit has no such flag. Leave it out")
    return found


def _entries(ours: argparse.Namespace) -> list[ModelEntry]:
    """The models of ``--model``, as a sweep names them; those of a configuration by their names."""
    said = judge_args(ours.judge_args)
    if ours.config is not None:
        return [ModelEntry(name) for name in _config(ours, "model")]
    return [_entry(model, ours, said.get("space")) for model in ours.model]


def _entry(model: str, ours: argparse.Namespace, space: Any) -> ModelEntry:
    fields = extra_fields(ours.extra_body)
    name, given, where = model.partition("=")
    if _is_called(ours) and name not in (REPLAY, *baselines()):
        if not ours.provider:
            name, where = server_name(model)
        served = where or None
        made = ModelEntry(
            name, fields, space=space, like=ours.like, served=served, provider=ours.provider
        )
        return with_prices(made, ours)
    return ModelEntry(
        name,
        space=space,
        like=ours.like,
        checkpoint=where if given else None,
        provider=ours.provider,
    )


def _is_called(ours: argparse.Namespace) -> bool:
    """Whether the models are asked at an address or a provider, by FindIt."""
    return bool(ours.base_url or ours.provider) and any(map(is_meant, ours.data or ()))


def _way(entry: ModelEntry, ours: argparse.Namespace, is_ours: bool) -> Way:
    if ours.config is not None:
        return Way.CONFIG
    if not is_ours:
        return Way.HOSTS_OWN
    return way_of(entry, bool(ours.base_url), ours.serve is not None)


def _check_ours(
    ours: argparse.Namespace,
    given: Sequence[str],
    entries: Sequence[ModelEntry],
    ways: Mapping[str, Way],
    questions: Sequence[Question],
) -> None:
    """Refuse what a run of our datasets would not heed, or could not be asked."""
    if ours.provider and ours.config:
        raise ValueError(
            "--provider is for --data FindIt_…; an entry of a --config file says it itself (class "
            "FindItProvider)"
        )
    refuse_unused(given, [*ways.items()])
    others = [name for name in ours.data or () if not is_meant(name)]
    if _is_called(ours) and others:
        raise ValueError("--base-url or --provider: run FindIt's datasets and others apart")
    for name in others:
        check_hosts_dataset(name)
    said = judge_args(ours.judge_args)
    for key in said if not others and ours.data else ():
        if key not in SETTING_NAMES:
            raise ValueError(f"--judge-args: no setting {key!r}{nearest(key, SETTING_NAMES)}")
    settings = settings_from(said)
    check_settings(settings)
    if ours.like is not None:
        known_model(ours.like, "--like")
    _check_images(ours, questions)
    if ours.config:
        _check_configured(ours)
        return
    servers = _servers(ours) if _is_called(ours) else None
    serving = serving_from(ours)
    if serving is not None:
        serving.check()
    asks = not ours.dry_run and ours.mode != "eval"
    for entry in entries:
        way = ways[entry.name]
        if servers is None:
            check_here(entry, way)
        elif asks and ours.key:
            servers.check_limit(entry)
        elif asks:
            servers.check(entry)
        for question in questions:
            if serving is not None and way is Way.SERVED:
                served_model(entry, serving).describe(question)
            elif servers is None:
                check_answers(entry, way, question, settings)
            else:
                servers.describe(entry, question)
        if way is Way.OPENROUTER and asks:
            provider_endpoints(OPENROUTER)  # its key has to be there


def _check_images(ours: argparse.Namespace, questions: Sequence[Question]) -> None:
    """Refuse a folder of images that no dataset looks into."""
    keys = list(dict.fromkeys(question.images for question in questions))
    for pair in ours.images or ():
        key, _, folder = pair.partition("=")
        if key not in keys:
            raise ValueError(
                f"--images {pair}: no dataset that is asked has the key {key!r}"
                f"{nearest(key, keys)}. Type: --images {keys[0]}=DIR"
            )
        if not Path(folder).is_dir() or not folder:
            raise ValueError(f"--images {pair}: no such folder. Type: --images {key}=DIR")


def _check_configured(ours: argparse.Namespace) -> None:
    """Refuse models of a configuration that nobody knows; a class is VLMEvalKit's to find."""
    for name, said in _config(ours, "model").items():
        if "class" not in said:
            try:
                entry = ModelEntry(name)
                check_here(entry, way_of(entry))
            except ValueError as error:
                raise ValueError(f"{ours.config}: {error}") from None


def _servers(ours: argparse.Namespace) -> ServersHost:
    urls = [url.strip() for url in (ours.base_url or "").split(",") if url.strip()]
    budget = Budget(math.inf if ours.max_usd is None else ours.max_usd)
    return ServersHost(urls, Inference(), ours.header or (), budget)


def _check_theirs(ours: argparse.Namespace, theirs: Mapping[str, Any]) -> None:
    """Refuse what VLMEvalKit's own datasets would not heed, and names that it cannot know."""
    # Upstream's --data-config gives datasets other names.
    for name in ours.data or () if "data_config" not in theirs else ():
        check_hosts_dataset(name)
    for name in given_flags(ours):
        if name in OURS_ONLY:
            raise ValueError(
                f"{flag_name(name)} is for FindIt's datasets (--data FindIt_…), and none is asked"
            )
    if ours.like is not None:
        known_model(ours.like, "--like")
    for model in ours.model or () if not ours.base_url else ():
        entry = _entry(model, ours, None)
        check_here(entry, way_of(entry))


def _make_known(entry: ModelEntry, ours: argparse.Namespace, is_ours: bool) -> None:
    """Make a model known to the host, by its name."""
    from ..host.local import make_known
    from ..host.preflight import add_provider, add_replay, add_server

    if is_ours and ours.provider:
        add_provider(entry, ours)
    elif is_ours and ours.base_url:
        add_server(entry, ours)
    elif entry.checkpoint is not None and entry.name == REPLAY:
        add_replay(entry.checkpoint)
    elif entry.checkpoint is not None:
        make_known(entry.name, entry.checkpoint, entry.like)
