"""Draw visual marks on images, in the eight shapes of VP-Bench; only ``render`` needs OpenCV."""
