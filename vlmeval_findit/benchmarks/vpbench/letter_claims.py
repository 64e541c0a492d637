"""Find what a reply claims of letters: that they are the answer, or that they are not.

Every word has a kind, listed letters become one word, and rules over kinds say what is claimed.
Each step takes linear time: no rule begins with a repetition, and what rules repeat is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_letters
from typing import NamedTuple


class Claim(NamedTuple):
    """Letters that are claimed to be the answer, or denied, in capitals; ``at`` is where."""

    at: int  # number of a word
    letters: frozenset[str]
    denied: bool = False


# --- kinds of words -------------------------------------------------------------------------------

_WORDS = {  # by names that rules use; "_" stands for a blank
    "ANSWER": "answer answers ans choice choices option options letter letters",
    "THING": "one ones description candidate",
    "LINK": "is are was were be seem seems look looks appear appears",
    "MODAL": "must should would will has have ought got",
    "CAN": "can could may might",
    "DO": "do does did",
    "FIT": "fit fits match matches work works apply applies describe describes correspond hold"
    " holds satisfy satisfies exist agree agrees make_sense makes_sense",
    "REMAIN": "remain remains makes_most_sense makes_the_most_sense",
    "CHOOSE": "choose pick select go_with going_with go_for opt_for settle_on",
    "THINK": "think believe guess say feel prefer mean meant see_how i'd_say",
    "IT": "it that this",
    "GOOD": "correct right best better true most_likely more_likely most_plausible more_plausible"
    " most_accurate more_accurate \u2713 \u2714 \u2705",
    "FAIR": "remaining matching proper accurate valid plausible likely fitting possible suitable"
    " appropriate",
    "ONLY": "only just",
    "BAD": "wrong incorrect false invalid impossible inaccurate unlikely untrue mistaken mistake"
    " irrelevant out fail fails makes_no_sense make_no_sense less_likely less_plausible"
    " less_accurate \u2716 \u2717 \u2718 \u274c",
    "REMOVED": "ruled_out crossed_out eliminated excluded discarded rejected dismissed",
    "REMOVE": "rule_out rules_out ruling_out cross_out crosses_out crossing_out"
    " eliminate eliminates eliminating exclude excludes excluding discard discards discarding"
    " reject rejects rejecting dismiss dismisses dismissing neither none_of",
    "NOT": "not never so_is so_are neither_is same_for same_goes_for",
    "NOR": "nor",
    "THAN": "rather_than instead_of unlike doubt",
    "TURN": "so thus therefore hence consequently leaving leaves left_with actually wait rather"
    " correction sorry apologies hmm oops scratch on_second_thought on_second_thoughts"
    " reflection inspection examination again closer closely",
    "BUT": "but",
    "EXCEPT": "except apart_from other_than",
    "ALL": "all every everything each any none",
    "AND": "and or & /",
    "BECAUSE": "because since as due then instead",
    "YES": "yes",
    "NO": "no",
    "COMMA": ",",
    "STOP": ". ; ! )",
    "LINE": "\n",
    "COLON": ": = - \u2013 \u2014 (",
    "ASKED": "?",
}
# Words without a kind say nothing about letters, and are passed over.
_PASSED = (
    "the an a my for to us clearly definitely obviously certainly probably indeed really quite"
    " simply also both still now most final in_fact"
)
# Besides: other words, one letter, and the letters of a list
_NAMES = ("OTHER", "ITEM", "LETTERS", *_WORDS)
_SIGNS = dict(zip(_NAMES, ascii_letters, strict=False))


def _kinds() -> dict[str, str]:
    kinds = {word.replace("_", " "): "" for word in _PASSED.split()}
    for name, words in _WORDS.items():
        for word in words.split(" "):
            kinds[word.replace("_", " ")] = _SIGNS[name]
    return kinds


_KINDS = _kinds()


def _pattern(rule: str) -> str:
    """Write a sign for each name of a kind."""
    return re.sub(r"\b[A-Z]{2,}\b", lambda name: _SIGNS[name[0]], rule).replace(" ", "")


# --- words ----------------------------------------------------------------------------------------

NAMED = r"(?<=(?:option|choice|letter) [aA])"  # after these words "a" is no article


def _no_nouns() -> list[str]:
    """List words that never follow an article: verbs of one thing, and what joins clauses."""
    words = (
        "are were so it leaves makes which cannot won't es porque et ou est parce und oder ist weil"
    ).split()
    for name in ("MODAL", "CAN", "DO", "NOT", "NOR", "AND", "BUT", "BECAUSE"):
        words += filter(str.isalpha, _WORDS[name].split())
    for name in ("LINK", "FIT", "REMAIN", "BAD"):
        words += [word for word in _WORDS[name].split() if re.fullmatch("[a-z]+s", word)]
    return words


NOUN_FOLLOWS = rf" (?!(?:{'|'.join(_no_nouns())})(?:n't)?\b)[A-Za-z\u00c0-\u024f]{{2}}"
ENDS = r"(?!\w|'(?!s\b))"  # the end of a letter: "B's", but not "D'accord"

_ITEM = rf"(?<!\w)(?:[(\[] ?)?(?:[b-d]|a(?:{NAMED}|(?!{NOUN_FOLLOWS}))){ENDS}(?: ?[)\]])?"
# "A is right of B" says where A is.
_PLACE = "right (?:of|next|beside|behind|above|below|under|in|on|at|by|there|here|side|hand)"
_PHRASES = sorted((word for word in _KINDS if " " in word), key=len, reverse=True)
_FOREIGN = r"\u00aa-\u1fff\u3040-\U0010ffff"  # a letter stands alone between these
_WORD = re.compile(
    rf"({_ITEM})|\b(?:{'|'.join([_PLACE, *_PHRASES])})\b"
    rf"|[a-z0-9{_FOREIGN}][\w'{_FOREIGN}]*|[^\w ]",
    re.ASCII,
)
_SHORT = {
    "can't": "can not",
    "cannot": "can not",
    "won't": "will not",
    "n't": " not",
    "it's": "it is",
    "that's": "that is",
    "this's": "this is",
}


class _Word(NamedTuple):
    kind: str  # a sign
    text: str
    letters: frozenset[str] = frozenset()


def _words(text: str) -> list[_Word]:
    for short, long in _SHORT.items():
        text = text.replace(short, long)
    words = []
    for match in _WORD.finditer(text):
        kind = _SIGNS["ITEM"] if match[1] else _KINDS.get(match[0], _SIGNS["OTHER"])
        if kind:
            words.append(_Word(kind, match[0]))
    return words


def _signs(words: Iterable[_Word]) -> str:
    return "".join(word.kind for word in words)


# --- listed letters -------------------------------------------------------------------------------


def _any_of(names: str) -> frozenset[str]:
    return frozenset(_SIGNS[name] for name in names.split())


_JOINT = "(?:COMMA [AND NOR]? | [AND NOR])"
_LIST = re.compile(_pattern(f"ANSWER? ITEM (?:{_JOINT} ANSWER? ITEM)*"))
_COMMAS_ALONE = re.compile(_pattern("(ANSWER? ITEM) (?:COMMA ANSWER? ITEM)+ $"))
_LAST = re.compile(_pattern("(?:COMMA AND? | AND) ANSWER? ITEM $"))
_NEGATIONS = _any_of("NOT NOR")
_ANNOUNCING = _any_of("LINK CHOOSE TURN BUT COLON THINK")
_VERBS = _any_of("LINK MODAL CAN DO FIT")
_OF_SEVERAL = frozenset("are were do have look seem appear fit match".split())  # verbs


def _listed(words: Sequence[_Word]) -> list[_Word]:
    """Make one word of each list of letters."""
    signs = _signs(words)
    result: list[_Word] = []
    done = 0
    for match in _LIST.finditer(signs):
        start, end = match.span()
        cut = start + _next_clause(signs[max(0, start - 1) : start], match[0], words[end : end + 1])
        result += words[done:start]
        result.append(_joined(words[start:cut]))
        if cut < end:
            result.append(_Word(_SIGNS["COMMA"], ","))
            result.append(_joined(words[cut:end]))
        done = end
    return [*result, *words[done:]]


def _next_clause(before: str, listed: str, after: Sequence[_Word]) -> int:
    """Return where in a list of letters another clause begins; its length if none does.

    "not A, B" denies A only; in "it must be B, A is behind it" A begins another clause.
    """
    if before in _NEGATIONS and (commas := _COMMAS_ALONE.match(listed)):
        return commas.end(1)
    verb_of_one = after and after[0].kind in _VERBS and after[0].text not in _OF_SEVERAL
    if verb_of_one and before in _ANNOUNCING and (last := _LAST.search(listed)):
        return last.start()
    return len(listed)


def _joined(words: Iterable[_Word]) -> _Word:
    items = (word.text for word in words if word.kind == _SIGNS["ITEM"])
    return _Word(_SIGNS["LETTERS"], "", frozenset(item.strip("([ ])").upper() for item in items))


# --- rules ----------------------------------------------------------------------------------------

_END = "(?=[STOP COMMA LINE COLON ASKED] | $)"
_IS = "[LINK MODAL CAN DO] [LINK MODAL CAN DO TURN ALL]{0,3} IT?"
_ANNOUNCER = "(?:(?<!NOT) ANSWER | [GOOD FAIR ONLY] FAIR? [THING FIT])"
_OBJECT = f"(LETTERS) (?! {_IS} NOT | (?:{_IS} | COLON)? [BAD REMOVED])"
_SUBJECT = "(?<![NOT NOR REMOVE]) (LETTERS)"

# How letters are denied: an example, and its kinds of words, of which a blank joins those that
# follow each other. At each word the first rule that fits counts, and those that deny go first.
DENIED = {
    "B is not it": f"(LETTERS) {_IS} NOT (?![BAD REMOVED ONLY])",
    "B is wrong": f"(LETTERS) (?:{_IS} | COLON)? [BAD REMOVED]",
    "B. Wrong.": f"(LETTERS) STOP BAD {_END}",
    "B? No.": f"(LETTERS) [STOP COLON ASKED] NO {_END}",
    "B: not there": "(LETTERS) COLON NOT (?!LETTERS)",
    "B. No, that is not right": "(LETTERS) [STOP COMMA LINE TURN BUT NO]{0,5} IT LINK"
    " (?:NOT [GOOD IT] | BAD)",
    "I do not think it is B": "[NOT NOR] [CHOOSE THINK]? IT? LINK? ANSWER? LINK? (LETTERS)",
    "rather than B": "THAN IT? LINK? (LETTERS)",
    "eliminate B": "[REMOVE REMOVED] ALL? COLON? (LETTERS)",
    "the wrong option is B": "BAD [ANSWER THING CHOOSE] [LINK COLON]? (LETTERS)",
    "wrong: B": "(?<![LINK OTHER]) BAD COLON (LETTERS)",
}
# How letters are claimed to be the answer: likewise
CLAIMED = {
    "the answer is B": f"{_ANNOUNCER} STOP? [LINK MODAL COLON]"
    f" [LINK MODAL COLON LINE COMMA TURN GOOD FAIR ONLY]{{0,4}} {_OBJECT}",
    "answer\nB": f"{_ANNOUNCER} STOP? LINE (LETTERS) (?![LINK MODAL CAN DO FIT BAD REMOVED])",
    "correct: B": f"GOOD COLON {_OBJECT}",
    "I choose B": f"(?<![NOT NOR]) CHOOSE [LINK COLON]? {_OBJECT}",
    "it must be B": f"IT (?:MODAL{{1,2}} | CAN ONLY) LINK [TURN GOOD FAIR ONLY]{{0,2}} {_OBJECT}",
    "B is right": f"{_SUBJECT} (?:{_IS} | COLON) GOOD",
    "B is the answer": f"{_SUBJECT} {_IS} ONLY? [ANSWER THING]",
    "B fits best": f"{_SUBJECT} FIT IT? GOOD",
    "B remains": f"{_SUBJECT} CAN? REMAIN",
    "B. Right.": f"{_SUBJECT} STOP? GOOD {_END}",
    "B: yes": f"{_SUBJECT} [STOP COLON ASKED] YES {_END}",
    "B it is": f"{_SUBJECT} IT LINK {_END}",
    "only B fits": "ONLY (LETTERS) (?=[LINK MODAL CAN FIT REMAIN])",
    "all options except B are wrong": "ALL [OTHER ANSWER THING]{0,4} [EXCEPT BUT] (LETTERS)"
    " (?=[LINK CAN])",
    "everything is wrong but B": "ALL [OTHER ANSWER THING LINK CAN]{0,8} [BAD REMOVED] COMMA?"
    " [EXCEPT BUT] (LETTERS)",
    # Only where the letter ends its clause
    "wait, actually it is B": "(?:TURN | BUT | THINK | IT [LINK MODAL] | NO (?=[COMMA STOP COLON]))"
    " [TURN BUT THINK IT LINK MODAL ANSWER ONLY NO COMMA STOP LINE COLON]{0,8} (LETTERS)"
    " (?=[STOP COMMA LINE BECAUSE] | COLON (?![BAD REMOVED NOT NO]) | LINK [GOOD ANSWER]"
    " | IT LINK | $)",
}


def _rules(*tables: Mapping[str, str]) -> re.Pattern[str]:
    rules = [_pattern(rule) for table in tables for rule in table.values()]
    return re.compile("|".join(rules))


_RULES = _rules(DENIED, CLAIMED)  # each has one group: the letters


def find_claims(text: str) -> list[Claim]:
    """List the claims of a lower-case text, in order.

    >>> for claim in find_claims("a is wrong. i thought of c, but the answer must be b."):
    ...     print(sorted(claim.letters), claim.denied)
    ['A'] True
    ['B'] False
    """
    words = _listed(_words(text))
    claims = []
    for match in _RULES.finditer(_signs(words)):
        rule = match.lastindex or 0
        at = match.start(rule)
        claims.append(Claim(at, words[at].letters, rule <= len(DENIED)))
    return claims


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
