"""`python -m dpaudit`: the program `dpaudit`."""

from __future__ import annotations

from dpaudit.cli.main import main

if __name__ == "__main__":
    main()
