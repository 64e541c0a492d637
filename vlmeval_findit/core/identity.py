"""What a run is: one frozen record, written before its first call, that all who come later ask.

``<stem>_identity.json`` lies beside the predictions.  It says who answers, with which settings,
what was asked over which table and rows, and in which coordinate space the answers are.  It is the
same whoever runs the calls (VLMEvalKit's runner, ``search``, ``sweep``), and going on, scoring,
leaderboard, report and export ask it alone.  What contradicts it is refused with both values, or,
with ``--force``, goes on and is recorded as forced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ENGINES = ("torch", "transformers")
"""Packages on whose version the answers of a model on this machine depend."""

SPACE = "coordinate space"
"""What messages call the space of a run's answers."""

PROVIDER = "provider "
"""What the ``kind`` of a model begins with that is asked in its provider's own protocol."""

PLUGIN = "plug-in "
"""How what is compared of a plug-in begins; its name follows."""


SOURCE = "source of the class"
"""What messages call the files that the class of a model is written in."""


class IdentityError(ValueError):
    """Something contradicts what a run recorded; the message has both values and what to do."""


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers: everything that an answer depends on beside the question.

    ``kind`` is the class of the model, ``row`` its row of the model table, ``checkpoint`` the
    folder or identifier, ``revision`` its commit or a hash of its files, ``endpoint`` the address
    of a service, ``server`` the program that this machine serves it with (its version beside it,
    where that is known), ``settings`` all else that was set, ``source`` a hash of the files that a
    class which is not ours is written in.  ``runs_here``: on this machine, so that the
    versions of :data:`ENGINES` matter; ``hosts_own``: in VLMEvalKit's own code, so that the
    host's version does.  None is not known.
    """

    kind: str | None = None
    row: str | None = None
    checkpoint: str | None = None
    revision: str | None = None
    endpoint: str | None = None
    server: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    runs_here: bool = False
    hosts_own: bool = False


class Described(NamedTuple):
    """Who answers, and the settings of the coordinate space of the replies (None: not known)."""

    answering: Answering
    space: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Identity:
    """One run: a model over a variant.  None is not known, and contradicts nothing.

    ``prompt_hash`` covers every row of the table, as all models share it, so that runs over
    different rows can be compared; ``chosen`` says what of the questions was settled otherwise
    (:class:`.Task`).  ``rows`` are the indices that are asked, ``left_out`` those without a usable
    image.
    ``space`` are the settings of the coordinate space of all replies (:func:`.space_from`).
    ``host`` and ``versions`` are those at inference, ``plugins`` the versions of the plug-ins whose
    rows it uses.  ``forced`` says what ``--force`` overrode.  ``asked_at`` is when it was begun, in
    UTC as ISO 8601 has it (None: before that was recorded); going on does not change it.
    """

    model: str
    dataset: str
    answering: Answering = field(default_factory=Answering)
    prompts: str | None = None
    prompt_hash: str | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)
    table: str | None = None
    table_sha256: str | None = None
    rows: tuple[int, ...] | None = None
    left_out: tuple[int, ...] = ()
    space: Mapping[str, Any] | None = None
    reads_like: str | None = None
    host: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    plugins: Mapping[str, str] = field(default_factory=dict)
    forced: tuple[str, ...] = ()
    asked_at: str | None = None

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that two runs share when nothing in them contradicts."""
        text = json.dumps([self.compared(), self.rows], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def made_by(self) -> dict[str, Any]:
        """What an answer of it depends on that is no part of the key of its call."""
        who = self.answering
        named = {"endpoint": who.endpoint, "server": who.server}
        found: dict[str, Any] = {name: value for name, value in named.items() if value}
        if who.source:
            found[SOURCE] = who.source
        if who.runs_here:
            found |= {name: self.versions[name] for name in ENGINES if name in self.versions}
            found |= {name: who.settings.get(name) for name in ("dtype", "attention", "engine")}
        return found | (dict(self.host) if who.hosts_own else {})

    def has_made(self, made_by: Mapping[str, Any]) -> bool:
        """Whether an answer with this :attr:`made_by` is of this run; old ones say no source."""
        own = self.made_by
        return {SOURCE: own.get(SOURCE), **made_by} == {SOURCE: None, **own}

    def compared(self) -> dict[str, Any]:
        """Everything in which two records must agree to be of one run, by its name in messages."""
        who = self.answering
        values: dict[str, Any] = {
            "model": self.model,
            "dataset": self.dataset,
            "class": who.kind,
            "row of the model table": who.row,
            # The same files under another path are the same checkpoint.
            "checkpoint": None if _is_fingerprint(who.revision) else who.checkpoint,
            "revision": who.revision,
            "endpoint": who.endpoint,
            "server": who.server,
            SOURCE: who.source,
            "prompts": self.prompts,
            "hash of the prompts": self.prompt_hash,
            "SHA-256 of the table": self.table_sha256,
            SPACE: dict(self.space) if self.space is not None else None,
            "reads_like": self.reads_like,
        }
        values |= {f"{what} of the questions": how for what, how in self.chosen.items()}
        if who.kind is not None:
            values |= {f"setting {name}": value for name, value in who.settings.items()}
        if who.runs_here:
            values |= {f"version of {name}": self.versions.get(name) for name in ENGINES}
        if who.hosts_own:
            values["VLMEvalKit"] = dict(self.host) or None
        values |= {f"{PLUGIN}{name}": version for name, version in self.plugins.items()}
        return values


def _is_fingerprint(revision: str | None) -> bool:
    return revision is not None and revision.startswith("sha256:")
