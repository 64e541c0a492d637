"""What ``data show`` prints of a model over an API: its request, without the images."""

from __future__ import annotations

import json

from ..core.messages import Message
from ..core.question import Question
from ..models.http.chat import chat_model
from ..models.http.providers.table import OPENROUTER


def print_request(message: Message, question: Question, model: str) -> None:
    """Print the request for a message: fields as they are, images as their sizes."""
    try:
        asked = chat_model(model, OPENROUTER).request(message, question)
    except OSError as error:
        print(f"\nwhat is sent cannot be shown without the images: {error}")
        return
    print("\nsent to OpenRouter:")
    for name, value in asked.body.items():
        if name != "messages":
            print(f"  {name}: {json.dumps(value)}")
    for image in asked.images:
        original, sent = ("{} x {}".format(*size) for size in (image.original, image.sent))
        print(f"  image: {original}, sent as {sent}, {image.mime}, {len(image.data):,} bytes")
