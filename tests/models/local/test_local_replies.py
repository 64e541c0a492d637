"""Replies of every family, from tiny checkpoints of the real architectures: CPU, float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from tiny_models import VARIANT, one_at_a_time, picture, questions, ready, runner, variants

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.answers import CancelledError
from vlmeval_findit.core.question import image, system, text
from vlmeval_findit.core.replies import Reply
from vlmeval_findit.models.local.model_images import ImageSet
from vlmeval_findit.models.local.run_plan import RunSettings, plan
from vlmeval_findit.models.model_table import MODELS

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import FAMILIES  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

ROWS = list(FAMILIES)
INSTANCES = parse("FindIt_HRInsDet_easy_xyxy_json")


@pytest.mark.parametrize("row", ROWS)
def test_a_batch_gives_the_replies_of_single_runs(row: str) -> None:
    model = ready(row)
    single = one_at_a_time(model, questions())
    assert model.answer_batch(questions(), VARIANT) == single
    # Positions left in the model by the batch must not reach what comes next.
    assert one_at_a_time(model, questions()) == single
    assert len({answer.text + answer.recorded.thought for answer in single}) > 2


@pytest.mark.parametrize("row", ROWS)
def test_variants_give_the_replies_of_single_runs(row: str) -> None:
    model = ready(row)
    single = one_at_a_time(model, variants())
    assert model.answer_variants(variants(), VARIANT) == single
    assert model.answer_variants(variants()[::-1], VARIANT) == single[::-1]
    # Positions left in the model by the variants must not reach what comes next.
    assert one_at_a_time(model, questions()) == model.answer_batch(questions(), VARIANT)


def test_variants_prefill_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ready("Qwen3-VL")
    visual = model._loaded.model.model.visual
    encodes = Mock(wraps=visual.forward)
    monkeypatch.setattr(visual, "forward", encodes)
    model.answer_variants(variants(), VARIANT)
    encodes.assert_called_once()


def test_messages_that_part_before_the_image_are_an_ordinary_batch() -> None:
    model = ready("Qwen3-VL")
    scene = image(picture(320, 200))
    asked = [(text("a"), scene, text("b")), (text("c"), scene, text("d")), questions()[1]]
    assert model.answer_variants(asked, VARIANT) == one_at_a_time(model, asked)
    assert model.answer_variants([], VARIANT) == []


def test_a_stop_token_ends_its_row_and_no_other() -> None:
    model = runner("Qwen3-VL")
    free = model.answer_batch(questions(), VARIANT)
    tokenizer = model._loaded.encoder.processor.tokenizer
    loaded = model._loaded
    how = plan(MODELS["Qwen3-VL"], VARIANT, RunSettings())
    encoded = [
        loaded.encoder.encode(item, ImageSet(how.bounds), how.bounds) for item in questions()
    ]
    from vlmeval_findit.models.local.transformer import Decoding, generate

    rows = [item.ids for item in generate(loaded, encoded, Decoding(12))]
    others = {token for row in rows[1:] for token in row}
    at, stop = next((at, token) for at, token in enumerate(rows[0]) if token not in others)
    loaded.model.generation_config.eos_token_id = [tokenizer.eos_token_id, stop]
    stopped = model.answer_batch(questions(), VARIANT)
    assert stopped[0].recorded.finish_reason == "stop"
    assert stopped[0].recorded.tokens["reply"] == at
    assert stopped[1:] == free[1:]
    assert {answer.recorded.finish_reason for answer in free} == {"length"}


def test_a_seeded_reply_is_the_same_in_any_batch() -> None:
    hot = runner("Qwen3-VL", temperature=50.0)
    asked, seeds = questions(), [11, 12, 13, 14]

    def texts(messages: Any, seeds: list[int]) -> list[str]:
        return [item.text for item in hot.answer_batch(messages, VARIANT, seeds=seeds)]

    together = texts(asked, seeds)
    assert texts(asked[::-1], seeds[::-1]) == together[::-1]
    assert [texts([asked[at]], [seeds[at]])[0] for at in range(4)] == together
    assert texts(asked, [seed + 1 for seed in seeds]) != together
    samples = [asked[0]] * 4
    shared = [item.text for item in hot.answer_variants(samples, VARIANT, seeds=seeds)]
    assert shared == texts(samples, seeds)
    assert len({*shared}) == 4


def test_seeds_draw_from_the_whole_distribution() -> None:
    import torch

    from vlmeval_findit.models.local.logits import SeededSampler

    logits, rows = torch.tensor([2.0, 0.0, float("-inf"), 1.0]), 4000
    sample = SeededSampler(0.5, range(rows))
    drawn = sample(None, logits.expand(rows, -1)).argmax(dim=-1)
    shares = torch.bincount(drawn, minlength=4) / rows
    assert torch.allclose(shares, (logits / 0.5).softmax(dim=-1), atol=0.02)
    again = sample(None, logits.expand(rows, -1)).argmax(dim=-1)
    assert (again != drawn).float().mean() > 0.1, "the next token has other random numbers"


@pytest.mark.parametrize("row", ROWS)
def test_the_familys_stop_tokens_are_known_to_its_tokenizer(row: str) -> None:
    encoder = ready(row)._loaded.encoder
    local = MODELS[row].local
    assert local is not None
    ids = encoder.processor.tokenizer.convert_tokens_to_ids(list(local.stops))
    assert set(ids) <= set(ready(row)._loaded.stops)
    assert len(set(ids)) == len(local.stops)


def test_special_tokens_are_stripped_but_the_box_markers_of_glm() -> None:
    encoder = ready("GLM-4.6V")._loaded.encoder
    reported = "<|begin_of_box|>[[1, 2, 3, 4]]<|end_of_box|><|user|>"
    ids = encoder.processor.tokenizer(reported)["input_ids"]
    assert encoder.decode(ids) == "<|begin_of_box|>[[1, 2, 3, 4]]<|end_of_box|>"
    qwen = ready("Qwen3-VL")._loaded.encoder
    ids = qwen.processor.tokenizer("[1, 2]<|im_end|><|endoftext|>")["input_ids"]
    assert qwen.decode(ids) == "[1, 2]"


@pytest.mark.parametrize("row", ROWS)
def test_a_system_text_comes_before_the_question(row: str) -> None:
    encoder = ready(row)._loaded.encoder
    before, _, after = encoder.chat((system("Be brief."), text("x"))).partition("Be brief.")
    assert "system" in before
    assert "user" in after
    assert "x" in after
    assert "system" not in encoder.chat((text("x"),))


# --- thinking -------------------------------------------------------------------------------------


def test_a_reply_that_ends_in_its_thought_has_no_boxes() -> None:
    answer = ready("Qwen3.5").answer_batch(questions()[:1], VARIANT)[0]
    assert answer.text == ""
    assert answer.recorded.ends_in_thought
    assert answer.recorded.thought


# --- memory and broken images ---------------------------------------------------------------------


def test_a_query_that_does_not_fit_alone_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import vlmeval_findit.models.local.transformer as transformer

    model = runner("Qwen3-VL")
    expected = model.answer_batch(questions(), VARIANT)
    real = transformer.generate

    def small_memory(loaded: Any, batch: Any, how: Any) -> Any:
        if any(len(item.ids) > 500 for item in batch):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(loaded, batch, how)

    monkeypatch.setattr(transformer, "generate", small_memory)
    answers = model.answer_batch(questions(), VARIANT)
    assert [Reply(0, a.text).failed for a in answers] == [False, False, True, False]
    assert [a for at, a in enumerate(answers) if at != 2] == expected[:2] + expected[3:]


def test_a_run_that_is_cancelled_ends_between_two_tokens() -> None:
    model = runner("Qwen3-VL")
    asked: list[bool] = []

    def told() -> bool:
        asked.append(True)
        return len(asked) == 3

    model.cancelled_by(told)
    for answer, messages in [
        (model.answer_batch, questions()[:1]),
        (model.answer_batch, questions()),
        (model.answer_variants, variants()),
    ]:
        asked.clear()
        with pytest.raises(CancelledError):
            answer(messages, VARIANT)
        assert len(asked) == 3
    model.cancelled_by(lambda: False)
    assert model.answer_batch(questions(), VARIANT) == ready("Qwen3-VL").answer_batch(
        questions(), VARIANT
    )


def test_a_broken_image_fails_alone(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(Path(picture(320, 200)).read_bytes()[:200])
    asked = [*questions()[:2], (image(str(broken)), text("Find it."))]
    answers = ready("Qwen3-VL").answer_batch(asked, VARIANT)
    assert answers[:2] == one_at_a_time(ready("Qwen3-VL"), asked[:2])
    assert Reply(0, answers[2].text).failed
    alone = ready("Qwen3-VL").answer_variants(asked[2:] * 2, VARIANT)
    assert all(Reply(0, answer.text).failed for answer in alone)


def test_a_temperature_samples() -> None:
    import torch

    greedy = ready("Qwen3-VL").answer_batch(questions(), VARIANT)
    cold, hot = (runner("Qwen3-VL", temperature=value) for value in (1e-4, 50.0))
    assert cold.answer_batch(questions(), VARIANT) == greedy
    torch.manual_seed(7)
    texts = [answer.text for answer in hot.answer_batch(questions(), VARIANT)]
    torch.manual_seed(7)
    assert [answer.text for answer in hot.answer_batch(questions(), VARIANT)] == texts
    assert texts != [answer.text for answer in greedy]
