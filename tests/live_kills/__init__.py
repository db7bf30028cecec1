"""Training that follows a live source is killed again and again: every row is learned once.

    python -m tests.live_kills --kills 100

A program writes rows to the source, another follows it and is killed with SIGKILL at random moments, and started again
with the same command. In the end the model must be, bit for bit, that of the same rows learned without a break. Where
the order of rows is not fixed (several partitions of Kafka), their number must be right, and every row, which has a
feature of its own, must have left a weight.
"""
