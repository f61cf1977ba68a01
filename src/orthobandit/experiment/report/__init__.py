"""What an experiment says to people and programs: ``report`` gathers it, ``advice`` puts it in sentences."""
