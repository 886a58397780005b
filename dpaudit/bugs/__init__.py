"""Real privacy bugs of released software: each proved by an audit, beside a twin without it."""
