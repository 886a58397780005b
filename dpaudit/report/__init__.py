"""Reports: a result as one HTML file and as Markdown; nothing is computed here.

`content` and `about` have the parts of a report, `structure` how it is arranged, `render` turns it
into text, `figures` draws, `write` puts the files next to `result.json`.
"""
