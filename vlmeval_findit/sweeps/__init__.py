"""Models x tables x formats: settings, stages, races, dry runs."""
