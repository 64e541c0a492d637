"""The door of the room: names, in the order in which a newcomer should meet them."""

from .benchmark_table import (
    prefixes as prefixes,
    benchmarks as benchmarks,
    benchmark_of as benchmark_of,
    prefix_of as prefix_of,
    shortest_prefixes as shortest_prefixes,
    meant_names as meant_names,
    refuse_misnamed as refuse_misnamed,
    refuse_file as refuse_file,
    listed_names as listed_names,
    all_datasets as all_datasets,
    begins_with_prefix as begins_with_prefix,
    resembles_dataset_name as resembles_dataset_name,
    baselines as baselines,
    baseline_named as baseline_named,
    baseline_for as baseline_for,
    parse as parse,
    is_dataset_name as is_dataset_name,
    load as load,
    name_after_model as name_after_model,
)
