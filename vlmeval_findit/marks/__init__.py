"""Draw visual marks on images, in VP-Bench's eight shapes; only ``mark_drawing`` needs OpenCV."""
