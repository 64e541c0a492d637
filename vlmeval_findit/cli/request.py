"""What ``run_findit.py show`` prints of a model over an API: its request, without the pictures."""

from __future__ import annotations

import json

from ..boxes.spaces import Space
from ..core.messages import Message
from ..core.question import Question
from ..models.http.payload import openrouter_manner, request
from ..models.row import ApiFacts


def print_request(message: Message, question: Question, space: Space, facts: ApiFacts) -> None:
    """Print the request for a message: fields as they are, images as their sizes."""
    try:
        asked = request(message, question, space, openrouter_manner(facts))
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
