"""What lies on disk: tables, images, prediction files, identities, locks."""
