"""Reports of an experiment: ``report`` gathers the numbers, ``advice`` writes the sentences."""
