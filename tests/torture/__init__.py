"""A soak: random kills, damage, files, AUC streams and learning, checked against what the documentation promises.

`python -m tests.torture --seconds 900 --seed 1`; see __main__.py. A part is a module with `run_round(rng, folder)`: it
draws all it does from `rng`, works in `folder`, raises when a promise is broken, and returns how many cases it tried.
"""
