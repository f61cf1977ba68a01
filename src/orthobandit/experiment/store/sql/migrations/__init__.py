"""Steps from one version of the tables to the next; each is a file in `versions`, run by Alembic.

To change the tables, change ``schema.py`` or ``service_tables.py``, add ``versions/vNNNN_what.py`` whose
``down_revision`` is the newest ``revision``, and set ``NEWEST`` in ``upgrade.py``. A released step is never
edited.
"""
