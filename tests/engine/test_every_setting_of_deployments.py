"""Every setting, at every kind of deployment, is sent, recorded and in the key, or is refused.

Settings are the fields of the records themselves: a new one without a row fails here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from every_pair import every_pair
from fake_program import Machine

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.cli import refuse_unused_keys
from vlmeval_findit.core import validate
from vlmeval_findit.engine import (
    KINDS,
    ApiSettings,
    Asking,
    AtOpenRouter,
    AtServer,
    Deployment,
    InProcess,
    Local,
    OnRay,
    Served,
    deployment_of,
)
from vlmeval_findit.models import BatchKind, Budget, ChatModel, ModelEntry, RunSettings
from vlmeval_findit.protocol import Message, text
from vlmeval_findit.serving import ServeOptions

VARIANT = parse("FindIt_Pascal_xyxy_json_bbox_2d")
URL = "http://127.0.0.1:9/v1"
SERVING = Asking(serving=ServeOptions("vllm"))
IN_BATCHES = Asking(batch=BatchKind.OPENAI)

# An entry of each kind, and how its command asks
OF_KINDS: Mapping[str, tuple[Mapping[str, Any], Asking]] = {
    "a baseline": ({"name": "FullImage"}, Asking()),
    "a model on this machine": ({"name": "Qwen3-VL-8B"}, Asking()),
    "a checkpoint on this machine": (
        {"name": "mine", "checkpoint": "Qwen/Qwen3-VL-8B-Instruct", "like": "Qwen3-VL"},
        Asking(),
    ),
    "a model that this machine serves (--serve)": ({"name": "Qwen3-VL-8B"}, SERVING),
    "a model on a Ray cluster": ({"name": "Qwen3-VL-8B"}, Asking(on_ray=True)),
    "a model at OpenRouter": ({"name": "Gemini-2.5-Flash"}, Asking()),
    "a model of a server (--base-url)": (
        {"name": "mine", "base_url": URL, "space": "unit"},
        Asking(),
    ),
    "a model at a provider (--provider)": (
        {"name": "Gemini-2.5-Flash", "provider": "google", "base_url": URL},
        Asking(),
    ),
    "a model that is asked in batches (--batch)": (
        {"name": "GPT-5.4", "provider": "openai", "base_url": URL},
        IN_BATCHES,
    ),
    "a model of VLMEvalKit's": ({"name": "Their-VL-7B"}, Asking()),
}


def test_every_kind_has_an_entry() -> None:
    assert [*OF_KINDS] == [kind.called for kind in KINDS]
    for called, (entry, asking) in OF_KINDS.items():
        made = made_of(entry, asking)
        assert called == (OnRay.called if asking.on_ray else made.what)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    built = Machine(tmp_path)
    for name, value in built.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(name, "k")
    yield built
    assert built.ends()


def made_of(entry: Mapping[str, Any], asking: Asking, **settings: Any) -> Deployment:
    asking = replace(asking, budget=Budget(), asks=False)
    return deployment_of(validate(ModelEntry, {**entry, "settings": settings}), asking)


MESSAGE: Message = (text("where?"),)


class Seen(NamedTuple):
    """What is seen of a deployment, as JSON."""

    sent: str
    recorded: str
    key: str


def seen_of(deployment: Deployment) -> Seen:
    answering = asdict(deployment.describe(VARIANT).answering)
    recorded = [answering, deployment.describe(VARIANT).space]
    values = (sent_to(deployment), recorded, deployment.key(VARIANT))
    return Seen(*(json.dumps(value, sort_keys=True, default=str) for value in values))


def sent_to(deployment: Deployment) -> Any:
    """Return its request, also what a server here is started with, or a model here is made of."""
    match deployment:
        case Served() as served:
            asked = served.model.settings
            body = served.model.chat().request(MESSAGE, VARIANT, ()).body
            return [body, asked.dtype, asked.revision, asked.space]
        case Deployment(chat=ChatModel() as chat):
            return chat.request(MESSAGE, VARIANT, ()).body
        case OnRay() as on_ray:
            return sent_to(on_ray.without)
        case Local() as local:
            return local.arguments
    return deployment.entry.settings


# --- settings of a model --------------------------------------------------------------------------

# Setting -> an unusual value
VALUES: Mapping[str, Any] = {
    "revision": "abc123",
    "space": "unit",
    "device": "cuda:1",
    "dtype": "float64",
    "attention": "eager",
    "engine": "numpy",
    "min_pixels": 123_456,
    "max_pixels": 654_321,
    "patches": 7,
    "max_new_tokens": 77,
    "batch_size": 3,
    "temperature": 0.7,
    "merge_adapter": True,
    "template": {"add_vision_id": True},
    "retry": 9,
    "timeout": 77.0,
    "max_usd": 3.5,
    "budget": 1.5,
    "prices": [1.0, 2.0],
    # Fields of a request that are no settings of ours
    "top_k": 40,
    "provider": {"order": ["here"]},
    "generationConfig": {"topK": 40},
}
# Settings of models here and at OpenRouter on which no answer depends: no key has them
NO_ANSWER_DEPENDS = {"device", "batch_size", "retry", "timeout", "max_usd", "budget"}
# What a key says less of, and another part of a record, by which journals are compared, does
NOT_IN_KEYS = {"space", "provider"}
# The hub says it, when it is asked for the weights
RECORDED_LATER = {"revision"}
# Only VLMEvalKit knows what its classes make of their arguments
OF_VLMEVALKIT = "a model of VLMEvalKit's"


def test_every_setting_has_a_value() -> None:
    known = {each.name for record in (RunSettings, ApiSettings) for each in fields(record)}
    assert known <= {*VALUES}


def checked(
    called: str, entry: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[Deployment | None, str]:
    """Return who answers for an entry, or why it is refused before the first call."""
    try:
        deployment = made_of(entry, OF_KINDS[called][1], **settings)
        refuse_unused_keys(deployment.entry, deployment)
        if called == OF_VLMEVALKIT:  # it need not be installed
            Deployment.check(deployment)
        else:
            deployment.check()
        seen_of(deployment)
    except ValueError as error:
        return None, str(error)
    return deployment, ""


@every_pair("name, called", VALUES, OF_KINDS)
def test_a_setting_is_sent_recorded_and_in_the_key(
    name: str, called: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, asking = OF_KINDS[called]
    without = seen_of(made_of(entry, asking))
    deployment, refusal = checked(called, entry, {name: VALUES[name]})
    if deployment is None:
        assert name in refusal, "a refusal names what is refused"
        return
    seen = seen_of(deployment)
    is_field = isinstance(deployment, AtServer)  # all its settings are fields of requests
    if name in NO_ANSWER_DEPENDS and not is_field:
        assert (seen.key, seen.recorded) == (without.key, without.recorded)
    elif name == "prices" and isinstance(deployment, AtOpenRouter):
        assert seen.sent == without.sent
    else:
        assert seen.sent != without.sent
        assert name in NOT_IN_KEYS or seen.key != without.key
        is_known = name not in RECORDED_LATER and called != OF_VLMEVALKIT
        assert not is_known or seen.recorded != without.recorded


# --- fields of an entry ---------------------------------------------------------------------------

# Field of an entry -> an unusual value, and the kinds that have it by their nature
ENTRY: Mapping[str, Any] = {
    "space": "pixels",
    "like": "Qwen3.5",
    "served": "theirs",
    "prices": [1.0, 2.0],
    "headers": {"x-team": "a"},
    "system": "system.txt",
    "prompt_template": "template.txt",
    "resources": {"batch_size": 3},
}
# Whose effect other tests see: they choose the kind, or are of reading replies
CHOOSING = {"name", "settings", "checkpoint", "provider", "base_url"}
OF_READING = {"reads_like", "thought_marks", "where"}


def test_every_field_of_an_entry_has_a_value() -> None:
    assert {each.name for each in fields(ModelEntry)} == {*ENTRY} | CHOOSING | OF_READING


def acts(deployment: Deployment) -> list[Any]:
    """Return all by which answers, costs, or how they are asked for, depend on an entry."""
    chat = deployment.chat
    prompt = deployment.entry.prompt
    resources = deployment.entry.resources if isinstance(deployment, InProcess) else {}
    return [seen_of(deployment), chat and chat.prices, prompt, resources]


@every_pair("field, called", ENTRY, OF_KINDS)
def test_a_field_of_an_entry_acts_or_is_refused(
    field: str, called: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(machine.folder)
    Path("system.txt").write_text("Be short.")
    Path("template.txt").write_text("{{ request }} Now.")
    entry, asking = OF_KINDS[called]
    if field == "space" and called in ("a baseline", OF_VLMEVALKIT):
        return  # asked all the same, and read in it
    stated, refusal = checked(called, {**entry, field: ENTRY[field]}, {})
    if stated is None:
        named = (field.rstrip("s"), *(ENTRY[field] if isinstance(ENTRY[field], dict) else ()))
        assert any(name in refusal for name in (*named, str(ENTRY[field])))
        return
    assert acts(stated) != acts(made_of(entry, asking)), "it is taken and has no effect"
