"""What can be audited and what attacks it: contracts, registry, adapters."""
