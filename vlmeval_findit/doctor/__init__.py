"""In which coordinates does a deployment really answer?  A library of its own; no score reads it."""
