"""Ask chat servers with aiohttp alone, and print milliseconds of the processor a call.

``python bare_client.py FOLDER REPEATS CONNECTIONS URL…`` sends every picture of ``FOLDER``
``REPEATS`` times, over ``CONNECTIONS`` connections to each server. Nothing of the package takes
part: what it costs is the floor of a call on this machine. Each body is serialised anew, as
aiohttp's ``json=`` would.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

PROMPT = "Where is thing 7? Answer with its box as a list of four numbers from 0 to 1000. " * 4


def chat_body(url: str) -> dict[str, Any]:
    """Return the body of a chat request with a picture."""
    content = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": PROMPT},
    ]
    return {
        "model": "stub",
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 1024,
        "temperature": 0,
    }


async def ask(session: aiohttp.ClientSession, base_url: str, urls: Iterator[str]) -> None:
    """Send pictures one after the other until there are no more."""
    address = f"{base_url}/chat/completions"
    headers = {"Content-Type": "application/json"}
    for url in urls:
        body = json.dumps(chat_body(url)).encode()
        async with session.post(address, data=body, headers=headers) as reply:
            assert reply.status == 200
            assert json.loads(await reply.read())["choices"]


async def ask_all(folder: Path, repeats: int, connections: int, base_urls: list[str]) -> float:
    """Return the milliseconds of a call."""
    pictures = [
        f"data:image/png;base64,{b64encode(path.read_bytes()).decode()}"
        for path in sorted(folder.iterdir())
    ]
    calls = len(pictures) * repeats
    urls = (url for url in pictures for _ in range(repeats))
    began = time.process_time()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        askers = [ask(session, base_url, urls) for base_url in base_urls * connections]
        await asyncio.gather(*askers)
    return 1000 * (time.process_time() - began) / calls


if __name__ == "__main__":
    place, times, at_once, *servers = sys.argv[1:]
    print(asyncio.run(ask_all(Path(place), int(times), int(at_once), servers)))
