"""Clients of message brokers, one module a system. Each needs its own extra; importing this loads none."""
