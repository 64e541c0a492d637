"""Find what a reply claims of letters: that they are the answer, or that they are not.

All patterns are for lower-case text without markup. They have no unbounded repetition, so that
every reply is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Claim(NamedTuple):
    """Letters that are claimed to be the answer, or denied, in capitals; ``at`` is where."""

    at: int
    letters: frozenset[str]
    denied: bool = False


def whole_words(*words: str) -> str:
    """Make a pattern of alternative words that start at a word boundary."""
    return rf"\b(?:{'|'.join(words)})"


def _any(*words: str) -> str:
    return f"(?:{'|'.join(words)})"


# --- letters --------------------------------------------------------------------------------------

_NO_NOUN = (  # words that never follow an article
    "and",
    "or",
    "nor",
    "is",
    "because",
    "but",
    "so",
    "was",
    "are",
    "isn't",
    "seems",
    "looks",
    "fits",
    "matches",
    "does",
    "doesn't",
    "can't",
    "cannot",
    "can",
    "must",
    "remains",
    "instead",
    "since",
    "as",
    "then",
    "not",
    "it",
    "would",
    "should",
    "has",
    "leaves",
    "makes",
    "which",
    "y",
    "o",
    "es",
    "porque",
    "et",
    "ou",
    "est",
    "parce",
    "und",
    "oder",
    "ist",
    "weil",
)
NOUN_FOLLOWS = rf" (?!(?:{'|'.join(_NO_NOUN)})\b)[A-Za-z\u00c0-\u024f]{{2}}"
NAMED = r"(?<=(?:option|choice|letter) [aA])"  # after these words "a" is no article
ENDS = r"(?!\w|'(?!s\b))"  # the end of a letter: "B's", but not "D'accord"

# A letter, whatever stands before it
_LETTER = rf"(?:[b-d]|a(?:{NAMED}|(?!{NOUN_FOLLOWS}))){ENDS}"
_BRACKETED = rf"(?:[(\[] ?{_LETTER} ?[)\]]|{_LETTER}[)\]]?)"
_NOUN = _any("options?", "choices?", "letters?", "answers?")
_JOINT = r"(?: ?[,/&] ?(?:and |or |nor )?| and | or | nor )"
# One letter, or several in a reply that does not decide
_LETTERS = rf"(?:{_NOUN} )?{_BRACKETED}(?:{_JOINT}(?:{_NOUN} )?{_BRACKETED}){{0,3}}"
_SINGLE = re.compile(r"[a-d](?<!\w[a-d])(?!\w)", re.ASCII)


def _letters_in(matched: str) -> frozenset[str]:
    return frozenset(letter.upper() for letter in _SINGLE.findall(matched))


_BEFORE = re.compile(rf"(?<!\w)({_LETTERS})\Z", re.ASCII)
_FARTHEST = 60  # characters: the longest list of letters and what stands before it


def _subject(text: str, end: int) -> re.Match[str] | None:
    """Find the letters right before a place."""
    return _BEFORE.search(text[max(0, end - _FARTHEST) : end])


# --- the answer is … ------------------------------------------------------------------------------

_ADVERB = _any(
    "clearly",
    "definitely",
    "obviously",
    "certainly",
    "probably",
    "most likely",
    "likely",
    "therefore",
    "thus",
    "then",
    "actually",
    "indeed",
    "really",
    "simply",
    "just",
    "also",
    "both",
    "all",
    "still",
    "most probably",
    "in fact",
    "now",
    "instead",
)
_ADVERBS = rf"(?:,? {_ADVERB},?){{0,2}}"
_GOOD = _any(
    "correct",
    "right",
    "best",
    "only",
    "remaining",
    "matching",
    "proper",
    "true",
    "accurate",
    "valid",
    "plausible",
    "likely",
    "fitting",
    "possible",
    "suitable",
    "appropriate",
)
_SUBJECTS = whole_words(
    "answer", "ans", "choice", "option", "guess", rf"{_GOOD} (?:one|match|description|letter)"
)
_MUST = _any(
    "must be", "has to be", "would have to be", "has got to be", "can only be", "ought to be"
)
_LINK = rf"\.?(?: is| should be| would be| will be| {_MUST}| ?[:=]|\n){{1,4}}"

_DENIED_BY = ("not ", "n't ", "nor ", "never ")
_CHOOSE = ("choose", "pick", "select", "go with", "going with", "go for", "opt for", "settle on")


def _not_denied(verb: str) -> str:
    denials = "".join(rf"(?<!{denial}{verb})" for denial in _DENIED_BY)
    return rf"{verb}(?<!\w{verb}){denials}"


_VERBS = "|".join(map(_not_denied, _CHOOSE))
_CALLED = r"(?:\s?(?:the )?(?:option|choice|letter)(?: is| ?[:=])?)?"

# "The answer is …", "I choose …", "it must be …"
_CONCLUSION = re.compile(
    rf"(?:(?:{_SUBJECTS}){_LINK}|\bcorrect ?:|{_VERBS}|it {_MUST})"
    rf"{_ADVERBS}{_CALLED}\s?({_LETTERS})",
    re.ASCII,
)

# "So …", "Wait, actually …": only where the letter ends its clause
_MARKS = whole_words(
    "so",
    "thus",
    "therefore",
    "hence",
    "consequently",
    "leaving",
    "leaves",
    "left with",
    "actually",
    "wait",
    "correction",
    "on second thoughts?",
    "i mean",
    "rather",
    "scratch that",
    "i (?:now )?(?:think|believe|guess)",
    "i(?:'d| would) say",
    "i prefer",
    r"(?:up)?on (?:closer |further |second )?(?:reflection|inspection|examination|look)",
    "looking (?:again|closer|more closely)",
    "sorry",
    "apologies",
    "hmm",
    "no(?=[,.:;!])",
    "but",
    "it's",
    "it is",
    "that's",
    "oops",
)
_FILLER = _any(
    "actually",
    "wait",
    "no",
    "so",
    "it's",
    "it is",
    "that's",
    "i think",
    "i'd say",
    "i meant",
    "i would say",
    "the answer is",
    "only",
    "us with",
    "us only",
    "just",
    "rather",
    "should be",
    "must be",
    "has to be",
    f"it {_MUST}",
    "it should be",
    "let me correct that",
    "clearly",
)
_GAP = r"[ ,.:;!\n-]{1,3}"
_CONTINUED = re.compile(rf"(?:{_MARKS})(?:{_GAP}{_FILLER}){{0,4}}{_GAP}({_LETTERS})", re.ASCII)
_CLAUSE_ENDS = re.compile(
    r" ?(?:[.,;!)\n]|\Z|because|since|as |due|then|instead"
    r"|is (?:the )?(?:correct|right|best|answer)|it is|remains|- )"
)

# "The answer is B, A is behind it": A begins another clause.
_VERB_FOLLOWS = re.compile(
    r" (?:is|isn't|was|does|doesn't|can|can't|cannot|has|would|could|looks|seems|fits|lies|shows)\b"
)
_LAST = re.compile(rf"(?: ?,(?: and| but)?| and) (?:{_NOUN} )?{_BRACKETED}\Z", re.ASCII)

# "B is the correct one", "B fits best"
_IS = _any("is", "seems", "looks", "appears", "would be", "should be", _MUST)
_STOPS = r"(?=[.,;!)\n]|\Z)"
_NOT_A_PLACE = (
    r"(?! (?:of|next|beside|behind|above|below|under|in|on|at|by|there|here|side|hand)\b)"
)
_PROBABLE = _any("likely", "accurate", "plausible")
_PRAISE = re.compile(
    rf" {_IS}{_ADVERBS}(?: to be)?(?: the| my)?"
    rf" (?:correct|right{_NOT_A_PLACE}|best|(?:final )?answer|mo(?:st|re) {_PROBABLE}"
    rf"|only (?:one|option|choice|answer)|better)\b"
    r"| (?:fits|matches|works) (?:best|better)\b| makes (?:the )?most sense\b| remains\b"
    rf"| ?[-\u2013\u2014:(] ?(?:correct\b|(?:right|yes|true){_STOPS}|[\u2713\u2714\u2705])"
    rf"|\.[ \n](?:correct|right|yes|true){_STOPS}| ?[\u2713\u2714\u2705]|\? ?yes\b"
    rf"| it is{_STOPS}"
)
_ONLY = re.compile(
    rf"(?:{whole_words('only')}) ({_LETTERS}) (?:is|remains|fits|matches|makes|works|applies|can)\b"
)
# "all options except C are wrong", "everything is wrong but C"
_ALL = r"\b(?:all|every|everything|each|any|none)\b[^.,\n]{0,40}"
_EXCEPT = r"(?:except|apart from|other than|but)(?: for)?"
_ALL_BUT = re.compile(rf"{_ALL}\b{_EXCEPT} \Z")
_ALL_WRONG_BUT = re.compile(
    rf"{_ALL}\b(?:wrong|incorrect|false|ruled out|eliminated|excluded),? {_EXCEPT} ({_LETTERS})",
    re.ASCII,
)
_DOUBTED = re.compile(
    r"(?:(?:n't|not|never) (?:think|believe|say|feel|agree|see how)|doubt|unlikely)(?: that)?"
    r"(?: it(?:'s| is))?"
    rf"(?: (?:the|my))?(?: {_GOOD})? ?\Z|\b(?:wrong|incorrect|false) \Z"
)

# --- … is not -------------------------------------------------------------------------------------

_DENIALS = whole_words(
    "not",
    "nor",
    "isn't",
    "aren't",
    "wasn't",
    "(?:can't|cannot|can not|couldn't) be",
    "(?:won't|wouldn't|shouldn't) be",
    "rather than",
    "instead of",
    "unlike",
    *(rf"(?:not|n't|never) {verb}" for verb in _CHOOSE),
    "so is",
    "so are",
    "nor is",
    "neither is",
    "same (?:goes )?for",
)
_DENIED = re.compile(
    rf"(?:{_DENIALS})(?: the)?(?: {_NOUN})? ({_BRACKETED}(?:"
    rf"(?:, ?{_BRACKETED}){{1,2}},? n?or {_BRACKETED}|(?: n?or {_BRACKETED}){{0,3}}))",
    re.ASCII,
)
_REMOVE = whole_words(
    "neither",
    "none of",
    "eliminat(?:e|es|ed|ing)",
    "rul(?:e|es|ed|ing) out",
    "exclud(?:e|es|ed|ing)",
    "discard(?:s|ed|ing)?",
    "reject(?:s|ed|ing)?",
    "dismiss(?:es|ed|ing)?",
    "cross(?:es|ed|ing)? out",
    rf"(?:wrong|incorrect|false) (?:{_NOUN}|ones?)(?: is| are)?",
    r"(?:wrong|incorrect|false)(?<![a-z] wrong)(?<![a-z] incorrect)(?<![a-z] false)(?=:)",
)
_REMOVED = re.compile(rf"(?:{_REMOVE})(?: (?:the|both|all))?:? ({_LETTERS})", re.ASCII)

_WRONG = _any(
    "wrong",
    "incorrect",
    "false",
    "invalid",
    "impossible",
    "inaccurate",
    "unlikely",
    "untrue",
    "mistaken",
    "ruled out",
    "eliminated",
    "excluded",
    "discarded",
    "rejected",
    "dismissed",
    "irrelevant",
    f"out{_STOPS}",
    f"no{_STOPS}",
)
_NOT_WRONG = r"(?! (?:only|just|wrong|incorrect|false|ruled out|eliminated|excluded))"
_CANNOT = _any("cannot", "can't", "can not", "couldn't", "could not", "won't", "wouldn't")
_FIT = _any(
    "fit",
    "match",
    "apply",
    "work",
    "describe",
    "correspond",
    "make sense",
    "hold",
    "satisfy",
    "seem",
    "appear",
    "exist",
    "look",
    "agree",
    "answer",
)
_BLAME = re.compile(
    rf" (?:is|are|was|were|seems?|looks?|appears?){_ADVERBS}(?: to be)?(?: the| an?)? {_WRONG}"
    rf"| (?:is|are|was|were)(?:n't| not)(?: {_ADVERB})?\b{_NOT_WRONG}"
    rf"| (?:does|do|did)(?:n't| not) (?:really |quite |seem to |appear to )?{_FIT}"
    rf"| {_CANNOT}(?: {_ADVERB})? be\b{_NOT_WRONG}"
    r"| (?:can|could|may|must|should)(?: all| both| also| therefore| thus)? be "
    r"(?:ruled out|eliminated|excluded|discarded|rejected|dismissed|wrong|incorrect)"
    rf"| fails?\b| makes? no sense\b"
    rf"| ?[-\u2013\u2014:(] ?{_WRONG}| ?[-\u2013\u2014:] ?not\b(?! (?:{_NOUN} )?{_BRACKETED})"
    rf"|\.[ \n](?:wrong|incorrect|false|no){_STOPS}| ?[\u2717\u2718\u274c\u2716]|\? ?no\b"
    r"|[.,;:?!]?[ \n](?:no,? |but |hmm,? |wait,? ){0,2}(?:that|this|it)(?:'s| is| was) "
    r"(?:not (?:right|correct|it)\b|wrong|incorrect|a mistake)"
    rf"| is less {_PROBABLE}\b"
)


def find_claims(text: str) -> list[Claim]:
    """List the claims of a lower-case text, in order.

    >>> for claim in find_claims("a is wrong. i thought of c, but the answer must be b."):
    ...     print(sorted(claim.letters), claim.denied)
    ['A'] True
    ['B'] False
    """
    claims = [*_conclusions(text), *_judged(text), *_denied(text)]
    return sorted(claims, key=lambda claim: claim.at)


def _conclusions(text: str) -> Iterator[Claim]:
    for match in _CONCLUSION.finditer(text):
        yield _claim(text, match)
    for match in _CONTINUED.finditer(text):
        if _CLAUSE_ENDS.match(text, match.end()):
            yield _claim(text, match)
    for match in _ONLY.finditer(text):
        yield Claim(match.end(1), _letters_in(match[1]))
    for match in _ALL_WRONG_BUT.finditer(text):
        yield Claim(match.end(1), _letters_in(match[1]))


def _claim(text: str, match: re.Match[str]) -> Claim:
    before = text[max(0, match.start() - _FARTHEST) : match.start()]
    letters = match[1]
    if _VERB_FOLLOWS.match(text, match.end()):
        letters = _LAST.sub("", letters)
    return Claim(match.end(), _letters_in(letters), denied=bool(_DOUBTED.search(before)))


def _judged(text: str) -> Iterator[Claim]:
    """Yield claims that stand behind letters: "B is right", "A and C are wrong", "all but C …"."""
    for pattern, denied in ((_PRAISE, False), (_BLAME, True)):
        for match in pattern.finditer(text):
            subject = _subject(text, match.start())
            if subject is None:
                continue
            before = text[max(0, match.start() - _FARTHEST) : match.start()][: subject.start()]
            if denied and _ALL_BUT.search(before):
                yield Claim(match.end(), _letters_in(subject[1]))
            elif denied or not (before.endswith(_DENIED_BY) or "nor" in subject[1]):
                yield Claim(match.end(), _letters_in(subject[1]), denied)


def _denied(text: str) -> Iterator[Claim]:
    for pattern in (_DENIED, _REMOVED):
        for match in pattern.finditer(text):
            yield Claim(match.end(), _letters_in(match[1]), denied=True)


def concluded_letters(claims: Iterable[Claim]) -> frozenset[str]:
    """Return the letters of the last conclusion that is not taken back; several: undecided."""
    result: frozenset[str] = frozenset()
    before: list[frozenset[str]] = []
    for claim in claims:
        if not claim.denied:
            before.append(result)
            result = claim.letters
        elif result:
            result -= claim.letters
            while not result and before:
                result = before.pop() - claim.letters
    return result


def denied_letters(claims: Iterable[Claim]) -> frozenset[str]:
    """Return the letters that are denied, and not claimed to be the answer afterwards."""
    result: frozenset[str] = frozenset()
    for claim in claims:
        result = result | claim.letters if claim.denied else result - claim.letters
    return result
