"""The distinguishing game: worlds, trials, their store, and the engine that plays them."""
