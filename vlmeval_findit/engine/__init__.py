"""Runs the calls of evaluations, format searches and sweeps.

No finished call is lost or paid for twice. Nothing here imports torch or VLMEvalKit, which only
:mod:`..host.vlmevalkit_backends` knows.
"""
