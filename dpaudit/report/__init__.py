"""Reports: a result as one HTML file and as Markdown; nothing is computed here.

`content` has the parts of a report and `page` its frame, `render` writes HTML, Markdown and JUnit
XML, `figures` and `outcomes` draw, `standards` links sections to clauses.
"""
