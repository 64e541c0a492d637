"""One folder a benchmark, found by the prefix of a name.

A package is a benchmark when it has a ``PREFIX``, and its module ``benchmark`` (or the package
itself) an instance ``BENCHMARK`` (:class:`..core.benchmark.Benchmark`).  Ours are the folders below
this one; nothing else lists them.  Others' are plug-ins, found in the same way.  Of two prefixes of
ours that fit a name the longer one counts; a plug-in's fits no name of another's.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ..core.benchmark import Baseline, Benchmark
from ..core.conformance import Protocols, Try
from ..core.plugin_table import Table
from ..core.plugins import Group
from ..core.question import AnyTask, Question, QuestionError
from ..core.spelling import nearest


@cache
def prefixes() -> Table[ModuleType]:
    """The prefix of every benchmark and its package; of ours the longest first."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg:
            package = import_module(f"{__name__}.{module.name}")
            if hasattr(package, "PREFIX"):
                found[str(package.PREFIX)] = package
    ours = dict(sorted(found.items(), key=lambda item: -len(item[0])))
    return Table(Group.BENCHMARKS, ours, ModuleType, _problem, name=lambda one: one.PREFIX)


def _problem(package: ModuleType) -> str | None:
    """Why a plug-in's benchmark cannot be used."""
    prefix, known = package.PREFIX, prefixes()
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*_", prefix):
        return f"the prefix {prefix!r} should be letters, digits or '-', and '_' at its end"
    for other in known:
        if prefix.startswith(other) or other.startswith(prefix):
            return f"names with {prefix} would be names with {other}"
    made = _made_of(package)
    if Benchmark not in type(made).__mro__:
        return f"BENCHMARK should not be {made!r:.60}"
    taken = {one: _made_of(each) for each in _packages() for one in _classes_of(each)}
    for name in made.listed():
        if not name.startswith(prefix):
            return f"its name {name} does not begin with {prefix}"
        if (host_class := made.host_class(made.parse(name))) in taken:
            return f"{host_class} is the class of {taken[host_class].name} under VLMEvalKit"
    for name in made.baselines:
        if name in baselines():
            return f"{name} is a baseline of another benchmark"
    return None


@cache
def _made_of(package: ModuleType) -> Benchmark:
    inner = f"{package.__name__}.benchmark"
    where = import_module(inner) if hasattr(package, "__path__") and find_spec(inner) else package
    made: Benchmark = where.BENCHMARK
    return made


def benchmarks() -> list[Benchmark]:
    """Every benchmark: ours, then those of plug-ins."""
    return [_made_of(package) for package in _packages()]


def _packages() -> list[ModuleType]:
    return [*_ours(), *(one.row for one in prefixes().added().values())]


def _ours() -> list[ModuleType]:
    return sorted(prefixes().ours.values(), key=lambda package: package.__name__)


@cache
def protocols() -> Protocols:
    """The protocols that have case files, by name: those of every folder's ``conformance``."""
    found: dict[str, Try] = {}
    for module in pkgutil.iter_modules(__path__):
        folder = f"{__name__}.{module.name}"
        if module.ispkg and find_spec(f"{folder}.conformance") is not None:
            found |= import_module(f"{folder}.conformance").PROTOCOLS
    return dict(sorted(found.items()))


def benchmark_of(asked: str | Question) -> Benchmark:
    """The benchmark that a name or a question belongs to, with the figures of this question.

    A name that is no question has the figures of most.

    Raises:
        QuestionError: it belongs to none.
    """
    if not isinstance(asked, str):
        return _by_prefix(asked.name).judging(asked)
    found = _by_prefix(asked)
    if not found.others:
        return found
    try:
        return found.judging(found.parse(asked))
    except QuestionError:
        return found


def _by_prefix(name: str) -> Benchmark:
    return _made_of(prefixes()[prefix_of(name)])


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
    return any(text.startswith(prefix) for prefix in prefixes())


def is_meant(name: str) -> bool:
    """The same of a name that may be typed wrong: ``FindIt-Pascal`` is meant to be ours."""
    return any(name.startswith(prefix.rstrip("_")) for prefix in prefixes())


def baselines() -> Mapping[str, Baseline]:
    """The models without weights of every benchmark, by their names."""
    return {name: one for each in benchmarks() for name, one in each.baselines.items()}


def baseline_named(name: str) -> Baseline:
    """The baseline of a name.

    Raises:
        ValueError: there is none.
    """
    known = baselines()
    if name not in known:
        raise ValueError(f"no baseline {name!r}{nearest(name, known)}")
    return known[name]


def baseline_for(name: str, question: Question) -> Baseline:
    """The baseline of a name, which can answer the question.

    Raises:
        ValueError: there is none, or it cannot.
    """
    made = baseline_named(name)
    benchmark = benchmark_of(question)
    if benchmark.baselines.get(name) is not made:
        others = ", ".join(benchmark.baselines) or "none"
        raise ValueError(
            f"{name} cannot answer {question.name}; baselines of {benchmark.name}: {others}"
        )
    if made.tables is not None and question.table not in made.tables:
        tables = ", ".join(sorted(made.tables))
        raise ValueError(f"{name} cannot answer {question.name}; it answers {tables}")
    return made


def is_ours_entry(name: str, entry: Mapping[str, Any]) -> bool:
    """Whether an entry of a ``--config`` file's ``data`` is ours: by its class or its name."""
    by_class = any(str(entry.get("class")) in _classes_of(package) for package in _packages())
    return by_class or is_meant(str(entry.get("dataset", name)))


@cache
def _classes_of(package: ModuleType) -> frozenset[str]:
    made = _made_of(package)
    return frozenset(made.host_class(made.parse(name)) for name in made.listed())


def any_question() -> Question:
    """Some question, for what is the same of all."""
    benchmark = _made_of(_ours()[0])
    return benchmark.parse(benchmark.listed()[0])


def parse(name: str) -> Question:
    """The question that a name stands for.

    Raises:
        QuestionError: it is none; the message says what is nearest.
    """
    return _by_prefix(name).parse(name)


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
    return _by_prefix(name).load(name)


def name_after_model(stem: str) -> tuple[str, str] | None:
    """(model, name of a question) in ``<model>_<name>``; None where it does not end in a name."""
    for prefix in prefixes():
        at = stem.rfind(f"_{prefix}")
        if at > 0 and is_question(stem[at + 1 :]):
            return stem[:at], stem[at + 1 :]
    return None
