"""The HTTP API: one file per resource, its request and response models beside its routes."""
