"""The small models, computed by NumPy: equal to transformers, and without it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few_fast import few_fast
from PIL import Image

from vlmeval_findit.benchmarks import benchmark_of, parse
from vlmeval_findit.benchmarks.findit import AXIS_VALUES, FormatAxes, formats, variants
from vlmeval_findit.cli import demo
from vlmeval_findit.data import load_dataset
from vlmeval_findit.models import (
    MODELS,
    NANO,
    NANO_PX,
    SHIPPED,
    Encoded,
    ImageSet,
    LocalRunner,
    RunSettings,
    engine_of,
    load_local,
    plan_generation,
    refuse_settings,
)
from vlmeval_findit.protocol import NUMPY, TRANSFORMERS, CallResult, Message, located
from vlmeval_findit.storage import image_folder
from vlmeval_findit.sweeps import STAGES, grid_tables

BOTH = (NANO, NANO_PX)
FIRST = "FindIt_Scenes_mini_xyxy_json"


@cache
def runner(name: str, engine: str, **settings: Any) -> LocalRunner:
    if engine == TRANSFORMERS:
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
    how = RunSettings(engine=engine, dtype="float32", **settings)
    return load_local(SHIPPED[name], MODELS[name], how)


@pytest.fixture(autouse=True, scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(tmp_path_factory.mktemp("lmu")))
        yield


def asked(dataset: str, names: Sequence[str], rows: int | None = None) -> list[list[Message]]:
    """Return the messages of each row, in all variants."""
    loaded = load_dataset(dataset)
    folder = image_folder(loaded.variant.images).path
    words = benchmark_of(loaded.variant).prompts()[0]
    queries = list(loaded.queries.values())[:rows]
    named = [parse(name) for name in names]
    return [
        [located(words.message(query, variant), folder) for variant in named] for query in queries
    ]


def assert_equal(ours: Sequence[CallResult], theirs: Sequence[CallResult]) -> None:
    assert [reply.text for reply in ours] == [reply.text for reply in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.record.images == other.record.images
        assert mine.record.tokens == other.record.tokens
        assert mine.record.finish_reason == other.record.finish_reason
        own, its = mine.record.token_logprobs, other.record.token_logprobs
        assert own is not None
        assert its is not None
        assert own.ends == its.ends
        # Both are rounded to four places, and so is what they differ by.
        assert np.abs(np.subtract(own.logprobs, its.logprobs)).max().round(4) <= 1e-4


def compare(
    name: str, datasets: Sequence[str], rows: int | None = None, *, at_once: int = 1
) -> None:
    """Compare the replies of both engines, to the messages of so many rows in one batch."""
    variant = parse(datasets[0])
    of_rows = asked(datasets[0], datasets, rows)
    for first in range(0, len(of_rows), at_once):
        messages = [*chain.from_iterable(of_rows[first : first + at_once])]
        ours, theirs = (
            runner(name, engine).answer_batch(messages, variant, logprobs=True)
            for engine in (NUMPY, TRANSFORMERS)
        )
        assert_equal(ours, theirs)


# --- equal to transformers ------------------------------------------------------------------------


@pytest.mark.parametrize("name", few_fast(BOTH, 1))
def test_a_few_replies_are_those_of_transformers(name: str) -> None:
    forms = ("xyxy_json", "xywh_text", "all-labelled_json_bbox_2d")
    compare(name, [f"FindIt_Scenes_mini_{form}" for form in forms], rows=3)
    compare(name, ["FindIt_Scenes_mini_insdet_xyxy_json"], rows=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_every_row_that_the_demonstration_asks(name: str) -> None:
    first, second = STAGES
    winners = FormatAxes(representations=("xyxy", "xywh"), outputs=("json",), keys=second.keys)
    asked_in = [*formats(first), *formats(winners)]
    compare(name, [variant.name for variant in variants((grid_tables()[demo.SCENES],), asked_in)])


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_every_format_that_there_is(name: str) -> None:
    every = FormatAxes(**{**AXIS_VALUES, "decodings": ("none",)})
    found = variants((grid_tables()[demo.SCENES],), formats(every))
    assert len(found) > 50
    compare(name, [variant.name for variant in found], rows=2)


@pytest.mark.slow
@pytest.mark.parametrize("table", [each for each in demo.TABLES if each != demo.SCENES])
@pytest.mark.parametrize("name", BOTH)
def test_every_other_table_of_the_demonstration(name: str, table: str) -> None:
    # In one batch: each engine looks once at an image for both.
    forms = ("xyxy_json_bbox_2d", "xywh_text")
    compare(name, [f"FindIt_{table}_{form}" for form in forms], at_once=25)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_replies_held_to_a_grammar(name: str) -> None:
    for form in ("xyxy_json", "all-labelled_json_bbox_2d", "xywh_json_coordinates"):
        compare(name, [f"FindIt_Scenes_mini_{form}_constrained"], rows=10)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_photographs_of_any_size(name: str, tmp_path: Path) -> None:
    """They are resized: no pixel may differ."""
    engines = (NUMPY, TRANSFORMERS)
    random = np.random.default_rng(0)
    words = asked(FIRST, [FIRST], 1)[0][0]
    variant = parse(FIRST)
    for at, (height, width) in enumerate(random.integers(20, 900, (25, 2))):
        path = tmp_path / f"{at}.png"
        coarse = random.integers(0, 256, (9, 7, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((int(width), int(height)), 0).save(path)
        message = (words[0]._replace(value=str(path)), *words[1:])
        ours, theirs = (encoded(name, engine, message) for engine in engines)
        assert (ours.text, ours.ids, ours.images) == (theirs.text, theirs.ids, theirs.images)
        for key, values in theirs.features.items():
            assert np.array_equal(ours.features[key], values.numpy()), (height, width, key)
        replies = [
            runner(name, engine).answer_batch([message], variant, logprobs=True)
            for engine in engines
        ]
        assert_equal(*replies)


def encoded(name: str, engine: str, message: Message) -> Encoded:
    bounds = plan_generation(MODELS[name], parse(FIRST), RunSettings()).bounds
    return runner(name, engine)._loaded.encoder.encode(message, ImageSet(bounds))


# --- alone ----------------------------------------------------------------------------------------


def test_a_reply_is_the_same_alone_and_among_others() -> None:
    named = [f"FindIt_Scenes_mini_{form}" for form in ("xyxy_json", "xywh_text", "all_text")]
    one, other = asked(FIRST, named, 2)
    model = runner(NANO, NUMPY)
    variant = parse(FIRST)
    for messages in (one, [*one, *other[1:]], [*other[:1], *one, *other[1:]]):
        alone = [model.answer_batch([message], variant)[0].text for message in messages]
        assert len(set(alone)) >= 3
        assert [reply.text for reply in model.answer_batch(messages, variant)] == alone


def test_a_cut_reply_says_so() -> None:
    ((message,),) = asked(FIRST, [FIRST], 1)
    (whole,) = runner(NANO, NUMPY).answer_batch([message], parse(FIRST))
    (cut,) = runner(NANO, NUMPY, max_new_tokens=3).answer_batch([message], parse(FIRST))
    assert (whole.record.finish_reason, cut.record.finish_reason) == ("stop", "length")
    assert cut.record.tokens["reply"] == 3
    assert whole.text.startswith(cut.text)


def test_a_sampled_reply_depends_on_its_seed_alone() -> None:
    messages = [row[0] for row in asked(FIRST, [FIRST], 3)]
    model = runner(NANO, NUMPY, temperature=4.0, max_new_tokens=8)
    variant = parse(FIRST)
    together = model.answer_batch(messages, variant, seeds=(1, 2, 3))
    assert model.answer_batch(messages[1:2], variant, seeds=(2,))[0].text == together[1].text
    assert model.answer_batch(messages[1:2], variant, seeds=(4,))[0].text != together[1].text


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"model.language_model.norm.weight": 0.0}, "logits are all equal: 1 weight .*norm.weight"),
        ({"model.visual.merger.linear_fc1.bias": np.nan}, "not numbers: 1 weight .*fc1.bias"),
    ],
)
def test_weights_that_choose_no_token_are_named(
    broken: dict[str, float], words: str, tmp_path: Path
) -> None:
    model = load_local(copied(tmp_path, broken), MODELS[NANO], RunSettings(engine=NUMPY))
    ((message,),) = asked(FIRST, [FIRST], 1)
    (reply,) = model.answer_batch([message], parse(FIRST))
    assert reply.error is not None
    assert re.search(words, reply.error)


def test_a_checkpoint_without_all_weights_is_refused(tmp_path: Path) -> None:
    folder = copied(tmp_path, {"model.language_model.norm.weight": None})
    with pytest.raises(ValueError, match=r"1 of its 131 weights is missing .*norm.weight"):
        load_local(folder, MODELS[NANO], RunSettings(engine=NUMPY))


def copied(folder: Path, changed: dict[str, Any]) -> str:
    """Copy FindIt-Nano with other numbers in some weights (None: without them)."""
    target = folder / "checkpoint"
    shutil.copytree(SHIPPED[NANO], target)
    path = target / "model.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, numbers = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    for name, value in changed.items():
        if value is None:
            begin, end = header.pop(name)["data_offsets"]
            del numbers[begin:end]
            for entry in header.values():  # Others follow without a gap
                if entry.get("data_offsets", [0])[0] >= end:
                    entry["data_offsets"] = [at - (end - begin) for at in entry["data_offsets"]]
            continue
        begin, end = header[name]["data_offsets"]
        numbers[begin:end] = np.full((end - begin) // 2, value, dtype=np.float16).tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + numbers)
    return str(target)


# --- which engine ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "stated", "engine"),
    [
        ((), {}, TRANSFORMERS),
        (("torch",), {}, NUMPY),
        (("transformers",), {}, NUMPY),
        ((), {"engine": NUMPY}, NUMPY),
        (("torch",), {"engine": TRANSFORMERS}, TRANSFORMERS),
        # NumPy could not do it: that torch is missing is said when it is loaded.
        (("torch",), {"device": "cuda"}, TRANSFORMERS),
        (("torch",), {"dtype": "bfloat16"}, TRANSFORMERS),
    ],
)
def test_what_is_installed_and_stated_decides(
    missing: Sequence[str],
    stated: dict[str, Any],
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = "vlmeval_findit.models.local.which_engine.find_spec"
    monkeypatch.setattr(where, lambda name: None if name in missing else object())
    assert engine_of(MODELS[NANO], SHIPPED[NANO], RunSettings(**stated)) == engine
    other = engine_of(MODELS["Qwen3-VL"], "Qwen/Qwen3-VL-8B-Instruct", RunSettings())
    assert other == TRANSFORMERS


@pytest.mark.parametrize(
    ("file", "place", "value"),
    [
        ("config.json", ("text_config", "hidden_act"), "gelu"),
        ("config.json", ("vision_config", "rope_parameters", "rope_type"), "other"),
        ("processor_config.json", ("image_processor", "resample"), 2),
    ],
)
def test_what_numpy_does_not_compute_is_refused(
    file: str, place: Sequence[str], value: Any, tmp_path: Path
) -> None:
    folder = copied(tmp_path, {})
    path = Path(folder, file)
    whole = json.loads(path.read_text())
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=rf"engine numpy: .*{file} says {'.'.join(place)} "):
        refuse_settings(MODELS[NANO], folder, RunSettings(engine=NUMPY))
    with pytest.raises(ValueError, match=r"engine numpy: .*Qwen3-VL is none.*pip install"):
        refuse_settings(MODELS["Qwen3-VL"], folder, RunSettings(engine=NUMPY))
