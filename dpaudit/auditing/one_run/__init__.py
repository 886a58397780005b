"""One-run audits: one training, many canaries (Steinke, Nasr and Jagielski 2023).

For generators too slow for shadow models. Each of m records of the table is included by its own
fair coin, the generator is trained once, and the attack guesses coins from the synthetic table.
"""
