"""Settings that a model on this machine cannot take, refused before anything is loaded.

What is not refused here would be found by the processor at each call, or by transformers while the
model is loaded, when other models were paid.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ...core import no_effect, suggestion
from ..adapter import adapter_of
from ..checkpoint_files import chat_template_of
from ..http.thinking_fields import refuse_other_thinking
from ..model_row import ANY_QUESTION, ModelRow
from .run_plan import refuse_outside_processor, stated_bounds
from .run_settings import RunSettings
from .which_engine import refuse_engine

# Types of the weights on this machine; programs of servers have other names
DTYPES = ("bfloat16", "float16", "float32", "float64", "half", "float")

# What computes the attention, and the package that it needs
_ATTENTIONS = {
    "eager": None,
    "sdpa": None,
    "flex_attention": None,
    "flash_attention_2": "flash_attn",
    "flash_attention_3": "flash_attn_interface",
    "flash_attention_4": "flash_attn",
}

# Arguments of the function that fills a chat template in, which are no switches of a template
_OF_THE_FUNCTION = frozenset(
    "conversation messages tools documents chat_template add_generation_prompt tokenize "
    "continue_final_message return_tensors return_dict return_assistant_tokens_mask padding "
    "truncation max_length tokenizer_kwargs processor_kwargs".split()
)


def refuse_settings(
    row: ModelRow,
    checkpoint: str,
    settings: RunSettings,
    *,
    name: str = "",
    elsewhere: bool = False,
) -> None:
    """Refuse, with a ValueError, settings that a checkpoint or its family does not take.

    Args:
        row: of the model table, as which it runs.
        checkpoint: a folder or an identifier; what its files say is known only if they are here.
        settings: of the run.
        name: of its results, which may say how it is asked (``…-nothink``).
        elsewhere: it runs on other machines (Ray), whose packages are not known here.
    """
    stated = stated_bounds(row, settings)
    assert row.local is not None
    bounds = row.local.bounds(ANY_QUESTION).overridden(stated)
    refuse_outside_processor(bounds, checkpoint, row.local)
    refuse_dtype(settings.dtype, "dtype")
    refuse_engine(row, checkpoint, settings)
    _refuse_attention(settings.attention, elsewhere=elsewhere)
    _refuse_revision(checkpoint, settings.revision)
    refuse_other_thinking({"template": settings.template}, name, row)
    _refuse_switches(checkpoint, settings)


def refuse_dtype(dtype: str | None, called: str) -> None:
    """Refuse, with a ValueError, a type that no model on this machine has."""
    if dtype is not None and dtype not in DTYPES:
        raise ValueError(f"unknown {called} {dtype!r}{suggestion(dtype, DTYPES)}")


def _refuse_attention(attention: str | None, *, elsewhere: bool) -> None:
    # A kernel of the hub is OWNER/NAME.
    if attention is None or "/" in attention:
        return
    if attention not in _ATTENTIONS:
        raise ValueError(f"unknown attention {attention!r}{suggestion(attention, _ATTENTIONS)}")
    package = _ATTENTIONS[attention]
    if package is not None and not elsewhere and find_spec(package) is None:
        raise ValueError(
            f"attention {attention} needs the package {package}, which is not installed. Leave it "
            "out, or type sdpa"
        )


def _refuse_revision(checkpoint: str, revision: str | None) -> None:
    if revision is None:
        return
    adapter = adapter_of(checkpoint)
    base = checkpoint if adapter is None else adapter.base
    if Path(base).is_dir():
        raise ValueError(no_effect("revision", f"{base} is a folder, not a model of the hub"))


def _refuse_switches(checkpoint: str, settings: RunSettings) -> None:
    """Refuse switches of the chat template that it does not know, as far as it is here."""
    for name in settings.template:
        if name in _OF_THE_FUNCTION:
            raise ValueError(f"template: {name} is set by FindIt. Leave it out")
    if not settings.template:
        return
    known = _switches_in(chat_template_of(checkpoint))
    if known is None:
        return
    for name in settings.template:
        if name not in known:
            own = sorted(known - _OF_THE_FUNCTION)
            why = f"the chat template of {checkpoint} does not know it{suggestion(name, own)}"
            raise ValueError(no_effect(f"template.{name}", why))


def _switches_in(template: str | None) -> frozenset[str] | None:
    """Return the variables that a chat template asks for; None if it cannot be read."""
    if template is None:
        return None
    from jinja2 import Environment, TemplateSyntaxError, meta

    try:
        parsed = Environment(extensions=["jinja2.ext.loopcontrols"]).parse(template)
    except TemplateSyntaxError:  # transformers knows further tags
        return None
    return frozenset(meta.find_undeclared_variables(parsed))
