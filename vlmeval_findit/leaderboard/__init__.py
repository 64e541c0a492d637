"""The leaderboard: models x datasets, only of runs that can be compared.

``comparable`` groups the runs of a dataset that can be compared; ``formats`` chooses the reported
format of a model; ``board`` makes values, intervals, means and ranks, ``notes`` the notes on them.
``board_tables``, ``error_tables``, ``run_tables`` and ``slices`` show them as a
:class:`.table.Table`, which ``render`` (text, HTML, JSON) and ``workbook`` (xlsx) write;
``openvlm`` writes the JSON of the OpenVLM leaderboard.
"""
