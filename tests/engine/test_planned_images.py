"""An answer is about just the images that its call was planned with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asking import ask_call, service
from chat_server import ChatServer, completion, in_turn
from PIL import Image

from vlmeval_findit.engine import Call, Images, about_planned_images
from vlmeval_findit.models import (
    BATCH_SERVICES,
    BatchKind,
    Bounds,
    Budget,
    Endpoint,
    ImageSet,
    answer_from,
    as_they_are,
    chat_model,
    for_provider,
)
from vlmeval_findit.protocol import CallResult, PlainVariant, ReplyRecord, image, text
from vlmeval_findit.storage import content_of

CHANGED = "image changed during the run"


def other_pixels(path: Path) -> None:
    Image.new("RGB", (20, 20), "red").save(path)


def other_encoding(path: Path) -> None:
    """Write the same pixels with another compression, as a mirror may."""
    Image.open(path).convert("RGB").save(path, compress_level=0)


def touched(path: Path) -> None:
    path.write_bytes(path.read_bytes())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.png"
    Image.new("RGB", (20, 20), "blue").save(path)
    return path


# --- over HTTP: nothing is sent -------------------------------------------------------------------


@pytest.mark.parametrize("change", [other_pixels, other_encoding])
def test_a_request_with_another_image_is_not_sent(
    path: Path, change: Callable[[Path], None]
) -> None:
    message = (image(str(path)), text("where?"))
    planned = content_of(path)
    change(path)
    with ChatServer(in_turn(completion())) as server:
        answer = ask_call(service(server.url), message=message, images=[planned])
        assert not server.asked
    assert CHANGED in str(answer.error)
    assert str(path) in str(answer.error)


def test_the_same_bytes_are_sent(path: Path) -> None:
    message = (image(str(path)), text("where?"))
    planned = content_of(path)
    touched(path)
    with ChatServer(in_turn(completion())) as server:
        assert ask_call(service(server.url), message=message, images=[planned]).error is None


@pytest.mark.parametrize("kind", list(BatchKind))
def test_a_batch_has_no_request_with_another_image(path: Path, kind: BatchKind) -> None:
    message = (text("where?"), image(str(path)))
    planned = (content_of(path),)
    other_pixels(path)
    model = chat_model("Mine", served="mine", space="grid1000")
    batches = BATCH_SERVICES[kind](model, Endpoint("http://127.0.0.1:9/v1"), 1.0, Budget())
    variant = PlainVariant("Mine", table="Mine", images="Mine", family_name="Mine")
    call = batches.call(message, variant, False, False, None, planned)
    with pytest.raises(OSError, match=CHANGED):
        asyncio.run(batches.request_line("k", call))


@pytest.mark.parametrize("rule", [for_provider, as_they_are])
@pytest.mark.parametrize("name", ["a.png", "a.jpg", "rgba.png", "grey.png"])
def test_the_hash_is_of_the_original_file(tmp_path: Path, rule: Any, name: str) -> None:
    mode = {"rgba.png": "RGBA", "grey.png": "L"}.get(name, "RGB")
    Image.new(mode, (20, 20)).save(tmp_path / name)
    assert content_of(tmp_path / name).startswith(rule(tmp_path / name).sha256)


# --- after the answer -----------------------------------------------------------------------------


def call_about(path: Path) -> Call:
    """Return a planned call about one image."""
    images = Images()
    number = images.number(str(path.parent), [path.name], [False])
    prompts = SimpleNamespace(images=images)
    cell = SimpleNamespace(prompts=prompts, prompt_hashes=SimpleNamespace(images=[number]))
    call = Call("key", cast(Any, cell), 0)
    assert call.image_sha256 == (content_of(path),)
    return call


def reported(sha256: str, **more: Any) -> CallResult:
    return CallResult("[]", ReplyRecord(images=({"sha256": sha256},), **more))


def test_a_model_that_read_another_image_gave_no_answer(path: Path) -> None:
    call, planned = call_about(path), content_of(path)
    assert about_planned_images(call, reported(planned[:16])).error is None
    other_pixels(path)
    assert about_planned_images(call, reported(planned[:16])).error is None, "it read the old one"
    failed = about_planned_images(call, reported(content_of(path)[:16]))
    assert (failed.text, failed.error) == ("", f"{CHANGED}: {path}")


@pytest.mark.parametrize("record", [None, "a text", {"mine": 1}, {"findit": {"images": [{}]}}])
def test_files_are_looked_at_again_for_models_that_report_nothing(path: Path, record: Any) -> None:
    call = call_about(path)
    answer = answer_from({"prediction": "[]", "extra_records": record})
    assert about_planned_images(call, answer) is answer
    touched(path)
    assert about_planned_images(call, answer) is answer
    other_pixels(path)
    assert about_planned_images(call, answer).error == f"{CHANGED}: {path}"
    path.unlink()
    assert about_planned_images(call, answer).error == f"{CHANGED}: {path}"


def test_answers_over_http_are_kept_though_the_file_is_gone(path: Path) -> None:
    call: Call = call_about(path)
    answer = CallResult("[]", ReplyRecord(call={"status": 200, "batch": "b"}))
    path.unlink()
    assert about_planned_images(call, answer) is answer


def test_models_on_this_machine_report_what_they_read(path: Path) -> None:
    images = ImageSet(Bounds())
    first, planned = images.get(str(path)), content_of(path)
    other_pixels(path)
    assert images.get(str(path)) is first, "one reading, one hash"
    assert first.sha256 == planned
    assert first.pixels.getpixel((0, 0)) == (0, 0, 255)
