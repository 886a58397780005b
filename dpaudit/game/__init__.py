"""The distinguishing game: worlds, trials, their store, and the engine that runs them."""
