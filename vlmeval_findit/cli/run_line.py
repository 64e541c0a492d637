"""The command line of ``run``: its options, and refusals before VLMEvalKit is imported."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import click

from ..benchmarks import begins_with_prefix, resembles_dataset_name
from ..core import HostFlag, Runner, flag_name, has_dataset, host_flags, not_there, suggestion
from ..data import parse_dataset
from ..engine import CellBuilder, Deployment, LocalBaseline, check_model, deployment_of
from ..models import (
    ModelEntry,
    ModelOptions,
    check_stated,
    find_model,
    known_model,
    refuse_same_names,
)
from ..protocol import SETTING_NAMES, DatasetVariant, judge_args, our_settings, settings_from
from ..storage import folder_from
from .access import FINDIT_ONLY, OF_JUDGES, OF_QUESTIONS, refuse_unused
from .command_base import Command, print_note
from .early_checks import (
    check_amounts,
    check_answers,
    check_folder,
    check_host_dataset,
    check_prompts,
    check_rows,
)
from .main_command import flags_by_command
from .model_options import AskingCommand
from .other_words import flags_of, misspelt_flag, other_flag, unknown_flag
from .overriding import check_overridden

_MODES = ("all", "infer", "eval")


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """A command line of ``run``; ``rest`` are flags of VLMEvalKit's runner."""

    options: ModelOptions
    data: tuple[str, ...]
    model: tuple[str, ...]
    mode: str
    limit: int | None
    work_dir: Path
    reuse: bool
    judge_args: str | None
    image_root: tuple[str, ...]
    rest: tuple[str, ...]
    # Checkpoints of its models come later: all but their files is checked, and nothing is asked
    awaited: bool = False

    @cached_property
    def variants(self) -> Sequence[DatasetVariant]:
        """The datasets of FindIt's."""
        return [parse_dataset(name) for name in self.data if resembles_dataset_name(name)]

    @property
    def others(self) -> Sequence[str]:
        """The datasets that are not FindIt's."""
        return [name for name in self.data if not resembles_dataset_name(name)]

    @property
    def is_http(self) -> bool:
        """Whether the models are asked at an address or a provider: by FindIt, about all data."""
        return bool(self.options.base_url or self.options.provider)

    @property
    def asks(self) -> bool:
        """Whether models are called."""
        return not self.options.dry_run and self.mode != "eval"

    @property
    def settings(self) -> dict[str, Any]:
        """``--judge-args`` with ``--space``; a ValueError if they contradict."""
        settings = judge_args(self.judge_args)
        space = self.options.space_value
        if space is None:
            return settings
        if settings.get("space", space) != space:
            raise ValueError(
                f"--space {self.options.space} and --judge-args name two spaces: leave one out"
            )
        return {**settings, "space": space}

    @cached_property
    def entries(self) -> Sequence[ModelEntry]:
        """The models of ``--model``."""
        if not self.variants and not self.is_http:
            like = ModelOptions(like=self.options.like)
            return [like.entry(model) for model in self.model]
        space = self.settings.get("space")
        return [replace(self.options.entry(model), space=space) for model in self.model]


class RunCommand(AskingCommand):
    """Takes several words after ``--data`` and ``--model``, as VLMEvalKit's runner does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        expanded: list[str] = []
        option = ""
        for word in args:
            if word.startswith("-"):
                option = word if word in ("--data", "--model") else ""
                expanded += [] if option else [word]
            else:
                expanded += [option, word] if option else [word]
        return super().parse_args(ctx, expanded)


# --- refusals ---


def check_named(run: RunLine) -> None:
    """Refuse a command line without a dataset or a model."""
    if run.mode not in _MODES:
        raise ValueError(f"unknown --mode {run.mode!r}{suggestion(run.mode, _MODES)}")
    if not run.data:
        raise ValueError(
            "--model without --data: name a dataset "
            "(for example --data FindIt_Scenes_mini_xyxy_json)"
            if run.model
            else "--data and --model are missing "
            "(--config FILE is for VLMEvalKit's runner: python -m vlmeval)"
        )
    if not run.model:
        raise ValueError("--data without --model: name a model (names: run_findit.py models)")
    _refuse_exchanged(run)
    refuse_same_names(run.entries)
    twice = next((name for name in run.data if run.data.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"--data names {twice} twice: leave one out")


def _refuse_exchanged(run: RunLine) -> None:
    """Refuse a dataset after --model, and a model after --data."""
    for name in run.model:
        if begins_with_prefix(name) and find_model(name) is None:
            raise ValueError(f"--model {name}: that is a dataset. Type it behind --data")
    for name in run.others:
        if find_model(name) is not None and not has_dataset(name):
            raise ValueError(f"--data {name}: that is a model. Type it behind --model")


def check_line(
    run: RunLine,
    host_values: Mapping[str, Any],
    deployments: Sequence[Deployment],
    tables: CellBuilder,
) -> None:
    """Refuse what cannot be run; ``deployments`` answer about the datasets of FindIt's."""
    options = run.options
    amounts = {name: host_values[name] for name in ("nproc", "retry") if name in host_values}
    check_amounts(options, **amounts)
    of_run = ["image_root"] if run.image_root else []
    specified = [*host_values, *of_run, *options.specified]
    if run.variants:
        refuse_unused(specified, deployments)
        _check_others(run)
        _refuse_baselines(run, deployments)
        check_prompts(run.variants)
        _check_models(run, deployments)
        asked = run.variants if run.mode != "eval" else ()
        check_rows(asked, tables, run.limit)
    elif run.is_http:
        _check_elsewhere(run, specified, host_values, deployments)
    else:
        _check_host(run, specified, host_values)
    if not options.dry_run:
        check_folder(run.work_dir)
    for deployment in deployments:
        deployment.check_programs()


class _HostParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def parse_host_flags(runner: Runner | None, run: RunLine, command: Command) -> dict[str, Any]:
    """Return the values of VLMEvalKit's flags on a command line, by their names."""
    if not run.rest:  # Else the source of the runner is read
        return {}
    flags = host_flags(runner.path) if runner is not None else []
    host_names = flag_names(flags)
    findit_names = flags_of(command)
    if not host_names:  # No runner, or its flags are not readable
        refuse_foreign_words(run.rest, findit_names)
        return {}
    parser = _HostParser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for flag in flags:
        if not findit_names & set(flag.names):
            parser.add_argument(*flag.names, **flag.settings)
    values, unknown = parser.parse_known_args(run.rest)
    if unknown:
        refuse_foreign_words(unknown, findit_names)
        # A flag of VLMEvalKit's would be refused next where FindIt asks
        known = findit_names if run.variants else findit_names | host_names
        raise ValueError(unknown_flag(unknown[0], sorted(known), "run", flags_by_command))
    return {name: value for name, value in vars(values).items() if value not in (None, False, [])}


def refuse_foreign_words(
    words: Sequence[str], flags: Collection[str], has_host: bool = True
) -> None:
    """Refuse flags of other programs, and a first word that is no flag.

    Without VLMEvalKit nobody knows its flags; those that are spelled nearly as ours are refused.
    """
    for word in words:
        if not word.startswith("-"):
            continue
        if other := other_flag(word, flags, "run"):
            raise ValueError(other)
        if not has_host and (near := misspelt_flag(word, flags)):
            raise ValueError(near)
    if not words[0].startswith("-"):
        raise ValueError(f"{words[0]!r} belongs to no flag: write it after --data or --model")


def flag_names(flags: Sequence[HostFlag]) -> set[str]:
    """Return all spellings of flags."""
    return {name for flag in flags for name in flag.names}


def _check_others(run: RunLine) -> None:
    """Refuse datasets of VLMEvalKit's, and settings, that cannot be in one run with FindIt's."""
    if not run.others:
        for key in run.settings:
            if key not in SETTING_NAMES:
                why = f"unknown setting {key!r}{suggestion(key, SETTING_NAMES)}"
                raise ValueError(f"--judge-args: {why}")
    our_settings(run.settings)
    flags = {
        "--temperature": run.options.temperature is not None and not run.is_http,
        "--system": run.options.system is not None,
    }
    for flag in filter(flags.get, flags if run.others else ()):
        raise ValueError(f"{flag}: run FindIt's datasets and others in separate commands")
    _check_names(run.others)


def _check_names(names: Sequence[str]) -> None:
    """Refuse names that VLMEvalKit cannot know, and say which FindIt has, too."""
    for name in names:
        if note := check_host_dataset(name):
            print_note(note)


def _check_models(run: RunLine, deployments: Sequence[Deployment]) -> None:
    """Refuse models that are not there, or that cannot answer the variants."""
    settings = settings_from(run.settings)
    check_stated(settings)
    check_overridden(run.options, run.settings, [_as_named(run, entry) for entry in run.entries])
    check_image_roots(run)
    for deployment in deployments:
        check_model(deployment, run.variants, awaited=run.awaited)
        if not run.awaited or deployment.entry.checkpoint is None:
            check_answers(deployment, run.variants, settings)


def _as_named(run: RunLine, entry: ModelEntry) -> ModelEntry:
    """Return a model without the options of the command line."""
    like = entry.like if run.options.like is None else None
    return ModelEntry(entry.name, checkpoint=entry.checkpoint, like=like)


def check_image_roots(run: RunLine) -> None:
    """Refuse an image folder that does not exist, or that no dataset uses."""
    keys = list(dict.fromkeys(variant.images for variant in run.variants))
    for pair in run.image_root:
        key, _, folder = pair.partition("=")
        if key not in keys:
            raise ValueError(
                f"--image-root {pair}: no dataset of --data has images called {key!r}"
                f"{suggestion(key, keys)}. Type: --image-root {keys[0]}=DIR"
            )
        if not folder or not folder_from(folder).is_dir():
            why = not_there(folder_from(folder or key), f". Type: --image-root {key}=DIR")
            raise ValueError(f"--image-root {pair}: the folder {why}")


def _refuse_baselines(run: RunLine, deployments: Sequence[Deployment]) -> None:
    """Refuse baselines where not all datasets are FindIt's."""
    for deployment in deployments if run.others else ():
        if isinstance(deployment, LocalBaseline):
            raise ValueError(
                f"{deployment.name} answers FindIt's queries only, and {run.others[0]} is not "
                "FindIt's: ask them in separate commands"
            )


def _check_elsewhere(
    run: RunLine,
    specified: Sequence[str],
    host_values: Mapping[str, Any],
    deployments: Sequence[Deployment],
) -> None:
    """Refuse what FindIt cannot ask a server or provider about VLMEvalKit's datasets alone."""
    _refuse_of_findit([name for name in specified if name in OF_QUESTIONS])
    refuse_unused([name for name in specified if name not in OF_JUDGES], deployments)
    _check_names(run.data if "data_config" not in host_values else ())
    for deployment in deployments:
        check_model(deployment, (), awaited=run.awaited)


def _refuse_of_findit(flags: Sequence[str]) -> None:
    for name in flags:
        raise ValueError(
            f"{flag_name(name)} is for FindIt's datasets, and --data names none (FindIt_…)"
        )


def _check_host(run: RunLine, specified: Sequence[str], host_values: Mapping[str, Any]) -> None:
    """Refuse flags that VLMEvalKit's datasets do not use, and names that it cannot know."""
    # VLMEvalKit's --data-config gives datasets other names.
    _check_names(run.data if "data_config" not in host_values else ())
    _refuse_of_findit([name for name in specified if name in FINDIT_ONLY])
    if run.options.like is not None:
        known_model(run.options.like, "--like")
    for entry in run.entries:
        check_model(deployment_of(entry), (), awaited=run.awaited)
