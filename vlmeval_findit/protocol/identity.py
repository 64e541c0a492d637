"""The identity of a run: a frozen record next to the predictions, written before its first call.

It does not depend on who makes the calls, and all later stages rest on it alone. What contradicts
it is listed by :mod:`.contradictions`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from ..core import Config, Text, Values, YesNo, plain_value
from .dataset_variant import StoredRows

TRANSFORMERS = "transformers"  # Engine of any model on this machine
NUMPY = "numpy"  # Engine of the small models that ship
ENGINE_KEY = "engine"  # Setting that names what computes a model of this machine
# By engine, the packages on whose versions its answers depend
ENGINE_PACKAGES = {
    TRANSFORMERS: ("torch", "transformers"),
    NUMPY: ("numpy", "tokenizers"),
}
SPACE_KEY = "coordinate space"  # Key in :meth:`Identity.compared`
GIVEN_SOURCE = "given when scored"  # Begins the source of a space other than the recorded space
CHAT_KIND = "chat completions"  # ``kind`` of models behind a server of OpenAI's protocol
PROVIDER_KIND = "provider "  # Prefix of ``kind`` for models behind a provider's protocol
PLUGIN = "plug-in "  # Prefix of keys in :meth:`Identity.compared`
SAMPLE_SETTING = "sample"  # Setting that is the number of one of several replies, if not the first
SOURCE_KEY = "source of the class"  # Key in :meth:`Identity.compared`
IMAGES_KEY = "images"  # Key in :attr:`Identity.made_by`
ROW_KEY = "row of the model table"  # Key in :meth:`Identity.compared`
MADE_WITH = "settings"  # Key in :attr:`Identity.made_by`
HEADERS_KEY = "headers"  # Key in :attr:`Identity.made_by`
PROXY_KEY = "proxy"  # Key in :attr:`Identity.made_by`; it is told, not compared
NO_PROXY = "none"  # In place of a proxy
SETTING = "setting "  # Prefix of keys in :meth:`Identity.compared`
HEADER = "header "  # Prefix of keys in :meth:`Identity.compared`
ATTRIBUTE = "attribute "  # Prefix of keys in :meth:`Identity.compared`
BASE_REVISION = "base_revision"  # Setting of an adapter over a model of the hub
_NO_REVISION = (None, "unknown")  # The hub did not say it
# Settings that runs of 1.0 recorded, and on which no answer depends
WITHOUT_EFFECT = ("retry", "timeout", "verbose", "wait")
# Settings of which :attr:`Identity.made_by` has the effect elsewhere, or a call's key has it
_NOT_OF_ANSWERS = (
    *WITHOUT_EFFECT,
    *("dtype", "attention", ENGINE_KEY, BASE_REVISION),  # Some are known before the first call only
    *("images", "reply_schema", "response_format", SAMPLE_SETTING),
)


class IdentityError(ValueError):
    """Something contradicts what a run recorded; the message has both values and what to do."""


@dataclass(frozen=True, slots=True)
class Answering(Config):
    """Who answers: all that an answer depends on besides the messages (None: not known)."""

    kind: Text | None = None  # Class of the model
    row: Text | None = None  # Its row of the model table
    checkpoint: Text | None = None  # Folder or identifier
    revision: Text | None = None  # Its commit, or a hash of its files
    endpoint: Text | None = None  # Address of a service
    # Headers that the user states of every request, by name: values, or hashes of secrets.  None:
    # it is asked without HTTP, or by a version that recorded none
    headers: Mapping[Text, Text] | None = None
    # Between it and this machine.  Not compared: one that only forwards changes no answer
    proxy: Text | None = None
    server: Text | None = None  # Program that serves it on this machine, with its version if known
    settings: Values = field(default_factory=dict)  # All else that was set
    source: Text | None = None  # Hash of the files of a class of another package
    attributes: Values | None = None  # Of an object that VLMEvalKit passed
    runs_here: YesNo = False  # On this machine: the versions of :attr:`engine_packages` matter
    in_vlmevalkit: YesNo = False  # In VLMEvalKit's code: the host's version matters

    @property
    def engine_packages(self) -> tuple[str, ...]:
        """Packages of what computes it on this machine; old records name no engine."""
        engine = self.settings.get(ENGINE_KEY)
        return ENGINE_PACKAGES.get(str(engine), ENGINE_PACKAGES[TRANSFORMERS])

    @property
    def sampling_note(self) -> str | None:
        """Say at which temperature replies are sampled; None: greedily, as far as is known."""
        temperature = self._set("temperature")
        if not temperature or _is_zero(temperature):
            return None
        how = f"replies were sampled at temperature {temperature}"
        match self.settings.get(SAMPLE_SETTING):
            case None:
                return how
            case int(number):
                return f"{how} (sample {number})"
            case merged:
                return f"{how} ({merged} samples)"

    def _set(self, name: str) -> Any:
        """Return a setting, also where only the attributes of an object have it."""
        attributes = self.attributes or {}
        groups = [value for value in attributes.values() if isinstance(value, Mapping)]
        places = (self.settings, attributes, *groups)
        return next((place[name] for place in places if place.get(name) is not None), None)

    def is_elsewhere(self, server: object) -> bool:
        """Return whether a server, as a reply names it, is not among the recorded endpoints.

        >>> Answering(endpoint="http://a/v1, http://b/v1").is_elsewhere("http://b/v1 (2)")
        False
        """
        if not isinstance(server, str) or self.endpoint is None:
            return False
        return _NUMBER.sub("", server) not in self.endpoint.split(", ")


def _is_zero(temperature: object) -> bool:
    """Return whether a temperature is 0, also as text; an object may have anything else."""
    try:
        return float(temperature) == 0  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return False


_NUMBER = re.compile(r" \(\d+\)$")  # Tells servers with one address apart


class Described(NamedTuple):
    """Who answers, and the coordinate space of the replies (None: not known)."""

    answering: Answering
    space: Mapping[str, Any] | None
    # What would be its space if the user stated none; None: not known
    known: Mapping[str, Any] | None = None
    # What the keys of its calls have of it; the rest is in :attr:`Identity.made_by`
    named: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Identity(Config):
    """One run: a model over a variant. None means not known, and contradicts nothing."""

    model: Text
    dataset: Text
    answering: Answering = field(default_factory=Answering)
    prompts: Text | None = None
    prompt_hash: Text | None = None  # Over all rows of the shared dataset, whichever are asked
    # The user's texts (:class:`.CustomPrompt`); ``prompts`` has their hash
    custom_prompt: Mapping[str, Text | None] = field(default_factory=dict)
    # As in :class:`.LoadedDataset`
    resolved_options: Mapping[str, Text] = field(default_factory=dict)
    table: Text | None = None
    table_sha256: Text | None = None
    rows: StoredRows | None = None  # The indices that are asked
    left_out: StoredRows = ()  # Those without a usable image
    space: Values | None = None  # Settings for :func:`.space_from`
    space_source: Text | None = None  # Who stated it (:func:`.choose_value`)
    reads_like: Text | None = None
    host: Mapping[str, Text] = field(default_factory=dict)  # At inference, as are the versions
    versions: Mapping[str, Text] = field(default_factory=dict)
    plugins: Mapping[str, Text] = field(default_factory=dict)  # Versions of those it uses
    forced: tuple[Text, ...] = ()  # What ``--force`` overrode
    earlier_proxies: tuple[Text, ...] = ()  # Through which answers came before it went on
    asked_at: Text | None = None  # Of its beginning (UTC, ISO 8601)

    @property
    def digest(self) -> str:
        """Return twelve hexadecimal digits of a hash over all compared values and rows."""
        text = json.dumps([self.compared(), self.rows], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def made_by(self) -> dict[str, Any]:
        """Return what an answer depends on, except its call's key."""
        who = self.answering
        named = {ROW_KEY: who.row, "endpoint": who.endpoint, "server": who.server}
        values: dict[str, Any] = {name: value for name, value in named.items() if value}
        if self.space is not None:
            limit = self.space.get("scene_max_size")
            values[IMAGES_KEY] = (
                f"sent with at most {limit} pixels a side" if limit else "sent whole"
            )
        if who.source:
            values[SOURCE_KEY] = who.source
        if who.attributes:
            shown = json.dumps(who.attributes, sort_keys=True, default=str)
            values["attributes"] = hashlib.sha256(shown.encode()).hexdigest()[:12]
        # Of a hub's checkpoint known before the first call only: what follows it is not in the key
        revisions = {"revision": who.revision, BASE_REVISION: who.settings.get(BASE_REVISION)}
        values |= {name: value for name, value in revisions.items() if value not in _NO_REVISION}
        if who.headers is not None:
            values[HEADERS_KEY] = dict(who.headers)
            values[PROXY_KEY] = who.proxy or NO_PROXY
        if who.kind is not None and not who.in_vlmevalkit:  # Else keys have all arguments
            values[MADE_WITH] = _of_answers(who.settings)
        if who.runs_here:
            packages = [name for name in who.engine_packages if name in self.versions]
            values |= {name: self.versions[name] for name in packages}
            values |= {name: who.settings.get(name) for name in ("dtype", "attention", ENGINE_KEY)}
        return values | (dict(self.host) if who.in_vlmevalkit else {})

    def compared(self) -> dict[str, Any]:
        """Return all in which records of one run must agree, by its name in messages."""
        who = self.answering
        values: dict[str, Any] = {
            "model": self.model,
            "dataset": self.dataset,
            "class": who.kind,
            ROW_KEY: who.row,
            # A fingerprint identifies files under any path.
            "checkpoint": None if (who.revision or "").startswith("sha256:") else who.checkpoint,
            "revision": who.revision,
            "endpoint": who.endpoint,
            "server": who.server,
            SOURCE_KEY: who.source,
            "prompts": self.prompts,
            "hash of the prompts": self.prompt_hash,
            "SHA-256 of the table": self.table_sha256,
            SPACE_KEY: dict(self.space) if self.space is not None else None,
            "reads_like": self.reads_like,
        }
        values |= {f"{what} of the questions": how for what, how in self.resolved_options.items()}
        if who.kind is not None:
            values |= {f"{SETTING}{name}": value for name, value in who.settings.items()}
        values |= {f"{HEADER}{name}": value for name, value in (who.headers or {}).items()}
        for name, value in (who.attributes or {}).items():
            # Of an object None is a value like others.
            values[f"{ATTRIBUTE}{name}"] = "None" if value is None else value
        if who.runs_here:
            values |= {
                f"version of {name}": self.versions.get(name) for name in who.engine_packages
            }
        if who.in_vlmevalkit:
            values["VLMEvalKit"] = dict(self.host) or None
        values |= {f"{PLUGIN}{name}": version for name, version in self.plugins.items()}
        return values


def _of_answers(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings on which answers depend, as JSON reads them back."""
    values = {
        name: value
        for name, value in sorted(settings.items())
        if value is not None and name not in _NOT_OF_ANSWERS
    }
    plain_values: dict[str, Any] = json.loads(json.dumps(values, default=str))
    return plain_values


@dataclass(frozen=True, slots=True)
class IdentityConflict:
    """A recorded value that differs now."""

    what: str
    recorded: Any
    now: Any

    @property
    def is_space(self) -> bool:
        return self.what.startswith(SPACE_KEY)

    @property
    def advice(self) -> str:
        return "Score what was asked."

    @property
    def comparison(self) -> str:
        """The conflict in words, where both values are of records."""
        return f"{self.what} (here {_shown(self.recorded)}, there {_shown(self.now)})"

    def __str__(self) -> str:
        return f"{self.what}: recorded {_shown(self.recorded)}, now {_shown(self.now)}"


NOT_SET = object()  # Stands for a value that a record lacks
_LONGEST_VALUE = 400  # Characters of a value in a message


def _shown(value: Any) -> str:
    if value is NOT_SET:
        return "not set"
    if isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return plain_value(str(value), _LONGEST_VALUE)
