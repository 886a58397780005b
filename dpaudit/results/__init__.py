"""What an audit concludes: verdict, typed result, its words, its JSON document.

`verdict` has the parts that a conclusion is made of, `decide` makes it, `record` is the whole
result as data, `sentences` is every sentence about it, `document` turns it into JSON and back, and
`result` is what `dpaudit.audit` returns.
"""
