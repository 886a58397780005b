"""What is public about a table and what is promised: schema, claim, tables, encoding."""
