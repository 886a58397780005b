"""Evidence that others can check: a finished audit in one file, from which its verdict follows."""
