"""Visitors who are made up, for a first look at the service: `orthobandit demo-traffic`."""
