"""In which coordinates does a deployment really answer?  No score reads this library."""
