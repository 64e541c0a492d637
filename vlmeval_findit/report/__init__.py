"""A page with plots and every answer on its image.

``transcripts`` reads the prompts and replies of a run; ``standings``, ``lost_points``,
``sections`` and the charts draw metrics; ``pairs`` and ``differences`` compare two runs; ``cards``
chooses answers, ``gallery`` turns them into values for the script; ``page`` fills ``templates/``;
``followed`` and ``live_page`` show a running sweep.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
