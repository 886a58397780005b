"""The game of two worlds: shadow models trained with the target, and without it."""
