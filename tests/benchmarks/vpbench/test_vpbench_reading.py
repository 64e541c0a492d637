"""Letters of replies: as the authors take them, and as a reader would."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.vpbench.benchmark import BENCHMARK
from vlmeval_findit.benchmarks.vpbench.letter_reading import published_letter, read
from vlmeval_findit.core.replies import ParseFailure, Reply, read_reply

ANIMALS = {"A": "cat", "B": "dog", "C": "horse", "D": "cow"}
NUMBERS = {"A": "1", "B": "2", "C": "3", "D": "4"}
WORDS = {"A": "one", "B": "two", "C": "three"}
BEARS = {"A": "bear", "B": "a teddy bear", "C": "The book", "D": ""}
CHOICES = {"A": "Yes", "B": "No"}
ECHOES = {"A": "dark red", "B": "red", "C": "red box"}


def answer(reply: str, options: dict[str, str] = ANIMALS) -> str:
    """The letter, or the reason why there is none."""
    choice = read_reply(Reply(0, reply), lambda text: read(text, options))
    return choice.reason if isinstance(choice, ParseFailure) else choice


@pytest.mark.parametrize(
    "reply",
    [
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
    ],
)  # fmt: skip
def test_replies_that_answer_b(reply: str) -> None:
    assert answer(reply) == "B"


@pytest.mark.parametrize(
    ("reply", "options", "expected"),
    [
        ("B) Failed to obtain answer", ANIMALS, "B"),
        ("", ANIMALS, "empty"),
        (" \n\t\u3000", ANIMALS, "empty"),
        ("<think>", ANIMALS, "truncated while thinking"),
        ("<think>A</think><think>it is B", ANIMALS, "truncated while thinking"),
        ("<think>the answer is B</think>\n", ANIMALS, "empty"),
        ("A</think>B", ANIMALS, "B"),
        ("E", ANIMALS, "no_choice"),
        ("**", ANIMALS, "no_choice"),
        ("😀", ANIMALS, "no_choice"),
        ("\u200b", ANIMALS, "no_choice"),
        ("Abcd", ANIMALS, "no_choice"),
        ("B2", ANIMALS, "no_choice"),
        ("I can't tell.", ANIMALS, "no_choice"),
        ("A. cat\nB. dog\nC. horse\nD. cow", ANIMALS, "no_choice"),
        ('{"A": "cat", "B": "dog", "C": "horse", "D": "cow"}', ANIMALS, "no_choice"),
        ("A. cat\nB. dog", ANIMALS, "A"),
        ("B. No, wait: the answer is A.", ANIMALS, "A"),
        ("Not A", ANIMALS, "no_choice"),
        ("A or B", ANIMALS, "ambiguous"),
        ("A and B are correct", ANIMALS, "ambiguous"),
        ("A or B is correct", ANIMALS, "ambiguous"),
        ("Answer: A/B", ANIMALS, "ambiguous"),
        ("Answer: A, B", ANIMALS, "ambiguous"),
        ("Answer: A or A", ANIMALS, "A"),
        ("I hesitate between B and C", ANIMALS, "ambiguous"),
        ("a cat and a dog", ANIMALS, "ambiguous"),
        ("catdog", ANIMALS, "no_choice"),
        ("A", CHOICES, "A"),
        ("C", CHOICES, "no_choice"),
        ("The answer is D.", CHOICES, "no_choice"),
        ("The answer is D. So B", CHOICES, "B"),
        ("yes", CHOICES, "A"),
        ("No, it isn't.", CHOICES, "B"),
        ("I do not know", CHOICES, "no_choice"),
        ("Yes and no", CHOICES, "ambiguous"),
        ("teddy-bear", BEARS, "B"),
        ("The TEDDY BEAR.", BEARS, "B"),
        ("a bear", BEARS, "A"),
        ("teddy bear, bear", BEARS, "ambiguous"),
        ("book", BEARS, "C"),
        ("D", BEARS, "no_choice"),
        ("dark red", ECHOES, "A"),
        ("red", ECHOES, "B"),
        ("red box", ECHOES, "C"),
        ("dark red box", ECHOES, "ambiguous"),
        ("red box and red", {"A": "red", "B": "red box", "C": "red box and red"}, "C"),
        ("three", NUMBERS, "C"),
        ("There are exactly 3.", NUMBERS, "C"),
        ("1 or 2", NUMBERS, "ambiguous"),
        ("13", NUMBERS, "no_choice"),
        ("1.5", NUMBERS, "no_choice"),
        ("2", WORDS, "B"),
        ("La respuesta es A porque está a la izquierda", ANIMALS, "A"),
        ("Option A dog", ANIMALS, "A"),
        ("option a is it", ANIMALS, "A"),
        ("I pick a cow", ANIMALS, "D"),
        ("猫", {"A": "狗", "B": "猫"}, "B"),
        ("cafe\u0301", {"A": "tea", "B": "caf\u00e9"}, "B"),
        ("B", {}, "no_choice"),
        ("B", {"A": "x", "B": " "}, "no_choice"),
        ("(", {"A": "+", "B": "-"}, "no_choice"),
    ],
)
def test_a_reply_with_its_options(
    reply: str | None, options: dict[str, str], expected: str
) -> None:
    assert answer(reply, options) == expected


# --- what holds of every reply --------------------------------------------------------------------

PIECES = st.lists(
    st.sampled_from(
        [
            *("A", "B", "c", "d", "(b)", " ", "\n", "answer", "is", "option", "not", "or", "cat"),
            *("dog", ".", ":", "**", "```", "<think>", "</think>", "{", "}", "'", "a", "\\boxed{"),
            *("correct", "I choose", "２", "ß", "é", "答", "1", "-"),
        ]
    )
).map(" ".join)
TEXTS = st.one_of(st.text(), PIECES)
OPTIONS = st.dictionaries(st.sampled_from("ABCD"), st.text(max_size=8), max_size=4)


@given(TEXTS, OPTIONS)
def test_every_reply_gives_a_letter_of_the_options_or_a_reason(
    reply: str, options: dict[str, str]
) -> None:
    result = answer(reply, options)
    assert result in BENCHMARK.reasons or options[result].strip()
    assert result == answer(reply, options)


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("Answer: D", "A"),
        ("No box", "B"),
        (None, "A"),
        ("Failed to obtain answer", "A"),
        ("", None),
    ],
)
def test_the_published_letter_of_what_it_gets_wrong(reply: str | None, letter: str | None) -> None:
    assert published_letter(reply) == letter


@pytest.mark.parametrize(
    "piece",
    [
        " ", "answer:", "<a", "A. cat\n", "A or ", "_", "- ", "option ", "答", "<think>", "teddy ",
        "is correct ",
    ],
)  # fmt: skip
def test_a_long_reply_takes_time_in_proportion(piece: str) -> None:
    # Four times as long takes four times as long, not sixteen; with room for a busy machine.
    spent = []
    for size in (20_000, 80_000):
        start = time.process_time()
        read(piece * (size // len(piece)), BEARS)
        spent.append(time.process_time() - start)
    assert spent[1] < 0.3 + 9 * spent[0]
    assert spent[1] < 5
