"""From a request to the disk: the queue, group commits, transactions and repeated requests."""
