"""Replies with options, and the letters that the authors and a reader take from them."""

from __future__ import annotations

from vlmeval_findit.benchmarks.vpbench import published_letter, read_letter
from vlmeval_findit.protocol import FAILED_ANSWER, ParseFailure, Reply, read_reply

from .cases import Case, reason_in_cases, unlike


def difference(case: Case) -> str | None:
    """Return how our letter of a reply differs."""
    reply, answer = case["reply"], case["answer"]
    published = published_letter(reply)
    parsed = Reply(0, FAILED_ANSWER if reply is None else reply)
    choice = read_reply(parsed, lambda text: read_letter(text, case["options"]))
    letter, why = (None, choice.reason) if isinstance(choice, ParseFailure) else (choice, None)
    sensible = {
        "letter": letter,
        "correct": letter == answer,
        "why": reason_in_cases(why, parsed, "no_choice"),
    }
    authors = {"letter": published, "correct": published == answer}
    for reader, actual in (("authors", authors), ("sensible", sensible)):
        if why := unlike(actual, case[reader]):
            return f"{reader}: {why}"
    return None
