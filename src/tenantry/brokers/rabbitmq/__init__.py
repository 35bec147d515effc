"""RabbitMQ: a queue of dead letters as a source, an exchange as a target.

Authority: the broker. What it gave to a channel is its own again when the channel ends; what it confirmed is
kept there.

What holds:

- Nothing is acknowledged before the stage is committed, and at most the window is in hand.
- A message that dies again is a new entry, by the time and the count of its last death.
- A target's message is delivered when the broker confirms it; unroutable is the message's fault, a refusal
  (nack) or a lost connection the target's.

What does not: a queue cannot be read past a message. What filters leave is held until the session ends, at
most :data:`~tenantry.brokers.rabbitmq.source.MOST_LEFT` of it. A queue has no end to freeze.
"""

from tenantry.brokers.rabbitmq.source import RabbitSource
from tenantry.brokers.rabbitmq.target import RabbitSender

__all__ = ["RabbitSender", "RabbitSource"]
