"""The conclusions of an audit: verdict, typed result, the sentences about it, its JSON document.

`verdict` has the parts of a conclusion, `decide` draws it, `record` is the whole result as data,
`sentences` has every sentence about it and `summary` the few lines for a terminal, `document` turns
it into JSON and back and describes that JSON, and `result` is what `dpaudit.audit` returns.
"""
