"""White-box audits of a PATE ensemble's released labels."""
