"""Letters of replies: as the authors take them, and as a reader would."""

from __future__ import annotations

import time

import pytest
from few_fast import few_fast
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.vpbench import BENCHMARK, published_letter, read_letter
from vlmeval_findit.protocol import ParseFailure, Reply, read_reply

ANIMALS = {"A": "cat", "B": "dog", "C": "horse", "D": "cow"}
BEARS = {"A": "bear", "B": "a teddy bear", "C": "The book", "D": ""}


def answer(reply: str, options: dict[str, str] = ANIMALS) -> str:
    """The letter, or the reason why there is none."""
    choice = read_reply(Reply(0, reply), lambda text: read_letter(text, options))
    return choice.reason if isinstance(choice, ParseFailure) else choice


ALL_B = [
    "B", "b", " B \n", "(B)", "[b]", "B.", "B)", "b:", "B、dog", "【B】", "Ｂ", "Ⓑ", "B!",
    "B. dog", "B: dog", "(B) dog", "b) dog", "B - dog", "b – dog", "B—dog", "B\r\ndog",
    "B, a dog", "**B**", "__B__", "*B*", "`B`", "'B'", "“B”", "«B»", "「B」", "# B", "- B",
    "* B. dog",
    "• B", "> B", "```\nB\n```", "```text\nB\n```", "B</s>", "B<|im_end|>", "<b>B</b>",
    "<answer>B</answer>", r"\boxed{B}", r"$\boxed{\text{B}}$", r"\(\boxed{\textbf{B}}\)",
    r"\[\mathrm{B}\]", "$B$.", '{"answer": "B"}', "{'choice': 'b'}",
    '```json\n{\n "final_answer": "B"\n}\n```', "<think>A?</think>B", "Answer: B",
    "**Answer:** B", "ANSWER = b", "Ans. B", "Answer\nB", "### Final Answer\n\n**B**",
    "The answer is B.", "the answer is b", "My choice would be (B).", "The right option is:\nB",
    "I choose B", "I'd go with option b.", "pick the option B", "select (b)",
    "B is the right answer", "The answer is option (b), a dog.",
    "The answer is A. No: the answer is B.", "I think it's B", "My answer is B, not A.",
    "Not A but B.", "It can't be A, so B.", "The answer isn't A; it is B.",
    "It is not A or C, so B", "neither A nor C, but B", "I would not choose A. Pick B.",
    "Neither A nor C is right. B", "A is on the left, C on the right. So the answer is B.",
    "option b looks right", "Choice B", "A. cat\nB. dog\nC. horse\nD. cow\n\nB",
    "(A) cat (B) dog (C) horse (D) cow. Answer: (B) dog", "答案是B。", "正确答案：Ｂ",
    "我选择B", "La réponse est B.", "Die Antwort ist B.", "Ответ: B", "答えはBです",
    "D'après l'image, c'est B", "C'est la réponse B", "Réponse : B", "A dog is there, so B.",
    "dog", "A dog", "a dog.",
    "The dog!", "It's the dog's", "DOG", "Answer: A dog", "The answer is a dog.",
]  # fmt: skip


def test_replies_that_answer_b() -> None:
    assert {reply: answer(reply) for reply in ALL_B} == dict.fromkeys(ALL_B, "B")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (ANIMALS, {
            "B) Failed to obtain answer": "B", "A</think>B": "B", "A. cat\nB. dog": "A",
            "B. No, wait: the answer is A.": "A", "Answer: A or A": "A", "I pick a cow": "D",
            "La respuesta es A porque está a la izquierda": "A", "Option A dog": "A",
            "option a is it": "A",
        }),
        (ANIMALS, {
            "": "empty", " \n\t\u3000": "empty", "<think>the answer is B</think>\n": "empty",
            "<think>A</think><think>it is B": "truncated while thinking",
        }),
        (ANIMALS, dict.fromkeys([
            "E", "**", "😀", "\u200b", "Abcd", "B2", "I can't tell.", "Not A", "catdog",
            "A. cat\nB. dog\nC. horse\nD. cow",
            '{"A": "cat", "B": "dog", "C": "horse", "D": "cow"}',
        ], "no_choice")),
        (ANIMALS, dict.fromkeys([
            "A or B", "A and B are correct", "A or B is correct", "Answer: A/B", "Answer: A, B",
            "I hesitate between B and C", "a cat and a dog",
        ], "ambiguous")),
        ({"A": "Yes", "B": "No"}, {
            "A": "A", "C": "no_choice", "The answer is D.": "no_choice",
            "The answer is D. So B": "B", "yes": "A", "No, it isn't.": "B",
            "I do not know": "no_choice", "Yes and no": "ambiguous",
        }),
        (BEARS, {
            "teddy-bear": "B", "The TEDDY BEAR.": "B", "a bear": "A", "book": "C",
            "teddy bear, bear": "ambiguous", "D": "no_choice",
        }),
        ({"A": "dark red", "B": "red", "C": "red box"}, {
            "dark red": "A", "red": "B", "red box": "C", "dark red box": "ambiguous",
        }),
        ({"A": "red", "B": "red box", "C": "red box and red"}, {"red box and red": "C"}),
        ({"A": "1", "B": "2", "C": "3", "D": "4"}, {
            "three": "C", "There are exactly 3.": "C", "1 or 2": "ambiguous", "13": "no_choice",
            "1.5": "no_choice",
        }),
        ({"A": "one", "B": "two", "C": "three"}, {"2": "B"}),
        ({"A": "狗", "B": "猫"}, {"猫": "B"}),
        ({"A": "tea", "B": "caf\u00e9"}, {"cafe\u0301": "B"}),
        ({}, {"B": "no_choice"}),
        ({"A": "x", "B": " "}, {"B": "no_choice"}),
        ({"A": "+", "B": "-"}, {"(": "no_choice"}),
    ],
)  # fmt: skip
def test_a_reply_with_its_options(options: dict[str, str], expected: dict[str, str]) -> None:
    assert {reply: answer(reply, options) for reply in expected} == expected


# --- what holds of every reply --------------------------------------------------------------------

PIECES = st.lists(
    st.sampled_from(
        [
            "A",
            "B",
            "c",
            "d",
            "(b)",
            " ",
            "\n",
            "answer",
            "is",
            "option",
            "not",
            "or",
            "cat",
            "dog",
            ".",
            ":",
            "**",
            "```",
            "<think>",
            "</think>",
            "{",
            "}",
            "'",
            "a",
            "\\boxed{",
            "correct",
            "I choose",
            "２",
            "ß",
            "é",
            "答",
            "1",
            "-",
        ]
    )
).map(" ".join)
TEXTS = st.one_of(st.text(), PIECES)
OPTIONS = st.dictionaries(st.sampled_from("ABCD"), st.text(max_size=8), max_size=4)


@given(TEXTS, OPTIONS)
def test_every_reply_gives_a_letter_or_a_reason(reply: str, options: dict[str, str]) -> None:
    result = answer(reply, options)
    assert result in BENCHMARK.reasons or options[result].strip()
    assert result == answer(reply, options)


def test_the_published_letter_of_what_it_gets_wrong() -> None:
    expected = {"Answer: D": "A", "No box": "B", None: "A", "Failed to obtain": "A", "": None}
    assert {reply: published_letter(reply) for reply in expected} == expected


@pytest.mark.parametrize(
    "piece",
    few_fast([
        " ", "answer:", "<a", "A. cat\n", "A or ", "_", "- ", "option ", "答", "<think>", "teddy ",
        "is correct ", "so, ", "wait, no, ", "a is wrong ", "not a, ", ", b", "no. ",
        "all but ", "(a) ",
    ], 4),
)  # fmt: skip
def test_a_long_reply_takes_time_in_proportion(piece: str) -> None:
    # Four times as long takes four times as long, not sixteen; with room for a busy machine.
    spent = []
    for size in (20_000, 80_000):
        start = time.process_time()
        read_letter(piece * (size // len(piece)), BEARS)
        spent.append(time.process_time() - start)
    assert spent[1] < 0.3 + 9 * spent[0]
    assert spent[1] < 5
