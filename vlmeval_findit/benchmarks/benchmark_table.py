"""A folder a benchmark; the prefix of a dataset's name says which.

A package has a ``PREFIX`` and a ``BENCHMARK``, itself or in its module ``benchmark``.  Ours are the
subpackages, the longest prefix first; others are plug-ins.
"""

from __future__ import annotations

import pkgutil
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from ..core import (
    Group,
    PluginTable,
    alternatives,
    closest,
    dataset_names,
    not_there,
    quoted_value,
    suggestion,
)
from ..protocol import AnyDataset, Baseline, Benchmark, DatasetNameError, DatasetVariant


@cache
def prefixes() -> PluginTable[ModuleType]:
    """Map every prefix to its package, our longest first."""
    modules = (
        module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.ispkg
    )
    packages = [import_module(f"{__package__}.{name}") for name in modules]
    packages.sort(key=lambda package: len(package.PREFIX), reverse=True)
    builtin = {package.PREFIX: package for package in packages}
    return PluginTable(
        Group.BENCHMARKS, builtin, ModuleType, _problem, lambda package: package.PREFIX
    )


def _problem(package: ModuleType) -> str | None:
    prefix = package.PREFIX
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*_", prefix):
        return f"the prefix {prefix!r} should be letters, digits or '-', and '_' at its end"
    for other in prefixes():
        if prefix.startswith(other) or other.startswith(prefix):
            return f"names with {prefix} would be names with {other}"
    result = _benchmark_in(package)
    if Benchmark not in type(result).__mro__:
        return f"BENCHMARK should not be {quoted_value(result)}"
    for other_package in _packages():
        other_benchmark = _benchmark_in(other_package)
        if _plain_name(result) == _plain_name(other_benchmark):
            return (
                f"its name {result.name!r} is that of another benchmark ({other_package.PREFIX}…), "
                "and boards would join both: give it another"
            )
    used: dict[str, Benchmark] = {}
    for other_package in _packages():
        used |= dict.fromkeys(_classes_of(other_package), _benchmark_in(other_package))
    for name in result.variant_names():
        if not name.startswith(prefix):
            return f"its name {name} does not begin with {prefix}"
        host_class = result.host_class(result.parse(name))
        if host_class in used:
            return f"{host_class} is the class of {used[host_class].name} under VLMEvalKit"
    for name in result.baselines:
        if name in baselines():
            return f"{name} is a baseline of another benchmark"
    return None


def _plain_name(benchmark: Benchmark) -> str:
    """Return a name without what readers of a board do not see as a difference."""
    return re.sub(r"[^a-z0-9]", "", benchmark.name.lower())


@cache
def _benchmark_in(package: ModuleType) -> Benchmark:
    inner = f"{package.__name__}.benchmark"
    where = import_module(inner) if hasattr(package, "__path__") and find_spec(inner) else package
    result: Benchmark = where.BENCHMARK
    return result


def benchmarks() -> list[Benchmark]:
    """List all benchmarks, built-in ones before plug-ins."""
    return [_benchmark_in(package) for package in _packages()]


def _packages() -> list[ModuleType]:
    builtin = sorted(prefixes().builtin.values(), key=lambda package: package.__name__)
    return [*builtin, *(item.row for item in prefixes().added().values())]


def benchmark_of(requested: str | DatasetVariant) -> Benchmark:
    """Find the benchmark of a variant or a name, valid or not, or raise DatasetNameError."""
    if not isinstance(requested, str):
        return _by_prefix(requested.name).for_variant(requested)
    result = _by_prefix(requested)
    try:
        return result.for_variant(result.parse(requested))
    except DatasetNameError:
        return result


def _by_prefix(name: str) -> Benchmark:
    return _benchmark_in(prefixes()[prefix_of(name)])


def prefix_of(name: str) -> str:
    """Return the prefix of a dataset name, or raise DatasetNameError."""
    for prefix in prefixes():
        if name.startswith(prefix):
            return prefix
    refuse_misnamed(name)
    known = shortest_prefixes()
    raise DatasetNameError(
        f"{name}: a name begins with {alternatives(known)}{suggestion(name, known)}"
    )


def shortest_prefixes() -> list[str]:
    """List the prefixes for messages, without those that extend another."""
    shortest: list[str] = []
    for prefix in sorted(prefixes()):  # what extends a prefix comes after it
        if not prefix.startswith(tuple(shortest)):
            shortest.append(prefix)
    return shortest


def meant_names(name: str) -> list[str]:
    """Return the datasets that a name without a prefix, or without a format, may mean.

    ``Scenes_mini`` may be ``FindIt_Scenes_mini_xyxy_json``, and those of other benchmarks.
    """
    meant = []
    for benchmark in benchmarks():
        names = benchmark.variant_names()
        for prefix in dict.fromkeys(map(prefix_of, names)):
            if closest(name.split("_")[0], [prefix.rstrip("_")]):
                continue  # It has the prefix, spelled otherwise.
            begin = f"{prefix.rstrip('_')}_{name}"
            longer = [each for each in names if f"{each}_".startswith(f"{begin}_")]
            if longer:
                meant.append(longer[0])
                continue
            with suppress(ValueError):
                benchmark.parse(begin)
                meant.append(begin)
    return meant


# No name of a dataset ends so; other ends, as that of Video-MME_0.5fps, may be a name's
_ENDS_OF_FILES = frozenset(
    ".csv .geojson .json .jsonl .ndjson .parquet .tar .tsv .txt .xlsx .xml .yaml .yml .zip".split()
)


def refuse_misnamed(name: str) -> None:
    """Refuse an unknown name that lacks its prefix or format, or is of a file; say what to type.

    Raises DatasetNameError.
    """
    if meant := meant_names(name):
        raise DatasetNameError(f"unknown dataset {name!r}: did you mean {alternatives(meant)}?")
    refuse_file(name)


def refuse_file(name: str) -> None:
    """Refuse a file or folder of annotations where a dataset is named, with what makes one of it.

    Raises DatasetNameError.
    """
    path = Path(name)
    is_written_so = name.startswith((".", "/", "~")) or path.suffix.lower() in _ENDS_OF_FILES
    if not is_written_so and not path.exists():
        return
    missing = "" if path.exists() else f" ({name} {not_there(path)})"
    raise DatasetNameError(
        f"{name} is a path, and no dataset. Make one of it: "
        f"run_findit.py data import {shlex.quote(name)} --name NAME{missing}"
    )


def listed_names() -> list[str]:
    """Return the names of FindIt's datasets, as the benchmarks list them."""
    return [name for benchmark in benchmarks() for name in benchmark.variant_names()]


def all_datasets() -> list[str]:
    """Return the names that ``--data`` takes: FindIt's as they are listed, and VLMEvalKit's."""
    return [*listed_names(), *dataset_names()]


def begins_with_prefix(text: str) -> bool:
    """Tell whether a text begins with a prefix, valid name or not."""
    return any(text.startswith(prefix) for prefix in prefixes())


def resembles_dataset_name(name: str) -> bool:
    """Tell whether a name, perhaps mistyped, seems to be FindIt's (``FindIt-Pascal``)."""
    return any(name.startswith(prefix.rstrip("_")) for prefix in prefixes())


def baselines() -> Mapping[str, Baseline]:
    """Map names to the baselines (models without weights) of all benchmarks."""
    result: dict[str, Baseline] = {}
    for benchmark in benchmarks():
        result |= benchmark.baselines
    return result


def baseline_named(name: str) -> Baseline:
    """Find a baseline by name, or raise ValueError."""
    known = baselines()
    if name not in known:
        raise ValueError(f"unknown baseline {name!r}{suggestion(name, known)}")
    return known[name]


def baseline_for(name: str, variant: DatasetVariant) -> Baseline:
    """Find a baseline that can answer the variant, or raise ValueError."""
    result = baseline_named(name)
    benchmark = benchmark_of(variant)
    if benchmark.baselines.get(name) is not result:
        others = ", ".join(benchmark.baselines) or "none"
        raise ValueError(
            f"{name} cannot answer {variant.name}; baselines of {benchmark.name}: {others}"
        )
    if result.annotation_tables is not None and variant.table not in result.annotation_tables:
        tables = ", ".join(sorted(result.annotation_tables))
        raise ValueError(f"{name} cannot answer {variant.name}; it answers {tables}")
    return result


@cache
def _classes_of(package: ModuleType) -> frozenset[str]:
    result = _benchmark_in(package)
    return frozenset(result.host_class(result.parse(name)) for name in result.variant_names())


def parse(name: str) -> DatasetVariant:
    """Parse a dataset name, or raise a DatasetNameError with the nearest valid name."""
    return _by_prefix(name).parse(name)


def is_dataset_name(name: object) -> bool:
    """Tell whether a name is valid."""
    if not isinstance(name, str) or not begins_with_prefix(name):
        return False
    try:
        parse(name)
    except DatasetNameError:
        return False
    return True


def load(name: str) -> AnyDataset:
    """Load a dataset whose table is there; see :meth:`.Benchmark.load`.

    The room ``data`` makes tables of the package first: :func:`.load_dataset`.
    """
    return _by_prefix(name).load(name)


def name_after_model(stem: str) -> tuple[str, str] | None:
    """Split ``<model>_<name>``; None if it does not end in a dataset name."""
    for prefix in prefixes():
        at = stem.rfind(f"_{prefix}")
        if at > 0 and is_dataset_name(stem[at + 1 :]):
            return stem[:at], stem[at + 1 :]
    return None
