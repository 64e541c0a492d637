"""Try chat templates in a process of their own: some loop for ever, or make gigabytes.

A template is a program, and comes with the files of a model. Nothing can stop one in this process,
so conversations of all kinds that we ask are written in another, whose time and memory the system
limits: with no image and with several, short and long, with and without a system message, about
things of all kinds.  One that does harm for a single word that is not among them, at an hour, or by
chance, passes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...core import parse_json

_SECONDS = 3  # of the processor; a real one takes some milliseconds
_MEMORY = 1 << 30
_MOST_TEXT = 1 << 20  # of a conversation of a few words

# Written in the environment that transformers gives to templates. Its tag for training is left out.
_TRIAL = """
import re, resource, sys
from datetime import datetime
from json import dumps, load
asked = load(sys.stdin)
for limit, most in ((resource.RLIMIT_CPU, asked["seconds"]), (resource.RLIMIT_AS, asked["memory"])):
    resource.setrlimit(limit, (most, most))
from jinja2.sandbox import ImmutableSandboxedEnvironment
environment = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
)
environment.filters["tojson"] = lambda value, *_, **__: dumps(value)
environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
text = re.sub(r"{%-?\\s*(?:end)?generation\\s*-?%}", "", asked["template"])
longest = 0
for turns in asked["conversations"]:
    try:
        template = environment.from_string(text)
        written = template.render(messages=turns, add_generation_prompt=True, **asked["switches"])
        longest = max(longest, len(written))
    except MemoryError:
        sys.exit(3)
    except Exception:
        pass  # the same is told when the first question is written
sys.exit(4 if longest > asked["most"] else 0)
"""

_MOST_IMAGES = 9
_QUESTION = "Where is the cat?"
_LONG = (  # as long as a prompt with examples, a list of classes, or a label of a stranger
    f'{_QUESTION}\nAnswer in JSON: [{{"bbox_2d": [x1, y1, x2, y2], "label": "cat"}}]\n' * 8,
    f"{_QUESTION} Choose one of 1. dog, 2. bird, 3. äöü 猫\n" * 800,
)
# Words, signs and marks that questions have: a template may wait for one
_ABOUT = (
    "a person, bicycle, car, dog, horse, bottle, chair, person or TV monitor",
    "the man on the left in a red shirt, behind the table's edge",
    "object 17 of 250; x1 = 0.5, y1 = 1e-3; 100 % of the image",
    'JSON: {"bbox": [[0, 0, 999, 999]], "label": null}; XML: <box><x>1</x></box>',
    "C:\\path\\file_1.png, https://example.org/?q=a&b=c#d, name@example.org, $5, `code` ~ ^ | * +",
    "<think>where?</think> </answer> <|im_start|>assistant <|im_end|> [INST] <s> \\boxed{1}",
    "猫、犬 и кошка, القطة, बिल्ली, 고양이, ñandú, œuvre, \u200b\u202e, 🐈, “quoted” – ‘so’ …",
    "WHERE ARE ALL CATS? ANSWER: NONE!",
    "Segment, count, point, describe, detect; yes or no; the centre, width and height, corners",
    "\t\r\n\n    indented\n\n",
    "",
)
_SYSTEM = {"role": "system", "content": [{"type": "text", "text": "Answer in JSON."}]}


def _asking(text: str, images: int) -> dict[str, Any]:
    parts = [{"type": "image"} for _ in range(images)]
    return {"role": "user", "content": [*parts, {"type": "text", "text": text}]}


def _conversations() -> list[list[dict[str, Any]]]:
    """Return conversations of the kinds that are asked."""
    turns = [_asking(_QUESTION, images) for images in range(_MOST_IMAGES + 1)]
    turns += [_asking(text, 1) for text in _LONG]
    turns += [_asking(text, 2) for text in _LONG]
    turns += [_asking(text, 1) for text in _ABOUT]
    return [*([turn] for turn in turns), *([_SYSTEM, turn] for turn in turns)]


def refuse_endless_templates(where: str, templates: Any, switches: Mapping[str, Any]) -> None:
    """Raise ValueError for a chat template that takes the machine.

    Args:
        where: the checkpoint.
        templates: a template, or several by their names; None: there is none.
        switches: of the template, as the run sets them.
    """
    several = templates.values() if isinstance(templates, Mapping) else [templates]
    for template in several:
        if isinstance(template, str):
            why = _why_endless(template, json.dumps(switches, sort_keys=True, default=str))
            if why is not None:
                raise ValueError(
                    f"{where}: its chat template (chat_template.jinja) {why}. Copy the one that "
                    "was published with the model"
                )


@lru_cache(maxsize=64)
def _why_endless(template: str, switches: str) -> str | None:
    asked = {
        "template": template,
        "switches": parse_json(switches),
        "conversations": _conversations(),
        "seconds": _SECONDS,
        "memory": _MEMORY,
        "most": _MOST_TEXT,
    }
    status = _run(json.dumps(asked))
    if status == 3:
        return f"needs more than {_MEMORY >> 20:,} MiB to write one question"
    if status == 4:
        return f"writes more than {_MOST_TEXT >> 20} MiB for one question"
    # The system ends a process that has used up its time, and one without memory.
    return f"does not end within {_SECONDS} s" if status < 0 else None


def _run(asked: str) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words: Sequence[str] = [sys.executable, "-c", _TRIAL]
    return subprocess.run(
        words, input=asked, text=True, capture_output=True, env=environment, check=False
    ).returncode
