from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.boxes.spaces import Space, SpaceError, reference_size
from vlmeval_findit.core.question import Part, image, reference, text
from vlmeval_findit.models.http.chat import chat_model, server_name, server_space
from vlmeval_findit.models.http.sent_images import as_they_are, for_provider
from vlmeval_findit.models.model_table import find_model

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


def content_of(body: Any) -> list[dict[str, Any]]:
    (message,) = body["messages"]
    assert message["role"] == "user"
    return list(message["content"])


# --- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "mime", "sent"),
    [
        ((2047, 40), "image/png", (2047, 40)),
        ((2048, 40), "image/jpeg", (2048, 40)),
        ((40, 2048), "image/jpeg", (40, 2048)),
        ((4096, 30), "image/jpeg", (4096, 30)),
        ((4097, 33), "image/jpeg", (4096, 32)),  # 32.99 truncated
        ((33, 5000), "image/jpeg", (27, 4096)),  # 27.03
        ((8192, 1), "image/jpeg", (4096, 1)),  # never nothing
    ],
)
def test_the_rule_of_the_paper_for_providers(
    tmp_path: Path, size: tuple[int, int], mime: str, sent: tuple[int, int]
) -> None:
    got = for_provider(picture(tmp_path, "a.png", size))
    assert (got.original, got.sent, got.mime) == (size, sent, mime)
    shown = decoded(got.url)
    assert shown.size == sent
    assert f"image/{str(shown.format).lower()}" == mime
    assert got.url.startswith(f"data:{mime};base64,")
    assert got.as_record() == {
        "original": list(size),
        "sent": list(sent),
        "mime": mime,
        "bytes": len(got.data),
    }


def test_png_keeps_pixels_and_jpeg_has_quality_95(tmp_path: Path) -> None:
    small = picture(tmp_path, "small.png", (300, 200))
    with Image.open(small) as original:
        assert decoded(for_provider(small).url).tobytes() == original.tobytes()
    large = picture(tmp_path, "large.png", (2400, 90))
    buffer = io.BytesIO()
    with Image.open(large) as original:
        original.save(buffer, "JPEG", quality=95)
    assert for_provider(large).data == buffer.getvalue()


def test_pixels_are_those_of_the_file_without_its_orientation(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn by 90 degrees"
    path = picture(tmp_path, "turned.jpg", (120, 80), exif=exif)
    for rule in (for_provider, as_they_are):
        sent = rule(path)
        assert (sent.original, sent.sent) == ((120, 80), (120, 80))
        assert decoded(sent.url).size == (120, 80)
        assert not decoded(sent.url).getexif(), "a provider would turn the picture by it"


def test_a_server_gets_the_bytes_of_the_file(tmp_path: Path) -> None:
    for name, size in (("a.jpg", (5000, 20)), ("a.png", (50, 20))):
        path = picture(tmp_path, name, size)
        sent = as_they_are(path)
        assert sent.data == path.read_bytes()
        assert sent.sent == size
    shrunk = as_they_are(tmp_path / "a.jpg", 2500)
    assert (shrunk.mime, shrunk.sent) == ("image/png", (2500, 10))


def test_the_scene_limit_is_not_for_support_shots(tmp_path: Path) -> None:
    shot = picture(tmp_path, "shot.png", (3000, 60))
    scene = picture(tmp_path, "scene.png", (8192, 615))
    model = chat_model("GPT-6-Astra", "openrouter")
    parts = (text("one"), reference(str(shot)), text("Scene:"), image(str(scene)), text("find"))
    asked = model.request(parts, SCENES)
    # 615 * 1824 / 8192 = 136.93: scene limits round, the sender's limit truncates.
    assert [item.sent for item in asked.images] == [(3000, 60), (1824, 137)]
    assert [item.mime for item in asked.images] == ["image/jpeg", "image/png"]
    assert reference_size(model.space(SCENES), 8192, 615) == (1824, 137), (
        "scoring divides by what was sent"
    )
    # A row of the hard set without a support shot: the only image is the scene.
    alone = model.request((image(str(scene)), text("find")), SCENES)
    assert [item.sent for item in alone.images] == [(1824, 137)]


# --- requests -------------------------------------------------------------------------------------


def test_texts_and_images_keep_their_places(tmp_path: Path) -> None:
    paths = [str(picture(tmp_path, f"{n}.png", (10 + n, 10))) for n in range(4)]
    parts: list[Part] = []
    for number, path in enumerate(paths):
        parts += [text(f"Frame {number}:"), image(path)]
    parts.append(text("Find it."))
    asked = chat_model("m", space="grid1000").request(tuple(parts), VIDEO)
    content = content_of(asked.body)
    assert [entry["type"] for entry in content] == ["text", "image_url"] * 4 + ["text"]
    assert [entry["text"] for entry in content if "text" in entry] == [
        *(f"Frame {n}:" for n in range(4)),
        "Find it.",
    ]
    urls = [entry["image_url"]["url"] for entry in content if "image_url" in entry]
    assert [decoded(url).width for url in urls] == [10, 11, 12, 13]
    assert [item.sent[0] for item in asked.images] == [10, 11, 12, 13]


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("FindIt_Pascal_xyxy_json", 768),
        ("FindIt_RoboTools_f4_xyxy_json", 768),
        ("FindIt_RoboTools_f5_xyxy_json", 960),
        ("FindIt_RoboTools_f64_xyxy_json", 12288),
    ],
)
def test_the_limit_of_tokens_is_the_variants(name: str, tokens: int) -> None:
    assert parse(name).max_new_tokens == tokens


NO_REASONING = {"temperature": 0.0, "reasoning": {"effort": "none"}}


@pytest.mark.parametrize(
    ("entry", "identifier", "fields"),
    [
        ("GPT-5.4", "openai/gpt-5.4", NO_REASONING),
        ("Claude-Sonnet-4.5", "anthropic/claude-4.5-sonnet", NO_REASONING),
        ("Gemini-2.5-Flash", "google/gemini-2.5-flash", NO_REASONING),
        ("GPT-6-Astra", "openai/gpt-6-astra", {}),
        ("Claude-Opus-5.5", "anthropic/claude-opus-5.5", {}),
    ],
)
def test_proprietary_models_are_asked_as_in_section_7(
    tmp_path: Path, entry: str, identifier: str, fields: dict[str, Any]
) -> None:
    row = find_model(entry)
    assert row is not None
    assert row.entry == entry
    path = str(picture(tmp_path, "a.png", (20, 10)))
    body = chat_model(entry, "openrouter").request((image(path), text("x")), PASCAL).body
    limit = 8000 if not fields else 768
    rest = {key: body[key] for key in body if key != "messages"}
    assert rest == {"model": identifier, "max_tokens": limit, "usage": {"include": True}, **fields}
    (shown, _) = content_of(body)
    assert shown["image_url"].get("detail") == ("high" if entry == "GPT-5.4" else None)


def test_spaces_of_pixels_as_sent_are_sent_by_the_providers_rule() -> None:
    for kind in ("pixels", "openai_high", "claude_standard", "claude_highres"):
        assert chat_model("m").image_rule(Space(kind)) is for_provider
    for kind in ("grid1000", "unit"):
        assert chat_model("m").image_rule(Space(kind)) is as_they_are


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
    with pytest.raises(SpaceError, match="not guessed"):
        server_space("my-own", None)(PASCAL)
    with pytest.raises(SpaceError, match="min_pixels"):
        server_space("Qwen2.5-VL", None)(PASCAL)
