"""The leaderboard: models x datasets, only of runs that can be compared.

``columns`` says what a column is and which runs belong into one; ``formats`` which of a model's
formats is reported; ``board`` makes figures, intervals, averages and ranks; the rest writes them:
``rows`` as tables for everyone, ``sheet`` (xlsx), ``text`` (CSV, Markdown, LaTeX), ``openvlm``
(JSON in the schema of the OpenVLM leaderboard).
"""
