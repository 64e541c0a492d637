"""One folder a benchmark, found by the prefix of a name.

A folder below this one is a benchmark when its package has a ``PREFIX`` and its module
``benchmark`` an instance ``BENCHMARK`` (:class:`..core.benchmark.Benchmark`).  Nothing else lists
them.  Of two prefixes that fit a name the longer one counts.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from ..core.benchmark import Baseline, Benchmark
from ..core.conformance import Protocols, Try
from ..core.question import AnyTask, Question, QuestionError
from ..core.spelling import nearest


@cache
def prefixes() -> Mapping[str, str]:
    """The prefix of every benchmark and its folder; the longest first."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg:
            prefix = getattr(import_module(f"{__name__}.{module.name}"), "PREFIX", None)
            if prefix is not None:
                found[str(prefix)] = module.name
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


@cache
def _of_folder(folder: str) -> Benchmark:
    made: Benchmark = import_module(f"{__name__}.{folder}.benchmark").BENCHMARK
    return made


def benchmarks() -> list[Benchmark]:
    """Every benchmark."""
    return [_of_folder(folder) for folder in sorted(prefixes().values())]


@cache
def protocols() -> Protocols:
    """The protocols that have case files, by name: those of every folder's ``conformance``."""
    found: dict[str, Try] = {}
    for module in pkgutil.iter_modules(__path__):
        folder = f"{__name__}.{module.name}"
        if module.ispkg and find_spec(f"{folder}.conformance") is not None:
            found |= import_module(f"{folder}.conformance").PROTOCOLS
    return dict(sorted(found.items()))


def benchmark_of(name: str) -> Benchmark:
    """The benchmark that a name belongs to.

    Raises:
        QuestionError: it belongs to none.
    """
    return _of_folder(prefixes()[prefix_of(name)])


def prefix_of(name: str) -> str:
    """The prefix by which the benchmark of a name is found.

    Raises:
        QuestionError: it belongs to none.
    """
    for prefix in prefixes():
        if name.startswith(prefix):
            return prefix
    known = begins()
    raise QuestionError(f"{name}: a name begins with {' or '.join(known)}{nearest(name, known)}")


def begins() -> list[str]:
    """How names begin, for messages: a prefix that only goes on from another is not said."""
    known = sorted(prefixes())
    return [one for one in known if not any(one != p and one.startswith(p) for p in known)]


def begins_with_prefix(text: str) -> bool:
    """Whether a text begins as the names of a benchmark do; it need not be one of them."""
    return text.startswith(tuple(prefixes()))


def is_meant(name: str) -> bool:
    """The same of a name that may be typed wrong: ``FindIt-Pascal`` is meant to be ours."""
    return name.startswith(tuple(prefix.rstrip("_") for prefix in prefixes()))


def baselines() -> Mapping[str, Baseline]:
    """The models without weights of every benchmark, by their names."""
    return {name: one for each in benchmarks() for name, one in each.baselines.items()}


@cache
def host_classes() -> frozenset[str]:
    """The names of all classes that our datasets have under VLMEvalKit."""
    return frozenset(
        benchmark.host_class(benchmark.parse(name))
        for benchmark in benchmarks()
        for name in benchmark.listed()
    )


def any_question() -> Question:
    """Some question, for what is the same of all."""
    benchmark = benchmarks()[0]
    return benchmark.parse(benchmark.listed()[0])


def parse(name: str) -> Question:
    """The question that a name stands for.

    Raises:
        QuestionError: it is none; the message says what is nearest.
    """
    return benchmark_of(name).parse(name)


def is_question(name: object) -> bool:
    """Whether a name asks something: decided by parsing it."""
    if not isinstance(name, str):
        return False
    try:
        parse(name)
    except QuestionError:
        return False
    return True


def load(name: str) -> AnyTask:
    """The question of a name with the rows of its table; see :meth:`.Benchmark.load`."""
    return benchmark_of(name).load(name)


def name_after_model(stem: str) -> tuple[str, str] | None:
    """(model, name of a question) in ``<model>_<name>``; None where it does not end in a name."""
    for prefix in prefixes():
        at = stem.rfind(f"_{prefix}")
        if at > 0 and is_question(stem[at + 1 :]):
            return stem[:at], stem[at + 1 :]
    return None
