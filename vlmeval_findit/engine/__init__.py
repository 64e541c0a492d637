"""Who answers calls and when, the journal, the files of a cell.

No finished call is lost or paid for twice. Nothing here imports torch or VLMEvalKit, which only
:mod:`..host.vlmevalkit_backends` knows.
"""
