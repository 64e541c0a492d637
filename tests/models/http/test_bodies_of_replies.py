"""Bodies of replies: what a run holds of them follows from what was asked for."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from asking import QUICK, ask_calls, call_of, service
from chat_server import Answer, ChatServer, completion, in_turn

from vlmeval_findit.models import MOST_ERROR_BYTES, BodyRoom, most_bytes_of, most_reply_bytes

CALLS = 32  # at once
MOST_HELD = 48 << 20  # whatever is sent; 62 KB took 1.5 GB a call

MEGABYTES = 60
ONCE = replace(QUICK, attempts=1, refusals=1)


def packed(begin: bytes, repeated: bytes, end: bytes = b"", level: int = 9) -> bytes:
    """Return megabytes of one thing in a few kilobytes of deflate."""
    packer = zlib.compressobj(level)
    parts = [packer.compress(begin)]
    whole = repeated * ((1 << 20) // len(repeated))
    parts += [packer.compress(whole) for _ in range(MEGABYTES)]
    return b"".join([*parts, packer.compress(end), packer.flush()])


def gzipped(content: bytes) -> Answer:
    return Answer(gzip.compress(content), 200, {"Content-Encoding": "gzip"})


DEFLATE = {"Content-Encoding": "deflate"}
TEXT = b'{"choices":[{"finish_reason":"stop","message":{"content":"'
NEARLY = 100 << 10  # bytes, below the limit of a reply; objects of 75 MB, 32 at once

BODIES: dict[str, Callable[[], Answer]] = {
    "objects": lambda: Answer(packed(b'{"a":[', b"{},", b"{}]}"), 200, DEFLATE),
    "zeros": lambda: Answer(packed(b"", bytes(1)), 200, DEFLATE),
    "zeros as an error": lambda: Answer(packed(b"", bytes(1)), 500, DEFLATE),
    "objects as an error": lambda: Answer(packed(b"[", b"{},", b"{}]"), 500, DEFLATE),
    "a text": lambda: Answer(packed(TEXT, b"x", b'"}}]}'), 200, DEFLATE),
    "a text that is not packed": lambda: Answer(TEXT + b"x" * (8 << 20) + b'"}}]}'),
    "many members": lambda: Answer(gzip.compress(b"{}") * 9, 200, {"Content-Encoding": "gzip"}),
    "objects below the limit": lambda: gzipped(b'{"a":[' + b"{}," * (NEARLY // 3) + b"{}]}"),
    "objects that are no JSON": lambda: gzipped(b'{"a":[' + b"{}," * (NEARLY // 3)),
    "lists below the limit": lambda: gzipped(b'{"a":[' + b"[]," * (NEARLY // 3) + b"[]]}"),
    "lists in lists": lambda: gzipped(b"[" * NEARLY),
    "an error below the limit": lambda: gzipped(b'{"error":[' + b"{}," * (NEARLY // 3) + b"1]}"),
    "a number": lambda: gzipped(b"1" * NEARLY),
    "a name": lambda: gzipped(b'{"' + b"x" * NEARLY + b'":1}'),
    "choices": lambda: gzipped(b'{"choices":[' + b"{}," * (NEARLY // 3) + b"{}]}"),
    "parts": lambda: gzipped(
        b'{"choices":[{"message":{"content":[' + b'"",' * (NEARLY // 3) + b'""]}}]}'
    ),
    "calls of tools": lambda: of_message(b'"tool_calls":[' + b"{}," * NEARLY_ALL + b"{}]"),
    "a text of lists in lists": lambda: completion("[" * 100_000),
    "a number of a million digits": lambda: gzipped(b'{"usage":{"cost":0.' + b"9" * 10**6 + b"}}"),
    "an exponent without end": lambda: gzipped(b'{"created":1e' + b"9" * 10**6 + b"}"),
    "equal keys": lambda: gzipped(b"{" + b'"":{},' * (NEARLY // 6) + b'"":1}'),
    "events": lambda: Answer(b'data: {"choices":[]}\n\n' * 20_000),
    "UTF-16": lambda: gzipped(('{"a":[' + "{}," * (NEARLY // 6) + "{}]}").encode("utf-16")),
    "UTF-32": lambda: gzipped(('{"a":[' + "{}," * (NEARLY // 12) + "{}]}").encode("utf-32")),
    "gzip in gzip": lambda: gzipped(gzip.compress(bytes(MEGABYTES << 20))),
    "gzip in gzip, as named": lambda: named("gzip, gzip", gzip.compress(gzip.compress(b"{}"))),
    "gzip without its name": lambda: Answer(gzip.compress(bytes(MEGABYTES << 20))),
    "Brotli": lambda: named("br", b"\x0b\x02\x80{}\x03"),
    "Zstandard": lambda: named("zstd", b"\x28\xb5\x2f\xfd" + bytes(1000)),
    "deflate without a head": lambda: named("deflate", zlib.compress(b"{}")[2:-4]),
    "an error of objects in objects": lambda: Answer(b'{"error":' * 20_000, 400),
}


def of_message(field: bytes) -> Answer:
    """Return a reply that fits its limit, with a field in its message."""
    return gzipped(b'{"choices":[{"finish_reason":"stop","message":{"content":"[]",%b}}]}' % field)


def named(packing: str, content: bytes) -> Answer:
    return Answer(content, 200, {"Content-Encoding": packing})


NEARLY_ALL = 350_000  # objects in a megabyte, below the limit of a reply


FAST = ("objects", "a text that is not packed")


@pytest.mark.parametrize(
    "body",
    [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in BODIES],
)
def test_memory_of_calls_does_not_follow_replies(body: str) -> None:
    reply = BODIES[body]()
    with ChatServer(in_turn(completion("[]"), reply)) as server:
        check_held(server.url)


def check_held(url: str) -> None:
    """Check what calls at once hold of the replies of a server whose first is an answer."""
    asked = service(url, policy=ONCE)
    ask_calls(asked, 1)  # what is imported and opened once
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    answers = ask_calls(asked, CALLS, at_once=CALLS)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(answers) >= 1
    assert peak - before < MOST_HELD, f"{peak - before:,}"


def test_of_many_calls_of_tools_the_beginning_is_kept() -> None:
    for count, kept in ((9, [{}] * 9), (NEARLY_ALL, None)):
        reply = of_message(b'"tool_calls":[' + b"{}," * (count - 1) + b"{}]")
        with ChatServer(in_turn(reply)) as server:
            (answer,) = ask_calls(service(server.url), 1)
        calls = call_of(answer)["tool_calls"]
        if kept is not None:
            assert calls == kept
            continue
        (words,) = calls
        assert len(words) < 70_000
        assert words.endswith("… (1,400,000 characters)")


def test_a_long_text_is_no_answer() -> None:
    for letters, is_answer in ((2000, True), (8 << 20, False)):
        with ChatServer(in_turn(completion("x" * letters))) as server:
            (answer,) = ask_calls(service(server.url), 1)
        assert (answer.error is None) is is_answer
    assert "the reply is longer than 1.09 MiB" in (answer.error or "")


def test_an_error_is_read_as_far_as_it_is_told() -> None:
    """Its status says what it is, however long its words are."""
    said = b'{"error": {"message": "no such model"}, "input": "' + b"x" * (5 << 20) + b'"}'
    with ChatServer(in_turn(Answer(said, 400))) as server:
        (answer,) = ask_calls(service(server.url), 1)
        assert len(server.asked) == 1, "400 is final"
    assert (answer.error or "").startswith('HTTP 400: {"error": {"message": "no such model"}')
    assert len(said) > MOST_ERROR_BYTES


@pytest.mark.parametrize(
    ("body", "kilobytes"),
    [
        ({}, 1024),
        ({"max_tokens": 768}, 1120),
        ({"max_completion_tokens": 32768}, 5120),
        ({"max_tokens": 1024, "logprobs": True}, 1664),
        ({"max_tokens": 1024, "logprobs": True, "top_logprobs": 3}, 3200),
        ({"max_tokens": 1024, "logprobs": False, "top_logprobs": 3}, 1152),
    ],
)
def test_the_limit_follows_from_what_was_asked(body: dict[str, int], kilobytes: int) -> None:
    assert most_reply_bytes(body) >> 10 == kilobytes


def test_long_bodies_wait_for_room() -> None:
    """Whoever needs more than there is gets all of it, and nobody waits for ever."""
    held: list[int] = []
    most: list[int] = []

    async def body(room: BodyRoom, size: int) -> None:
        with room.share() as share:
            await share.take(size)
            await share.take(size)  # it has its room
            held.append(size)
            most.append(sum(min(each, 100) for each in held))
            await asyncio.sleep(0)
            held.remove(size)

    async def bodies() -> None:
        room = BodyRoom(100)
        sizes = [30, 50, 500, 40, 20, 100, 10] * 5
        await asyncio.gather(*(body(room, size) for size in sizes))

    asyncio.run(bodies())
    assert len(most) == 35
    assert max(most) == 100


def test_a_body_that_is_given_up_frees_its_room() -> None:
    async def given_up() -> None:
        room = BodyRoom(100)
        with room.share() as first:
            await first.take(100)
            with room.share() as second, pytest.raises(TimeoutError):
                await asyncio.wait_for(second.take(10), 0.01)
        with room.share() as third:
            await asyncio.wait_for(third.take(100), 1)

    asyncio.run(given_up())


def test_every_token_has_its_log_probabilities() -> None:
    assert most_bytes_of(1000, 2) - most_bytes_of(1000) == 2 * 512 * 1000
