"""Search over neighbouring tables of a schema for the smallest pair that breaks a claim."""
