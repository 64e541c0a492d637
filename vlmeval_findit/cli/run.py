"""``run_findit.py run``: VLMEvalKit's runner, after what can be refused has been refused."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import click

from ..benchmarks import benchmark_of, is_meant, is_ours_entry, parse
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
from ..core.vlmevalkit import HostFlag, Runner, find_runner, host_flags, package_folder
from ..engine.backend import Inference
from ..engine.served import served_model
from ..engine.servers import ServersHost
from ..models.entry import ModelEntry
from ..models.http.endpoints import provider_endpoints
from ..models.http.providers.table import OPENROUTER
from ..models.http.spending import Budget
from ..models.options import ModelOptions
from ..models.table import check_settings, known_model
from ..serving.processes import end
from .model_options import CONFIDENCES, DRY_RUN, MODEL, SKIP_MISSING, model_options
from .options import (
    PATH,
    Command,
    complete_datasets,
    complete_models,
    force_option,
    is_verbose,
)
from .printing import report_spending
from .refusals import (
    MODEL_COMMAND,
    check_amounts,
    check_answers,
    check_here,
    check_hosts_dataset,
    check_rows,
)
from .ways import OURS_ONLY, REPLAY, Way, flag_name, refuse_unused, way_of

MODES = ("all", "infer", "eval")

_HANDED_ON = ("base_url", "key", "timeout", "extra_body")
"""What VLMEvalKit asks its own models with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """A command line of ``run``; ``rest`` are flags of VLMEvalKit's runner."""

    how: ModelOptions
    data: tuple[str, ...]
    model: tuple[str, ...]
    config: str | None
    mode: str
    limit: int | None
    work_dir: str
    reuse: bool
    judge_args: str | None
    image_root: tuple[str, ...]
    prompts: Path | None
    rest: tuple[str, ...]

    @property
    def is_ours(self) -> bool:
        """Whether a dataset of FindIt's is named."""
        return any(map(is_meant, self.data))

    @property
    def settings(self) -> dict[str, Any]:
        """``--judge-args`` with ``--space``; a ValueError where they contradict."""
        said, space = judge_args(self.judge_args), self.how.said_space
        if space is not None and said.get("space", space) != space:
            raise ValueError(f"--space {self.how.space} and another in --judge-args: which is it?")
        return said if space is None else {**said, "space": space}

    @property
    def given(self) -> list[str]:
        """The options that were given, and that not everybody heeds."""
        own = [name for name in ("image_root", "prompts") if getattr(self, name)]
        return [*own, *self.how.given]


class _RunCommand(Command):
    """Takes several words after ``--data`` and ``--model``, as VLMEvalKit's runner does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        expanded, option = list[str](), ""
        for word in args:
            if word.startswith("-"):
                option = word if word in ("--data", "--model") else ""
                expanded += [] if option else [word]
            else:
                expanded += [option, word] if option else [word]
        return super().parse_args(ctx, expanded)


@click.command(
    cls=_RunCommand,
    context_settings={"ignore_unknown_options": True},
    examples=[
        "python run_findit.py run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano",
        "python run_findit.py --data A B --model Qwen3-VL --base-url http://localhost:8000/v1",
    ],
)
@click.option(
    "--data",
    multiple=True,
    shell_complete=complete_datasets,
    metavar="NAME …",
    help="Datasets: FindIt's, or others.",
)
@click.option(
    "--model",
    multiple=True,
    shell_complete=complete_models,
    metavar="NAME …",
    help=f"Each {MODEL}.",
)
@click.option("--config", metavar="FILE", help="VLMEvalKit's file of datasets and models instead.")
@click.option("--mode", default="all", help="all, infer (ask only) or eval (score only).")
@click.option("--limit", type=int, metavar="N", help="The first N rows of every dataset.")
@click.option("--work-dir", default="./outputs", metavar="DIR")
@click.option("--reuse", is_flag=True, help="Go on from the answers of an earlier run.")
@click.option("--judge-args", metavar="JSON", help="Settings of datasets, as VLMEvalKit has them.")
@click.option(
    "--image-root",
    multiple=True,
    metavar="KEY=DIR",
    help="Where the images of a dataset lie (repeatable).",
)
@click.option(
    "--prompts", type=PATH, metavar="CLONE", help="Ask in the release's own words, from a clone."
)
@model_options(DRY_RUN, CONFIDENCES, force_option, SKIP_MISSING)
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="[VLMEVALKIT FLAGS]...")
def command(**given: Any) -> int:
    """Ask models about datasets and score the answers.

    Every other flag is VLMEvalKit's runner's. The word "run" may be left out before --data.
    """
    ours = RunOptions(**given)
    how = ours.how
    _set_environment(ours)
    check_amounts(how, limit=ours.limit)
    said = _datasets(ours)
    questions = [parse(name) for name in said]
    runner = None
    if not how.dry_run or package_folder() is not None:
        runner = find_runner([*ours.rest, *_host_flags(ours, ours.model)])
    theirs = _hosts_flags(runner, ours)
    _check_named(ours)
    check_amounts(how, **{name: theirs[name] for name in ("nproc", "retry") if name in theirs})
    entries = _entries(ours)
    own = (_way(entry, ours, bool(said)) in (Way.LOCAL, Way.CHECKPOINT) for entry in entries)
    if theirs.get("use_vllm") and any(own):
        ours = replace(ours, how=replace(how, serve="vllm"))
    ways = {entry.name: _way(entry, ours, bool(said)) for entry in entries}
    if said:
        _check_ours(ours, [*theirs, *ours.given], entries, ways, questions)
        check_rows(questions if ours.mode != "eval" else (), skips_missing())
    else:
        _check_theirs(ours, theirs)
    if how.dry_run or runner is None:
        from .dry_run import of_data

        return of_data(list(said), entries, ours.limit)
    return _run(ours, runner, said, entries)


def _run(
    ours: RunOptions,
    runner: Runner,
    said: Mapping[str, Mapping[str, Any]],
    entries: Sequence[ModelEntry],
) -> int:
    """Import the host, hold the runs against what lies there, and start its runner."""
    os.environ.setdefault("PRED_FORMAT", "json")
    try:
        from ..host import register
        from ..host.outcomes import OUTCOMES
        from ..host.preflight import WantedRuns, check_datasets, preflight, share_budget
        from ..host.runner import run_host
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): {install('run')}, "
            "or install a clone of it into this environment"
        ) from None
    register()
    names, how = list(said), ours.how
    serving = how.serving()
    for entry in entries if ours.model else ():
        _make_known(entry, ours, _way(entry, ours, bool(said)))
    models = [entry.name for entry in entries] or list(_config(ours, "model"))
    if not any(word.partition("=")[0] == "--data-config" for word in ours.rest):
        check_datasets([name for name in ours.data if name not in said])
    settings = json.dumps(ours.settings) if ours.settings else None
    preflight(WantedRuns(models, said, ours.mode, Path(ours.work_dir), settings, ours.limit))
    budget = share_budget(models, ours.mode, how.max_usd, how.timeout)
    print(f"VLMEvalKit: {runner.what}", file=sys.stderr)
    flags = [*ours.rest, *_host_flags(ours, models)]
    if serving is not None and how.api_nproc is None:
        flags += ["--api-nproc", str(serving.calls)]
    if is_verbose() and "--verbose" in _names(host_flags(runner.path)):
        flags.append("--verbose")
    try:
        run_host(runner, flags)
    finally:
        end()
    if how.temperature:
        print(f"FindIt: replies were sampled at temperature {how.temperature:g}", file=sys.stderr)
    expected = [(model, name) for model in models for name in names]
    missing = OUTCOMES.missing(expected, scored=ours.mode != "infer")
    for line in [*map(str, OUTCOMES.bad()), *missing]:
        print(f"FindIt: {line}", file=sys.stderr)
    return report_spending(budget) or OUTCOMES.status or (SOME_FAILED if missing else 0)


def _set_environment(ours: RunOptions) -> None:
    if ours.image_root:
        os.environ["FINDIT_IMAGES"] = ",".join(ours.image_root)
    if ours.how.skip_missing_images:
        os.environ["FINDIT_SKIP_MISSING"] = "1"
    if ours.prompts:
        os.environ["FINDIT_PROMPTS"] = str(ours.prompts)
    if ours.how.force:
        os.environ[FORCE_VARIABLE] = "1"
    if ours.how.confidences:
        os.environ[CONFIDENCES_VARIABLE] = "1"


def _datasets(ours: RunOptions) -> dict[str, dict[str, Any]]:
    """The datasets of ours that a command line asks for, with what its ``--config`` says of each.

    Raises:
        ValueError: the configuration gives one another name than its own.
    """
    if ours.config is None:
        return {name: {} for name in ours.data if is_meant(name)}
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


def _check_class(ours: RunOptions, name: str, entry: Mapping[str, Any]) -> None:
    question = parse(name)
    wanted = benchmark_of(question).host_class(question)
    if entry.get("class") != wanted:
        raise ValueError(
            f"{ours.config}: data {name!r}: its class is {wanted}, not {entry.get('class')}. "
            f'Type: "class": "{wanted}"'
        )


def _config(ours: RunOptions, section: str) -> dict[str, Any]:
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


def _host_flags(ours: RunOptions, models: Sequence[str]) -> list[str]:
    """What VLMEvalKit's runner is handed of our options."""
    how = ours.how
    flags = ["--mode", ours.mode, "--work-dir", ours.work_dir]
    flags += ["--data", *ours.data] if ours.data else []
    flags += ["--model", *models] if ours.model else []
    values: dict[str, Any] = {
        "judge_args": json.dumps(ours.settings) if ours.settings else None,
        "limit": ours.limit,
        "config": ours.config,
        "api_nproc": how.api_nproc,
        # A model of FindIt's never sees these again, and the host would record the key.
        **({} if _is_called(ours) or how.serve else {n: getattr(how, n) for n in _HANDED_ON}),
        "temperature": None if ours.is_ours or ours.config else how.temperature,
    }
    for name, value in values.items():
        if value is not None:
            flags += [flag_name(name), f"{value:g}" if isinstance(value, float) else str(value)]
    return flags + ["--reuse"] * ours.reuse


# --- what is refused before the host is imported --------------------------------------------------


def _check_named(ours: RunOptions) -> None:
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


class _HostParser(argparse.ArgumentParser):
    """Parses flags of VLMEvalKit's runner; what it cannot parse is an error of ours."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _hosts_flags(runner: Runner | None, ours: RunOptions) -> dict[str, Any]:
    """What a command line says in flags of the host's runner, by their names.

    Raises:
        ValueError: it has no such flag, or the flag no such value.
    """
    flags = host_flags(runner.path) if runner is not None else []
    theirs = _names(flags)
    if not theirs:
        return {}  # no runner, or one that says its flags in another way
    own = {name for option in command.params for name in option.opts}
    parser = _HostParser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for flag in flags:
        if not own & set(flag.names):
            parser.add_argument(*flag.names, **flag.settings)
    found, unknown = parser.parse_known_args(ours.rest)
    if unknown:
        said = unknown[0].partition("=")[0]
        if now := command.renamed(said):
            raise ValueError(f"{said} is {now} now: python run_findit.py run --help")
        raise ValueError(f"no flag {said!r}{nearest(said, sorted(own | theirs))}")
    for name, value in (("--limit", ours.limit), ("--api-nproc", ours.how.api_nproc)):
        if value is not None and name not in theirs:
            raise ValueError(
                f"{name}: the runner of this VLMEvalKit has no such flag. Leave it out"
            )
    return {name: value for name, value in vars(found).items() if value not in (None, False, [])}


def _names(flags: Sequence[HostFlag]) -> set[str]:
    return {name for flag in flags for name in flag.names}


def _entries(ours: RunOptions) -> list[ModelEntry]:
    """The models of ``--model``, as a sweep names them; those of a configuration by their names."""
    if ours.config is not None:
        return [ModelEntry(name) for name in _config(ours, "model")]
    if not ours.is_ours:
        # VLMEvalKit asks its own models at an address.
        return [_theirs(model, ours) for model in ours.model]
    space = ours.settings.get("space")
    return [replace(ours.how.entry(model), space=space) for model in ours.model]


def _theirs(model: str, ours: RunOptions) -> ModelEntry:
    name, given, where = model.partition("=")
    return ModelEntry(name, checkpoint=where if given else None, like=ours.how.like)


def _is_called(ours: RunOptions) -> bool:
    """Whether the models are asked at an address or a provider, by FindIt."""
    return bool(ours.how.base_url or ours.how.provider) and ours.is_ours


def _way(entry: ModelEntry, ours: RunOptions, is_ours: bool) -> Way:
    if ours.config is not None:
        return Way.CONFIG
    if not is_ours:
        return Way.HOSTS_OWN
    return way_of(entry, ours.how.serve is not None)


def _check_ours(
    ours: RunOptions,
    given: Sequence[str],
    entries: Sequence[ModelEntry],
    ways: Mapping[str, Way],
    questions: Sequence[Question],
) -> None:
    """Refuse what a run of our datasets would not heed, or could not be asked."""
    how = ours.how
    if how.provider and ours.config:
        raise ValueError(
            "--provider is for --data FindIt_…; an entry of a --config file says it itself (class "
            "FindItProvider)"
        )
    refuse_unused(given, [*ways.items()])
    others = [name for name in ours.data if not is_meant(name)]
    if others and (_is_called(ours) or how.temperature is not None):
        flag = "--temperature" if how.temperature is not None else "--base-url or --provider"
        raise ValueError(f"{flag}: run FindIt's datasets and others apart")
    for name in others:
        check_hosts_dataset(name)
    said = ours.settings
    for key in said if not others and ours.data else ():
        if key not in SETTING_NAMES:
            raise ValueError(f"--judge-args: no setting {key!r}{nearest(key, SETTING_NAMES)}")
    settings = settings_from(said)
    check_settings(settings)
    if how.like is not None:
        known_model(how.like, "--like")
    _check_images(ours, questions)
    if ours.config:
        _check_configured(ours)
        return
    servers = _servers(how) if _is_called(ours) else None
    serving = how.serving()
    if serving is not None:
        serving.check()
    asks = not how.dry_run and ours.mode != "eval"
    for entry in entries:
        way = ways[entry.name]
        if servers is None:
            check_here(entry, way)
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


def _check_images(ours: RunOptions, questions: Sequence[Question]) -> None:
    """Refuse a folder of images that no dataset looks into."""
    keys = list(dict.fromkeys(question.images for question in questions))
    for pair in ours.image_root:
        key, _, folder = pair.partition("=")
        if key not in keys:
            raise ValueError(
                f"--image-root {pair}: no dataset that is asked has the key {key!r}"
                f"{nearest(key, keys)}. Type: --image-root {keys[0]}=DIR"
            )
        if not Path(folder).is_dir() or not folder:
            raise ValueError(f"--image-root {pair}: no such folder. Type: --image-root {key}=DIR")


def _check_configured(ours: RunOptions) -> None:
    """Refuse models of a configuration that nobody knows; a class is VLMEvalKit's to find."""
    for name, said in _config(ours, "model").items():
        if "class" not in said:
            try:
                entry = ModelEntry(name)
                check_here(entry, way_of(entry))
            except ValueError as error:
                raise ValueError(f"{ours.config}: {error}") from None


def _servers(how: ModelOptions) -> ServersHost:
    budget = Budget(math.inf if how.max_usd is None else how.max_usd)
    return ServersHost((), Inference(), how.header, budget, key=how.key)


def _check_theirs(ours: RunOptions, theirs: Mapping[str, Any]) -> None:
    """Refuse what VLMEvalKit's own datasets would not heed, and names that it cannot know."""
    # Upstream's --data-config gives datasets other names.
    for name in ours.data if "data_config" not in theirs else ():
        check_hosts_dataset(name)
    for name in ours.given:
        if name in OURS_ONLY:
            raise ValueError(
                f"{flag_name(name)} is for FindIt's datasets (--data FindIt_…), and none is asked"
            )
    if ours.how.like is not None:
        known_model(ours.how.like, "--like")
    for model in ours.model if not ours.how.base_url else ():
        entry = _theirs(model, ours)
        check_here(entry, way_of(entry))


def _make_known(entry: ModelEntry, ours: RunOptions, way: Way) -> None:
    """Make a model known to the host, by its name."""
    from ..host import preflight
    from ..host.local import make_known

    serving = ours.how.serving()
    if way is Way.PROVIDER:
        preflight.add_provider(entry, ours.how)
    elif way is Way.SERVER:
        preflight.add_server(entry, ours.how)
    elif way is Way.SERVED and serving is not None:
        folder = Path(ours.work_dir) / "servers"
        preflight.add_served(entry, serving, folder, ours.how.timeout)
    else:
        if entry.checkpoint is not None and entry.name == REPLAY:
            preflight.add_replay(entry.checkpoint)
        elif entry.checkpoint is not None:
            make_known(entry.name, entry.checkpoint, entry.like)
        if entry.settings or entry.resources:
            preflight.add_settings(entry)
