"""What an answer depends on is in its key, or beside it in the journal, or it is said why not.

Fields are those of the records themselves: a new one needs a value, or a reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from fake_program import Machine
from server_options import NUMBERS_ALONE, SERVER_OPTIONS

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.engine import (
    NOT_IN_KEYS,
    ApiSettings,
    Asking,
    CallOptions,
    Deployment,
    ServerPolicy,
    deployment_of,
)
from vlmeval_findit.models import BatchKind, Budget, ModelEntry, RunSettings, options_to
from vlmeval_findit.protocol import Answering, Identity
from vlmeval_findit.serving import ServeOptions

VARIANT = parse("FindIt_Pascal_xyxy_json_bbox_2d")
QWEN = "Qwen/Qwen3-VL-8B-Instruct"

# --- what describe() says of who answers ----------------------------------------------------------

# Field of Answering -> an unusual value, by which answers in a journal are told apart
BESIDE_KEYS: Mapping[str, Any] = {
    "row": "Qwen3-VL",
    "revision": "a" * 40,
    "endpoint": "http://other/v1",
    "headers": {"x-team": "a"},
    "server": "vllm 9",
    "settings": {"top_k": 40},
    "source": "sha256:1",
    "attributes": {"shade": 3},
    "runs_here": True,
    "in_vlmevalkit": True,
}
IN_KEYS = {
    "kind": "a key names who answers in words of its kind: baseline, checkpoint, served, provider",
    "checkpoint": "a key has it, of a folder by its content",
}
WITHOUT = {"proxy": "a way to the server"}
WHO = Answering("FakeModel", row="InternVL3", endpoint="http://here/v1", headers={}, server="vllm")


def made_by(answering: Answering) -> Mapping[str, Any]:
    versions = {"torch": "2.9"}
    run = Identity("mine", VARIANT.name, answering, versions=versions, host={"VLMEvalKit": "1"})
    return run.made_by


def test_every_field_of_who_answers_has_a_value() -> None:
    assert {each.name for each in fields(Answering)} == {*BESIDE_KEYS, *IN_KEYS, *WITHOUT}


def test_a_way_to_a_server_makes_no_other_answers() -> None:
    through = replace(WHO, proxy="http://proxy:3128")
    assert {**made_by(through), "proxy": "none"} == made_by(WHO)
    runs = [Identity("mine", VARIANT.name, who).compared() for who in (through, WHO)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("field", BESIDE_KEYS)
def test_answers_of_others_are_told_by_each_field(field: str) -> None:
    others = replace(WHO, **{field: BESIDE_KEYS[field]})
    assert made_by(others) != made_by(WHO)


def test_a_revision_that_nobody_knows_contradicts_none() -> None:
    """The hub may not be reached when a run goes on."""
    assert made_by(replace(WHO, revision="unknown")) == made_by(WHO)
    of_base = {"base": "a/b", "adapter_merged": True, "base_revision": None}
    unknown = {**of_base, "base_revision": "unknown"}
    known = {**of_base, "base_revision": "b" * 40}
    by = [made_by(replace(WHO, settings=each)) for each in (of_base, unknown, known)]
    assert by[0] == by[1] != by[2]


# --- what a user states ---------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    built = Machine(tmp_path)
    for name, value in built.environment.items():
        monkeypatch.setenv(name, value)
    yield built
    assert built.ends()


def depended_on(entry: ModelEntry, asking: Asking) -> str:
    """Return all by which answers of a deployment are told apart, as JSON."""
    deployment = deployment_of(entry, asking)
    answering = deployment.describe(VARIANT).answering
    values = [deployment.key(VARIANT), made_by(answering)]
    return json.dumps(values, sort_keys=True, default=str)


SERVED = ModelEntry("mine", checkpoint=QWEN, like="Qwen3-VL")
AT_SERVER = ModelEntry("mine", base_url="http://127.0.0.1:9/v1", space="unit")
SERVING = ServeOptions("vllm")
HOW_OFTEN = "how calls are made and tried again"
# Records of how models are asked: field -> an unusual value, or why no answer depends on it
RECORDS: Mapping[type, Mapping[str, Any]] = {
    ServeOptions: {
        "program": "transformers",
        "arguments": ("--quantization", "fp8"),
        "gpus": NUMBERS_ALONE,
        **{
            name: option.why_same_answers or option.value for name, option in SERVER_OPTIONS.items()
        },
    },
    CallOptions: dict.fromkeys((each.name for each in fields(CallOptions)), HOW_OFTEN),
    ServerPolicy: dict.fromkeys((each.name for each in fields(ServerPolicy)), HOW_OFTEN),
    Asking: {
        "headers": ("x-team: a",),
        "serving": SERVING,
        "calls": HOW_OFTEN,
        "policy": HOW_OFTEN,
        "budget": "it ends a run",
        "key": "a secret of the service, which is asked for the same model",
        "batch": "a service answers the same, later",
        "on_ray": "the same model on other machines",
        "logprobs": "answers without are asked again where they are wanted",
        "work_dir": "where files are",
        "asks": "whether anything is asked",
        "host": "what makes VLMEvalKit's models",
        "spelled": "how messages write an option",
    },
}
OTHERS: Mapping[str, Any] = {
    "gpus": 2,
    **{name: option.value for name, option in SERVER_OPTIONS.items()},
    "budget": Budget(1.5),
    "key": "k",
    "batch": BatchKind.OPENAI,
    "logprobs": True,
    "work_dir": Path("elsewhere"),
    "asks": False,
    "calls": CallOptions(threads=3, timeout=9.0),
    "policy": ServerPolicy(attempts=2),
}


@pytest.mark.parametrize("record", RECORDS)
def test_every_field_of_how_it_is_asked_has_a_row(record: type) -> None:
    assert {each.name for each in fields(record)} == {*RECORDS[record]}  # type: ignore[arg-type]


@pytest.mark.parametrize("field", RECORDS[ServeOptions])
def test_a_server_here_is_told_by_each_option(field: str, machine: Machine) -> None:
    stated = RECORDS[ServeOptions][field]
    value = OTHERS.get(field, stated)
    other = replace(SERVING, **{field: value})
    usual = depended_on(SERVED, Asking(serving=SERVING))
    is_same = depended_on(SERVED, Asking(serving=other)) == usual
    assert is_same is (stated is not value), "a row that is no value says why"


@pytest.mark.parametrize("field", sorted({*OTHERS} & {each.name for each in fields(Asking)}))
def test_no_answer_depends_on_how_calls_are_made(field: str) -> None:
    asking = replace(Asking(), **{field: OTHERS[field]})
    assert depended_on(AT_SERVER, asking) == depended_on(AT_SERVER, Asking())
    assert isinstance(RECORDS[Asking][field], str)


def test_headers_of_a_command_are_told_apart() -> None:
    stated = Asking(headers=RECORDS[Asking]["headers"])
    assert depended_on(AT_SERVER, stated) != depended_on(AT_SERVER, Asking())


def test_each_setting_that_no_key_has_says_why() -> None:
    known = {each.name for record in (RunSettings, ApiSettings) for each in fields(record)}
    of_no_answer = {"device", "batch_size", "retry", "timeout", "max_usd", "budget", "space"}
    assert known & NOT_IN_KEYS.keys() == of_no_answer
    assert all(NOT_IN_KEYS.values())


@pytest.mark.parametrize("on_ray", [False, True])
@pytest.mark.parametrize("name", sorted(each.name for each in fields(RunSettings)))
def test_a_resource_decides_no_answer(name: str, on_ray: bool) -> None:
    """No run records resources: what decides answers stands in `settings`."""
    value: Any = {"temperature": 0.7, "merge_adapter": True, "template": {"a": 1}}.get(name, 7)
    if name in ("revision", "space", "device", "dtype", "engine", "attention"):
        value = "cpu" if name == "device" else "unit"
    entry = ModelEntry("FindIt-Nano", resources={name: value})
    deployment: Deployment = deployment_of(entry, Asking(on_ray=on_ray))
    if name in options_to("resources"):
        deployment.check()
        return
    with pytest.raises(ValueError, match=rf"FindIt-Nano: {name} stands in `resources`.*`settings`"):
        deployment.check()
