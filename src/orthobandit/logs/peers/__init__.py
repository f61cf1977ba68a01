"""What other methods say of the same log: ``compare`` has all of them, ``rivals`` each."""
