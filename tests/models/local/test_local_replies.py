"""Replies of every family, from tiny checkpoints of the real architectures: CPU, float32."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from plugin_package import known_here
from tiny_models import (
    VARIANT,
    messages_of_one_image,
    messages_of_several_images,
    one_at_a_time,
    picture,
    ready,
    runner,
)

from vlmeval_findit.models import MODELS, ImageSet, RunSettings, plan_generation
from vlmeval_findit.protocol import CancelledError, Message, PartKind, image, text

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import FAMILIES, STRANGER, build  # noqa: E402

from vlmeval_findit.models import (  # noqa: E402
    BatchLimit,
    LogprobRecorder,
    SeededSampler,
    load_local,
)
from vlmeval_findit.models.local import transformer  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.slow]


def queries_of_all_kinds() -> list[Message]:
    """Return several questions about some images, one about others, and messages in between."""
    a = picture(320, 200)
    b = picture(200, 260, 1)
    of_b = [(image(b), text("Find it, or two")), (image(b), text("it"))]
    several = messages_of_several_images()
    return [*messages_of_one_image(), *several, (image(a), text("Find me")), *of_b]


def with_images_of_their_own(messages: Sequence[Message], folder: Path) -> list[Message]:
    """Return the messages with a copy of its images for each, so that none is shared."""
    folder.mkdir()
    copied = []
    for at, message in enumerate(messages):
        parts = []
        for place, part in enumerate(message):
            if part.kind is PartKind.IMAGE:
                copy = folder / f"{at}-{place}.png"
                copy.write_bytes(Path(part.value).read_bytes())
                part = part._replace(value=str(copy))
            parts.append(part)
        copied.append(tuple(parts))
    return copied


@pytest.mark.parametrize("row", FAMILIES)
def test_replies_depend_on_no_batch_and_no_sharing(row: str, tmp_path: Path) -> None:
    asked = queries_of_all_kinds()
    model = ready(row)
    single = one_at_a_time(model, asked)
    assert len({answer.text + answer.record.thought for answer in single}) > 5
    batched = runner(row)
    for size in (3, 64):
        batched._limit = BatchLimit(size)
        assert batched.answer_batch(asked, VARIANT) == single
    # Positions left in the model by a batch must not reach what comes next.
    assert batched.answer_batch(asked[::-1], VARIANT) == single[::-1]
    assert one_at_a_time(batched, asked[:2]) == single[:2]
    alone = with_images_of_their_own(asked, tmp_path / "copies")
    assert batched.answer_batch(alone, VARIANT) == single


@pytest.mark.parametrize("row", FAMILIES)
@pytest.mark.parametrize("size", [2, 8, 64])
def test_sharing_an_image_makes_no_batch_smaller(
    row: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is shared, by two or by all: as many decode together as the user says."""
    scenes = [(picture(320, 200, seed), count) for seed, count in ((3, 1), (4, 2), (5, 2), (6, 7))]
    asked = [(image(path), text("it " * (at + 1))) for path, count in scenes for at in range(count)]
    decoded = []
    real = transformer.continue_rows

    def counted(loaded: Any, inputs: Any, *more: Any) -> Any:
        decoded.append(len(inputs["input_ids"]))
        return real(loaded, inputs, *more)

    monkeypatch.setattr(transformer, "continue_rows", counted)
    monkeypatch.setattr(ready(row), "_limit", BatchLimit(size))
    ready(row).answer_batch(asked, VARIANT)
    whole, rest = divmod(len(asked), size)
    assert decoded == [size] * whole + [rest] * (rest > 0)


PLUGIN = r'''
from vlmeval_findit.boxes.spaces import Space
from vlmeval_findit.models.local.layout import ImageLayout
from vlmeval_findit.models.model_row import LocalFamily, ModelRow


class Split(ImageLayout):
    """Square tiles row by row, then the whole image once more."""

    def processed(self, shown, features):
        side = self.image_processor.max_image_size["longest_edge"]
        sizes = [picture.sent for picture in shown]
        grids = [self.image_processor.get_number_of_image_patches(h, w) for w, h in sizes]
        return [(columns * side, rows * side) for _, rows, columns in grids]


def row(name, **family):
    local = LocalFamily({name: "HuggingFaceTB/SmolVLM-500M-Instruct"}, **family)
    return ModelRow(name, name, space=lambda question: Space("unit"), local=local)


MODELS = [row("Ov"), row("SmolVLM-hf", layout=Split, stops=("<end_of_utterance>",))]
'''


@pytest.mark.parametrize("row", ["SmolVLM-hf", "Ov"])
def test_a_row_of_a_plug_in_does_too(row: str, tmp_path: Path) -> None:
    """Its architecture is known to transformers, not to us; a message may have no image."""
    checkpoint = build(STRANGER, tmp_path / "stranger")
    (tmp_path / "row.py").write_text(PLUGIN)
    with known_here(files=(tmp_path / "row.py",)):
        model = load_local(str(checkpoint), MODELS[row], RunSettings(max_new_tokens=12))
    asked = [*messages_of_one_image(), (text("Where?"),)]
    single = one_at_a_time(model, asked)
    replies = model.answer_batch(asked, VARIANT)
    assert replies == single
    assert len({reply.text for reply in replies}) > 2
    known = [["processed" in size for size in reply.record.images] for reply in replies]
    assert known == [[row != "Ov"] * count for count in (1, 1, 2, 1, 0)]
    assert model.answer_batch(messages_of_several_images(), VARIANT) == one_at_a_time(
        model, messages_of_several_images()
    )


def test_each_image_of_a_batch_is_seen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ready("Qwen3-VL")
    visual = model._loaded.model.model.visual
    encodes = Mock(wraps=visual.forward)
    monkeypatch.setattr(visual, "forward", encodes)
    scenes = [picture(320, 200, seed) for seed in (7, 8, 9)]
    model.answer_batch([(image(s), text(w)) for w in ("a", "b c") for s in scenes], VARIANT)
    (seen,) = encodes.call_args_list  # of one size: all at once
    assert len(seen.kwargs["grid_thw"]) == len(scenes)


def test_messages_that_part_before_the_image_are_an_ordinary_batch() -> None:
    model = ready("Qwen3-VL")
    scene = image(picture(320, 200))
    asked = [
        (text("a"), scene, text("b")),
        (text("c"), scene, text("d")),
        messages_of_one_image()[1],
    ]
    for messages in (asked[:2], asked, []):
        assert model.answer_batch(messages, VARIANT) == one_at_a_time(model, messages)


# --- the end of a reply, and its tokens -----------------------------------------------------------


def test_a_stop_token_ends_its_row_and_no_other() -> None:
    loaded = runner("Qwen3-VL")._loaded
    decoding = transformer.Decoding(12)
    images = ImageSet(plan_generation(MODELS["Qwen3-VL"], VARIANT, RunSettings()).bounds)
    encoded = [loaded.encoder.encode(message, images) for message in messages_of_one_image()]
    first, *others = free = transformer.generate(loaded, encoded, decoding)
    assert {row.finish_reason for row in free} == {"length"}
    of_others = {token for row in others for token in row.ids}
    at, stop = next((at, token) for at, token in enumerate(first.ids) if token not in of_others)
    loaded.model.generation_config.eos_token_id = [stop]
    ended = first._replace(ids=first.ids[:at], finish_reason="stop")
    assert transformer.generate(loaded, encoded, decoding) == [ended, *others]


@pytest.mark.parametrize("row", FAMILIES)
def test_the_familys_stop_tokens_are_known_to_its_tokenizer(row: str) -> None:
    loaded, local = ready(row)._loaded, MODELS[row].local
    assert local is not None
    ids = loaded.encoder.tokenizer.convert_tokens_to_ids(list(local.stops))
    assert set(ids) <= set(loaded.stops)
    assert len(set(ids)) == len(local.stops)


@pytest.mark.parametrize(
    ("row", "reply", "kept"),
    [
        ("GLM-4.6V", "<|begin_of_box|>[1]<|user|>", "<|begin_of_box|>[1]"),
        ("Qwen3-VL", "[1, 2]<|im_end|><|endoftext|>", "[1, 2]"),
    ],
)
def test_special_tokens_are_stripped_but_the_box_markers_of_glm(
    row: str, reply: str, kept: str
) -> None:
    encoder = ready(row)._loaded.encoder
    assert encoder.decode(encoder.tokenizer(reply)["input_ids"]) == kept


def test_a_reply_that_ends_in_its_thought_has_no_boxes() -> None:
    (answer,) = ready("Qwen3.5").answer_batch(messages_of_one_image()[:1], VARIANT)
    assert answer.text == ""
    assert answer.record.ends_in_thought
    assert answer.record.thought


# --- samples --------------------------------------------------------------------------------------


def test_a_seeded_reply_is_the_same_in_any_batch() -> None:
    asked = messages_of_one_image()
    seeds = [11, 12, 13, 14]
    cold, hot = (runner("Qwen3-VL", temperature=value) for value in (1e-4, 50.0))

    def texts(messages: Any, seeds: Any = (), model: Any = hot) -> list[str]:
        return [item.text for item in model.answer_batch(messages, VARIANT, seeds=seeds)]

    greedy = texts(asked, model=ready("Qwen3-VL"))
    assert texts(asked, model=cold) == greedy
    torch.manual_seed(7)
    unseeded = texts(asked)
    torch.manual_seed(7)
    assert texts(asked) == unseeded != greedy
    together = texts(asked, seeds)
    assert texts(asked[::-1], seeds[::-1]) == together[::-1]
    assert [texts([asked[at]], [seeds[at]])[0] for at in range(4)] == together
    assert texts(asked, [seed + 1 for seed in seeds]) != together
    samples = [asked[0]] * 4
    shared = [item.text for item in hot.answer_batch(samples, VARIANT, seeds=seeds)]
    assert shared == texts(samples, seeds)
    assert len({*shared}) == 4


def test_seeds_draw_from_the_whole_distribution() -> None:
    logits = torch.tensor([2.0, 0.0, float("-inf"), 1.0])
    rows = 4000
    sample = SeededSampler(0.5, range(rows))
    drawn = sample(None, logits.expand(rows, -1)).argmax(dim=-1)
    shares = torch.bincount(drawn, minlength=4) / rows
    assert torch.allclose(shares, (logits / 0.5).softmax(dim=-1), atol=0.02)
    again = sample(None, logits.expand(rows, -1)).argmax(dim=-1)
    assert (again != drawn).float().mean() > 0.1, "the next token has other random numbers"


# --- log-probabilities, against a forward pass over prompt and reply ------------------------------

HOW = transformer.Decoding(12, logprobs=True)
ASKED = messages_of_several_images()[:3]
ROWS = ["FindIt-Nano", "Qwen3-VL", "Qwen3.5", "Gemma 4"]
"""Ours, multimodal rotary positions, linear attention and a thought, a sliding window."""


def forced(loaded: Any, item: Any, ids: Sequence[int]) -> list[float]:
    """Return the log-probabilities of new tokens by one forward pass over prompt and reply."""
    whole = replace(item, ids=(*item.ids, *ids), types=(*item.types, *[0] * len(ids)))
    if hasattr(loaded.model.model, "rope_deltas"):
        loaded.model.model.rope_deltas = None
    with torch.no_grad():
        logits = loaded.model(**loaded.inputs([whole])).logits[0].float()
    of_new = logits[len(item.ids) - 1 : -1].log_softmax(-1)
    actual: list[float] = of_new.gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()
    return actual


@pytest.mark.parametrize("row", ROWS)
def test_log_probabilities_are_those_of_a_forward_pass(row: str) -> None:
    """One at a time, as a batch, and from a shared prefix; the reply is as without them."""
    loaded = ready(row)._loaded
    images = ImageSet(plan_generation(MODELS[row], VARIANT, RunSettings()).bounds)
    encoded = [loaded.encoder.encode(message, images) for message in ASKED]
    first = encoded[0]
    shared = [first, *(loaded.encoder.encode_like(first, each) for each in ASKED[1:])]
    replies = {
        "single": [transformer.generate(loaded, [item], HOW)[0] for item in encoded],
        "batch": transformer.generate(loaded, encoded, HOW),
        "prefix": transformer.generate(loaded, shared, HOW),
    }
    without = transformer.generate(loaded, encoded, HOW._replace(logprobs=False))
    for how, actual in replies.items():
        for item, new, plain in zip(encoded, actual, without, strict=True):
            assert new._replace(logprobs=None) == plain, how
            assert new.logprobs is not None
            count = len(new.ids)
            assert len(new.logprobs) == count + (new.finish_reason == "stop")
            assert new.logprobs[:count] == pytest.approx(forced(loaded, item, new.ids), abs=1e-3)
            if new.finish_reason == "stop":
                of_stops = [forced(loaded, item, [*new.ids, stop])[-1] for stop in loaded.stops]
                assert new.logprobs[count] == pytest.approx(max(of_stops), abs=1e-3)


@pytest.mark.parametrize("row", ["FindIt-Nano", "Qwen3-VL", "Qwen3.5"])
def test_a_reply_has_log_probabilities_by_its_characters(row: str) -> None:
    model = ready(row)
    plain = model.answer_batch(ASKED, VARIANT)
    assert all(item.record.token_logprobs is None for item in plain)
    alone = [model.answer_batch([each], VARIANT, logprobs=True)[0] for each in ASKED]
    for actual in (alone, model.answer_batch(ASKED, VARIANT, logprobs=True)):
        for item, other in zip(plain, actual, strict=True):
            tokens = other.record.token_logprobs
            without = replace(other.record, token_logprobs=None)
            assert (other.text, without) == (item.text, item.record)
            assert tokens is not None
            assert all(value <= 0 for value in tokens.logprobs)
            if other.record.ends_in_thought:
                assert (row, tokens.ends) == ("Qwen3.5", ())
            else:
                assert tokens.ends[-1] == len(other.text) > 0


@pytest.mark.parametrize("row", ["Qwen3-VL", "Gemma 4"])
@pytest.mark.parametrize("reply", ["日本 🐈‍⬛ [1]", "", "a  b\n\n"])
def test_ends_of_tokens_are_those_of_longer_and_longer_texts(row: str, reply: str) -> None:
    encoder = ready(row)._loaded.encoder
    ids = encoder.processor.tokenizer(reply, add_special_tokens=False)["input_ids"]
    ids = [*ids[:1], encoder.pad_id, *ids[1:]]  # a token that is not shown
    ends, whole = encoder.ends(ids), encoder.decode(ids)
    assert list(ends) == sorted(ends)
    assert ends[-1] == len(whole)
    for at, end in enumerate(ends, 1):
        begun = encoder.decode(ids[:at])
        assert begun.rstrip("\ufffd") == whole[:end]


def test_recording_them_takes_no_memory_that_grows_with_the_vocabulary() -> None:
    """Of the steps before the last nothing of the size of the vocabulary is left."""
    chosen, seen = LogprobRecorder(), []
    ids = torch.zeros((2, 1), dtype=torch.long)
    for step in range(5):
        scores = torch.randn(2, 1000)
        expected = scores.log_softmax(-1)[:, step]
        assert chosen(ids, scores) is scores
        seen.append((weakref.ref(scores), weakref.ref(chosen._last), expected))
        scores[:, 500:] = -torch.inf  # as those do that mask in place
        ids = torch.cat([ids, torch.full((2, 1), step)], dim=1)
        del scores
    assert [last() is not None for _, last, _ in seen] == [False] * 4 + [True]
    assert not any(scores() is not None for scores, _, _ in seen)
    actual = torch.tensor(chosen.logprobs_of(ids[:, 1:]))
    assert torch.allclose(actual, torch.stack([item for *_, item in seen], dim=1))
    assert chosen._last is None
    assert torch.allclose(torch.tensor(chosen.logprobs_of(ids[:, 1:4])), actual[:, :3]), (
        "steps undone"
    )


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_query_that_does_not_fit_alone_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model = runner("Qwen3-VL")
    expected = model.answer_batch(messages_of_one_image(), VARIANT)
    real = transformer.generate

    def small_memory(loaded: Any, batch: Any, how: Any) -> Any:
        if any(len(item.ids) > 500 for item in batch):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(loaded, batch, how)

    monkeypatch.setattr(transformer, "generate", small_memory)
    answers = model.answer_batch(messages_of_one_image(), VARIANT)
    assert [a.error is not None for a in answers] == [False, False, True, False]
    assert [a for at, a in enumerate(answers) if at != 2] == expected[:2] + expected[3:]


def test_a_broken_image_fails_alone(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    model = ready("Qwen3-VL")
    broken.write_bytes(Path(picture(320, 200)).read_bytes()[:200])
    asked = [*messages_of_one_image()[:2], (image(str(broken)), text("Find it."))]
    answers = model.answer_batch(asked, VARIANT)
    assert answers[:2] == one_at_a_time(model, asked[:2])
    for answer in (answers[2], *model.answer_batch(asked[2:] * 2, VARIANT)):
        assert answer.error is not None


def test_a_run_that_is_cancelled_ends_between_two_tokens() -> None:
    model = runner("Qwen3-VL")
    for messages in (messages_of_one_image(), messages_of_several_images()):
        told = Mock(side_effect=[False, False, True])
        model.cancelled_by(told)
        with pytest.raises(CancelledError):
            model.answer_batch(messages, VARIANT)
        assert told.call_count == 3
    model.cancelled_by(lambda: False)
    assert one_at_a_time(model, messages_of_one_image()) == one_at_a_time(
        ready("Qwen3-VL"), messages_of_one_image()
    )
