"""Influences, intervals and tests: arrays in, numbers out.

Also average precision, the reliability of confidences and their best threshold.
"""
