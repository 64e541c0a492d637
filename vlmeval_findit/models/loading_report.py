"""Whether all weights of a model were in its checkpoint: a loader's report in, a verdict out.

Loaders draw weights that a checkpoint lacks at random, and go on.  Every loader of the package asks
:func:`checked_loading`; nothing here needs torch.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from ..core import agreeing, first_few
from .weight_files import lacking_shards, says_tied, why_untied

log = logging.getLogger(__name__)

# Names of tensors that no answer depends on: buffers that the code computes, heads that are only
# trained with, and what a loader keeps for itself.
WITHOUT_EFFECT = re.compile(
    r"(^|\.)(rotary_emb\.inv_freq|position_ids|num_batches_tracked|masked_bias"
    r"|relative_position_index|_extra_state)$"
    r"|(^|\.)mtp\."  # predicts the token after the next
)
# The same head as a further block of the language model: these tensors are in no other
_NEXT_TOKEN = re.compile(r"(.*\blayers\.\d+\.)(?:eh_proj|enorm|hnorm|shared_head)\b")


class Shapes(NamedTuple):
    """A weight whose shape in the files is not that of the model."""

    name: str
    stored: tuple[int, ...]
    expected: tuple[int, ...]

    def said(self, settings: str) -> str:
        return f"{self.name}: {self.stored} in the files, {self.expected} by {settings}"


@dataclass(frozen=True, slots=True)
class LoadingReport:
    """What a loader says of the weights of a checkpoint; tied weights are not missing."""

    expected: frozenset[str] = frozenset()  # All names of the model (empty: not known)
    missing: tuple[str, ...] = ()
    superfluous: tuple[str, ...] = ()  # As the files name them
    mismatched: tuple[Shapes, ...] = ()
    zero: tuple[str, ...] = ()  # Matrices and scales of which every number is zero
    is_all_zero: bool = False  # No matrix is another
    of_adapter: bool = False
    modules: frozenset[str] = frozenset()  # Of the base, as an adapter names them
    is_whole: bool = True  # False: a name may stand for several blocks, so they are not counted
    # Weights that the settings tie to others and that are stored unlike them, with those
    untied: tuple[tuple[str, str], ...] = ()

    @property
    def lacks_all(self) -> bool:
        return len(self.missing) == len(self.expected) > 0


class LoadingVerdict(NamedTuple):
    """Whether a model may answer."""

    refusal: str | None  # What is wrong and what to type (None: all weights were there)
    ignored: tuple[str, ...] = ()  # Superfluous weights beside the model


class SavedForm(NamedTuple):
    """What names of tensors say of how they were saved."""

    names: re.Pattern[str]  # Matches what should not be in a name
    what: str
    mend: str
    attribute: str = ""  # Where the wrapper has what it holds


_MERGE = "Merge it, and save the whole: model.merge_and_unload().save_pretrained(FOLDER)"
_LORA = SavedForm(
    re.compile(r"(?:^|\.)(?:base_layer|lora_(?:[AB]|embedding_[AB]|magnitude_vector))(?:\.|$)"),
    "this is a LoRA that was not merged into its base",
    _MERGE,
)
WRAPPERS = (
    SavedForm(re.compile(r"base_model\.model\."), "peft's wrapper was saved", _MERGE),
    SavedForm(
        re.compile(r"(?:^|(?<=\.))_orig_mod\."),
        "the wrapper of torch.compile was saved",
        "Save what is in it: model._orig_mod.save_pretrained(FOLDER)",
        "_orig_mod",
    ),
    SavedForm(
        re.compile(r"(?:^|(?<=\.))_(?:fsdp_wrapped|checkpoint_wrapped|forward)_module\."),
        "the wrapper of FSDP or of activation checkpointing was saved",
        "Save what is in it: accelerator.unwrap_model(model).save_pretrained(FOLDER, "
        "state_dict=accelerator.get_state_dict(model))",
    ),
    SavedForm(
        re.compile(r"(?:^|(?<=\.))module\."),
        "the wrapper of DistributedDataParallel or DeepSpeed was saved",
        "Save what is in it: model.module.save_pretrained(FOLDER)",
        "module",
    ),
)
_QUANTIZED = SavedForm(
    re.compile(r"\.(?:qweight|qzeros|scales|g_idx|weight_scale(?:_inv)?|absmax|quant_map)\b"),
    "its weights are quantized, and its config.json does not say so",
    "Copy the config.json that was saved with them",
)
CAUSES = (_LORA, *WRAPPERS, _QUANTIZED)
OF_ADAPTERS = WRAPPERS[1:]  # All adapters have peft's


def report_of(info: Mapping[str, Any], model: Any) -> LoadingReport:
    """Return transformers' ``output_loading_info`` for a model as a report."""
    expected = model.state_dict()
    matrices = [name for name, values in expected.items() if _is_matrix(name, values)]
    zero = tuple(name for name in matrices if is_zero(expected[name]))
    norms = tuple(filter(lambda name: is_zero(expected[name]), _scales(model)))
    shapes = sorted(info.get("mismatched_keys", ()))
    return LoadingReport(
        frozenset(expected),
        tuple(sorted(info.get("missing_keys", ()))),
        tuple(sorted(info.get("unexpected_keys", ()))),
        tuple(Shapes(name, tuple(stored), tuple(own)) for name, stored, own in shapes),
        zero + norms,
        is_all_zero=len(zero) == len(matrices) > 0,
        untied=_untied(model),
    )


def _untied(model: Any) -> tuple[tuple[str, str], ...]:
    """Return the pairs of weights that transformers was to tie, and found stored unlike."""
    to_tie = model.get_expanded_tied_weights_keys(all_submodels=True)
    tied = model.all_tied_weights_keys
    return tuple(sorted(pair for pair in to_tie.items() if pair[0] not in tied))


def adapters_report(
    lacking: Iterable[str],
    superfluous: Iterable[str],
    expected: Mapping[str, tuple[int, ...]],
    stored: Mapping[str, tuple[int, ...]],
    modules: frozenset[str],
) -> LoadingReport:
    """Return peft's report, which names weights of another shape as missing.

    Args:
        lacking: names that it did not load.
        expected: shapes of all weights of the adapter, by the names in its file.
        stored: shapes in its file (empty: not known).
        modules: of its base, as its file names them.
    """
    lacking = sorted(lacking)
    shapes = [
        Shapes(name, stored[name], expected[name])
        for name in lacking
        if name in stored and name in expected
    ]
    others = {shape.name for shape in shapes}
    return LoadingReport(
        frozenset(expected),
        tuple(name for name in lacking if name not in others),
        tuple(superfluous),
        tuple(shapes),
        of_adapter=True,
        modules=modules,
    )


def _scales(model: Any) -> list[str]:
    """Return the weights of layer norms: what they multiply is lost if they are zero.

    Other norms may add one to them.
    """
    norms = [name for name, each in model.named_modules() if type(each).__name__ == "LayerNorm"]
    names = {f"{name}.weight" for name in norms}
    return sorted(names & model.state_dict().keys())


def _is_matrix(name: str, values: Any) -> bool:
    """Return whether a tensor is a matrix of weights; gates may be zero at the start."""
    return name.endswith(("weight", "_proj")) and values.ndim >= 2


_PLAIN = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64")


def is_zero(values: Any) -> bool:
    """Return whether every number of a tensor is zero; not of one elsewhere, or quantized."""
    if values.is_meta or str(values.dtype) not in _PLAIN or not values.numel():
        return False
    return not values[:1].any() and not values.any()  # The first row tells nearly always


def report_of_log(text: str) -> LoadingReport:
    """Return what a program that loads with transformers has written of its loading.

    >>> report_of_log("model.norm.weight      | MISSING | \\n").missing
    ('model.norm.weight',)
    """
    rows = _ROW.findall(text)
    named = [name for listed in _LISTED.findall(text) for name in re.findall(r"'([^']+)'", listed)]
    return LoadingReport(
        missing=(*(name for name, status in rows if status == "MISSING"), *named),
        superfluous=tuple(name for name, status in rows if status == "UNEXPECTED"),
        is_whole=False,
    )


# Its table, and before version 5 its sentence
_ROW = re.compile(r"^(\S.*?) *\| (MISSING|UNEXPECTED) *\|", re.MULTILINE)
_LISTED = re.compile(r"newly initialized: \[(.*?)\]")


def checked_loading(where: str, report: LoadingReport) -> str:
    """Return what a run records of a loading; log which weights of the files were ignored.

    Args:
        where: the checkpoint, as the user named it, or more words.

    Raises:
        ValueError: as :func:`judge_loading` refuses.
    """
    folder = Path(where)
    verdict = judge_loading(report, lacking_shards(folder), says_tied=says_tied(folder))
    if verdict.refusal is not None:
        raise ValueError(f"{where}: {verdict.refusal}")
    said = ["all there"]
    if verdict.ignored:
        names = first_few(verdict.ignored)
        log.warning("FindIt: %s: its model has no place for %s, which are ignored", where, names)
        said.append(f"ignored: {names}")
    if report.zero:
        names = first_few(report.zero)
        log.warning("FindIt: %s: every number is zero in %s, as if never written", where, names)
        said.append(f"zero: {names}")
    if report.untied:
        names = first_few([name for name, _ in report.untied])
        log.warning(
            "FindIt: %s: %s, which its architecture ties to another weight, is stored with other "
            "values and used as stored; other programs may drop it. To have it used everywhere: "
            '"tie_word_embeddings": false in config.json',
            where,
            names,
        )
        said.append(f"untied: {names}")
    return "; ".join(said)


def judge_loading(
    report: LoadingReport, lacking: str | None = None, *, says_tied: bool = False
) -> LoadingVerdict:
    """Judge a loading: all weights have to be there, in their shapes.

    Superfluous weights are ignored if they lie beside the model, as a value head does.  In one of
    its modules, or as a further block of it, they say that another model was saved.

    Args:
        lacking: what the files of the checkpoint say of shards that are not listed.
        says_tied: whether its settings tie the head to the embedding of tokens, and nowhere deny
            it; a class may do so that the settings do not mention.

    >>> judge_loading(LoadingReport(frozenset({"a.weight"}), superfluous=("v_head.weight",)))
    LoadingVerdict(refusal=None, ignored=('v_head.weight',))
    >>> half = LoadingReport(frozenset({"a.weight", "b.weight"}), missing=("b.weight",))
    >>> judge_loading(half).refusal
    '1 of its 2 weights is missing (b.weight): a part of the model was not saved, and random \
numbers would stand there. Save all of it: model.save_pretrained(FOLDER)'
    """
    if report.is_all_zero:
        return LoadingVerdict(
            f"every number in its {len(report.zero):,} matrices is zero "
            f"({first_few(report.zero)}): the files were made, and the weights never written to "
            "them. Copy them again, or save the model: model.save_pretrained(FOLDER)"
        )
    missing = _with_effect(report.missing)
    superfluous = _with_effect(report.superfluous)
    inside = _in_modules(superfluous, report)
    if not missing and not report.mismatched and not inside:
        why = why_untied(*report.untied[0]) if report.untied and says_tied else None
        return LoadingVerdict(why, tuple(superfluous))
    foreign = superfluous if missing or report.mismatched else inside
    settings = "adapter_config.json" if report.of_adapter else "config.json"
    shapes = [shape.said(settings) for shape in report.mismatched]
    of = f"of its {len(report.expected):,} weights" if report.expected else "of its weights"
    said = (
        _said(report, missing, of, "is missing", "are missing"),
        _said(report, shapes, of, "is of another shape", "are of another shape"),
        _said(report, foreign, "of the weights in its files", "fits nowhere", "fit nowhere"),
    )
    why, mend = _cause(report, missing, foreign, lacking)
    return LoadingVerdict(f"{' and '.join(filter(None, said))}: {why}. {mend}")


def refuse_wrapped(where: str, names: Collection[str]) -> None:
    """Raise ValueError if all names in the files of weights are those that a wrapper gives."""
    for cause in WRAPPERS if names else ():
        begins = cause.names.match(next(iter(names)))
        if begins and all(map(cause.names.match, names)):
            raise ValueError(
                f"{where}: the names of all {len(names):,} weights begin with {begins[0]}: "
                f"{cause.what}. {cause.mend}"
            )


def _said(report: LoadingReport, names: Sequence[str], of: str, one: str, many: str) -> str:
    """Say how many weights something holds for, and the first of them; empty for none."""
    if not names:
        return ""
    if not report.is_whole:
        return f"weights {many} ({first_few(names)})"
    return f"{len(names):,} {of} {agreeing(len(names), one, many)} ({first_few(names)})"


def _with_effect(names: Iterable[str]) -> list[str]:
    names = list(names)
    heads = {match[1] for match in map(_NEXT_TOKEN.match, names) if match}
    return [
        name
        for name in names
        if not WITHOUT_EFFECT.search(name) and not name.startswith(tuple(heads))
    ]


def _in_modules(names: Sequence[str], report: LoadingReport) -> list[str]:
    """Return the superfluous weights that are within modules of the model, or blocks beyond it."""
    modules = report.modules or {name.rpartition(".")[0] for name in report.expected} - {""}
    blocks = set(map(_without_numbers, report.expected))
    return [
        name
        for name in names
        if not modules.isdisjoint(_modules_above(name)) or _without_numbers(name) in blocks
    ]


def _modules_above(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _without_numbers(name: str) -> str:
    """Return a name in which all blocks of a list are the same."""
    return re.sub(r"(?<=\.)\d+(?=\.|$)", "*", name)


def _cause(
    report: LoadingReport, missing: Sequence[str], foreign: Sequence[str], lacking: str | None
) -> tuple[str, str]:
    """Return the likely cause, and what mends it."""
    for cause in OF_ADAPTERS if report.of_adapter else CAUSES:
        if any(map(cause.names.search, foreign)):
            return cause.what, _mend(cause, foreign)
    if lacking is not None:
        return lacking, "Copy all shards and their index, or save the model again"
    for applies, why, mend in _ADAPTERS_CAUSES if report.of_adapter else _OTHER_CAUSES:
        if applies(report, missing, foreign):
            same = _under_other_names(missing, foreign)
            return why.format(prefix=_prefix(report, foreign), same=f"{same:,}"), mend
    raise AssertionError("the last cause always applies")


def _mend(cause: SavedForm, foreign: Sequence[str]) -> str:
    """Return what to type, for the part of the model that a wrapper holds."""
    matches = filter(None, map(cause.names.search, foreign))
    parts = sorted({match.string[: match.start()].rstrip(".") for match in matches})
    if not cause.attribute or not all(parts):
        return cause.mend
    each = "" if len(parts) == 1 else f" for each of the {len(parts):,} parts"
    return (
        f"Take it off, and save the whole: model.{parts[0]} = model.{parts[0]}.{cause.attribute}"
        f"{each}, then model.save_pretrained(FOLDER)"
    )


def _under_other_names(missing: Sequence[str], foreign: Sequence[str]) -> int:
    """Return how many missing weights have the last two words of one that fits nowhere."""
    return (Counter(map(_ending, missing)) & Counter(map(_ending, foreign))).total()


def _ending(name: str) -> str:
    return ".".join(name.split(".")[-2:])


_COPY_CONFIG = "Copy the config.json that was saved with these weights"

_Applies = Callable[[LoadingReport, Sequence[str], Sequence[str]], bool]
_OTHER_CAUSES: tuple[tuple[_Applies, str, str], ...] = (
    (
        lambda report, missing, foreign: any(0 in shape.stored for shape in report.mismatched),
        "DeepSpeed ZeRO-3 saved placeholders, as each process had a part of the weights",
        "Run zero_to_fp32.py, which is beside its checkpoint, or save what is gathered: "
        "model.save_pretrained(FOLDER, state_dict=accelerator.get_state_dict(model))",
    ),
    (
        lambda report, missing, foreign: bool(report.mismatched),
        "config.json is that of another size or vocabulary",
        _COPY_CONFIG,
    ),
    (
        lambda report, missing, foreign: not missing,
        "config.json is that of another model",
        _COPY_CONFIG,
    ),
    (
        lambda report, missing, foreign: report.lacks_all and bool(_prefix(report, foreign)),
        "its names begin with {prefix}, as something that holds the model was saved",
        "Save the model alone: model.save_pretrained(FOLDER)",
    ),
    (
        lambda report, missing, foreign: 2 * _under_other_names(missing, foreign) > len(missing),
        "{same} of the missing are there under other names, as another release of transformers or "
        "another architecture has them",
        "Load it with the class and the release that saved it (transformers_version in "
        "config.json), and save it again with the release that is installed here",
    ),
    (
        lambda report, missing, foreign: report.lacks_all and bool(foreign),
        "config.json is that of another architecture",
        _COPY_CONFIG,
    ),
    (
        lambda report, missing, foreign: all(name.endswith("lm_head.weight") for name in missing),
        "config.json does not say that it is the embedding of its tokens",
        'Save it, or write "tie_word_embeddings": true in config.json if it was trained so',
    ),
    (
        lambda report, missing, foreign: True,
        "a part of the model was not saved, and random numbers would stand there",
        "Save all of it: model.save_pretrained(FOLDER)",
    ),
)


_NAME_BASE = (
    "Name its base in adapter_config.json (base_model_name_or_path), beside the settings that were "
    "saved with it"
)
_ADAPTERS_CAUSES: tuple[tuple[_Applies, str, str], ...] = (
    _OTHER_CAUSES[0],
    (
        lambda report, missing, foreign: report.lacks_all and not foreign,
        "nothing of the adapter was saved",
        "Save it again: model.save_pretrained(FOLDER)",
    ),
    (
        lambda report, missing, foreign: not foreign and not report.mismatched,
        "a part of the adapter was not saved, or its base has more layers than the one that it was "
        "trained over",
        "Save all of it: model.save_pretrained(FOLDER), or name its base in adapter_config.json "
        "(base_model_name_or_path)",
    ),
    (
        lambda report, missing, foreign: True,
        "it was trained over another base, or its settings are another's",
        _NAME_BASE,
    ),
)


def _prefix(report: LoadingReport, names: Sequence[str]) -> str:
    """Return what all of these names have before names of the model's; empty if nothing."""
    if len(names) < 2:
        return ""
    first = {name.partition(".")[0] for name in report.expected}
    modules = zip(*(name.split(".") for name in names), strict=False)
    shared = takewhile(lambda at_one_depth: len(set(at_one_depth)) == 1, modules)
    before = takewhile(lambda module: module not in first, (module for module, *_ in shared))
    return "".join(f"{module}." for module in before)
