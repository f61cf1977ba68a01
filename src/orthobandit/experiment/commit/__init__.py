"""From a call to the disk: how `tell` becomes a row that survives a power cut.

Follow one ``experiment.tell(7, 1.0)``:

1. :mod:`.requests` checks the arguments and returns a request, a function of a turn. With a key
   (:meth:`Experiment.once`) the request is wrapped so that it is done once, however often it is repeated.
2. :mod:`.queue` puts the request into a queue and lets the caller wait: a thread for a lock, a coroutine for
   a future. The queue's own thread does all requests that wait, in one commit.
3. :mod:`.group_commit` brings the ledger up to date with what other processes wrote, does the requests one
   kind after the other, and appends the entries they made to the log in one transaction of the store. When
   the transaction has ended, the entries are on disk, and the callers get their answers.
4. :mod:`.transaction` does a request in its turn: it looks up whether the unit or the reward came before, and
   tells the ledger.

A request that is refused gets its error; the others of the same commit are unaffected. If the commit itself
fails, every caller gets the error, nothing was done, and the ledger is read again from the store.
"""
