"""Requests of models over HTTP: images by the paper's rules, texts, fields, names and spaces."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image
from waits import until

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.boxes import Space, SpaceError, reference_size
from vlmeval_findit.models import (
    EncodedImages,
    ImageToSend,
    SentImage,
    as_they_are,
    chat_model,
    find_model,
    for_provider,
    json_pieces,
    server_name,
    server_space,
)
from vlmeval_findit.protocol import Part, image, reference, text

PASCAL = parse("FindIt_Pascal_xyxy_json")
SCENES = parse("FindIt_HRInsDet_hard_xyxy_json")
VIDEO = parse("FindIt_RoboTools_f4_xyxy_json")


def picture(folder: Path, name: str, size: tuple[int, int], **save: Any) -> Path:
    """Return a file of smooth colours, so that large ones are quickly written and read."""
    path = folder / name
    across = np.linspace(0, 255, size[0], dtype=np.uint8)
    pixels = np.broadcast_to(across[None, :, None], (size[1], size[0], 3))
    Image.fromarray(np.ascontiguousarray(pixels)).save(path, **save)
    return path


def decoded(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


# --- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "kind", "sent"),
    [
        ((2047, 40), "PNG", (2047, 40)),
        ((2048, 40), "JPEG", (2048, 40)),
        ((40, 2048), "JPEG", (40, 2048)),
        ((4096, 30), "JPEG", (4096, 30)),
        ((4097, 33), "JPEG", (4096, 32)),  # 32.99 truncated
        ((33, 5000), "JPEG", (27, 4096)),  # 27.03
        ((8192, 1), "JPEG", (4096, 1)),  # never nothing
    ],
)
def test_the_rule_of_the_paper_for_providers(
    tmp_path: Path, size: tuple[int, int], kind: str, sent: tuple[int, int]
) -> None:
    path = picture(tmp_path, "a.png", size)
    got = for_provider(path)
    shown = decoded(got.url)
    mime = f"image/{kind.lower()}"
    assert (shown.size, shown.format) == (sent, kind)
    assert got.url.startswith(f"data:{mime};base64,")
    sizes = {"original": list(size), "sent": list(sent)}
    assert got.as_record() == {**sizes, "mime": mime, "bytes": len(got.data)}
    if sent == size:  # pixels are kept, or encoded with quality 95
        buffer = io.BytesIO()
        Image.open(path).save(buffer, kind, quality=95)
        assert shown.tobytes() == Image.open(buffer).tobytes()


def test_servers_get_a_files_bytes_unless_pixels_would_differ(
    tmp_path: Path,
) -> None:
    for name, size in (("a.jpg", (5000, 20)), ("a.png", (50, 20))):
        path = picture(tmp_path, name, size)
        assert (as_they_are(path).data, as_they_are(path).sent) == (path.read_bytes(), size)
    shrunk = as_they_are(tmp_path / "a.jpg", 2500)
    assert (shrunk.mime, shrunk.sent) == ("image/png", (2500, 10))
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn by 90 degrees"
    path = picture(tmp_path, "turned.jpg", (120, 80), exif=exif)
    for rule in (for_provider, as_they_are):
        sent = rule(path)
        assert sent.original == sent.sent == decoded(sent.url).size == (120, 80)
        assert not decoded(sent.url).getexif(), "a provider would turn the picture by it"


def test_the_scene_limit_is_not_for_support_shots(tmp_path: Path) -> None:
    shot = picture(tmp_path, "shot.png", (3000, 60))
    scene = picture(tmp_path, "scene.png", (8192, 615))
    model = chat_model("GPT-6-Astra", "openrouter")
    parts = (text("one"), reference(str(shot)), text("Scene:"), image(str(scene)), text("find"))
    asked = model.request(parts, SCENES)
    # 615 * 1824 / 8192 = 136.93: scene limits round, the sender's limit truncates.
    assert [item.sent for item in asked.images] == [(3000, 60), (1824, 137)]
    assert [item.mime for item in asked.images] == ["image/jpeg", "image/png"]
    # Scoring divides by what was sent.
    assert reference_size(model.space(SCENES), 8192, 615) == (1824, 137)
    # A row of the hard set without a support shot: the only image is the scene.
    alone = model.request((image(str(scene)), text("find")), SCENES)
    assert [item.sent for item in alone.images] == [(1824, 137)]


# --- requests -------------------------------------------------------------------------------------


def test_texts_and_images_keep_their_places(tmp_path: Path) -> None:
    parts: list[Part] = []
    for number in range(4):
        path = picture(tmp_path, f"{number}.png", (10 + number, 10))
        parts += [text(f"Frame {number}:"), image(str(path))]
    asked = chat_model("m", space="grid1000").request((*parts, text("Find it.")), VIDEO)
    (message,) = asked.body["messages"]
    assert message["role"] == "user"
    content = [
        entry["text"] if entry["type"] == "text" else decoded(entry["image_url"]["url"]).width
        for entry in message["content"]
    ]
    frames = [each for n in range(4) for each in (f"Frame {n}:", 10 + n)]
    assert content == [*frames, "Find it."]
    assert [item.sent[0] for item in asked.images] == [10, 11, 12, 13]


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("FindIt_Pascal_xyxy_json", 768),
        ("FindIt_RoboTools_f4_xyxy_json", 768),
        ("FindIt_RoboTools_f5_xyxy_json", 960),
    ],
)
def test_the_limit_of_tokens_is_the_variants(name: str, tokens: int) -> None:
    assert chat_model("m", space="unit").request((), parse(name)).body["max_tokens"] == tokens


NO_REASONING = {"max_tokens": 768, "temperature": 0.0, "reasoning": {"effort": "none"}}


@pytest.mark.parametrize(
    ("entry", "identifier", "fields"),
    [
        ("GPT-5.4", "openai/gpt-5.4", NO_REASONING),
        ("Claude-Sonnet-4.5", "anthropic/claude-4.5-sonnet", NO_REASONING),
        ("Gemini-2.5-Flash", "google/gemini-2.5-flash", NO_REASONING),
        ("GPT-6-Astra", "openai/gpt-6-astra", {"max_tokens": 8000}),
        ("Claude-Opus-5.5", "anthropic/claude-opus-5.5", {"max_tokens": 8000}),
    ],
)
def test_proprietary_models_are_asked_as_in_section_7(
    tmp_path: Path, entry: str, identifier: str, fields: dict[str, Any]
) -> None:
    row = find_model(entry)
    assert row is not None
    assert row.entry == entry
    path = str(picture(tmp_path, "a.png", (20, 10)))
    asked = chat_model(entry, "openrouter").request((image(path), text("x")), PASCAL)
    body = dict(asked.body)
    shown = body.pop("messages")[0]["content"][0]
    assert body == {"model": identifier, "usage": {"include": True}, **fields}
    assert shown["image_url"].get("detail") == ("high" if entry == "GPT-5.4" else None)


def test_sent_pixels_follow_the_providers_rule() -> None:
    kinds = ("pixels", "openai_high", "claude_standard", "claude_highres", "grid1000", "unit")
    rules = [chat_model("m").image_rule(Space(kind)) for kind in kinds]
    assert rules == [for_provider] * 4 + [as_they_are] * 2


class Encoder:
    """Counts what it encodes."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, path: Path, limit: int | None = None) -> SentImage:
        self.seen[path.name] += 1
        if path.name == "broken":
            raise OSError("no image")
        return SentImage((1, 1), (1, 1), "image/png", base64.b64encode(b"x" * 30))  # 40 bytes


async def encode(rule: Encoder, *names: str) -> None:
    images = EncodedImages(latest=100)
    for name in names:
        with pytest.raises(OSError, match="no image") if name == "broken" else nullcontext():
            await images.all([ImageToSend(rule, name, None)])
    images.close()


def test_the_cache_holds_recent_images_and_no_failure() -> None:
    rule = Encoder()
    asyncio.run(encode(rule, "a", "b", "a", "c", "broken", "a", "b", "broken"))
    assert rule.seen == {"a": 1, "b": 2, "c": 1, "broken": 2}


@pytest.mark.parametrize(
    "limits",
    [{"latest": 100}, {"latest": 10_000, "images": 2}],
    ids=["two of 40 bytes", "two, however small"],
)
def test_an_image_stays_while_a_call_needs_it(limits: Mapping[str, int]) -> None:
    rule = Encoder()

    async def encode_many() -> None:
        images = EncodedImages(**limits)
        (held,) = await images.all([ImageToSend(rule, "held", None)])
        done = []
        for at in range(50):
            (sent,) = await images.all([ImageToSend(rule, f"{at}", None)])
            done.append(ref(sent))
        del sent
        # A thread that encoded one may not have let go of it yet.
        until(lambda: sum(each() is not None for each in done) == 2)
        assert await images.all([ImageToSend(rule, "held", None)]) == (held,)
        images.close()

    asyncio.run(encode_many())
    assert rule.seen["held"] == 1


def image_of(path: Path, limit: int | None = None) -> SentImage:
    """Return an image of as many bytes as its file's name says."""
    return SentImage((1, 1), (1, 1), "image/png", b"x" * int(path.name.partition("-")[0]))


@settings(max_examples=40, deadline=None)
@given(
    calls=st.lists(
        st.lists(st.sampled_from([0, 1, 30, 100, 900]), max_size=3), min_size=1, max_size=40
    ),
    distinct=st.booleans(),
    failing=st.sets(st.integers(0, 39)),
)
@example(calls=[[100]] * 20, distinct=True, failing=set())
def test_images_in_flight_follow_their_bytes(
    calls: list[list[int]], distinct: bool, failing: set[int]
) -> None:
    """Of all calls at once, whatever they show, so many ask as their images allow; all end."""
    most, slots = 200, 4
    seen: list[int] = []
    asking: dict[asyncio.Future[None], dict[int, int]] = {}

    async def call(images: EncodedImages, at: int, sizes: list[int]) -> None:
        names = [f"{size}-{at if distinct else ''}" for size in sizes]
        shown = await images.all([ImageToSend(image_of, name, None) for name in names])
        reply = asyncio.get_running_loop().create_future()
        with suppress(OSError), images.asking(shown):
            asking[reply] = {id(sent): len(sent.base64) for sent in shown}
            in_flight = {key: size for each in asking.values() for key, size in each.items()}
            seen.append(sum(in_flight.values()))
            await reply
            if at in failing:
                raise OSError

    async def all_of_them() -> None:
        images = EncodedImages(latest=0, in_flight=most)
        tasks = [asyncio.create_task(call(images, at, each)) for at, each in enumerate(calls)]
        while not all(task.done() for task in tasks):
            for _ in range(20):  # until nothing begins any more
                await asyncio.sleep(0)
                while images._encoding:
                    await asyncio.sleep(0.0001)
            if asking:
                first = next(iter(asking))
                del asking[first]
                first.set_result(None)
        assert images._in_flight == 0
        assert not images._asked
        images.close()

    asyncio.run(all_of_them())
    assert len(seen) == len(calls)
    assert max(seen) < most + slots * max(*map(sum, calls), 1)


def test_a_request_body_in_pieces_equals_the_whole_body(tmp_path: Path) -> None:
    shown = image(str(picture(tmp_path, "scene.png", (1200, 900))))
    message = (text('A "quoted" \u00e9 {1} image-0-'), shown, text("?"), shown)
    model = chat_model("Qwen3-VL")
    whole = model.request(message, PASCAL)
    marked = model.request(message, PASCAL, images=whole.images)
    parts = json_pieces(marked.body, marked.images)
    assert json.loads(b"".join(parts)) == whole.body
    assert parts[1] is marked.images[0].base64
    assert parts[3] is marked.images[1].base64
    assert sum(map(len, parts[::2])) < 2000, "the rest of the body is small"


# --- servers' names and spaces --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Qwen3-VL", ("Qwen3-VL", "Qwen3-VL")),
        ("Qwen3-VL=/models/tiny", ("Qwen3-VL", "/models/tiny")),
        ("Qwen/Qwen3-VL-8B-Instruct", ("Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-8B-Instruct")),
        ("/models/tiny/", ("tiny", "/models/tiny/")),
    ],
)
def test_names_of_served_models(given: str, expected: tuple[str, str]) -> None:
    assert server_name(given) == expected


def test_the_space_of_a_served_model_is_known_or_refused() -> None:
    assert server_space("Qwen3-VL-8B-Instruct", None)(PASCAL) == Space("grid1000")
    assert server_space("my-own", {"kind": "unit"})(PASCAL) == Space("unit")
    factor = '"max_pixels": …, "factor": 24}'
    for model, why in (
        ("my-own", "not guessed"),
        ("Qwen2.5-VL", "min"),
        ("FindIt-Nano-px", factor),
    ):
        with pytest.raises(SpaceError, match=why):
            server_space(model, None)(PASCAL)
