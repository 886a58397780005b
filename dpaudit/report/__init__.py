"""Reports: result.json to one HTML file and a Markdown summary; nothing is computed anew.

Importing this package loads only `words`, which needs the standard library alone: the command
line and the pytest plugin print a verdict without waiting for matplotlib. The renderers are in
`render`, the files in `write`, the JSON Schema of the document in `schema`.
"""

from __future__ import annotations

from dpaudit.report.words import headline, summary_lines

__all__ = ["headline", "summary_lines"]
