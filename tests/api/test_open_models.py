"""Models that are opened by name, and asked: a baseline, servers, a local model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapters import write_base
from chat_server import ChatServer, completion, error, in_turn
from PIL import Image
from weight_headers import write_weights

import vlmeval_findit as findit
from vlmeval_findit.benchmarks import baselines
from vlmeval_findit.boxes import SpaceError
from vlmeval_findit.engine import own_models
from vlmeval_findit.models import SHIPPED
from vlmeval_findit.protocol import say_once

IMAGE = Image.new("RGB", (200, 100), (90, 120, 40))
HIT = '[{"bbox_2d": [100, 100, 500, 500]}]'


@pytest.mark.parametrize("name", [*baselines(), *SHIPPED, "mine=SHIPPED"])
def test_what_answers_here_takes_no_key(name: str) -> None:
    named = name.replace("SHIPPED", SHIPPED["FindIt-Nano"])
    like = "FindIt-Nano" if named != name else None
    with pytest.raises(ValueError, match=r"^key has no effect: \S+ is a .*; only these use it"):
        findit.open_model(named, key="k", like=like)


@pytest.mark.parametrize("place", ["base_url", "provider"])
@pytest.mark.parametrize("name", baselines())
def test_a_baseline_calls_no_server(name: str, place: str) -> None:
    where: Any = {place: "http://127.0.0.1:9/v1" if place == "base_url" else "openai"}
    with pytest.raises(
        ValueError, match=f"^{place} has no effect: {name} is a baseline and calls no server"
    ):
        findit.open_model(name, **where)


def test_a_baseline_is_asked_about_images_of_all_kinds(tmp_path) -> None:
    IMAGE.save(tmp_path / "a.png")
    model = findit.open_model("FullImage")
    array = np.asarray(IMAGE)
    grey = np.asarray(IMAGE.convert("L"))
    clear = np.asarray(IMAGE.convert("RGBA"))
    for image in (IMAGE, tmp_path / "a.png", str(tmp_path / "a.png"), array, grey, clear):
        answer = model.ask(image, "dog", "cxcywh_text")
        assert answer.parsed.boxes == ((0.0, 0.0, 200.0, 100.0),)
    both = model.ask([IMAGE, IMAGE], ["cat", "dog"], "xyxy_json")
    assert (both.parsed.frames, both.parsed.labels) == ((0, 1), ("object", "object"))
    assert model.ask(np.stack([array] * 3), "dog", "xyxy_json").parsed.frames == (0, 1, 2)
    for references in ([IMAGE], IMAGE, str(tmp_path / "a.png"), array):
        shown = model.ask(IMAGE, "it", family=findit.Family.INSDET, references=references)
        assert shown.parsed.kind is findit.ReplyKind.BOXES
    (tmp_path / "b.png").write_text("no image")
    for image, form, message in (
        (np.zeros((3, 100, 200), np.float32), "xyxy_json", r"float32 is not an image: .*byte"),
        (tmp_path / "b.png", "xyxy_json", r"b\.png"),
        (IMAGE, "xyxy_jsn", "did you mean json"),
    ):
        with pytest.raises((ValueError, OSError), match=message):
            model.ask(image, "dog", form)


@pytest.mark.parametrize(
    ("name", "checkpoint"),
    [
        ("./mine", "./mine"),
        ("Mine=some/where", "some/where"),
    ],
)
def test_a_checkpoint_is_like_a_row(name: str, checkpoint: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_weights(write_base(tmp_path / "mine") / "model.safetensors", "model.norm.weight")
    opened: list[Any] = []
    monkeypatch.setattr(own_models, "load_local_client", lambda **given: opened.append(given))
    stated: Any = {"like": "Qwen3-VL", "dtype": "float32", "batch_size": 2}
    assert repr(findit.open_model(name, **stated)) == f"Model({name!r})"
    assert opened == [{"model_path": checkpoint, "engine": "transformers", **stated}]


@pytest.mark.parametrize(
    ("name", "options"), [("Mine=served", {"space": "grid1000"}), ("served", {"like": "Qwen3-VL"})]
)
def test_a_server_is_asked_and_its_answer_is_in_pixels(name: str, options: dict[str, Any]) -> None:
    with ChatServer(in_turn(completion(HIT), completion("[]"), completion("Hm."))) as server:
        model = findit.open_model(name, server.url, **options)
        answers = [model.ask(IMAGE, "dog") for _ in range(3)]
    assert repr(model) == f"Model({name.partition('=')[0]!r})"
    assert answers[0].parsed.boxes == ((20.0, 10.0, 100.0, 50.0),)
    assert [answer.parsed.kind.value for answer in answers] == ["boxes", "no box", "not readable"]
    body = server.asked[0].body
    assert body["model"] == "served"
    assert 'Find every instance of "dog"' in str(body["messages"])
    # Scores need no space: the replies recorded it.
    result = findit.score(
        [answer.reply for answer in answers],
        [[[20, 10, 100, 50]]] * 3,
        "xyxy_json_bbox_2d",
        sizes=IMAGE.size,
    )
    assert result.metric_values["F1@0.5"] == 50


def test_a_failed_call_is_a_kind_of_answer() -> None:
    with ChatServer(in_turn(error(400, "no such model"))) as server:
        with pytest.raises(SpaceError, match="not known"):
            findit.open_model("Mine", server.url).ask(IMAGE, "dog")
        assert not server.asked
        answer = findit.open_model("Mine", server.url, space="unit").ask(IMAGE, "dog")
    assert answer.parsed.kind is findit.ReplyKind.FAILED
    assert "no such model" in answer.reply.recorded.call["error"]


def test_a_model_of_openrouter_needs_its_key(monkeypatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    with pytest.raises(ValueError, match="OPENROUTER_API_KEY"):
        findit.open_model("GPT-5.4")
    with ChatServer(in_turn(completion("[[0, 0, 100, 50]]"))) as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
        answer = findit.open_model("GPT-5.4").ask(IMAGE, "dog", "xyxy_text")
    assert answer.parsed.boxes == ((0.0, 0.0, 100.0, 50.0),)


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("FindIt-Nanno", {}, "did you mean FindIt-Nano"),
        (
            "FullImage",
            {"dtype": "float32"},
            "dtype has no effect: a baseline has none",
        ),
        ("FindIt-Nano", {"dtyp": "float32"}, "unknown setting 'dtyp': did you mean dtype"),
        ("./mine", {}, "./mine: the folder does not exist"),
        ("./mine", {"like": "Qwen3-LV"}, "unknown model 'Qwen3-LV': did you mean Qwen3-VL"),
        ("Qwen2.5-VL-7B-Instruct", {}, "Qwen2.5-VL-7B is the same checkpoint"),
        ("Mine", {"base_url": "ftp://x"}, "should begin with http"),
        ("Mine", {"base_url": "http://x/v1", "dtype": "float32"}, "dtype has no effect: it is of"),
        ("FullImage", {"space": "unit"}, "space has no effect: FullImage is a baseline"),
        ("FullImage=a/b", {}, "checkpoint has no effect: FullImage is a baseline"),
        ("Qwen3-VL", {"like": "Qwen3-VL"}, "like has no effect: Qwen3-VL is a model on this"),
    ],
)
def test_models_that_cannot_be_opened(name: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        findit.open_model(name, **more)


def test_the_shipped_model_answers() -> None:
    pytest.importorskip("transformers")
    picture = Image.new("RGB", (128, 96), (200, 60, 60))
    answer = findit.open_model("FindIt-Nano", max_new_tokens=8).ask(picture, "red square")
    assert answer.parsed.kind is not findit.ReplyKind.FAILED
    assert answer.reply.recorded.space == {"kind": "grid1000"}
    assert answer.reply.recorded.model["row"] == "FindIt-Nano"


@pytest.mark.parametrize("name", ["max_new_tokens", "max_tokens", "max_completion_tokens"])
def test_a_token_limit_is_taken_by_any_of_its_names(name: str) -> None:
    limit: dict[str, Any] = {name: 77}
    with ChatServer(in_turn(completion("[]"))) as server:
        findit.open_model("mine=m", server.url, space="unit", **limit).ask(IMAGE, "dog")
    assert server.asked[0].body["max_tokens"] == 77
    with pytest.raises(ValueError, match=f"{name}: 0 should be a whole number"):
        findit.open_model("mine=m", server.url, space="unit", **{name: 0})
    with pytest.raises(ValueError, match=f"{name}: 0 should be a whole number"):
        findit.open_model("FindIt-Nano", **{name: 0})


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ("gpt-4o-mini", ["mine: answered by gpt-4o-mini; asked was m"]),
        ("m", []),
        ("m-2026-01-01", []),
        ("", []),
    ],
)
def test_another_model_that_answers_is_told_once(
    answers: str, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    say_once.cache_clear()
    with ChatServer(lambda *_: completion(HIT, model=answers)) as server:
        model = findit.open_model("mine=m", base_url=server.url, space="grid1000")
        for _ in range(2):
            model.ask(IMAGE, "dog")
    assert [each for each in caplog.messages if "answered by" in each] == told
