"""What every room needs: texts, files, configuration, secrets, plug-ins."""
