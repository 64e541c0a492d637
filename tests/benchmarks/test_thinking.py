"""Thoughts are no answers: the same rules, however a reply arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import vlmeval_findit as findit
from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.selfretrieval.caption_reading import as_replies, captions_in
from vlmeval_findit.benchmarks.selfretrieval.image_pairs import ImagePair
from vlmeval_findit.benchmarks.vpbench.letter_reading import read as read_choice
from vlmeval_findit.boxes.box_records import FormatFailure
from vlmeval_findit.core.replies import Recorded, Reply, TokenLogprobs, read_reply, split_thought
from vlmeval_findit.models.http.completion import read_completion
from vlmeval_findit.models.local.local_runner import spoken
from vlmeval_findit.models.local.run_plan import RunSettings, plan
from vlmeval_findit.models.model_table import MODELS

BOX = '[{"bbox": [100, 200, 500, 800]}]'
OTHER = '[{"bbox": [0, 0, 50, 50]}]'
THOUGHTS = {
    "complete": f"<think>perhaps {OTHER}</think>\n\n",
    "opened by the prompt": f"perhaps {OTHER}</think>",
    "in capitals": f"<THINK>{OTHER}</Think>",
    "by its longer name": f"<thinking>{OTHER}</thinking>",
    "as Gemma writes it": f"<|channel>thought\n{OTHER}<channel|>",
    "as Kimi writes it": f"◁think▷{OTHER}◁/think▷",
    "twice": f"<think>a</think>{OTHER}<think>b</think>",
    "within itself": f"<think>{OTHER} <think> again</think>",
}

SIZE, SPACE, FORMAT = (640, 480), "grid1000", "xyxy_json"
TRUTH = [64.0, 96.0, 320.0, 384.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1]", ("[1]", "", False)),
        (" [1] ", (" [1] ", "", False)),
        ("<think>\n\n</think>\n\n[1]", ("[1]", "", False)),
        ("<think>a [2]</think>[1]", ("[1]", "a [2]", False)),
        ("<think>a [2]", ("", "a [2]", True)),
        ("a [2]</think>[1]", ("[1]", "a [2]", False)),
        ("[1]<think>a</think> [2] <think>b", ("", "[1]\n\na\n\n[2]\n\nb", True)),
        ("<|channel>thought\nhm<channel|>[1]", ("[1]", "hm", False)),
        ("<think>no answer</think>", ("", "no answer", False)),
        ("<thinker>[1]</thinker>", ("<thinker>[1]</thinker>", "", False)),
    ],
)
def test_the_answer_begins_behind_the_last_thought(text: str, expected: object) -> None:
    assert split_thought(text) == expected


Result = tuple[Any, int]  # why there is no answer, and the number of boxes


def by_read(reply: str | Reply) -> Result:
    result = findit.read(reply, FORMAT, size=SIZE, space=SPACE)  # type: ignore[arg-type]
    return result.reason and result.reason.value, len(result.boxes)


def by_score(text: str) -> Result:
    result = findit.score([text], [[TRUTH]], FORMAT, sizes=SIZE, space=SPACE).queries[0]
    return result.reason, result.details["n_pred"]


def by_completion(text: str) -> Result:
    """Over HTTP: a service that leaves the thought in its text."""
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    got = read_completion({"choices": [choice]})
    return by_read(Reply(0, got.text, got.record))


def by_local_model(text: str) -> Result:
    """A family of which nobody knows that it thinks."""
    settings = plan(MODELS["InternVL3"], parse(f"FindIt_Pascal_{FORMAT}"), RunSettings())
    got = spoken(settings, "a prompt", text, Recorded(finish_reason="stop"))
    return by_read(Reply(0, got.text, got.recorded))


@pytest.mark.parametrize("entry", [by_read, by_score, by_completion, by_local_model])
def test_a_box_that_was_only_thought_of_is_none(entry: Callable[[str], Result]) -> None:
    for thought in THOUGHTS.values():
        assert entry(thought + BOX) == (None, 1)
    for text in (f"<think>so {BOX}", f"{BOX} <think>or rather", f"<think>a</think>{BOX}<thinking>"):
        assert entry(text) == (FormatFailure.TRUNCATED_THINKING.value, 0)


def test_confidences_are_of_the_answer() -> None:
    """Of a run that left its thought in the text: its tokens are those of all of it."""
    text = f"<think>{BOX}</think>{BOX}"
    ends = tuple(range(1, len(text) + 1))
    sure = [-2.0] * (len(text) - len(BOX)) + [0.0] * len(BOX)
    recorded = Recorded(token_logprobs=TokenLogprobs.of(ends, sure))
    result = findit.score([Reply(0, text, recorded)], [[TRUTH]], FORMAT, sizes=SIZE, space=SPACE)
    assert result.queries[0].details["confidences"]["product"] == [1.0]


@pytest.mark.parametrize("thought", THOUGHTS.values(), ids=THOUGHTS)
def test_letters_and_captions_that_were_thought_of_are_none(thought: str) -> None:
    options = {"A": "cat", "B": "dog", "C": "cow"}
    reply = Reply(0, f"It is A {thought} B")
    assert read_reply(reply, lambda text: read_choice(text, options)) == "B"
    content = '{"left_image": "a", "right_image": "b"}'
    assert captions_in(Reply(0, content.replace("a", "no") + thought + content)).left.caption == "a"
    (reply,), _ = as_replies({"7": thought + content}, [ImagePair(0, "7", ("l.png", "r.png"))])
    assert captions_in(reply).right.caption == "b"
