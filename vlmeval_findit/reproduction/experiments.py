"""Setups are asked: the whole attempt, and experiments with other setups over its first pictures.

All setups of one deployment share a journal, so that no call is made twice: not by the same command
again, not by a larger sample, and not by an experiment whose question was asked before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..core import sha256_of
from ..protocol import Predictions
from ..storage import PROBE_FILE, SWEEP_JOURNAL
from ..sweeps import Sweep
from .figure_metric import measure_figure
from .reproduction_records import Attempt, Setup

# Asks a sweep in the words of a prompt set ("": the benchmark's), and opens its predictions, one
# for each variant in their order
AskSweep = Callable[[Sweep, str], Sequence[Predictions]]


@dataclass(frozen=True, slots=True)
class Experiments:
    """Asks setups, each in a folder of its name.

    Args:
        ask_sweep: the edge, which has backends and shows progress.
        work_dir: of all reproductions.
        options: a sweep without models and variants, from which further options come.
        deployment: what else tells who answers: headers and flags.
    """

    ask_sweep: AskSweep
    work_dir: Path
    options: Sweep
    deployment: Sequence[str] = ()

    def folder(self, setup: Setup) -> Path:
        """Return the folder of a setup's runs, which has one reproduction."""
        figure = setup.figure
        entry = setup.entry
        words = asdict(entry.prompt) if entry.prompt is not None else None
        parts = [
            [figure.model, figure.set_name, figure.set.metric, figure.source],
            [variant.name for variant in setup.variants],
            [setup.prompts, entry.settings, entry.space, words],
            asdict(setup.sample),
        ]
        return self._deployment_folder(setup) / _digest(parts)

    def sweep(self, setup: Setup, folder: Path | None = None) -> Sweep:
        """Return the calls of a setup as a sweep."""
        return replace(
            self.options,
            models=(setup.entry,),
            variants=setup.variants,
            pictures=setup.sample,
            work_dir=folder or self.folder(setup),
            journal=self._deployment_folder(setup) / SWEEP_JOURNAL,
        )

    def attempt(self, setup: Setup) -> Attempt:
        """Ask a setup and measure its figure's metric; raises as :func:`.measure_figure`."""
        return measure_figure(setup, self.ask_sweep(self.sweep(setup), setup.prompts))

    def ask(self, setup: Setup, pictures: int) -> Attempt:
        """Ask another setup about the first pictures of its sample, so many of each dataset."""
        smaller = replace(setup, sample=replace(setup.sample, pictures=pictures))
        folder = self._deployment_folder(setup) / "experiments"
        sweep = self.sweep(smaller, folder / self.folder(smaller).name)
        # Commands over a folder of runs leave experiments out, as they do probes.
        marked = replace(sweep, mark=folder / PROBE_FILE)
        return measure_figure(smaller, self.ask_sweep(marked, smaller.prompts))

    def _deployment_folder(self, setup: Setup) -> Path:
        """Return the folder of a deployment: another one never goes on with its calls."""
        entry = setup.entry
        serving = self.options.serve
        parts = [
            [entry.served, entry.checkpoint, entry.like, entry.base_url, entry.provider],
            list(self.deployment),
            # The space decides how images are sent.
            entry.space,
            [serving.program, serving.arguments] if serving is not None else None,
        ]
        return self.work_dir / f"{entry.name}-{_digest(parts)}"


def _digest(parts: Sequence[Any]) -> str:
    return sha256_of(json.dumps(parts, sort_keys=True, default=str).encode())[:8]
