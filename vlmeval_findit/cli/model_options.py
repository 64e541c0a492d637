"""The options by which ``run``, ``search``, ``sweep`` and ``probe`` choose and ask models."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, wraps
from typing import Any, get_origin

import click

from ..benchmarks.findit import FAMILY_PROMPTS
from ..core import flag_name
from ..models import HEADINGS, BatchKind, Declared, ModelOptions, declared_options
from ..protocol import PROMPTS_VARIABLE
from .command_base import Command, completion, declare, force_option, space_option, switch

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

MODEL = "NAME, NAME=CHECKPOINT (a folder or hub identifier) or, at a server, NAME=SERVED."

_SHARED_WITH_OTHERS: Mapping[str, Option] = {"space": space_option, "force": force_option}
"""Options that other commands have, too: the same declarations."""


def _click_option(name: str, row: Declared) -> Option:
    """Make the flag of an option as its field declares it."""
    shown: dict[str, Any] = {"help": row.option.text, "metavar": row.option.metavar}
    flag = flag_name(name)
    if name in _SHARED_WITH_OTHERS:
        return _SHARED_WITH_OTHERS[name]
    if row.type is bool:
        return switch(flag, row.option.text)
    if row.type is BatchKind:
        kinds = click.Choice([kind.value for kind in BatchKind])
        return declare(
            flag, type=kinds, callback=lambda _, __, value: value and BatchKind(value), **shown
        )
    if row.option.choices:
        choices = click.Choice(row.option.choices)
        return declare(flag, type=choices, default=row.option.choices[0], **shown)
    if get_origin(row.type) is tuple:
        return declare(flag, multiple=True, **shown)
    if row.option.of_some:
        shown["show_default"] = False
    if name == "prompts":
        shown["shell_complete"] = completion(lambda: FAMILY_PROMPTS)
    return declare(flag, type=row.type, **shown)


_OPTIONS = {name: _click_option(name, row) for name, row in declared_options().items()}
"""All options by their names."""

MODEL_GROUPS = {
    **{
        heading: tuple(
            name for name, row in declared_options().items() if row.option.heading == heading
        )
        for heading in HEADINGS
    },
    "Every command": ("plugin", "verbose", "quiet"),
}
"""Names of options by their heading in the help of commands that ask models."""


# Options that the short help only names
RARE = frozenset(
    name
    for name, row in declared_options().items()
    if row.option.heading in HEADINGS and not row.option.is_common
)


class AskingCommand(Command):
    """A command that asks models: its options are grouped, and rare ones are in the long help."""

    def __init__(self, *args: Any, rare: Collection[str] = (), **settings: Any) -> None:
        super().__init__(*args, groups=MODEL_GROUPS, rare={*RARE, *rare}, **settings)


def _with(options: Sequence[Option], command: Callable[..., Any]) -> Callable[..., Any]:
    for add in reversed(options):
        command = add(command)
    return command


prompt_options = partial(_with, (_OPTIONS["system"], _OPTIONS["prompt_template"]))
"""Adds ``--system`` and ``--prompt-template`` to a command."""


def model_options(*more: str) -> Option:
    """Add the shared options, and those named, to a command, which gets them as ``options``.

    The other arguments of the command stay as they are.
    """

    rows = declared_options().items()
    names = [*(name for name, row in rows if not row.option.of_some), *more]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**values: Any) -> Any:
            options = ModelOptions(**{name: values.pop(name) for name in names})
            if options.prompts is not None:
                os.environ[PROMPTS_VARIABLE] = options.prompts
            return command(options=options, **values)

        return _with([_OPTIONS[name] for name in names], call)

    return decorate
