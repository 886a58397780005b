"""The command line: thin faces over `dpaudit.auditing`; with the pytest plugin the only printer."""
