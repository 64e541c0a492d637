"""A page with plots and every answer on its image.

``transcripts`` reads the prompts and replies of a run; ``standings``, ``lost_points``,
``board_charts`` and the other charts draw metrics; ``pair_choice`` and ``pair_comparison`` compare
two runs; ``gallery_choice`` chooses answers, ``gallery`` turns them into values for the script;
``page`` has the sections in their order and fills ``templates/``; ``sweep_progress`` and
``live_page`` show a running sweep.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
