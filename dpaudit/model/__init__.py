"""The public description of a table and the claim: schema, claim, tables, encoding."""
