"""Reports: a result as one HTML file and as Markdown; nothing is computed anew.

`content` and `about` say what a report has, `structure` how it is arranged, `render` turns it into
text, `figures` draws, `write` puts the files beside `result.json`.
"""
