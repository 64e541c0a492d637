"""Whether a model was shown its images, by the tokens that a server counts of its prompts.

Gateways and servers drop images in silence. Nobody states how many tokens an image has, and each
tokenizer makes others of a text; but there are bounds that hold for all, and images of one size
have equally many tokens. The words that a run asked in are found by what it recorded of them. A
service that counts no tokens of images is not blamed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..protocol import (
    Benchmark,
    CustomPrompt,
    Identity,
    Message,
    PartKind,
    Predictions,
    PromptSet,
    QueryCost,
    Reply,
    cost_in,
    prompt_set,
)


def recorded_prompts(
    benchmark: Benchmark, name: str | None, identity: Identity | None
) -> Iterator[PromptSet]:
    """Yield the prompt sets that have the name which a run recorded, perhaps none.

    A run without an identity was asked in a set that the benchmark knows.

    A run's words are those of the set that gives its recorded hash, too.
    """
    known = list(benchmark.prompts())
    if identity is not None and identity.custom_prompt:
        known = [prompt_set(benchmark, CustomPrompt(**identity.custom_prompt))]
    for each in known:
        if each.name == name:
            yield each


# What is counted; provenances have these words
FEWER_THAN_TEXT = "fewer tokens than the text"
# Under half of what images of these sizes cost elsewhere
FEWER_THAN_OTHERS = "fewer tokens than others"

# Tokenizers cut a text into such pieces first, and make a token or more of each: letters with one
# sign before them, three digits at most, other signs, line breaks.
_PIECE = re.compile(r"[^\r\n\w]?[^\W\d_]+|_[^\W\d_]+|\d{1,3}|[^\s\w]+|_+|\n\s*")
# The tokenizers of Claude 2 and of Mistral's models make at least 0.96 tokens of a piece of 824
# prompts of ours, and at most 0.36 of a byte, also of Chinese and Korean.
_LEAST_A_PIECE = 0.75
_MOST_A_BYTE = 0.5


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """The tokens that a server counted of a prompt with images, and those that its text has."""

    counted: int
    least: float  # Of the text, whatever the tokenizer
    most: float
    sizes: tuple[tuple[int, int], ...]  # (w, h) of each image in pixels, as sent; perhaps none
    model: str  # That answered; "" if the service does not say
    index: int = -1  # Of the row; -1: not known


def prompt_tokens(opened: Predictions) -> Iterator[PromptTokens]:
    """Yield what servers counted of the prompts of a run, as far as its words are known.

    Left out are prompts without images or a count, and those of which a part was in a cache:
    services count that in several ways.
    """
    if opened.identity is None:
        return
    prompts = next(
        recorded_prompts(opened.benchmark, opened.identity.prompts, opened.identity), None
    )
    if prompts is None:
        return
    for reply in opened.replies:
        cost = _cost(reply)
        if not cost.tokens_in or cost.is_cached:
            continue
        query = opened.dataset.queries[reply.index]
        message = prompts.message(query, opened.dataset.variant)
        if any(part.kind is PartKind.IMAGE for part in message):
            model = reply.recorded.model.get("identifier", "")
            yield PromptTokens(
                cost.tokens_in, *text_tokens(message), cost.sizes, model, reply.index
            )


def _cost(reply: Reply) -> QueryCost:
    """Return the cost of an answer of a server; nothing is known of others."""
    # A model in this process is shown what was made for it.
    if reply.failed or not reply.recorded.call:
        return QueryCost()
    return cost_in({"tokens": reply.recorded.tokens, "images": list(reply.recorded.images)})


def text_tokens(message: Message) -> tuple[float, float]:
    """Return the fewest and the most tokens that the text of a message has, by any tokenizer."""
    text = "\n".join(part.value for part in message if part.kind is not PartKind.IMAGE)
    return _LEAST_A_PIECE * len(_PIECE.findall(text)), _MOST_A_BYTE * len(text.encode())


def count_unseen(prompts: Iterable[PromptTokens]) -> Counter[str]:
    """Count the prompts of a run whose images the server may not have seen.

    Such a prompt has fewer tokens than its text alone. Or its images have less than half of the
    tokens that images of the same sizes have in another prompt to the same model, even if its text
    had the fewest tokens and that of the other the most.

    >>> seen = PromptTokens(1100, 40, 90, ((640, 480),), "m")
    >>> dropped = PromptTokens(110, 40, 90, ((640, 480),), "m")
    >>> dict(count_unseen([seen, seen, dropped, PromptTokens(31, 40, 90, (), "m")]))
    {'fewer tokens than others': 1, 'fewer tokens than the text': 1}
    """
    return Counter(why for _, why in unseen_prompts(prompts))


def unseen_prompts(prompts: Iterable[PromptTokens]) -> Iterator[tuple[PromptTokens, str]]:
    """Yield the prompts that :func:`count_unseen` counts, each with why."""
    groups: dict[object, list[PromptTokens]] = {}
    for each in prompts:
        groups.setdefault((each.sizes, each.model), []).append(each)
    for group in groups.values():
        of_images = max(each.counted - each.most for each in group)
        for each in group:
            if each.counted < each.least:
                yield each, FEWER_THAN_TEXT
            elif each.sizes and each.counted - each.least < of_images / 2:
                yield each, FEWER_THAN_OTHERS
