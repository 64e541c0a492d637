"""Who answers for the models of a command, and how: its options meet the entries of a sweep."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from ..core import hide_bars, install_command, quiet_log
from ..engine import (
    Asking,
    AtServer,
    CellBuilder,
    Deployment,
    MadeInHost,
    ServerPolicy,
    check_model,
    deployment_of,
    policy_of,
)
from ..models import Budget, ModelOptions
from ..sweeps import Sweep, all_variants
from .access import USED_BY_EACH, refuse_unused, refuse_unused_keys, unused_sweep_keys
from .command_base import host_log_level, is_quiet, print_note
from .early_checks import check_folder, check_prompts, check_rows


def with_options(sweep: Sweep, options: ModelOptions) -> Sweep:
    """Return a sweep with the options of a command line, which override its file.

    Raises ValueError for a key of a model that has no effect, if it is of a file.
    """
    changed = _overridden(sweep, options)
    asking = _asking(changed, options)
    for stated, entry in zip(sweep.models, changed.models, strict=True):
        if stated.where:
            refuse_unused_keys(stated, deployment_of(entry, asking))
    return changed


def _overridden(sweep: Sweep, options: ModelOptions) -> Sweep:
    return replace(
        sweep,
        **options.going_to("sweep"),
        models=tuple(map(options.applied, sweep.models)),
        serve=options.serving(sweep.serve),
    )


def budget_for(sweep: Sweep) -> Budget:
    """Make the budget that the calls of a sweep share."""
    return Budget() if sweep.max_usd is None else Budget(sweep.max_usd)


def all_deployments(
    sweep: Sweep,
    options: ModelOptions,
    budget: Budget,
    retry: int = ServerPolicy().attempts,
    *,
    asks: bool = True,
) -> list[Deployment]:
    """Return who answers for each model of a sweep, before anything is checked.

    A call is tried ``retry`` times at most. ``asks``: as for :func:`deployments_for`.
    """
    hide_bars(is_quiet())  # A model may be loaded
    asking = replace(_asking(sweep, options), budget=budget, policy=policy_of(retry), asks=asks)
    return [deployment_of(entry, asking) for entry in sweep.models]


def _asking(sweep: Sweep, options: ModelOptions) -> Asking:
    return Asking(
        **options.going_to("asking"),
        calls=replace(sweep.inference, **options.going_to("calls")),
        batch=sweep.batch,
        serving=sweep.serve,
        on_ray=options.executor == "ray",
        logprobs=sweep.logprobs,
        work_dir=sweep.work_dir,
        host=cache(_vlmevalkit),
    )


def deployments_for(
    sweep: Sweep,
    options: ModelOptions,
    budget: Budget,
    *,
    asks: bool = True,
    awaited: bool = False,
) -> list[Deployment]:
    """Return who answers for each model of a sweep; a ValueError for what cannot be run.

    A dry run (``asks``: False) needs neither images nor keys, nor VLMEvalKit, programs and devices;
    all else is checked as in a run. ``awaited``: as of :class:`.RunLine`.
    """
    deployments = all_deployments(sweep, options, budget, asks=asks)
    _refuse_unused(sweep, options, deployments)
    check_folder(sweep.work_dir)
    tables = CellBuilder(sweep.skip_missing if asks else None)
    for deployment in deployments:
        variants = all_variants(sweep, deployment.name)
        check_prompts(variants)
        check_model(deployment, variants, awaited=awaited)
        if not isinstance(deployment, AtServer):
            check_rows(variants, tables, sweep.limit, sweep.pictures)
    for deployment in deployments:
        deployment.check_programs()
    return [deployment.ready() for deployment in deployments] if asks else deployments


def _refuse_unused(sweep: Sweep, options: ModelOptions, deployments: Sequence[Deployment]) -> None:
    """Refuse flags and keys that no model uses, and flags that not all use that must."""
    of_each = [name for name in options.specified if name in USED_BY_EACH]
    refuse_unused([name for name in options.specified if name not in of_each], deployments)
    refuse_unused(of_each, deployments)
    # That flags name another in place of `serve` was said at the start.
    is_said = {"serve"} if options.base_url or options.provider else set()
    places = {key: where for key, where in sweep.places.items() if key not in is_said}
    for line in unused_sweep_keys(places, deployments):
        print_note(line)


def _vlmevalkit() -> MadeInHost:
    """Import VLMEvalKit, and return what makes models there."""
    os.environ.setdefault("PRED_FORMAT", "json")
    quiet_log(host_log_level())
    try:
        from ..host import made_in_vlmevalkit
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): {install_command('run')}"
        ) from None
    return made_in_vlmevalkit
