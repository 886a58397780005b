"""The command line; it and the pytest plugin are the only places that print or exit."""
