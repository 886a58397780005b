"""Real privacy bugs of released software, each proved by an audit, with a twin without the bug."""
