"""Methods that only the studies under `reports/` use; no audit depends on them."""
