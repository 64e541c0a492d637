"""Thoughts are no answers: the same rules, however a reply arrives."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from few_fast import every_nth_fast

import vlmeval_findit as findit
from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.benchmarks.selfretrieval import ImagePair, as_replies, read_captions
from vlmeval_findit.benchmarks.vpbench import read_letter
from vlmeval_findit.boxes import FormatFailure
from vlmeval_findit.models import (
    MODELS,
    RunSettings,
    plan_generation,
    read_completion,
    row_problem,
    without_thought,
)
from vlmeval_findit.protocol import (
    Reply,
    ReplyRecord,
    SettingsError,
    ThoughtMarks,
    ThoughtRule,
    TokenLogprobs,
    read_reply,
    settings_from,
    split_thought,
)

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
    "as Magistral writes it": f"[THINK]{OTHER}[/THINK]",
    "as EXAONE writes it": f"<thought>\n{OTHER}\n</thought>\n",
    "as Seed writes it": f"<seed:think>{OTHER}</seed:think>",
    "as LLaVA-CoT writes it": f"<SUMMARY>a</SUMMARY><REASONING>{OTHER}</REASONING>",
    "as Keye writes it": f"<analysis>{OTHER}</analysis>",
    "reflection": f"<reasoning>{OTHER}</reasoning>\n<reflection>{OTHER}</reflection>\n",
    "as Cohere writes it": f"<|START_THINKING|>{OTHER}<|END_THINKING|>",
    "OpenThinker": f"<|begin_of_thought|>{OTHER}<|end_of_thought|>\n\n",
    "MedGemma": f"<unused94>thought\n{OTHER}<unused95>",
    "harmony": f"<|channel|>analysis<|message|>{OTHER}<|end|>"
    "<|start|>assistant<|channel|>final<|message|>",
    "harmony to a schema": f"<|channel|>analysis<|message|>{OTHER}<|end|><|start|>assistant"
    "<|channel|>final <|constrain|>json<|message|>",
    "harmony with a preamble": f"<|channel|>analysis<|message|>{OTHER}<|end|><|start|>assistant"
    f"<|channel|>commentary<|message|>{OTHER}<|end|><|start|>assistant"
    "<|channel|>final<|message|>",
    "harmony without its tokens": f"analysis{OTHER}assistantfinal",
    "as Apriel writes it": f"Here are my reasoning steps:\n{OTHER}\n[BEGIN FINAL RESPONSE]\n",
    "with attributes": f'<think signature="a/b+c=">{OTHER}</think>',
    "closed by another mark": f"<think>{OTHER}</thinking>",
    "with another thought inside": f"<think>a<reasoning>b</reasoning>{OTHER}</think>",
    "that quotes a mark": f"<think>I was told to use '</think>' {OTHER}</think>",
    "behind a preface": f"Let me see. <think>{OTHER}</think>",
}
# Behind a complete answer: what is no thought is never thrown away.
STRAY = {
    "an opening mark": f"{BOX}\n<think>",
    "an open thought": f"{BOX} <think>or rather {OTHER}",
    "an open thought after another": f"<think>a</think>{BOX}<thinking>",
    "a closing mark": f"{BOX}\n</think>",
    "a second closing mark": f"<think>a</think>{BOX}</think>\n",
    "closing marks": f"{BOX}</think></think>",
    "a closed thought": f"{BOX}\n<think>That is it. {OTHER}</think>\n",
    "an empty thought": f"{BOX}<think></think>",
    "Gemma's opening mark": f"{BOX}<|channel>",
    "Magistral's closing mark": f"{BOX}[/THINK]",
    "harmony's end": f"<|channel|>final<|message|>{BOX}<|return|>",
    "Apriel's end": f"a [BEGIN FINAL RESPONSE] {BOX} [END FINAL RESPONSE]",
    "a preface, too": f"Sure. <think>a</think>{BOX}</think>",
}
LABELLED = '[{"bbox": [100, 200, 500, 800], "label": "%s"}]'
QUOTED = {
    "a mark within a label": LABELLED % "the <think> sticker",
    "a closing mark within a label": LABELLED % "the </think> sticker",
    "a label that is a mark": LABELLED % "<|channel>",
    "an escape before": LABELLED % r"the \"<think>\" sticker",
    "Magistral's": LABELLED % "[THINK] poster",
    "both": LABELLED % "<think>a</think>",
    "behind a thought": f"<think>{OTHER}</think>" + LABELLED % "the <think> sticker",
    "as the first key": '[{"label": "<thought>", "bbox": [100, 200, 500, 800]}]',
}

SIZE, SPACE, FORMAT = (640, 480), "grid1000", "xyxy_json"
TRUTH = [64.0, 96.0, 320.0, 384.0]
PLAN = ThoughtMarks("<plan>", "</plan>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1]", ("[1]", "", False)),
        (" [1] ", (" [1] ", "", False)),
        ("<think>\n\n</think>\n\n[1]", ("[1]", "", False)),
        ("<think>a [2]</think>[1]", ("[1]", "a [2]", False)),
        ("<think>a [2]", ("", "a [2]", True)),
        ("a [2]</think>[1]", ("[1]", "a [2]", False)),
        ("[1]<think>a</think> [2] <think>b", ("[2]", "[1]\n\na\n\nb", True)),
        ("<|channel>thought\nhm<channel|>[1]", ("[1]", "hm", False)),
        ("<think>no answer</think>", ("", "no answer", False)),
        ("<thinker>[1]</thinker>", ("<thinker>[1]</thinker>", "", False)),
        ("[1] (No <think> block was needed.)", ("[1] (No", "block was needed.)", True)),
        ("[1]</think>", ("[1]", "", False)),
        ("I write no `<think>` [1]", ("I write no `<think>` [1]", "", False)),
        ("<think>a<reasoning>b</reasoning> [1]", ("", "a\n\nb\n\n[1]", True)),
        ("[think] [1]", ("", "[1]", True)),
    ],
)
def test_the_answer_is_the_last_part_that_no_marks_enclose(text: str, expected: object) -> None:
    without_thought = split_thought(text)
    assert without_thought[:3] == expected
    assert text[without_thought.begin :].startswith(without_thought.answer)


@pytest.mark.parametrize(
    "mark", every_nth_fast(["<think>", "</think>", "<think></think>", "[THINK", '{"a":"'], 3)
)
def test_a_loop_of_marks_is_split_in_linear_time(mark: str) -> None:
    def seconds(count: int) -> float:
        text = "<think>" + mark * count
        times = []
        for _ in range(3):
            begin = time.process_time()
            split_thought(text)
            times.append(time.process_time() - begin)
        return min(times)

    # Quadratic time would be 64 times as long.
    assert seconds(16_000) < 32 * seconds(2_000) + 0.01


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
    settings = plan_generation(MODELS["InternVL3"], parse(f"FindIt_Pascal_{FORMAT}"), RunSettings())
    got = without_thought(settings, "a prompt", text, ReplyRecord(finish_reason="stop"))
    return by_read(Reply(0, got.text, got.record))


@pytest.mark.parametrize("entry", [by_read, by_score, by_completion, by_local_model])
def test_a_box_that_was_only_thought_of_is_none(entry: Callable[[str], Result]) -> None:
    for name, thought in THOUGHTS.items():
        assert entry(thought + BOX) == (None, 1), name
    for text in (f"<think>so {BOX}", f"Let me see: <think>so {BOX}", f"[THINK]{BOX}", "<thought>"):
        assert entry(text) == (FormatFailure.TRUNCATED_THINKING.value, 0), text


@pytest.mark.parametrize("entry", [by_read, by_score, by_completion, by_local_model])
def test_a_complete_answer_is_kept(entry: Callable[[str], Result]) -> None:
    for name, text in {**STRAY, **QUOTED}.items():
        assert entry(text) == (None, 1), name


@pytest.mark.parametrize("thought", THOUGHTS.values(), ids=THOUGHTS)
def test_text_formats_read_no_box_of_a_thought(thought: str) -> None:
    """They adhere whatever stands around their boxes."""
    options: Any = {"sizes": SIZE, "space": SPACE}
    said = thought.replace(OTHER, "Is it [0, 0, 50, 50]? No.")
    found = f"{said}[100, 200, 500, 800]"
    none = f"{said}[]"
    assert findit.reward([found, none], [[TRUTH], []], "xyxy_text", **options).tolist() == [1, 1]


def test_thought_marks_come_from_the_user_or_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"<plan>{OTHER}</plan>{BOX}"
    named: Any = {"space": SPACE, "thought_marks": ("<plan>", "</plan>")}
    assert by_read(text) == (FormatFailure.NOT_JSON.value, 0)
    assert len(findit.read(text, FORMAT, size=SIZE, **named).boxes) == 1
    assert findit.score([text], [[TRUTH]], FORMAT, sizes=SIZE, **named).sums["tp"] == 1
    assert findit.reward(text, [TRUTH], FORMAT, sizes=SIZE, **named) == 1.0
    with pytest.raises(ValueError, match="not a pair of marks, as '<plan> </plan>'"):
        findit.read(text, FORMAT, size=SIZE, space=SPACE, thought_marks="<plan>")
    assert settings_from({"thought_marks": "<plan> </plan>"}).thought_marks == PLAN
    with pytest.raises(SettingsError, match="not a pair of marks"):
        settings_from({"thought_marks": "<plan>"})
    monkeypatch.setenv("FINDIT_THOUGHT_MARKS", "<plan> </plan>")
    assert settings_from({}).of_unknown.thought_marks == PLAN
    row = replace(MODELS["InternVL3"], thought=PLAN, local=None)
    assert row.thoughts == ThoughtRule(PLAN)
    got = read_completion({"choices": [{"message": {"content": text}}]}, rule=row.thoughts)
    assert (got.text, got.record.thought) == (BOX, OTHER)
    assert row_problem(replace(row, local=MODELS["InternVL3"].local), MODELS) is not None


def test_a_thought_opened_by_the_prompt_ends_at_its_mark() -> None:
    opened = ThoughtRule(opened=True)
    assert split_thought(f"so {BOX}</think>", opened)[:3] == ("", f"so {BOX}", False)
    assert split_thought(f"so</think>{BOX}</think>", opened).answer == BOX
    assert split_thought(BOX, opened).answer == BOX
    row = MODELS["Qwen3.5"]
    assert row.thoughts == opened
    got = read_completion({"choices": [{"message": {"content": f"{BOX}</think>"}}]}, rule=opened)
    assert (got.text, got.record.thought) == ("", BOX)


def test_confidences_are_of_the_answer() -> None:
    """Of a run that left its thought in the text: its tokens are those of all of it."""
    text = f"<think>{BOX}</think>{BOX}"
    ends = tuple(range(1, len(text) + 1))
    sure = [-2.0] * (len(text) - len(BOX)) + [0.0] * len(BOX)
    recorded = ReplyRecord(token_logprobs=TokenLogprobs.rounded(ends, sure))
    result = findit.score([Reply(0, text, recorded)], [[TRUTH]], FORMAT, sizes=SIZE, space=SPACE)
    assert result.queries[0].details["confidences"]["product"] == [1.0]


@pytest.mark.parametrize("thought", THOUGHTS.values(), ids=THOUGHTS)
def test_letters_and_captions_that_were_thought_of_are_none(thought: str) -> None:
    options = {"A": "cat", "B": "dog", "C": "cow"}
    reply = Reply(0, f"It is A {thought} B")
    assert read_reply(reply, lambda text: read_letter(text, options)) == "B"
    content = '{"left_image": "a", "right_image": "b"}'
    assert (
        read_captions(Reply(0, content.replace("a", "no") + thought + content)).left.caption == "a"
    )
    (reply,), _ = as_replies({"7": thought + content}, [ImagePair(0, "7", ("l.png", "r.png"))])
    assert read_captions(reply).right.caption == "b"
