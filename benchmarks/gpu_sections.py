"""One section of ``gpu.py``: prints its rows as JSON.

``python gpu_sections.py NAME --until=T``, where T is of the monotonic clock; with ``--small`` on
the CPU, with small numbers.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any, NamedTuple, TextIO

import numpy as np
import plain_loop
import tiny_checkpoints
import tiny_encoders
import torch
import transformers as hf
from gpu import SECTIONS, Row
from nano_sweep import FORMATS, load_client
from PIL import Image

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.core import error_line
from vlmeval_findit.data import load_dataset
from vlmeval_findit.engine import JournalView, answers_of, prompts_of
from vlmeval_findit.models import (
    MODELS,
    NANO,
    NANO_SIGLIP,
    SHIPPED,
    LocalClient,
    Padding,
    Towers,
    checkpoint_of,
    model_client,
    qwen3_bounds,
)
from vlmeval_findit.models.local import machine, transformer
from vlmeval_findit.protocol import Batch, DatasetVariant, Message, image, text

ENOUGH = 5.0
"""Seconds of measuring after which nothing is repeated."""

FAMILIES = ("Qwen3-VL", "Qwen2.5-VL", "Qwen3.5-nothink", "GLM-4.6V", "Gemma 4", "InternVL3")

VARIANT = parse(f"FindIt_Scenes_mini_{FORMATS[0]}")
CONSTRAINED = parse(f"FindIt_Scenes_mini_{FORMATS[0]}_constrained")

_2B_TEXT = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "max_position_embeddings": 262_144,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 5e6,
        "mrope_section": [24, 20, 20],
        "mrope_interleaved": True,
    },
}
_2B_VISION = {
    "depth": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_heads": 16,
    "patch_size": 16,
    "out_hidden_size": 2048,
    "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [5, 11, 17],
}
"""The shape of Qwen3-VL-2B, as its published configuration has it."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured."""

    device: str
    dtypes: tuple[str, ...]
    batches: tuple[int, ...]
    single: int  # queries that are also asked one at a time, and of the CPU
    shared: int  # questions about one image
    many: int  # large pictures at once, where memory runs out
    repeats: int
    sizes: tuple[tuple[tuple[int, int], tuple[int, ...]], ...]  # of images, with batches: shape
    text_shape: Mapping[str, Any]
    vision_shape: Mapping[str, Any]
    new: int  # tokens of each reply of the shape
    rows: int  # of a sweep
    turns: int  # in which FindIt and the loop are measured one behind the other
    turn_batches: tuple[int, ...]
    formats: tuple[int, ...]  # about each image, by turns with the loop, which shares nothing
    turn_batch: int  # of formats, grammars and families

    @property
    def most(self) -> int:
        return max(self.batches)


GPU = Scale(
    device="cuda",
    dtypes=("bfloat16", "float32"),
    batches=(1, 8, 32, 128),
    single=8,
    shared=32,
    many=64,
    repeats=3,
    sizes=(((640, 480), (1, 8, 32, 128)), ((1280, 960), (8, 32))),
    text_shape=_2B_TEXT,
    vision_shape=_2B_VISION,
    new=64,
    rows=25,
    turns=5,
    turn_batches=(8, 32, 128, 256),
    formats=(2, 8),
    turn_batch=128,
)
# Some processors crash on products of bfloat16.
SMALL = Scale(
    device="cpu",
    dtypes=("float32",),
    batches=(1, 4),
    single=2,
    shared=4,
    many=4,
    repeats=1,
    sizes=(((96, 64), (1, 2)),),
    text_shape={
        **_2B_TEXT,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "vocab_size": 2048,
        "initializer_range": 0.3,
    },
    vision_shape={
        **_2B_VISION,
        "depth": 1,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 2,
        "out_hidden_size": 64,
        "deepstack_visual_indexes": [0],
    },
    new=4,
    rows=6,
    turns=2,
    turn_batches=(2, 4),
    formats=(2,),
    turn_batch=4,
)


# --- what is asked --------------------------------------------------------------------------------


def folder() -> Path:
    """Return a new folder; it goes with those of all sections."""
    return Path(mkdtemp())


@cache
def scene_messages() -> list[Message]:
    """Return what FindIt-Nano is asked about rendered scenes, in several formats."""
    messages = []
    for form in (*FORMATS, "xyxy_text", "cxcywh_text"):
        dataset = load_dataset(f"FindIt_Scenes_mini_{form}")
        prompts = prompts_of(dataset)
        messages += [prompts.message(index) for index in dataset.queries]
    return messages


@cache
def pictures(count: int, size: tuple[int, int]) -> list[str]:
    """Save smooth random pictures, as JPEG files like those of photographs."""
    where = folder()
    paths = []
    for at in range(count):
        random = np.random.default_rng(at)
        coarse = random.integers(0, 255, (size[1] // 16, size[0] // 16, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
        path = where / f"{at}.jpg"
        picture.save(path, quality=90)
        paths.append(str(path))
    return paths


def photo_messages(count: int, size: tuple[int, int]) -> list[Message]:
    """Return the texts about scenes, each with a picture of a size."""
    texts = [message[-1].value for message in scene_messages()]
    shown = pictures(count, size)
    return [(image(path), text(texts[at % len(texts)])) for at, path in enumerate(shown)]


def format_messages(images: int, size: tuple[int, int], formats: int) -> list[Message]:
    """Return so many texts about each of several images, one image behind the other."""
    messages = []
    for path in pictures(images, size):
        messages += questions_about_one(path, formats)
    return messages


def questions_about_one(path: str, count: int) -> list[Message]:
    """Return several texts about an image."""
    texts = list(dict.fromkeys(message[-1].value for message in scene_messages()))
    return [(image(path), text(texts[at])) for at in range(count)]


# --- measuring ------------------------------------------------------------------------------------


class Measured(NamedTuple):
    seconds: float  # median
    replies: list[str]
    allocated: float | None  # most MiB; None: the CPU
    reserved: float | None

    def row(self, case: str, dtype: str, batch: int, **more: Any) -> Row:
        rate = len(self.replies) / self.seconds
        return Row(case, dtype, batch, rate, self.allocated, self.reserved, **more)


def measure(ask: Callable[[], list[str]], scale: Scale, besides: float = 0.0) -> Measured:
    """Time ``ask`` after a first time that is not counted.

    ``besides`` are MiB of others on the device, which the peak leaves out.
    """
    machine.free_memory()
    ask()
    forget_peak(scale)
    seconds: list[float] = []
    replies: list[str] = []
    while len(seconds) < scale.repeats and sum(seconds) < ENOUGH:
        wait(scale)
        start = time.perf_counter()
        replies = ask()
        wait(scale)
        seconds.append(time.perf_counter() - start)
    allocated, reserved = None, None
    if scale.device == "cuda":
        allocated = torch.cuda.max_memory_allocated() / 2**20 - besides
        reserved = torch.cuda.max_memory_reserved() / 2**20 - besides
    return Measured(statistics.median(seconds), replies, allocated, reserved)


def wait(scale: Scale) -> None:
    if scale.device == "cuda":
        torch.cuda.synchronize()


def forget_peak(scale: Scale) -> None:
    if scale.device == "cuda":
        torch.cuda.reset_peak_memory_stats()


def held(scale: Scale) -> float:
    """Return the MiB of the tensors that there are."""
    return torch.cuda.memory_allocated() / 2**20 if scale.device == "cuda" else 0.0


def by_turns(
    case: str,
    dtype: str,
    batch: int,
    ask: Callable[[], list[str]],
    ask_other: Callable[[], list[str]],
    scale: Scale,
) -> Row:
    """Time two one behind the other, so that both have what else the machine does.

    The row has how many times as fast the first is, in the median of all turns.
    """
    machine.free_memory()
    replies = ask()
    others = ask_other()
    ratios = []
    seconds = []
    for _ in range(scale.turns):
        seconds.append(time_of(ask, scale))
        ratios.append(time_of(ask_other, scale) / seconds[-1])
    rate = len(replies) / statistics.median(seconds)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f} in {scale.turns} turns"
    note = f"{spread}, {rate:.2f} queries/s, equal {equal(replies, others)}"
    return Row(case, dtype, batch, statistics.median(ratios), note=note)


def time_of(ask: Callable[[], list[str]], scale: Scale) -> float:
    wait(scale)
    start = time.perf_counter()
    ask()
    wait(scale)
    return time.perf_counter() - start


def ask_client(
    client: LocalClient,
    messages: Sequence[Message],
    batch: int,
    variant: DatasetVariant = VARIANT,
) -> list[str]:
    """Ask so many at a time; RuntimeError if a call fails, or only succeeds one at a time."""
    replies = []
    warnings: list[str] = []
    with collected(model_client, warnings):
        for first in range(0, len(messages), batch):
            part = tuple(messages[first : first + batch])
            for answer in answers_of(client, Batch(part, (variant,) * len(part))):
                if answer.error is not None:
                    raise RuntimeError(f"a call failed: {answer.error}")
                replies.append(answer.text)
    if warnings:
        raise RuntimeError(warnings[0])
    return replies


def equal(actual: Sequence[str], expected: Sequence[str]) -> str:
    """Say how many replies are as expected."""
    count = min(len(actual), len(expected))
    same = sum(a == b for a, b in zip(actual, expected, strict=False))
    return f"{same}/{count}"


def attempted(case: str, rows: Callable[[], Iterator[Row]]) -> Iterator[Row]:
    """Yield rows; an exception is a row that says so."""
    try:
        yield from rows()
    except Exception as error:
        print(f"--- {case}", file=sys.stderr)
        traceback.print_exc()
        yield Row(case, note=f"failed: {error_line(error)[:150]}", failed=True)
    machine.free_memory()


# --- sections -------------------------------------------------------------------------------------


def smoke(scale: Scale) -> Iterator[Row]:
    """Ask FindIt-Nano without any settings."""
    messages = scene_messages()[:8]
    on_cpu = ask_client(load_client(SHIPPED[NANO], NANO, device="cpu"), messages, 8)
    client = load_client(SHIPPED[NANO], NANO)
    measured = measure(lambda: ask_client(client, messages, 8), scale)
    yield measured.row(NANO, "default", 8, like_cpu=equal(measured.replies, on_cpu))


class SideBySide:
    """A checkpoint as FindIt runs it, and in the plain loop; both stay on the device.

    ``limits`` are the options of the loop's ``generate``, ``area`` are its bounds of images.
    """

    def __init__(
        self,
        checkpoint: str,
        row: str,
        scale: Scale,
        limits: Mapping[str, Any],
        area: tuple[int, int] | None = None,
    ) -> None:
        self._scale = scale
        self._limits = limits
        self._dtype = scale.dtypes[0]
        self._first: dict[str, list[str]] = {}
        machine.free_memory()
        before = held(scale)
        start = time.perf_counter()
        self.client = load_client(
            checkpoint,
            row,
            device=scale.device,
            dtype=self._dtype,
            batch_size=scale.most,
            max_new_tokens=limits["max_new_tokens"],
        )
        between = time.perf_counter()
        ours = held(scale)
        self._loop = plain_loop.load(checkpoint, scale.device, self._dtype, area)
        self._seconds = between - start, time.perf_counter() - between
        # What is on the device besides FindIt's model, and besides the loop's.
        self._besides = before + held(scale) - ours, ours
        self._weights = ours - before, held(scale) - ours

    def loaded(self) -> Iterator[Row]:
        for case, weights, seconds in zip(
            ("FindIt loads it", "plain loop loads it"), self._weights, self._seconds, strict=True
        ):
            yield Row(case, self._dtype, allocated=weights, note=f"{seconds:.1f} s")

    def rows(self, case: str, messages: Sequence[Message], batch: int) -> Iterator[Row]:
        """Measure both, and yield FindIt's numbers divided by those of the loop last."""
        ask_loop = partial(self._ask_loop, messages, batch)
        ask = partial(ask_client, self.client, messages, batch)
        mine = measure(ask, self._scale, self._besides[0])
        single = equal(mine.replies, self._first.setdefault(case, mine.replies))
        yield mine.row(f"FindIt, {case}", self._dtype, batch, like_single=single)
        plain = measure(ask_loop, self._scale, self._besides[1])
        yield plain.row(f"plain loop, {case}", self._dtype, batch)
        note = f"equal {equal(mine.replies, plain.replies)}, {len({*mine.replies})} distinct"
        if mine.allocated and plain.allocated and mine.reserved and plain.reserved:
            note += f", memory {mine.allocated / plain.allocated:.3f}"
            note += f", held {mine.reserved / plain.reserved:.3f}"
        per_query = plain.seconds / mine.seconds
        yield Row(f"  FindIt/loop, {case}", self._dtype, batch, per_query, note=note)

    def by_turns(self, case: str, messages: Sequence[Message], batch: int) -> Row:
        """Measure both one behind the other."""
        ask = partial(ask_client, self.client, messages, batch)
        ask_loop = partial(self._ask_loop, messages, batch)
        return by_turns(f"FindIt/loop, {case}", self._dtype, batch, ask, ask_loop, self._scale)

    def grammar_by_turns(self, case: str, messages: Sequence[Message], batch: int) -> Row:
        """Measure replies that are held to a grammar, and free ones one behind the other."""
        held = partial(ask_client, self.client, messages, batch, CONSTRAINED)
        free = partial(ask_client, self.client, messages, batch)
        return by_turns(f"constrained/free, {case}", self._dtype, batch, held, free, self._scale)

    def _ask_loop(self, messages: Sequence[Message], batch: int) -> list[str]:
        pairs = [(message[0].value, message[-1].value) for message in messages]
        return [reply.strip() for reply in self._loop.replies(pairs, batch, **self._limits)]


def shape(scale: Scale) -> Iterator[Row]:
    """Measure random weights of the 2B's shape, and the plain loop beside them."""
    dtype = scale.dtypes[0]
    start = time.perf_counter()
    checkpoint = save_shape(scale, dtype)
    yield Row("checkpoint made", dtype, note=f"{time.perf_counter() - start:.1f} s")
    bounds = qwen3_bounds(VARIANT)
    area = (bounds.min_pixels or 0, bounds.max_pixels or 0)
    fixed = {"max_new_tokens": scale.new, "min_new_tokens": scale.new}
    both = SideBySide(checkpoint, "Qwen3-VL", scale, fixed, area)
    yield from both.loaded()
    for size, batches in scale.sizes:
        for batch in batches:
            messages = photo_messages(max(2, batch), size)
            yield from both.rows(f"{size[0]}x{size[1]}", messages, batch)
    size = scale.sizes[-1][0]
    questions = questions_about_one(pictures(1, size)[0], scale.shared)
    yield from on_and_off(both.client, questions, scale, f"2B, {size[0]}x{size[1]}", dtype)


def turns(scale: Scale) -> Iterator[Row]:
    """Measure the 2B's shape and the plain loop by turns: batches, formats, grammars."""
    bounds = qwen3_bounds(VARIANT)
    area = (bounds.min_pixels or 0, bounds.max_pixels or 0)
    fixed = {"max_new_tokens": scale.new, "min_new_tokens": scale.new}
    most = replace(scale, batches=scale.turn_batches)
    both = SideBySide(save_shape(scale, scale.dtypes[0]), "Qwen3-VL", most, fixed, area)
    size = scale.sizes[0][0]
    for batch in scale.turn_batches:
        yield both.by_turns(f"{size[0]}x{size[1]}", photo_messages(batch, size), batch)
    batch = scale.turn_batch
    for formats in scale.formats:
        messages = format_messages(batch // formats, size, formats)
        yield both.by_turns(f"{formats} formats", messages, batch)
    yield both.grammar_by_turns(f"{size[0]}x{size[1]}", photo_messages(batch, size), batch)


def family_turns(scale: Scale) -> Iterator[Row]:
    """Measure tiny checkpoints of all families and the plain loop by turns."""
    for row in FAMILIES:
        yield from attempted(row, partial(_family_by_turns, row, scale))


def _family_by_turns(row: str, scale: Scale) -> Iterator[Row]:
    checkpoint = str(tiny_checkpoints.build(row, folder()))
    batch = scale.turn_batch
    most = replace(scale, batches=(batch,))
    # A checkpoint's own penalty is nothing that FindIt generates with.
    limits = {"max_new_tokens": 12, "repetition_penalty": 1.0}
    bounds = MODELS[row].local.bounds(VARIANT)
    area = None
    if bounds.min_pixels and bounds.max_pixels:
        area = (bounds.min_pixels, bounds.max_pixels)
    both = SideBySide(checkpoint, row, most, limits, area)
    size = scale.sizes[0][0]
    messages = photo_messages(batch, size)
    yield both.by_turns(row, messages, batch)
    for formats in scale.formats:
        shared = format_messages(batch // formats, size, formats)
        yield both.by_turns(f"{row}, {formats} formats", shared, batch)
    yield both.grammar_by_turns(row, messages, batch)


def save_shape(scale: Scale, dtype: str) -> str:
    """Make a checkpoint of the 2B's shape on the device, and save it."""
    tiny = tiny_checkpoints.FAMILIES["Qwen3-VL"]()
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    config = hf.Qwen3VLConfig(
        text_config=dict(scale.text_shape),
        vision_config=dict(scale.vision_shape),
        tie_word_embeddings=True,
        **{name: getattr(tiny.config, name) for name in names},
    )
    torch.manual_seed(0)
    with torch.device(scale.device):
        model = hf.AutoModelForImageTextToText.from_config(config, dtype=getattr(torch, dtype))
    tokenizer = tiny.processor.tokenizer
    model.generation_config = hf.GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    where = folder()
    model.save_pretrained(where)
    tiny.processor.save_pretrained(where)
    fill_vocabulary(where / "tokenizer.json", scale.text_shape["vocab_size"])
    return str(where)


def fill_vocabulary(path: Path, size: int) -> None:
    """Give every token of a model a text, so that all of a reply is compared."""
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    known = tokenizer["model"]["vocab"]
    known |= {f"<{at}>": at for at in range(len(known), size)}
    path.write_text(json.dumps(tokenizer), encoding="utf-8")


def nano(scale: Scale) -> Iterator[Row]:
    """Measure FindIt-Nano, and the plain loop beside it."""
    messages = scene_messages()[: scale.most]
    cpu = load_client(SHIPPED[NANO], NANO, device="cpu")
    on_cpu = ask_client(cpu, messages[: scale.single], 1)
    for dtype in scale.dtypes:
        rows = partial(_in_batches, SHIPPED[NANO], NANO, messages, on_cpu, scale, dtype)
        yield from attempted(f"{NANO} {dtype}", rows)
    limits = {"max_new_tokens": VARIANT.max_new_tokens}
    both = SideBySide(SHIPPED[NANO], NANO, scale, limits)
    for batch in scale.batches[1:]:
        yield from both.rows("scenes", messages, batch)


def families(scale: Scale) -> Iterator[Row]:
    """Measure tiny checkpoints of all families."""
    messages = photo_messages(scale.most, (320, 240))
    once = replace(scale, repeats=1)
    for row in FAMILIES:
        yield from attempted(row, partial(_family, row, messages, once))


def _family(row: str, messages: Sequence[Message], scale: Scale) -> Iterator[Row]:
    checkpoint = str(tiny_checkpoints.build(row, folder()))
    cpu = load_client(checkpoint, row, device="cpu", max_new_tokens=12)
    on_cpu = ask_client(cpu, messages[: scale.single], 1)
    for dtype in scale.dtypes:
        rows = partial(_in_batches, checkpoint, row, messages, on_cpu, scale, dtype, 12)
        yield from attempted(f"{row} {dtype}", rows)


def _in_batches(
    checkpoint: str,
    row: str,
    messages: Sequence[Message],
    on_cpu: Sequence[str],
    scale: Scale,
    dtype: str,
    limit: int | None = None,
) -> Iterator[Row]:
    settings = {"device": scale.device, "dtype": dtype, "batch_size": scale.most}
    client = load_client(checkpoint, row, **settings, max_new_tokens=limit)
    single: list[str] = []
    for batch in scale.batches:
        asked = messages[: max(scale.single, batch)]
        measured = measure(partial(ask_client, client, asked, batch), scale)
        single = single or measured.replies
        yield measured.row(
            row,
            dtype,
            batch,
            like_single=equal(measured.replies, single),
            like_cpu=equal(measured.replies, on_cpu),
        )


def prefix(scale: Scale) -> Iterator[Row]:
    """Ask several questions about an image, with one prefill and without."""
    size = scale.sizes[0][0]
    once = replace(scale, repeats=1)
    for row in (NANO, *FAMILIES):
        yield from attempted(row, partial(_prefix_of, row, size, once))


def _prefix_of(row: str, size: tuple[int, int], scale: Scale) -> Iterator[Row]:
    dtype = scale.dtypes[0]
    checkpoint = SHIPPED.get(row) or str(tiny_checkpoints.build(row, folder()))
    path = scene_messages()[0][0].value if row == NANO else pictures(1, size)[0]
    limit = None if row == NANO else 12
    client = load_client(checkpoint, row, device=scale.device, dtype=dtype, max_new_tokens=limit)
    questions = questions_about_one(path, scale.shared)
    yield from on_and_off(client, questions, scale, row, dtype)


def over_copies(questions: Sequence[Message]) -> list[Message]:
    """Return the questions, each over a copy of its image, which none shares."""
    where = folder()
    copied = []
    for at, (shown, *words) in enumerate(questions):
        source = Path(shown.value)
        copy = where / f"{at}{source.suffix}"
        copy.write_bytes(source.read_bytes())
        copied.append((image(str(copy)), *words))
    return copied


def on_and_off(
    client: LocalClient, questions: Sequence[Message], scale: Scale, case: str, dtype: str
) -> Iterator[Row]:
    count = len(questions)
    single = ask_client(client, questions[:4], 1)
    off = measure(partial(ask_client, client, over_copies(questions), count), scale)
    yield off.row(f"{case}: off", dtype, count, like_single=equal(off.replies, single))
    on = measure(partial(ask_client, client, questions, count), scale)
    note = f"{off.seconds / on.seconds:.2f} times as fast, equal {equal(on.replies, off.replies)}"
    yield on.row(f"{case}: on", dtype, count, like_single=equal(on.replies, single), note=note)


def oom(scale: Scale) -> Iterator[Row]:
    """Let memory run out in a batch: by a limit, by what else is on the card, and for every one."""
    size = scale.sizes[-1][0]
    messages = photo_messages(scale.many, size)
    checkpoint = str(tiny_checkpoints.build("Qwen3-VL", folder()))
    settings = {"device": scale.device, "batch_size": scale.many, "max_new_tokens": 12}
    load = partial(load_client, checkpoint, "Qwen3-VL", **settings)
    whole_client = load()
    before = held(scale)
    whole = measure(partial(ask_client, whole_client, messages, scale.many), scale)
    yield whole.row(f"enough, {size[0]}x{size[1]}", "default", scale.many)
    del whole_client
    if whole.reserved is None:
        halved = partial(_halved, "simulated", simulated, load, messages, whole)
        yield from attempted("simulated", halved)
        return
    for share in (0.4, 0.15):
        limit = before + share * (whole.reserved - before)
        ways = {"limit": partial(limited_to, limit), "ballast": partial(beside_ballast, limit)}
        for way, running_out in ways.items():
            case = f"{way}: {share:.0%} of it"
            halved = partial(_halved, case, running_out, load, messages, whole)
            yield from attempted(case, halved)
    yield from attempted("nothing fits", partial(_nothing_fits, load, messages[:4]))


def _halved(
    case: str,
    running_out: Callable[[], AbstractContextManager[None]],
    load: Callable[[], LocalClient],
    messages: Sequence[Message],
    whole: Measured,
) -> Iterator[Row]:
    client = load()
    part = Batch(tuple(messages), (VARIANT,) * len(messages), False)
    warnings: list[str] = []
    with running_out(), collected(machine, warnings):
        start = time.perf_counter()
        answers = answers_of(client, part)
        seconds = time.perf_counter() - start
    failed = [answer.error for answer in answers if answer.error is not None]
    halvings = [line for line in warnings if "going on with" in line]
    ending = halvings[-1].rpartition(", ")[2] if halvings else ""
    same = equal([answer.text for answer in answers], whole.replies)
    note = f"halved {len(halvings)} times, {ending}; as with enough {same}"
    if failed:
        note = f"failed: {len(failed)} calls: {failed[0][:90]}; {note}"
    rate = len(messages) / seconds
    is_wrong = bool(failed) or not halvings
    yield Row(case, "default", len(messages), rate, note=note, failed=is_wrong)


def _nothing_fits(load: Callable[[], LocalClient], messages: Sequence[Message]) -> Iterator[Row]:
    client = load()
    part = Batch(tuple(messages), (VARIANT,) * len(messages), False)
    with limited_to(torch.cuda.memory_reserved() / 2**20):
        errors = [answer.error for answer in answers_of(client, part)]
    failed = [error for error in errors if error is not None]
    answered = sum(answer.error is None for answer in answers_of(client, part))
    note = f"{len(failed)} of {len(errors)} calls failed; with memory again {answered} answered"
    if failed:
        note += f"; {failed[0][:70]}"
    is_wrong = (len(failed), answered) != (len(messages), len(messages))
    yield Row("nothing fits", "default", len(messages), note=note, failed=is_wrong)


@contextmanager
def limited_to(mib: float) -> Iterator[None]:
    """Let torch take so much of the card."""
    machine.free_memory()
    whole = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, mib * 2**20 / whole))
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@contextmanager
def beside_ballast(mib: float) -> Iterator[None]:
    """Fill the card until torch can take no more than so much for others."""
    machine.free_memory()
    left, _ = torch.cuda.mem_get_info()
    others = torch.cuda.memory_reserved()
    ballast = torch.empty(left + others - int(mib * 2**20), dtype=torch.uint8, device="cuda")
    try:
        yield
    finally:
        del ballast
        machine.free_memory()


@contextmanager
def simulated() -> Iterator[None]:
    """Let batches of more than one fail, as they would on a GPU."""
    generate = transformer.generate

    def out_of_memory(loaded: Any, batch: Sequence[Any], decoding: Any) -> Any:
        if len(batch) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory, simulated")
        return generate(loaded, batch, decoding)

    transformer.generate = out_of_memory
    try:
        yield
    finally:
        transformer.generate = generate


@contextmanager
def collected(module: ModuleType, lines: list[str]) -> Iterator[None]:
    """Collect the warnings of a module."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler = Handler(logging.WARNING)
    log = logging.getLogger(module.__name__)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def dual(scale: Scale) -> Iterator[Row]:
    """Compare the vectors of dual encoders with those of the CPU."""
    checkpoints = {NANO_SIGLIP: lambda: checkpoint_of(NANO_SIGLIP)}
    for family in tiny_encoders.FAMILIES:
        checkpoints[f"tiny {family}"] = partial(_tiny_encoder, family)
    for case, checkpoint in checkpoints.items():
        yield from attempted(case, partial(_encoder, case, checkpoint, scale))


def _tiny_encoder(family: str) -> str:
    return str(tiny_encoders.build(family, folder()))


def _encoder(case: str, checkpoint: Callable[[], str], scale: Scale) -> Iterator[Row]:
    towers, on_cpu = Towers(checkpoint()), Towers(checkpoint())
    on_cpu.device = "cpu"
    paths = [Path(path) for path in pictures(scale.most, (320, 240))]
    captions = [message[-1].value for message in scene_messages()[: scale.most]]
    seen = measure(lambda: [*towers.images(paths)], scale)
    read = measure(lambda: [*towers.texts(captions, Padding.AS_TRAINED)], scale)
    ours = _cosines(seen.replies, read.replies)
    theirs = _cosines(on_cpu.images(paths), on_cpu.texts(captions, Padding.AS_TRAINED))
    yield seen.row(f"{case}: images", "float32", 16)
    note = f"cosines differ from the CPU's by at most {abs(ours - theirs).max():.1e}"
    yield read.row(f"{case}: texts", "float32", 16, note=note)


def _cosines(images: Any, texts: Any) -> Any:
    first, second = (np.stack([*vectors]) for vectors in (images, texts))
    first, second = (each / np.linalg.norm(each, axis=1)[:, None] for each in (first, second))
    return first @ second.T


# --- whole runs -----------------------------------------------------------------------------------


class Run:
    """A sweep of FindIt-Nano in a process."""

    def __init__(self, where: Path, rows: int) -> None:
        self.journal = where / "calls.jsonl"
        self.start = time.perf_counter()
        script = Path(__file__).with_name("nano_sweep.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(where), str(rows)],
            stdout=sys.stderr,
            stderr=sys.stderr,
        )

    def ends(self) -> tuple[int, float]:
        """Return its exit status, and its seconds."""
        return self.process.wait(), time.perf_counter() - self.start

    def records(self) -> list[dict[str, Any]]:
        if not self.journal.exists():
            return []
        with JournalView(self.journal) as view:
            return [*view.records()]

    def replies(self) -> list[str]:
        """Return the replies in the order of their keys."""
        by_key = {record["key"]: record["reply"] for record in self.records()}
        return [by_key[key] for key in sorted(by_key)]


def two(scale: Scale) -> Iterator[Row]:
    """Run a sweep alone, then two at the same time."""
    scene_messages()  # Their images are there before anything is timed
    alone = Run(folder(), scale.rows)
    status, seconds = alone.ends()
    expected = alone.replies()
    calls = len(expected)
    yield Row(
        "alone", "default", None, calls / seconds, note=f"{seconds:.1f} s, exit status {status}"
    )
    runs = [Run(folder(), scale.rows) for _ in range(2)]
    for run in runs:
        status, seconds = run.ends()
        note = f"{seconds:.1f} s, exit status {status}, as alone {equal(run.replies(), expected)}"
        is_whole = status == 0 and len(run.replies()) == calls
        yield Row("one of two", "default", None, calls / seconds, note=note, failed=not is_whole)


def sigterm(scale: Scale) -> Iterator[Row]:
    """End a sweep by SIGTERM after its first answers, and run it again."""
    scene_messages()
    where = folder()
    run = Run(where, scale.rows)
    while not run.records() and run.process.poll() is None:
        time.sleep(0.01)
    start = time.perf_counter()
    os.kill(run.process.pid, signal.SIGTERM)
    status, _ = run.ends()
    took = time.perf_counter() - start
    stored = run.records()
    errors = sum(record["error"] is not None for record in stored)
    calls = len(FORMATS) * scale.rows
    note = f"exit status {status} after {took:.2f} s, {len(stored)} of {calls} stored"
    is_stopped = status == 130 and not errors and 0 < len(stored) < calls
    yield Row("stopped", "default", note=f"{note}, {errors} errors", failed=not is_stopped)
    again = Run(where, scale.rows)
    status, _ = again.ends()
    records = again.records()
    keys = [record["key"] for record in records]
    is_kept = records[: len(stored)] == stored
    is_whole = status == 0 and len(keys) == len({*keys}) == calls and is_kept
    note = f"exit status {status}, {len(keys)} of {calls} stored"
    note += ", none asked twice" if len(keys) == len({*keys}) else ", some asked twice"
    yield Row("run again", "default", note=note, failed=not is_whole)


# --- the process ----------------------------------------------------------------------------------

MAKERS: dict[str, Callable[[Scale], Iterator[Row]]] = {
    "smoke": smoke,
    "turns": turns,
    "shape": shape,
    "family_turns": family_turns,
    "nano": nano,
    "families": families,
    "prefix": prefix,
    "oom": oom,
    "dual": dual,
    "two": two,
    "sigterm": sigterm,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=SECTIONS)
    parser.add_argument("--until", type=float, required=True)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no row
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    if not options.small and not torch.cuda.is_available():
        say(Row(options.name, note="failed: no CUDA device; --small runs here", failed=True), rows)
        return
    make = MAKERS[options.name]
    for row in attempted(options.name, partial(make, SMALL if options.small else GPU)):
        say(row, rows)
        if time.monotonic() > options.until:
            say(Row(options.name, note="not reached: the rest, for want of time"), rows)
            return


def say(row: Row, rows: TextIO) -> None:
    print(json.dumps(asdict(row)), file=rows, flush=True)


if __name__ == "__main__":
    main()
