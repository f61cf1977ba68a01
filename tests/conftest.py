"""Settings of the whole suite: property tests decide right or wrong, they time nothing."""

from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("suite")
