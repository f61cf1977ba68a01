"""An analysis for people: one ``sentence``, a ``text``, a ``page``, a ``figure``."""
