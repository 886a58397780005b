"""The modules of each layer, as the map of ARCHITECTURE.md lists them."""

from __future__ import annotations

import re
from pathlib import Path


def filled(text: str, package: Path) -> str:
    """The page with the modules that a package has in the rows of its layers.

    Args:
        text: The page.
        package: The folder of the package.
    """

    def row(found: re.Match[str]) -> str:
        return f"{found[1]} {', '.join(_modules(package / found[2]))} |"

    return re.sub(r"^(\| `(\w+)/` \| [^|]+ \|)[^|]*\|$", row, text, flags=re.MULTILINE)


def _modules(folder: Path) -> list[str]:
    """Modules, and packages with theirs in parentheses."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and (path / "__init__.py").is_file():
            found.append(f"`{path.name}/` ({', '.join(_modules(path))})")
        elif path.suffix == ".py" and path.stem != "__init__":
            found.append(path.stem)
    return found
