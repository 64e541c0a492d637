"""Register models in VLMEvalKit's tables: in any process that loads one, too."""

from __future__ import annotations

from types import ModuleType


def register_models(config_module: ModuleType) -> None:
    """Register the models in ``vlmeval.config``; no name of the host is replaced."""
    import vlmeval.api
    import vlmeval.api.base
    import vlmeval.vlm
    import vlmeval.vlm.base

    from .api import API_CLASSES, api_models
    from .baseline_models import FindItBaseline, models
    from .local import FindItLocalModel, local_models
    from .model_objects import remember_arguments
    from .outcomes import OUTCOMES

    remember_arguments(vlmeval.vlm.base.BaseModel, vlmeval.api.base.BaseAPI)
    for cls in (FindItBaseline, FindItLocalModel):
        setattr(vlmeval.vlm, cls.__name__, cls)
    for api_cls in API_CLASSES:
        setattr(vlmeval.api, api_cls.__name__, api_cls)
    for name, maker in {**models(), **local_models(), **api_models()}.items():
        if config_module.supported_VLM.setdefault(name, maker) is maker:
            OUTCOMES.models.add(name)
