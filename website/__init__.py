"""What the documentation takes from code and studies: `python -m website` writes it."""
