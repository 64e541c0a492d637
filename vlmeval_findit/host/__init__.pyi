"""The door of the room: names, in the order in which a newcomer should meet them."""

from .registration import (
    register as register,
    made_in_vlmevalkit as made_in_vlmevalkit,
    run_host as run_host,
)

from .model_registration import (
    register_models as register_models,
)

from .config_keys import (
    check_config as check_config,
    dataset_keys as dataset_keys,
)

from .config_runs import (
    check_runs as check_runs,
)

from .outcomes import (
    OUTCOMES as OUTCOMES,
)

from .datasets import (
    dataset_classes as dataset_classes,
)

from .inference import (
    prepare_run as prepare_run,
    model_for_others as model_for_others,
    HostModel as HostModel,
    Ranks as Ranks,
)

from .local import (
    make_known as make_known,
)

from .vlmevalkit_backends import (
    VLMEvalKitModel as VLMEvalKitModel,
    load_model as load_model,
)

from .model_descriptions import (
    with_system as with_system,
    entry_of as entry_of,
    entry_of_object as entry_of_object,
    stated_of as stated_of,
)

from .model_objects import (
    attributes_of as attributes_of,
    note_calls as note_calls,
)

from .baseline_models import (
    variant_of as variant_of,
)

from .plain_values import (
    json_value_of as json_value_of,
)

from . import (
    preflight as preflight,
    registration as registration,
)
