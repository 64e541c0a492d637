"""What is known of models, and the baselines that ship with the package."""
