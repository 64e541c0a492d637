"""The options of commands that ask models: each is declared once, as a field.

From a field follow its flag, with help and heading (:mod:`..cli.model_options`), the check of its
value, the key of a model in a file, what its value becomes part of, and which kinds of deployments
use it (:mod:`..engine.deployment_kinds`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from ..core import (
    COST,
    MACHINE,
    SERVICES,
    THE_MODEL,
    Count,
    Dollars,
    Expected,
    MisplacedError,
    Name,
    Number,
    Option,
    Seconds,
    validate,
)
from ..serving import PROGRAMS, ServerOptions
from .http.batch.batch_records import BatchKind
from .http.providers.provider_table import PROVIDERS
from .shared_settings import OnThisMachine, Sampling

# In the order of the help
HEADINGS = (THE_MODEL, SERVICES, MACHINE, COST)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is asked of a model; it goes first in the help."""

    like: Annotated[
        Name | None,
        Option(
            "Known model whose prompts and space it shares.",
            THE_MODEL,
            "NAME",
            "entry",
            is_common=True,
        ),
    ] = None
    # A name, or JSON with bounds
    space: Annotated[str | None, Option("", THE_MODEL, is_common=True)] = None
    system: Annotated[
        Name | None, Option("Text that goes before every prompt.", THE_MODEL, "FILE", "entry")
    ] = None
    prompt_template: Annotated[
        Name | None,
        Option(
            "Jinja template of the prompt, in place of the dataset's words.",
            THE_MODEL,
            "FILE",
            "entry",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class _Started:
    """What is started; it goes before the options of each server."""

    serve: Annotated[
        str | None,
        Option(
            f"Start servers of the model on this machine: {', '.join(PROGRAMS)}.",
            MACHINE,
            "PROGRAM",
            "serve.program",
            is_common=True,
        ),
    ] = None
    gpus: Annotated[
        Number | None,
        Option("GPUs of this machine for --serve, or of each Ray replica.", MACHINE, "N", "calls"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedOptions(ServerOptions, _Started, OnThisMachine, Sampling, _Asked):
    """What ``run``, ``search``, ``sweep``, ``probe`` and ``reproduce`` share; None: not set."""

    base_url: Annotated[
        Name | None,
        Option(
            "OpenAI-compatible servers of the model, up to and with /v1; @FILE has an address a "
            "line and may change during the run.",
            SERVICES,
            "URL,URL|@FILE",
            "entry",
            is_common=True,
        ),
    ] = None
    # Not one of several choices: plug-ins add providers, and are not imported for a help.
    provider: Annotated[
        Name | None,
        Option(
            "Ask the model's maker in the maker's protocol, with its key from the environment: "
            f"{', '.join([*PROVIDERS.builtin][:-1])} or {[*PROVIDERS.builtin][-1]}.",
            SERVICES,
            "NAME",
            is_common=True,
        ),
    ] = None
    key: Annotated[
        str | None,
        Option(
            "Key of the servers or the provider, else from the environment.",
            SERVICES,
            to="asking",
            is_common=True,
        ),
    ] = None
    header: Annotated[
        tuple[str, ...],
        Option(
            "Header of every request to the servers or the provider (repeatable).",
            SERVICES,
            "'NAME: VALUE'",
            "asking.headers",
        ),
    ] = ()
    extra_body: Annotated[str | None, Option("More fields of every request.", SERVICES, "JSON")] = (
        None
    )
    serve_args: Annotated[
        str | None,
        Option("More flags of each server.", MACHINE, "'--flag value'", "serve.arguments"),
    ] = None
    api_nproc: Annotated[
        Count | None,
        Option(
            "Concurrent calls to an API or each server.",
            SERVICES,
            "N",
            "calls.threads",
            is_common=True,
        ),
    ] = None
    timeout: Annotated[
        Seconds | None, Option("Time limit of an attempt.", SERVICES, "SECONDS", "calls")
    ] = None
    max_usd: Annotated[
        Dollars | None,
        Option("Stop before calls cost more than this.", COST, "USD", "sweep", is_common=True),
    ] = None
    prices: Annotated[
        str | None,
        Option(
            "US dollars per million tokens sent and answered, if neither the service nor the "
            "model table says it.",
            COST,
            "IN,OUT",
        ),
    ] = None
    # --- of some commands ---
    batch: Annotated[
        BatchKind | None,
        Option(
            "Ask in batches, at half the price: at --provider, or the only address of --base-url.",
            SERVICES,
            to="sweep",
            of_some=True,
        ),
    ] = None
    executor: Annotated[
        str,
        Option(
            "ray: replicas of the model over a Ray cluster (RAY_ADDRESS, else a local cluster).",
            MACHINE,
            of_some=True,
            choices=("local", "ray"),
        ),
    ] = "local"
    replicas: Annotated[
        Annotated[int, Expected("at least 0 (as many as fit)", strict=True, ge=0)] | None,
        Option("Replicas of the model on a Ray cluster.", MACHINE, "N", "calls", of_some=True),
    ] = None
    samples: Annotated[
        Count | None,
        Option(
            "Replies to each query, for the samples command; needs --temperature.  [default: 1]",
            THE_MODEL,
            "N",
            "sweep",
            of_some=True,
        ),
    ] = None
    logprobs: Annotated[
        bool,
        Option(
            "Record the probability of every token; earlier answers without are asked again.",
            THE_MODEL,
            to="sweep",
            of_some=True,
        ),
    ] = False
    prompts: Annotated[
        Name | None,
        Option(
            "Ask in the words of a family's published figures (qwen3-vl-1), or of a clone of the "
            "release.",
            THE_MODEL,
            "NAME|CLONE",
            of_some=True,
        ),
    ] = None
    skip_missing_images: Annotated[
        bool,
        Option("Leave out rows whose images are missing.", to="sweep.skip_missing", of_some=True),
    ] = False
    dry_run: Annotated[
        bool, Option("Count calls and cost; ask nothing.", COST, of_some=True, is_common=True)
    ] = False
    force: Annotated[bool, Option("", to="sweep", of_some=True)] = False

    @property
    def specified(self) -> list[str]:
        """Names of the options that are set."""
        return [each.name for each in fields(self) if getattr(self, each.name) != each.default]

    def going_to(self, place: str) -> dict[str, Any]:
        """Return the values of options that are set, by the names of a record's fields."""
        rows = {name: declared_options()[name].option for name in self.specified}
        return {
            row.to.partition(".")[2] or name: getattr(self, name)
            for name, row in rows.items()
            if row.place == place
        }

    def check(self, spelled: Callable[[str], str]) -> None:
        """Refuse values that are out of range; ``spelled`` writes an option as it is typed."""
        for name in self.specified:
            check_value(name, getattr(self, name), spelled(name))


class Declared(NamedTuple):
    """An option as its field declares it: what a value should be, and the rest."""

    kind: Any
    option: Option

    @property
    def type(self) -> type:
        """The type of a value, without its limits."""
        plain: type = get_args(self.kind)[0] if _has_limits(self.kind) else self.kind
        return plain


def _has_limits(kind: Any) -> bool:
    return hasattr(kind, "__metadata__")


@cache
def declared_options() -> Mapping[str, Declared]:
    """Return all options by their names, in the order of their fields."""
    hints = get_type_hints(StatedOptions, include_extras=True)
    return {each.name: _declared(hints[each.name]) for each in fields(StatedOptions)}


def _declared(hint: Any) -> Declared:
    kind, *_ = get_args(hint)
    kinds = [each for each in get_args(kind) if each is not type(None)]
    is_optional = type(None) in get_args(kind)
    return Declared(kinds[0] if is_optional else kind, hint.__metadata__[-1])


def options_to(*places: str) -> frozenset[str]:
    """Return the names of the options whose values go to one of some records."""
    rows = declared_options().items()
    return frozenset(name for name, row in rows if row.option.place in places)


def check_value(name: str, value: Any, called: str = "") -> None:
    """Refuse, with a MisplacedError, a value that an option of this name cannot have."""
    kind = declared_options()[name].kind
    if not _has_limits(kind):
        return
    try:
        validate(kind, value)
    except MisplacedError as error:
        raise MisplacedError(error.why, name, name=called or name) from None
