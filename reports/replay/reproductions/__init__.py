"""Short scripts for maintainers: each shows one finding with the library alone."""
