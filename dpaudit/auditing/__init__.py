"""One audit: settings, shadow models, attacks, checks, verdict, result."""
