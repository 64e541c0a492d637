"""The constrained twin: a format's grammar, and decoding that is held to it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import ask_call, service
from chat_server import ChatServer, completion, holding, in_turn, is_first
from grids import constrained_formats
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from PIL import Image

from vlmeval_findit.benchmarks.findit import FindItVariant, message, parse
from vlmeval_findit.boxes import BoxToWrite, FormatFailure, ReplyFormat, read, schema_of, write
from vlmeval_findit.data import load_dataset
from vlmeval_findit.engine import settings_of
from vlmeval_findit.models import (
    MODELS,
    Completion,
    RunSettings,
    SchemaRoot,
    chat_model,
    load_local,
    plan_generation,
    response_format,
    unwrapped,
)
from vlmeval_findit.protocol import image, text

FORMATS = st.deferred(lambda: st.sampled_from(constrained_formats()))


def fits(text: str, schema: Mapping[str, Any]) -> bool:
    return Draft202012Validator(schema).is_valid(json.loads(text))


def test_what_keeps_to_a_format_fits_its_schema() -> None:
    for how in constrained_formats():
        schema = schema_of(how)
        Draft202012Validator.check_schema(schema)
        boxes = [
            BoxToWrite((1.0, 2.0, 30.0, 40.0), "a cat", 0),
            BoxToWrite((5.0, 6.0, 70.0, 80.0), "dog", how.frames - 1),
        ]
        for reply in (write(boxes, how), write(boxes, how, digits=0), "[]"):
            assert fits(reply, schema), (how, reply)
        # What the reader does not take, no schema lets through.
        for other in ('[{"other": [1, 2, 3, 4, 5]}]', "{}", "[[1, 2, 3, 4]]", '[{"bbox": "1"}]'):
            assert read(other, how).reason is not None, (how, other)
            assert not fits(other, schema), (how, other)


@settings(max_examples=300)
@given(FORMATS, st.integers(0, 2**32))
def test_what_fits_a_schema_is_read(how: ReplyFormat, seed: int) -> None:
    text = json.dumps(_example(schema_of(how), random.Random(seed)))
    reading = read(text, how)
    if how.frames == 1 or json.loads(text):
        assert reading.reason is None or "frame" in reading.reason.value, text


def _example(schema: Mapping[str, Any], rng: random.Random) -> Any:
    """Return a value that fits a schema of FindIt's."""
    kind = schema["type"]
    if kind == "array":
        low = schema.get("minItems", 0)
        high = schema.get("maxItems", 3)
        return [_example(schema["items"], rng) for _ in range(rng.randint(low, high))]
    if kind == "object":
        built = {name: _example(value, rng) for name, value in schema["properties"].items()}
        if schema["additionalProperties"]:
            built["a label"] = _example(schema["additionalProperties"], rng)
        return built
    if kind == "integer":
        return rng.randint(max(1, schema["minimum"]), schema["maximum"])
    return rng.choice(["", "cat"]) if kind == "string" else round(rng.uniform(0, 1000), 1)


# --- services -------------------------------------------------------------------------------------

HELD = parse("FindIt_Demo_xyxy_json_bbox_2d_constrained")
FREE = parse("FindIt_Demo_xyxy_json_bbox_2d")


def test_a_provider_is_sent_an_object_without_lengths() -> None:
    how = ReplyFormat("json", "xyxy", "bbox_2d", multilabel=True, frames=8)
    schema = response_format(schema_of(how), SchemaRoot.OBJECT)["json_schema"]["schema"]
    assert schema["type"] == "object"
    assert "Items" not in json.dumps(schema)
    assert "minimum" not in json.dumps(schema)
    answer = write([BoxToWrite((1, 2, 3, 4), "cat", 2)], how)
    whole = f'{{"answer": {answer}}}'
    assert fits(whole, schema)
    assert read(unwrapped(whole, SchemaRoot.OBJECT), how) == read(answer, how)


def test_some_formats_have_no_schema() -> None:
    with pytest.raises(ValueError, match="text have no grammar"):
        schema_of(ReplyFormat("text", "xyxy"))
    labels = FindItVariant("Pascal", "xyxy", "json", "class_name", multilabel=True).reply
    with pytest.raises(ValueError, match="keys are labels"):
        response_format(schema_of(labels), SchemaRoot.OBJECT)


def test_constrained_twins_differ_only_in_their_schema() -> None:
    with ChatServer(holding(in_turn(completion("[]")))) as server:
        for variant in (FREE, HELD):
            assert ask_call(service(server.url), variant=variant).error is None
        free, held = (dict(asked.body) for asked in server.asked if not is_first(asked))
    assert held.pop("response_format")["json_schema"]["schema"] == schema_of(HELD.reply)
    assert free == held
    free = settings_of(FREE, {})
    held = settings_of(HELD, {})
    assert held.pop("reply_schema") == schema_of(HELD.reply), "They are different calls."
    assert free == held
    query = next(iter(load_dataset(FREE.name).queries.values()))
    assert message(query, FREE) == message(query, HELD)


def test_openai_wraps_the_list_in_an_object() -> None:
    model = chat_model("GPT-5.4", "openrouter")
    body = model.request((text("where?"),), HELD).body
    assert body["response_format"]["json_schema"]["schema"]["type"] == "object"
    assert body["provider"] == {"require_parameters": True}
    completed = Completion('{"answer": [{"bbox_2d": [1, 2, 3, 4]}]}')
    assert model.read(completed, HELD).text == '[{"bbox_2d": [1, 2, 3, 4]}]'
    assert model.read(completed, FREE).text == completed.text
    assert model.read(Completion("[]"), HELD).text == "[]"


# --- on this machine ------------------------------------------------------------------------------


def test_an_unenforceable_schema_is_refused_before_loading() -> None:
    with pytest.raises(ValueError, match=r"Qwen3\.5 thinks before it answers.*_constrained"):
        plan_generation(MODELS["Qwen3.5"], HELD, RunSettings())
    assert plan_generation(MODELS["Qwen3.5-nothink"], HELD, RunSettings()).schema == schema_of(
        HELD.reply
    )


@pytest.mark.host
@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "how"), [("Qwen3-VL", "json_class_name"), ("Gemma 4", "json_decomposed")]
)
def test_any_model_on_this_machine_keeps_to_the_format(row: str, how: str, tmp_path: Path) -> None:
    """Weights drawn at random say anything at all; held to a grammar they say nothing else."""
    pytest.importorskip("transformers")
    from tiny_checkpoints import build

    variant = parse(f"FindIt_Pascal_multilabel_xyxy_{how}_constrained")
    settings = RunSettings(max_new_tokens=48, dtype="float32")
    model = load_local(str(build(row, tmp_path / "tiny")), MODELS[row], settings)
    path = tmp_path / "scene.png"
    Image.effect_noise((64, 48), 90).convert("RGB").save(path)
    words = ("the cat", "every dog and the bicycle", "it")
    asked = [(image(str(path)), text(f"Find {what}.")) for what in words]
    alone = [model.answer_batch([item], variant)[0].text for item in asked]
    assert [item.text for item in model.answer_batch(asked, variant)] == alone
    held = model.answer_batch(asked, variant, logprobs=True)
    free = model.answer_batch(asked, replace(variant, decoding=None))
    for reply, other in zip(held, free, strict=True):
        assert reply.text != other.text
        assert reply.record.token_logprobs is not None
        # What was stopped at its limit is a beginning of what fits.
        cut = reply.record.finish_reason == "length"
        allowed = (FormatFailure.TRUNCATED, None) if cut else (None,)
        assert read(reply.text, variant.reply).reason in allowed, reply.text
