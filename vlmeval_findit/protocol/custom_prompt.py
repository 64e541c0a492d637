"""Prompts of the user's: a system text, and a template in place of a benchmark's request.

A model that was trained on other words than ours can be asked in its words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..core import TextError, not_there, read_text, sha256_of, suggestion, with_unix_lines
from .benchmark import Benchmark, PromptSet
from .dataset_variant import Message, PartKind, system, text

# The variable that every template has: where each image stands, in the usual order
IMAGES = "images"

_MARK = "\ue000{}\ue001"
_MARKS = re.compile("\ue000(\\d+)\ue001")


class TemplateError(ValueError):
    """A template cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class CustomPrompt:
    """A system text and a Jinja template (None: none, and the standard request)."""

    system: str | None = None
    template: str | None = None

    def check(self, benchmark: Benchmark) -> None:
        """Refuse a template that names what a benchmark does not know, with a TemplateError."""
        if self.template is None:
            return
        if not benchmark.template_names:
            raise TemplateError(
                f"--prompt-template: prompts of {benchmark.name} have no parts to put into a "
                "template (--system goes with all of them)"
            )
        from jinja2 import meta

        known = [*benchmark.template_names, IMAGES]
        unknown = meta.find_undeclared_variables(_environment().parse(self.template)) - {*known}
        for name in sorted(unknown):
            near = suggestion(name, known)
            raise TemplateError(f"--prompt-template: unknown variable {name!r}{near}")

    def message(self, standard: Message, values: Mapping[str, Any], where: str) -> Message:
        """Return a standard message in these words.

        Images stand where the template puts them, or all of them as in the standard message, whose
        last text the template replaces. A TemplateError names ``where``.
        """
        before = () if self.system is None else (system(self.system),)
        if self.template is None:
            return (*before, *standard)
        images = [part for part in standard if part.kind is PartKind.IMAGE]
        marks = [_MARK.format(number) for number in range(len(images))]
        written = _rendered(self.template, {**values, IMAGES: marks}, where)
        pieces = _MARKS.split(written)
        if len(pieces) == 1:
            return (*before, *standard[:-1], text(written))
        if sorted(map(int, pieces[1::2])) != list(range(len(images))):
            raise TemplateError(
                f"--prompt-template: {where} has {len(images)} images, and the template puts "
                f"{len(pieces) // 2} there: each once, or none"
            )
        parts = [text(pieces[0])]
        for number, after in zip(pieces[1::2], pieces[2::2], strict=True):
            parts += [images[int(number)], text(after)]
        return (*before, *(part for part in parts if part.value.strip()))


def custom_prompt(system_file: str | None, template_file: str | None) -> CustomPrompt | None:
    """Read the files of ``--system`` and ``--prompt-template`` (None: neither); else ValueError."""
    if system_file is None and template_file is None:
        return None
    system = _text_of("--system", system_file)
    template = _text_of("--prompt-template", template_file)
    if template is not None:
        from jinja2 import TemplateSyntaxError

        try:
            _environment().parse(template)
        except TemplateSyntaxError as error:
            where = f"--prompt-template {template_file}, line {error.lineno}"
            raise TemplateError(f"{where}: {error.message}") from None
    return CustomPrompt(system, template)


def prompt_set(benchmark: Benchmark, prompt: CustomPrompt | None = None) -> PromptSet:
    """Return the prompt set in force, in the user's words if any, or raise TemplateError."""
    standard = benchmark.prompts()[0]
    if prompt is None:
        return standard
    prompt.check(benchmark)

    def message(query: Any, variant: Any) -> Message:
        values = benchmark.template_values(query, variant)
        where = f"{variant.name}, row {query.index}"
        return prompt.message(standard.message(query, variant), values, where)

    words = "\0".join((standard.name, prompt.system or "", prompt.template or ""))
    return PromptSet(f"custom-{sha256_of(words.encode())[:12]}", message)


def _text_of(flag: str, path: str | None) -> str | None:
    if path is None:
        return None
    try:
        words = with_unix_lines(read_text(Path(path))).rstrip("\n")
    except FileNotFoundError:
        raise ValueError(f"{flag} {path}: the file {not_there(Path(path))}") from None
    except OSError as error:
        raise ValueError(f"{flag} {path}: {error.strerror}") from None
    except TextError as error:
        raise ValueError(error.message_for(f"{flag} {path}")) from None
    if not words.strip():
        raise ValueError(f"{flag} {path}: the file is empty")
    return words


@cache
def _environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def _compiled(template: str) -> Any:
    return _environment().from_string(template)


def _rendered(template: str, values: Mapping[str, Any], where: str) -> str:
    # Templates are the user's code: whatever they raise is an error of the template.
    try:
        words: str = _compiled(template).render(values).strip()
    except Exception as error:
        raise TemplateError(f"--prompt-template: {where}: {error}") from None
    if not words:
        raise TemplateError(f"--prompt-template: {where}: the template renders to nothing")
    return words
