"""The door of the room: names, in the order in which a newcomer should meet them."""

from .targets import (
    ExportError as ExportError,
    TARGETS as TARGETS,
    TRAINERS as TRAINERS,
    exporter as exporter,
)

from .licences import (
    licence_note as licence_note,
)

from .export_folder import (
    private_of as private_of,
    copy_run as copy_run,
)

from .private import (
    Private as Private,
)

from .trackers import (
    RUN_TAG as RUN_TAG,
    CURVE_TAG as CURVE_TAG,
    tracker_key as tracker_key,
    plain_name as plain_name,
    worst_answers as worst_answers,
)
