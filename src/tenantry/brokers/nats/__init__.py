"""NATS JetStream: a stream of dead letters as a source, a subject as a target.

Authority: the stream. It is read by sequence through its own API, without a consumer: a session that dies
leaves nothing on the server, and a stream of any retention can be read, work queues too.

What holds:

- A membership ends at the last sequence that the stream had when it was frozen.
- With ``done=keep`` the stream is never written; with ``done=delete`` a message is deleted once it was
  staged.
- A target's message is delivered when a stream has acknowledged it; a subject that no stream has is the
  message's fault.

What does not: a message costs a request (several are under way at once).
"""

from tenantry.brokers.nats.source import StreamSource
from tenantry.brokers.nats.target import NatsSender

__all__ = ["NatsSender", "StreamSource"]
