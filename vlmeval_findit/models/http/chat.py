"""A model behind an HTTP API: how it is asked, and what is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...boxes import SPACE_KINDS, Space, SpaceError, stated_space
from ...core import parse_json, secret_field
from ...protocol import (
    CHAT_KIND,
    PROVIDER_KIND,
    USUAL_THOUGHTS,
    Answering,
    DatasetVariant,
    Described,
    Message,
    PartKind,
    ReplyRecord,
    ThoughtRule,
    split_system,
)
from ...serving import BOUNDS_FIELD, TEMPLATE_FIELD
from ..model_row import NO_API, SPACE_WITHOUT_BOXES, ApiFacts, ModelRow
from ..model_settings import space_or_variable
from ..model_table import MODELS, find_model, known_model, space_options, unknown_space
from ..prices import TokenPrices
from ..tiers import Surcharge, surcharge, tiers_in
from ..token_limits import token_limit
from .completion import Completion
from .endpoint import Endpoint
from .estimates import Load, load_of
from .providers.provider_table import (
    OPENROUTER,
    Provider,
    WireFormat,
    find_provider,
    own_fields_of,
)
from .request_fields import (
    bounds_in_request,
    check_fields,
    merged_fields,
    refuse_other_bounds,
)
from .schema import SchemaRoot, response_format, unwrapped
from .sent_images import (
    ChatRequest,
    ImageRule,
    ImageToSend,
    SentImage,
    as_they_are,
    for_provider,
    images_to_send,
    marked_urls,
)
from .spending import MostTokens
from .thinking_fields import refuse_other_thinking

# Spaces of pixels as sent, which assume the providers' limit of 4096.
_SENT_WITHIN_LIMIT = ("pixels", "openai_high", "claude_standard", "claude_highres")


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A model that is asked over HTTP, and how."""

    name: str  # of the results
    served: str  # the service's name for it
    row: ModelRow | None
    space: Callable[[DatasetVariant], Space]  # of its replies
    fields: Mapping[str, Any]  # of every request, besides model, messages and max_tokens
    provider: str = ""  # asked in its protocol; empty: servers
    limit: int | None = None  # of a reply's tokens; None: the variant's
    schema_root: SchemaRoot | None = SchemaRoot.LIST  # supported schemas; None: none
    prices: TokenPrices | None = None  # if the service does not state costs
    by_variant: Callable[[DatasetVariant], Mapping[str, Any]] | None = None  # further fields
    removed: frozenset[str] = frozenset()  # fields that are not sent, though FindIt would
    thoughts: ThoughtRule = USUAL_THOUGHTS  # how its thoughts are marked
    # What the keys of its calls have of it
    named: Mapping[str, str] = field(default_factory=dict)
    started: str = ""  # the program that FindIt started to serve it; empty: others' servers
    # Its space by variant if the user stated none; it raises SpaceError if that is not known
    known: Callable[[DatasetVariant], Space] | None = None

    @property
    def facts(self) -> ApiFacts:
        return _facts_of(self.row)

    def max_tokens(self, variant: DatasetVariant) -> int:
        return self.limit or variant.max_new_tokens

    def image_rule(self, space: Space) -> ImageRule:
        """Return how images are sent; SpaceError for a space of files that are sent shrunk."""
        if self.provider and SPACE_KINDS[space.kind].of_file:
            raise SpaceError(
                f"{space.kind}: images are shrunk to 4096 pixels a side before they are sent to "
                f"{self.provider}, so replies are in pixels of the sent image: type --space pixels"
            )
        is_limited = self.provider or space.kind in _SENT_WITHIN_LIMIT
        return for_provider if is_limited else as_they_are

    def images_to_send(self, message: Message, variant: DatasetVariant) -> list[ImageToSend]:
        space = self.space(variant)
        return images_to_send(message, space, self.image_rule(space))

    def request(
        self,
        message: Message,
        variant: DatasetVariant,
        images: Sequence[SentImage] | None = None,
        *,
        shared: bool = False,
    ) -> ChatRequest:
        """Build the request of a message whose image parts are file paths.

        Args:
            images: already encoded: the body has a mark for each (None: it has their URLs).
            shared: whether other calls have the same images; else caching would only cost more.

        Raises:
            OSError: an image cannot be read.
            ValueError: the service does not support the variant's schema.
        """
        if images is None:
            images = [image.encoded() for image in self.images_to_send(message, variant)]
            urls = [image.url for image in images]
        else:
            urls = marked_urls(images)
        before, asked = split_system(message)
        turns: list[dict[str, Any]] = []
        if before is not None:
            turns.append({"role": "system", "content": before})
        turns.append({"role": "user", "content": self._content(asked, urls, shared)})
        body = self._body(turns, self._all_fields(variant), variant)
        return ChatRequest(body, tuple(images))

    def _body(
        self, turns: Sequence[Mapping[str, Any]], fields: Mapping[str, Any], variant: DatasetVariant
    ) -> dict[str, Any]:
        begun = {"model": self.served, "messages": turns, "max_tokens": self.max_tokens(variant)}
        return {**begun, **fields}

    def _all_fields(self, variant: DatasetVariant) -> dict[str, Any]:
        return merged_fields(self.fields, self._fields_for(variant))

    def _as_sent(self, variant: DatasetVariant) -> dict[str, Any]:
        """Return the fields of its requests; what a user gave and FindIt completes, as it is sent.

        Raises ValueError where they contradict, or bounds of images those of the space.
        """
        fields = self._all_fields(variant)
        local = self.row.local if self.row is not None else None
        refuse_other_bounds(fields, self.space(variant), local.pixels_counted if local else 1)
        wire = find_provider(self.provider).chat if self.provider else None
        if not isinstance(wire, WireFormat):
            return fields
        sent = wire.request(self._body([], fields, variant))
        return {name: sent.get(name, value) for name, value in fields.items()}

    def _content(self, message: Message, urls: Sequence[str], shared: bool) -> list[dict[str, Any]]:
        facts = self.facts
        remaining_urls = iter(urls)
        content: list[dict[str, Any]] = []
        last_image: dict[str, Any] = {}
        for part in message:
            if part.kind is PartKind.TEXT:
                content.append({"type": "text", "text": part.value})
                continue
            shown = {"url": next(remaining_urls)}
            if facts.image_detail:
                shown["detail"] = facts.image_detail
            last_image = {"type": "image_url", "image_url": shown}
            content.append(last_image)
        if shared and facts.cache_control is not None:  # the cacheable beginning ends there
            last_image["cache_control"] = dict(facts.cache_control)
        return content

    def _fields_for(self, variant: DatasetVariant) -> dict[str, Any]:
        fields = dict(self.by_variant(variant)) if self.by_variant else {}
        if variant.reply_schema is None:
            return fields
        if self.schema_root is None:
            raise ValueError(
                f"{variant.name}: the provider cannot constrain replies to a format: ask it "
                "without _constrained"
            )
        fields["response_format"] = response_format(variant.reply_schema, self.schema_root)
        relays = self.provider and find_provider(self.provider).relays
        if relays and "provider" not in self.removed:
            # Route only to makers that support schemas.
            fields["provider"] = {"require_parameters": True}
        return fields

    def at_most(
        self, message: Message, variant: DatasetVariant, asked: ChatRequest, *, shared: bool
    ) -> float | None:
        """Estimate the greatest cost of a call in US dollars (None: no price is known).

        It is that of the tier in the request; a reply may state a dearer one.
        """
        if self.prices is None:
            return None
        load = self._load(message, variant, asked)
        # A marked beginning may be charged as written to the cache with every request.
        beginning = load.tokens_beginning if shared else 0
        most = self.prices.most(load.tokens_in, beginning, load.tokens_out_at_most)
        return most * max(self.asked_surcharge(self.prices).multiple, 1.0)

    def most_tokens(
        self, message: Message, variant: DatasetVariant, asked: ChatRequest
    ) -> MostTokens:
        """Estimate the most tokens of a call, with the multiple of the tier in the request."""
        load = self._load(message, variant, asked)
        multiple = self.asked_surcharge(self.prices).multiple if self.prices else 1.0
        return MostTokens(load.tokens_in, load.tokens_out_at_most, max(multiple, 1.0))

    def _load(self, message: Message, variant: DatasetVariant, asked: ChatRequest) -> Load:
        return load_of(asked, message, self.space(variant), self.max_tokens(variant))

    def asked_surcharge(self, prices: TokenPrices) -> Surcharge:
        """Return what the tier, speed and region that every request asks for cost."""
        return surcharge(tiers_in(self.fields), prices)

    def check_limit(self, servers: Sequence[Endpoint]) -> None:
        """Refuse a spending limit, with a ValueError, if costs are neither known nor stated.

        Args:
            servers: that are asked; none for a batch, whose cost must be known beforehand.
        """
        if self.prices is not None or (servers and all(map(_may_state_costs, servers))):
            return
        raise ValueError(
            f"--max-usd: what calls to {self.name} cost is not known, so no limit can be enforced. "
            "Type --prices IN,OUT in US dollars a million tokens sent and answered (in a file, "
            "`prices: [IN, OUT]`)"
        )

    def describe(self, variant: DatasetVariant, servers: Sequence[Endpoint]) -> Described:
        settings = {
            **self._as_sent(variant),
            "max_new_tokens": self.max_tokens(variant),
            "images": self.image_rule(self.space(variant)).__name__,
        }
        if self.facts.image_detail is not None:
            settings["image_detail"] = self.facts.image_detail
        direct = self.provider and not find_provider(self.provider).relays
        answering = Answering(
            kind=f"{PROVIDER_KIND}{self.provider}" if direct else CHAT_KIND,
            row=self.row.name if self.row else None,
            checkpoint=self.served,
            endpoint=", ".join(sorted({server.name for server in servers})) or None,
            settings=settings,
        )
        spaces = self._recorded_space(variant), self._known_space(variant)
        return Described(answering, *spaces, self.named)

    def _known_space(self, variant: DatasetVariant) -> dict[str, Any] | None:
        """Return what its row says of its space, as far as the server's bounds are known."""
        if self.known is None or self.row is None or not variant.in_boxes:
            return None
        with suppress(SpaceError):
            return self.known(variant).as_dict()
        with suppress(SpaceError):  # Only the server knows its bounds
            kind = self.row.space(variant).kind
            return None if kind == self.space(variant).kind else {"kind": kind}
        return None

    def _recorded_space(self, variant: DatasetVariant) -> dict[str, Any] | None:
        space = self.space(variant)
        return space.as_dict() if variant.in_boxes else None

    def read(self, completion: Completion, variant: DatasetVariant) -> Completion:
        """Separate thought and text, and unwrap a reply to a schema."""
        parsed = completion.truncated_in_thought() if self.thoughts.opened else completion
        if variant.reply_schema is None:
            return parsed
        return replace(parsed, text=unwrapped(parsed.text, self.schema_root))

    def recorded(
        self,
        variant: DatasetVariant,
        images: Sequence[SentImage],
        record: ReplyRecord,
        call: Mapping[str, Any],
    ) -> ReplyRecord:
        """Complete the record of an answer."""
        model = dict(record.model)
        if self.row is not None:
            model["row"] = self.row.name
        return replace(
            record,
            space=self._recorded_space(variant),
            images=tuple(image.as_record() for image in images),
            model=model,
            call=call,
        )


def once_a_variant(rule: Callable[[DatasetVariant], Space]) -> Callable[[DatasetVariant], Space]:
    """Return a rule that is applied once to each variant: calls ask for it again and again."""
    known: dict[DatasetVariant, Space] = {}

    def space(variant: DatasetVariant) -> Space:
        result = known.get(variant)
        if result is None:
            result = known[variant] = rule(variant)
        return result

    return space


def _facts_of(row: ModelRow | None) -> ApiFacts:
    return row.api if row and row.api else NO_API


def _may_state_costs(server: Endpoint) -> bool:
    """Return whether replies may state costs: those of gateways do, which only the first tells."""
    return not server.provider or find_provider(server.provider).states_costs


def chat_model(
    name: str,
    provider: str | None = None,
    served: str | None = None,
    space: str | Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
    max_tokens: int | None = None,
    like: str | None = None,
) -> ChatModel:
    """Return a model behind OpenAI-compatible servers, or at a provider.

    It is asked as its row's API facts say, as in the paper's runs through OpenRouter, else
    greedily.

    Args:
        name: of the results; its row of the model table has the space.
        provider: a row of :data:`.providers.provider_table.PROVIDERS` (None: servers).
        served: the service's name for the model (None: the model table's, else ``name``).
        space: the coordinate space, if the model table does not have it.
        fields: further fields of every request; None removes a field. A temperature and a reasoning
            of theirs replace the row's; all else is merged with FindIt's.
        max_tokens: limit of a reply (None: the row's, else the variant's).
        like: known model that shares its prompts and coordinates (None: by ``name``).

    Raises:
        ValueError: the provider is unknown, or its name for the model is; a field is FindIt's.
        SpaceError: the space is unknown, or the model that ``like`` names.
    """
    given = fields or {}
    check_fields(given, own_fields_of(provider))
    known = known_model(like, "like") if like else find_model(name)
    facts = _facts_of(known)
    root: SchemaRoot | None = SchemaRoot.LIST if facts.schema_of_list else SchemaRoot.OBJECT
    bounds_known = provider is not None and known is not None and known.api is not None
    stated = space_or_variable(space, known, bounds_known=bounds_known)
    its_space = partial(server_space, like or name, served=served or name)
    rule = its_space(stated)
    usual = known.space if bounds_known and known is not None else its_space(None)
    usual_fields: dict[str, Any] = {"temperature": facts.temperature}
    if provider is None:
        if name.lower().endswith("-nothink") and given.get(TEMPLATE_FIELD, {}) is not None:
            given = merged_fields(given, {TEMPLATE_FIELD: {"enable_thinking": False}})
        service_name = served or name
    else:
        if facts.temperature is None and given.get("temperature") is not None:
            raise ValueError(f"temperature: {name} accepts none at {provider}. Leave it out")
        provider_row = find_provider(provider)
        service_name = provider_name(provider, name, served)
        usual_fields |= _reasoning_fields(provider_row, facts)
        if not provider_row.relays:
            root = provider_row.schema_root
        if not stated:
            rule = usual
    sent = {key: it for key, it in {**usual_fields, **given}.items() if it is not None}
    refuse_other_thinking(sent, name, known)
    return ChatModel(
        name=name,
        served=service_name,
        named=_named(provider, served, service_name),
        row=known,
        thoughts=known.thoughts if known is not None else USUAL_THOUGHTS,
        space=once_a_variant(rule),
        known=usual,
        fields=sent,
        removed=frozenset(key for key, it in given.items() if it is None),
        provider=provider or "",
        limit=max_tokens or facts.max_tokens,
        schema_root=root,
        prices=facts.prices,
    )


def _reasoning_fields(provider: Provider, facts: ApiFacts) -> dict[str, Any]:
    """Return how a provider is told a model's reasoning; None for its default."""
    if provider.relays:
        return {"usage": {"include": True}, "reasoning": facts.reasoning}
    return {"reasoning_effort": (facts.reasoning or {}).get("effort")}


def _named(provider: str | None, served: str | None, name: str) -> Mapping[str, str]:
    """Return what the key of a call has of a model that a service knows by a name.

    Another server program may answer otherwise with the same weights. Through OpenRouter, keys of a
    model without ``served`` have had nothing of it, so they go on so.
    """
    if provider is None:
        return {"served": name}
    if provider == OPENROUTER and not served:
        return {}
    return {"served": name, "provider": provider}


def provider_name(provider: str, name: str, served: str | None) -> str:
    """Return a provider's name for a model: ``served``, else its row's, else ValueError."""
    if served:
        return served
    if known := _facts_of(find_model(name)).name_at(provider):
        return known
    others = [row.entry for row in MODELS.values() if _facts_of(row).name_at(provider)]
    raise ValueError(
        f"the name of {name} at {provider} is not known; models with a name there are "
        f"{', '.join(others) or 'none'}. Type --model {name}=NAME_AT_{provider.upper()} (in a "
        "sweep's file, `served`)"
    )


def server_name(model: str) -> tuple[str, str]:
    """Split ``NAME``, ``NAME=SERVED`` or ``a/b/NAME`` into result name and server's name."""
    name, given, served = model.partition("=")
    if not given:
        name = model.rstrip("/").rsplit("/", 1)[-1]
        served = model
    if not name or not served or "/" in name:  # results are files of this name
        raise ValueError(f"--model {model}: with --base-url it should be NAME or NAME=SERVED")
    return name, served


def server_space(
    model: str, stated: str | Mapping[str, Any] | None, served: str | None = None
) -> Callable[[DatasetVariant], Space]:
    """Return the space of a served model by variant: the user's, else its row's.

    It raises SpaceError for boxes if neither is known, or if only the server knows its bounds.
    ``served`` is the server's name for the model, for that message.
    """
    if stated:
        space = stated_space(stated)
        return lambda variant: space
    row = find_model(model)

    def rule(variant: DatasetVariant) -> Space:
        if not variant.in_boxes:
            return SPACE_WITHOUT_BOXES
        if row is None:
            raise unknown_space(model, served)
        space = row.space(variant)
        if space.kind == "smart_resize":
            raise unknown_bounds(model, space, _started_with_bounds(row, variant))
        return space

    return rule


def unknown_bounds(model: str, space: Space, known_if: str) -> SpaceError:
    """Return the error for a space within bounds that a server has; ``known_if``: what helps."""
    factor = f', "factor": {space.factor}' if space.factor else ""
    value = f'{{"kind": "smart_resize", "min_pixels": …, "max_pixels": …{factor}}}'
    return SpaceError(
        f"{model} answers in pixels after its processor's resize, whose bounds are the server's. "
        f"State them: {space_options(value)}{known_if}"
    )


def _started_with_bounds(row: ModelRow, variant: DatasetVariant) -> str:
    """Return how a server of a model gets the bounds of the paper's runs; "" if there are none."""
    if row.local is None:
        return ""
    bounds = bounds_in_request(row.local.bounds(variant), row.local.pixels_counted)
    if not bounds:
        return ""
    words = json.dumps(bounds[BOUNDS_FIELD])
    return f"\nA vllm server has the paper's if it is started with --mm-processor-kwargs '{words}'"


def extra_fields(text: str | None, provider: str | None = None) -> dict[str, Any]:
    """Parse ``--extra-body``; ValueError unless it is a JSON object without fields of FindIt's.

    A provider's row says which fields only it has.
    """
    try:
        fields = parse_json(text or "{}")
    except ValueError as error:
        raise ValueError(f"--extra-body {text}: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"--extra-body {text}: should be a JSON object")
    try:
        check_fields(fields, own_fields_of(provider))
        token_limit(fields)
    except ValueError as error:
        raise ValueError(f"--extra-body: {error}") from None
    if fields.get("temperature") is not None:  # some models take none
        raise ValueError("--extra-body: temperature has a flag of its own. Type --temperature T")
    secret = secret_field(fields)
    if secret is not None:
        raise ValueError(
            f"--extra-body: {secret} looks like a credential, and these fields are recorded with "
            "the run: use --key, or --header 'NAME: VALUE', of which a hash is recorded"
        )
    return fields
