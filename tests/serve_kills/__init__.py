"""The service is killed again and again under load: nothing that it acknowledged is lost, and its state is the log's.

    python -m tests.serve_kills --kills 200

Clients learn, predict, store rows and label them, while the service is killed with SIGKILL at random moments and
started again. After each kill, the log and the snapshots are read by another program, which has replayed the log from
its first record and asks:

- is every request that was acknowledged in the log, once, at the sequence number of its answer; is what was refused not
  there; did a request that was repeated with its idempotency key after its answer was lost count once?
- does replaying give each answer again: what was learned, refused, late or unknown, and each score, bit for bit?
- is the state from each snapshot on disk and the records after it, bit for bit, that of all records from the first?
- does nothing of the service still run, and can its directory be locked?
"""
