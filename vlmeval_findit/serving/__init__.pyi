"""The door of the room: names, in the order in which a newcomer should meet them."""

from .programs import (
    BOUNDS_FIELD as BOUNDS_FIELD,
    TEMPLATE_FIELD as TEMPLATE_FIELD,
    ALL_TOKENS_FIELD as ALL_TOKENS_FIELD,
    ServerProgram as ServerProgram,
    PROGRAMS as PROGRAMS,
    programs_with as programs_with,
    flag_of as flag_of,
    ServerOptions as ServerOptions,
    ServeOptions as ServeOptions,
    visible_gpus as visible_gpus,
)

from .server_process import (
    ServingError as ServingError,
    ServerProcess as ServerProcess,
    LocalServers as LocalServers,
    start_servers as start_servers,
    end_servers as end_servers,
)
