"""The words that a run asked in, by what it recorded of them."""

from __future__ import annotations

from collections.abc import Iterator

from ..protocol import Benchmark, CustomPrompt, Identity, PromptSet, prompt_set


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
