"""The command line of ``run``: its options, and refusals before VLMEvalKit is imported."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import click

from ..benchmarks import is_meant
from ..core.formatting import nearest
from ..core.question import Question
from ..core.settings import NAMES as SETTING_NAMES
from ..core.settings import judge_args, settings_from
from ..core.vlmevalkit import HostFlag, Runner, host_flags
from ..engine.backend import CallOptions
from ..engine.named_servers import ServerBackends
from ..engine.started_servers import served_model
from ..models.http.addresses import provider_endpoints
from ..models.http.providers.provider_table import OPENROUTER
from ..models.http.spending import Budget
from ..models.model_entry import ModelEntry, ModelOptions
from ..models.model_table import check_settings, known_model
from .access import FINDIT_ONLY, Access, access_of, flag_name, refuse_unused
from .early_checks import (
    MODEL_COMMAND,
    check_answers,
    check_host_dataset,
    check_model,
    check_prompt,
    refuse_device,
)
from .shared_options import Command

MODES = ("all", "infer", "eval")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """A command line of ``run``; ``rest`` are flags of VLMEvalKit's runner."""

    options: ModelOptions
    data: tuple[str, ...]
    model: tuple[str, ...]
    mode: str
    limit: int | None
    work_dir: str
    reuse: bool
    judge_args: str | None
    image_root: tuple[str, ...]
    prompts: Path | None
    rest: tuple[str, ...]

    @property
    def asks_findit(self) -> bool:
        """Whether ``--data`` names a FindIt dataset."""
        return any(map(is_meant, self.data))

    @property
    def is_http(self) -> bool:
        """Whether FindIt asks the models at an address or a provider."""
        return bool(self.options.base_url or self.options.provider) and self.asks_findit

    @property
    def settings(self) -> dict[str, Any]:
        """``--judge-args`` with ``--space``; a ValueError if they contradict."""
        settings, space = judge_args(self.judge_args), self.options.space_value
        if space is None:
            return settings
        if settings.get("space", space) != space:
            raise ValueError(
                f"--space {self.options.space} and another in --judge-args: leave either out"
            )
        return {**settings, "space": space}

    @property
    def specified(self) -> list[str]:
        """Names of the options on the command line that not every model uses."""
        names = [name for name in ("image_root", "prompts") if getattr(self, name)]
        return [*names, *self.options.specified]

    def entries(self) -> list[ModelEntry]:
        """Return the models of ``--model``."""
        if not self.asks_findit:
            # VLMEvalKit asks its models at an address.
            return [ModelOptions(like=self.options.like).entry(model) for model in self.model]
        space = self.settings.get("space")
        return [replace(self.options.entry(model), space=space) for model in self.model]

    def access(self, entry: ModelEntry) -> Access:
        """Return the access to a model; VLMEvalKit asks about datasets that are not FindIt's."""
        if not self.asks_findit:
            return Access.VLMEVALKIT
        return access_of(entry, self.options.serve is not None)


class RunCommand(Command):
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


# --- refusals ---


def check_named(run: RunOptions) -> None:
    """Refuse a command line without a dataset or a model."""
    if run.mode not in MODES:
        raise ValueError(f"--mode {run.mode}{nearest(run.mode, MODES)}")
    if not run.data:
        raise ValueError(
            "--model without --data: which dataset is asked? "
            "(for example --data FindIt_Scenes_mini_xyxy_json)"
            if run.model
            else "nothing to ask: --data and --model are missing "
            "(--config FILE is for VLMEvalKit's own runner: python -m vlmeval)"
        )
    if not run.model:
        raise ValueError(f"--data without --model: which model is asked? {MODEL_COMMAND}")


class _HostParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def parse_host_flags(runner: Runner | None, run: RunOptions, command: Command) -> dict[str, Any]:
    """Return the values of VLMEvalKit's flags on a command line, by their names.

    Raises:
        ValueError: VLMEvalKit's runner has no such flag, or the flag has no such value.
    """
    flags = host_flags(runner.path) if runner is not None else []
    host_names = flag_names(flags)
    if not host_names:
        return {}  # No runner, or its flags are not readable
    findit_names = {name for option in command.params for name in option.opts}
    parser = _HostParser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for flag in flags:
        if not findit_names & set(flag.names):
            parser.add_argument(*flag.names, **flag.settings)
    values, unknown = parser.parse_known_args(run.rest)
    if unknown:
        name = unknown[0].partition("=")[0]
        if new_name := command.new_name(name):
            raise ValueError(f"{name} is {new_name} now: python run_findit.py run --help")
        raise ValueError(f"no flag {name!r}{nearest(name, sorted(findit_names | host_names))}")
    return {name: value for name, value in vars(values).items() if value not in (None, False, [])}


def flag_names(flags: Sequence[HostFlag]) -> set[str]:
    """Return all spellings of flags."""
    return {name for flag in flags for name in flag.names}


def check_findit(
    run: RunOptions,
    flags: Sequence[str],
    entries: Sequence[ModelEntry],
    accesses: Mapping[str, Access],
    questions: Sequence[Question],
) -> None:
    """Refuse flags that no model uses, and models that cannot answer the questions."""
    options = run.options
    refuse_unused(flags, [*accesses.items()])
    others = [name for name in run.data if not is_meant(name)]
    if others and (run.is_http or options.temperature is not None):
        flag = "--temperature" if options.temperature is not None else "--base-url or --provider"
        raise ValueError(f"{flag}: run FindIt's datasets and others apart")
    for name in others:
        check_host_dataset(name)
    for key in run.settings if not others else ():
        if key not in SETTING_NAMES:
            raise ValueError(f"--judge-args: no setting {key!r}{nearest(key, SETTING_NAMES)}")
    settings = settings_from(run.settings)
    check_settings(settings)
    if options.like is not None:
        known_model(options.like, "--like")
    check_image_roots(run, questions)
    servers = None
    if run.is_http:
        budget = Budget(math.inf if options.max_usd is None else options.max_usd)
        servers = ServerBackends((), CallOptions(), options.header, budget, key=options.key)
    serving = options.serving()
    if serving is not None:
        serving.check()
    asks = not options.dry_run and run.mode != "eval"
    for entry in entries:
        access = accesses[entry.name]
        check_prompt(entry, questions)
        if servers is None:
            check_model(entry, access)
            if asks:
                refuse_device(entry, access)
        elif asks:
            servers.check(entry)
        for question in questions:
            if serving is not None and access is Access.SERVED:
                served_model(entry, serving).describe(question)
            elif servers is None:
                check_answers(entry, access, question, settings)
            else:
                servers.describe(entry, question)
        if access is Access.OPENROUTER and asks:
            provider_endpoints(OPENROUTER)  # Its key has to be set


def check_image_roots(run: RunOptions, questions: Sequence[Question]) -> None:
    """Refuse an image folder that does not exist, or that no dataset uses."""
    keys = list(dict.fromkeys(question.images for question in questions))
    for pair in run.image_root:
        key, _, folder = pair.partition("=")
        if key not in keys:
            raise ValueError(
                f"--image-root {pair}: no dataset of --data has the key {key!r}"
                f"{nearest(key, keys)}. Type: --image-root {keys[0]}=DIR"
            )
        if not Path(folder).is_dir() or not folder:
            raise ValueError(f"--image-root {pair}: no such folder. Type: --image-root {key}=DIR")


def check_host(run: RunOptions, host_values: Mapping[str, Any]) -> None:
    """Refuse flags that VLMEvalKit's datasets do not use, and names that it cannot know."""
    # VLMEvalKit's --data-config gives datasets other names.
    for name in run.data if "data_config" not in host_values else ():
        check_host_dataset(name)
    for name in run.specified:
        if name in FINDIT_ONLY:
            raise ValueError(
                f"{flag_name(name)} is for FindIt's datasets (--data FindIt_…), and none is named"
            )
    if run.options.like is not None:
        known_model(run.options.like, "--like")
    for entry in run.entries() if not run.options.base_url else ():
        check_model(entry, access_of(entry))
