"""Replies that deny, correct and eliminate: the letter that a person would read."""

from __future__ import annotations

import re

import pytest

from vlmeval_findit.benchmarks.vpbench import (
    CLAIMED,
    DENIED,
    concluded_letters,
    denied_letters,
    find_claims,
    read_letter,
)
from vlmeval_findit.protocol import ParseFailure

ANIMALS = {"A": "cat", "B": "dog", "C": "cow", "D": "two birds"}
PLACES = {"A": "top left", "B": "top right", "C": "bottom left", "D": "in the right half"}
YES_NO = {"A": "Yes", "B": "No"}
COUNTS = {"A": "1", "B": "2", "C": "3", "D": "4"}

UNCLEAR, NONE = "ambiguous", "no_choice"

# (reply, options, letter)
TABLE = [
    # Denied behind the letter
    ("A is wrong. B.", ANIMALS, "B"),
    ("A) cat is wrong. The correct one is B", ANIMALS, "B"),
    ("B is incorrect. C.", ANIMALS, "C"),
    ("A. cat is not correct, since it has no whiskers. D.", ANIMALS, "D"),
    ("C is not right, so the answer must be D", ANIMALS, "D"),
    ("A isn't right. It has to be C.", ANIMALS, "C"),
    ("(A) is clearly wrong, (B) is also wrong, and (D) is out. (C).", ANIMALS, "C"),
    ("A, B and D are incorrect, C matches best.", ANIMALS, "C"),
    ("Option A can be ruled out. Option D it is.", ANIMALS, "D"),
    ("A and B can both be eliminated because they are outside. C", ANIMALS, "C"),
    ("A does not match the mark. B does not fit either. C fits.", ANIMALS, "C"),
    ("A doesn't apply, B", ANIMALS, "B"),
    ("A cannot be right, since cats are smaller. B", ANIMALS, "B"),
    ("A can't be it. I'd say D.", ANIMALS, "D"),
    ("D is false; C", ANIMALS, "C"),
    ("B is impossible here. A.", ANIMALS, "A"),
    ("B makes no sense, D does.", ANIMALS, "D"),
    ("A is wrong, and so is B. C!", ANIMALS, "C"),
    ("A (the cat) is wrong, B (the dog) is right.", ANIMALS, "B"),
    ("A - cat is wrong.\nB - dog is right.", ANIMALS, "B"),
    ("A: cat - incorrect\nB: dog - incorrect\nC: cow - correct\nD: two birds - incorrect",
     ANIMALS, "C"),
    ("A. cat ❌\nB. dog ❌\nC. cow ✅\nD. two birds ❌", ANIMALS, "C"),
    ("A? No. B? No. C? Yes.", ANIMALS, "C"),
    ("A: no.\nB: yes.\nC: no.\nD: no.", ANIMALS, "B"),
    ("A seems wrong. B seems right.", ANIMALS, "B"),
    # Denied before it
    ("Not A. B.", ANIMALS, "B"),
    ("It is neither A nor B. D", ANIMALS, "D"),
    ("Neither A, B nor D is right. C", ANIMALS, "C"),
    ("I don't think it's A. B.", ANIMALS, "B"),
    ("I do not believe the answer is A. C.", ANIMALS, "C"),
    ("I would not choose A, I would choose B.", ANIMALS, "B"),
    ("It could not be D, which leaves B.", ANIMALS, "B"),
    ("C rather than D.", ANIMALS, "C"),
    ("B instead of A", ANIMALS, "B"),
    ("The answer is not A, it's C.", ANIMALS, "C"),
    ("The answer isn't B but C.", ANIMALS, "C"),
    ("The answer cannot be A or B. So D.", ANIMALS, "D"),
    # Eliminated
    ("Eliminate A, B and D. Thus C", ANIMALS, "C"),
    ("Eliminating A and B leaves C and D; of these D fits better.", ANIMALS, "D"),
    ("We can rule out A, C, and D. B remains.", ANIMALS, "B"),
    ("Ruling out A and B, it must be C.", ANIMALS, "C"),
    ("A is excluded, B is excluded, D is excluded.", ANIMALS, "C"),
    ("I can exclude options A, B and C.", ANIMALS, "D"),
    ("Rejecting B leaves us with only A.", ANIMALS, "A"),
    ("All options except C are wrong.", ANIMALS, "C"),
    ("All are wrong except for B.", ANIMALS, "B"),
    ("Everything but D can be ruled out.", ANIMALS, "D"),
    ("Only B fits.", ANIMALS, "B"),
    ("Only option C makes sense, as A and B are on the left.", ANIMALS, "C"),
    ("A is wrong.", YES_NO, "B"),
    ("A is wrong.", ANIMALS, NONE),
    ("A, B, C and D are all wrong.", ANIMALS, NONE),
    # Concluded
    ("The answer must be D.", ANIMALS, "D"),
    ("The answer has to be (b).", ANIMALS, "B"),
    ("The best match is C, although A is close.", ANIMALS, "C"),
    ("The right one is B, A is behind it.", ANIMALS, "B"),
    ("The only remaining option is D; A, B and C are too small.", ANIMALS, "D"),
    ("It must be A, B is too small.", ANIMALS, "A"),
    ("A is in front of B. Therefore, C.", ANIMALS, "C"),
    ("The mark lies between A and D, so the answer is clearly B.", ANIMALS, "B"),
    ("Looking at A and B: hence D", ANIMALS, "D"),
    ("C is the answer, D is smaller.", ANIMALS, "C"),
    ("B would be the best choice, not C or D.", ANIMALS, "B"),
    ("The answer is most likely C, possibly D.", ANIMALS, "C"),
    ("I'll go with option C. B is close, too.", ANIMALS, "C"),
    ("I was torn between A and C, but C fits better.", ANIMALS, "C"),
    # Corrected
    ("The answer is A.\nWait, actually B.", ANIMALS, "B"),
    ("The answer is A. Wait, no, it's B.", ANIMALS, "B"),
    ("A. No, wait: B.", ANIMALS, "B"),
    ("B. Hmm, actually it should be D.", ANIMALS, "D"),
    ("Answer: C. Correction: D.", ANIMALS, "D"),
    ("The answer is C... on second thought, A.", ANIMALS, "A"),
    ("I choose B. Sorry, I mean C.", ANIMALS, "C"),
    ("The answer is A. Wait, A is wrong. B.", ANIMALS, "B"),
    ("The answer is A. But A is not right, so B.", ANIMALS, "B"),
    ("A is wrong. No, wait, A is right after all.", ANIMALS, "A"),
    ("The answer is B. Wait, let me check: the mark is on the dog. Yes.", ANIMALS, "B"),
    ("The answer is B, since C is actually behind A.", ANIMALS, "B"),
    ("The answer is A. Actually, B is behind it.", ANIMALS, "A"),
    # By the text of an option
    ("It is not a dog but a cow", ANIMALS, "C"),
    ("It isn't a cat; it's a dog.", ANIMALS, "B"),
    ("A cow rather than a dog.", ANIMALS, "C"),
    ("It can't be the cat. The dog.", ANIMALS, "B"),
    ("Neither a cat nor a dog; a cow.", ANIMALS, "C"),
    ("There are 3, not 4.", COUNTS, "C"),
    ("No", YES_NO, "B"),
    ("No, it is not.", YES_NO, "B"),
    ("Not a dog.", ANIMALS, NONE),
    # A verdict belongs to the letter in front of it, and a sentence to itself
    ("D: wrong So C. B is wrong.", ANIMALS, "C"),
    ("It is D because C is behind it.\nB: wrong", ANIMALS, "D"),
    ("B isn't the right one.\nA cannot be the answer.\nC isn't the right one.", ANIMALS, "D"),
    ("A is the answer.\nOptions D and C are incorrect.", ANIMALS, "A"),
    ("B is not plausible.\nA is correct.", ANIMALS, "A"),
    ("A fails. B would be wrong. D must be wrong.", ANIMALS, "C"),
    ("I don't think A is right. B.", ANIMALS, "B"),
    ("It would be a mistake to pick A. B is marked.", ANIMALS, "B"),
    ("A appears to be correct.", ANIMALS, "A"),
    ("A match is not clear: B", ANIMALS, "B"),
    ("Answer: B I don't think it's A.", ANIMALS, "B"),
    ("It's not A, B.", ANIMALS, "B"),
    ("B is right.\nA is the wrong choice.\nA is on the left.", ANIMALS, "B"),
    ("What came to my mind first is wrong: B", ANIMALS, "B"),
    ("C describes it best, A is behind it.", ANIMALS, "C"),
    ("The arrow does not touch B. C", ANIMALS, UNCLEAR),
    ("The arrow does not touch B. The answer is C", ANIMALS, "C"),
    # What is no denial and no conclusion
    ("A is right of B, and C is below. The answer: D", PLACES, "D"),
    ("B. A is not wrong either, but B is better.", ANIMALS, "B"),
    ("B is not only marked, it is also the largest.", ANIMALS, "B"),
    ("I'm not sure. C.", ANIMALS, "C"),
    ("It's not clear, but B", ANIMALS, "B"),
    ("B, because A dog is a pet.", ANIMALS, "B"),
    ("A cat is wrong, so it's B.", ANIMALS, "B"),
    ("So A or B.", ANIMALS, UNCLEAR),
    ("A or B, but not B", ANIMALS, "A"),
    ("Either C or D. It can't be D.", ANIMALS, "C"),
    ("A and B are correct.", ANIMALS, UNCLEAR),
    ("I'd say B or C, certainly not A.", ANIMALS, UNCLEAR),
    ("None of A, B, C or D.", ANIMALS, NONE),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "options", "letter"), TABLE, ids=[row[0] for row in TABLE])
def test_the_letter_that_a_person_would_read(
    reply: str, options: dict[str, str], letter: str
) -> None:
    result = read_letter(reply, options)
    assert (result.reason if isinstance(result, ParseFailure) else result) == letter


@pytest.mark.parametrize("mark", ["{}", "({})", "{}.", "{})", "option {}", "**{}**", "Option ({})"])
@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("{0} is wrong. The answer must be {1}", 1),
        ("{0} is not right, so {1}", 1),
        ("{0} is incorrect. {1}", 1),
        ("It can't be {0}. Therefore, {1}.", 1),
        ("The answer is {0}. Wait, actually {1}.", 1),
        ("The correct one is {0}, not {1}.", 0),
        ("{1} is clearly not the answer; {0} is the right one.", 0),
    ],
)
def test_however_letters_are_written(mark: str, reply: str, letter: int) -> None:
    for first in "ABCD":
        for second in "ABCD".replace(first, ""):
            text = reply.format(mark.format(first), mark.format(second))
            text = text.replace("..", ".").replace(". is", " is").replace(".,", ",")
            assert read_letter(text, ANIMALS) == (first, second)[letter], text


def test_claims_in_order() -> None:
    claims = find_claims("the answer is a. wait, a is wrong: it must be b or c. it can't be c.")
    assert [(sorted(each.letters), each.denied) for each in claims] == [
        (["A"], False), (["A"], True), (["B", "C"], False), (["C"], True),
    ]  # fmt: skip
    assert (concluded_letters(claims), denied_letters(claims)) == ({"B"}, {"A", "C"})


FORMS = ("B", "(B)", "option B", "B or C", "B, C and D")
RULES = [(example, True) for example in DENIED] + [(example, False) for example in CLAIMED]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("example", "denied"), RULES)
def test_a_rule_reads_its_example_however_letters_are_written(
    example: str, denied: bool, form: str
) -> None:
    letters = set("BCD").intersection(form)
    for before in ("", "the box is on the left. ", "a is wrong.\n"):
        text = before + re.sub(r"\bB\b", form, example)
        claim = find_claims(text.lower())[-1]
        assert (claim.letters, claim.denied) == (letters, denied), text
