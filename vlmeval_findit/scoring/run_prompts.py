"""The words that a run asked in, by what it recorded of them."""

from __future__ import annotations

from collections.abc import Iterator

from ..protocol import Benchmark, CustomPrompt, Identity, PromptSet, prompt_set


def recorded_prompts(benchmark: Benchmark, identity: Identity) -> Iterator[PromptSet]:
    """Yield the prompt sets that have the name which a run recorded, perhaps none.

    A run's words are those of the set that gives its recorded hash, too.
    """
    known = list(benchmark.prompts())
    if identity.custom_prompt:
        known = [prompt_set(benchmark, CustomPrompt(**identity.custom_prompt))]
    for each in known:
        if each.name == identity.prompts:
            yield each
