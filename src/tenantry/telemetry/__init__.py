"""Events become metrics and logs here, and nowhere else.

Theory. Rooms tell typed events (:mod:`tenantry.kernel.events`) and know nothing of Prometheus or of log
lines. A sink takes an event, returns at once and never raises; :func:`~tenantry.telemetry.sinks.fan_out`
joins several. The published table of events and metrics, ``docs/telemetry.md``, is drawn from the code.

Invariants. Labels come from closed sets (tier, class, rule, ending, error class), so the number of series is
bounded by the operator's own registry; tenants are labels only when asked for, and then at most N of them. No
secret passes: what looks like one is replaced before a line is rendered, wherever in the line it stands.

``prometheus``   :class:`Metrics`, a sink with a registry of its own
``logs``         :func:`configure_logging`, :class:`LogSink`
``redaction``    :func:`redacted`, the pure rule
``http_events``  what the HTTP API tells
``catalogue``    the table of events and metrics
"""
