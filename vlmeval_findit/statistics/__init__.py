"""Influences, intervals, tests, average precision and calibration: arrays in, numbers out."""
