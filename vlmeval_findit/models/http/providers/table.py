"""Who is asked in a protocol of its own: one row a provider.

A row is a name and one function, from the body of an OpenAI chat completion to its reply.  All else
(attempts, deadline, spending, records, threads) is the asker's, the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from ....core.extras import install
from ....core.plugin_table import Table
from ....core.plugins import Group
from ....core.spelling import nearest
from ..endpoint import LIMIT_FIELDS, Endpoint
from ..schema import SchemaRoot
from . import anthropic_client, google_client, openai_client

Chat = Callable[[Mapping[str, Any], Endpoint, float], Mapping[str, Any]]
"""From a chat body, the endpoint that it goes to and the seconds that it may take, to the reply.

It makes one request and no second one, waits for the whole reply, and raises
:class:`..completion.CallError` where there is none: with ``status``, with ``retry_after`` where the
service asks to be left alone, ``transient`` where the same request may be answered later,
``hopeless`` where no other request is answered either (key, credit, model).  Any other exception is
a failed call too.  It is called in many threads at a time.
"""


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    Args:
        name: as ``--provider`` takes it, and as records have it.
        chat: asks it; :data:`Chat`.
        address: where it is, with the version of its API where paths have one.
        keys: environment variables of its key; the first that is set counts (none: it takes none).
        address_variable: the environment variable that names another address.
        version: the last part of its addresses; one that is given without gets it.
        package: the module that ``chat`` imports (empty: none beside what we need anyway).
        extra: of this package, which brings that module (empty: none does).
        limit_field: of a body, for the limit of the reply's tokens.
        schema_root: what it takes as a JSON schema (None: it holds replies to none).
        gives_logprobs: whether it may give log-probabilities.
        states_costs: whether its replies say what a call cost, as ``cost`` of ``usage``.
    """

    name: str
    chat: Chat
    address: str
    keys: tuple[str, ...] = ()
    address_variable: str = ""
    version: str = ""
    package: str = ""
    extra: str = ""
    limit_field: str = LIMIT_FIELDS[0]
    schema_root: SchemaRoot | None = None
    gives_logprobs: bool = False
    states_costs: bool = False

    def check_package(self) -> None:
        """Refuse where its client package is absent.

        Raises:
            ValueError: it is; the message says how to get it.
        """
        try:
            found = not self.package or find_spec(self.package) is not None
        except ModuleNotFoundError:  # not even the package that it is a part of
            found = False
        if not found:
            how = install(self.extra) if self.extra else f"pip install {self.package}"
            raise ValueError(
                f"the provider {self.name} is asked through the package {self.package}, which is "
                f"not installed: {how}"
            )


_ROWS = (
    Provider(
        "openai",
        openai_client.chat,
        "https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        address_variable="OPENAI_BASE_URL",
        package="openai",
        extra="providers",
        limit_field=LIMIT_FIELDS[1],
        schema_root=SchemaRoot.OBJECT,
        gives_logprobs=True,
    ),
    Provider(
        "anthropic",
        anthropic_client.chat,
        "https://api.anthropic.com/v1",
        keys=("ANTHROPIC_API_KEY",),
        address_variable="ANTHROPIC_BASE_URL",
        version="v1",
        package="anthropic",
        extra="providers",
        schema_root=SchemaRoot.OBJECT,
    ),
    Provider(
        "google",
        google_client.chat,
        "https://generativelanguage.googleapis.com/v1beta",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        address_variable="GOOGLE_GEMINI_BASE_URL",
        version="v1beta",
        package="google.genai",
        extra="providers",
        schema_root=SchemaRoot.LIST,
        gives_logprobs=True,
    ),
)


def _problem(row: Provider) -> str | None:
    """Why a plug-in's row cannot be used."""
    Endpoint(row.address, limit_field=row.limit_field)
    if not callable(row.chat):
        return f"its chat is {row.chat!r:.40}"
    if not isinstance(row.schema_root, SchemaRoot | None):
        return f"its schema_root is {row.schema_root!r:.40}"
    return None


PROVIDERS: Table[Provider] = Table(
    Group.PROVIDERS, {row.name: row for row in _ROWS}, Provider, _problem
)


def find_provider(name: str) -> Provider:
    """The row of a provider.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        raise ValueError(
            f"no provider {name!r}{nearest(name, list(PROVIDERS))} (there are {known})"
        )
    return PROVIDERS[name]
