"""Study: what experiments share, whatever their data and methods.

splits     which rows of a trial are learned, tuned on and tested on
tuning     every setting is tried, and the best on the validation rows is run again alone
trials     units of work, each run once, on all cores
store      results.jsonl: one synced line per trial
rows       the fields of a trial's row
results    rows aggregated: means, standard errors, mean curves
tables     a table as text, CSV, Markdown or LaTeX
figures    the lines and the colours of plots
page       tables and plots as one HTML page
evaluated  the page of an evaluation
"""
