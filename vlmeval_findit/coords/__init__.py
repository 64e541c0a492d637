"""In which coordinates a deployment really answers."""
