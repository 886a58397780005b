"""Reports: a result as one HTML file and as Markdown; nothing is computed here.

`content` has the parts of a report and `page` its frame, `render` writes HTML and Markdown,
`figures` and `outcomes` draw, `junit` writes JUnit XML, `standards` links sections to clauses.
"""
