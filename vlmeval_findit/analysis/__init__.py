"""What scored runs say: errors, calibration, samples, the best format."""
