"""The leaderboard: models x datasets, only of runs that can be compared.

``comparable`` says which runs of a dataset can be compared; ``formats`` which of a model's formats
is reported; ``board`` makes values, intervals, means and ranks, ``notes`` what a reader must know
beside them.  ``board_tables``, ``error_tables``, ``run_tables`` and ``slices`` show them as a
:class:`.table.Table`, which ``render`` (text, HTML, JSON) and ``workbook`` (xlsx) write;
``openvlm`` writes the JSON of the OpenVLM leaderboard.
"""
