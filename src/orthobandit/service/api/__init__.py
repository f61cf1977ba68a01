"""The HTTP API: one file a resource, its request and response models beside its routes."""
