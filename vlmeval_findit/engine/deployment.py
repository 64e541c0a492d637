"""Who answers for a model: one value, made once for each entry; everything else asks it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from ..core import flag_name
from ..models import BatchKind, Budget, ChatModel, ModelEntry, Sampling
from ..protocol import Answering, DatasetVariant, Described
from ..serving import ServeOptions
from ..storage import check_model_name
from .backend import Backend, CallOptions, Loader
from .calls import of_answers
from .local_backend import LocalBackend
from .server_state import ServerPolicy


def _no_host() -> MadeInHost:
    raise ValueError("this command makes no model of VLMEvalKit's")


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How the models of a command are asked; no answer depends on it, but on who is asked."""

    calls: CallOptions = field(default_factory=CallOptions)
    budget: Budget = field(default_factory=Budget)  # what all models may spend together
    policy: ServerPolicy = field(default_factory=ServerPolicy)
    headers: Sequence[str] = ()  # ``NAME: VALUE`` each, sent with every request
    key: str | None = None  # of the servers or the provider (None: the environment's)
    batch: BatchKind | None = None  # the batch service to use (None: single calls)
    serving: ServeOptions | None = None  # how this machine serves its models (None: it does not)
    on_ray: bool = False  # a Ray cluster runs the models that this process would run
    logprobs: bool = False  # log-probabilities are recorded
    work_dir: Path = Path("outputs")  # has the logs of servers
    # False: calls are only counted, which needs neither keys nor programs nor devices
    asks: bool = True
    spelled: Callable[[str], str] = flag_name  # writes an option as its user does
    # Imports VLMEvalKit, and returns what makes its models
    host: Callable[[], MadeInHost] = _no_host


# Options, by their names in :class:`.ModelOptions`, of which several kinds have the same
IN_WORDS = frozenset({"system", "prompt_template", "checkpoint"})
SAMPLED = frozenset(each.name for each in fields(Sampling)) | {"samples"}
CONCURRENT = frozenset({"api_nproc", "nproc", "retry"})


@dataclass(frozen=True, eq=False)
class Deployment(ABC):
    """Who answers for a model: all that engine, dry run, refusals and Python ask about it."""

    entry: ModelEntry
    asking: Asking = field(default_factory=Asking)

    # Its name where messages list kinds
    called: ClassVar[str]
    # Options with an effect that not all kinds have: names of :class:`.ModelOptions` and of
    # VLMEvalKit's flags
    uses: ClassVar[frozenset[str]] = frozenset()

    @property
    def name(self) -> str:
        """The name of its results."""
        return self.entry.name

    @property
    def what(self) -> str:
        """What it is, in messages about it."""
        return self.called

    @property
    def window(self) -> int:
        """How many calls it is handed at a time, to answer them in batches of its own."""
        return 32

    @property
    def chat(self) -> ChatModel | None:
        """How a service of others is asked (None: it is none), for the load that it gets."""
        return None

    @property
    def version(self) -> Mapping[str, str]:
        """The program that runs the model, as identities record it."""
        return {}

    def has_effect(self, option: str) -> bool:
        """Return whether one of the options that not all kinds have changes something."""
        return option in self.uses

    def check(self) -> None:
        """Refuse a model that is not there, or that cannot be asked so, with a ValueError.

        Files and tables are read; nothing is loaded, imported for calls, or asked.
        """
        self.check_options()

    def check_options(self) -> None:
        """Refuse what :meth:`check` refuses whatever a checkpoint's files hold: it may come yet."""
        with at_its_place(self.entry):
            check_model_name(self.name)
            if self.entry.served is not None and "base_url" not in self.uses:
                raise ValueError(
                    f"{self.name}: {self.entry.served} is its name at a server. Name the server: "
                    "--base-url URL"
                )

    def check_programs(self) -> None:  # noqa: B027  # Most kinds need no program
        """Refuse what this machine lacks to answer calls, with a ValueError.

        It comes after all other checks: nobody should install a program to be told of a mistake.
        """

    @property
    def stated(self) -> Mapping[str, Any]:
        """What its user stated and answers depend on, as it was typed."""
        return of_answers(self.entry.settings)

    def key(self, variant: DatasetVariant) -> Mapping[str, Any]:
        """Return its part in the keys of a variant's calls: what was stated, and who answers.

        All else that :meth:`describe` says of who answers is in :attr:`.Identity.made_by`, with
        which answers of a journal are compared.
        """
        return {**self.stated, **self.describe(variant).named}

    @abstractmethod
    def describe(self, variant: DatasetVariant) -> Described:
        """Return the model and its space, as far as known before loading.

        It is the only place that says who answers: keys and identities follow from it.
        """

    def on_this_machine(self, answering: Answering) -> Answering:
        """Complete ``answering`` before the first call, with what this machine and the hub know."""
        return answering

    @abstractmethod
    def backend(self) -> Backend:
        """Return the backend of its calls; the model loads with the first call."""

    def ready(self) -> Deployment:
        """Return what answers calls: VLMEvalKit may be imported now."""
        return self

    def in_space(self, space: Any) -> Self:
        """Return it with another coordinate space of the replies; None: the same."""
        return self if space is None else replace(self, entry=replace(self.entry, space=space))


class InProcess(Deployment):
    """A model that a process of ours runs: this one, or replicas on a Ray cluster."""

    @property
    @abstractmethod
    def loader(self) -> Loader:
        """What loads it, in any process; it can be pickled."""

    def backend(self) -> Backend:
        return LocalBackend(self.loader)

    def ready(self) -> InProcess:
        return self


# Returns a model as VLMEvalKit makes it
MadeInHost = Callable[[Deployment], InProcess]


@contextmanager
def naming_model(entry: ModelEntry) -> Iterator[None]:
    """Prefix errors of a model with its place in the sweep's file and its name; keep their type."""
    try:
        yield
    except ValueError as error:
        raise type(error)(f"{entry.where}{entry.name}: {error}") from None


@contextmanager
def at_its_place(entry: ModelEntry, what: str = "") -> Iterator[None]:
    """Prefix errors of a model with its place in the sweep's file, and with ``what``."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"{entry.where}{what}{error}") from None
