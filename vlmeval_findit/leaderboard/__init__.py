"""Models x datasets, of runs that can be compared.

``comparable`` groups the runs of a dataset that can be compared; ``reported_formats`` chooses the
reported format of a model; ``board`` makes values, intervals, means and ranks, ``notes`` the notes
on them. ``board_tables``, ``error_tables`` and ``run_tables`` show them as a
``result_table.Table``, which ``table_output`` writes (text, HTML, JSON); ``board_files`` fills a
folder, with a workbook.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
