"""Amazon SQS: a queue as a source and as a target.

Authority: the queue. What was received is hidden for a while and comes back by itself unless it is deleted.

What holds:

- A message is deleted once it was staged; what is left, or is in hand at the end, is shown again at once.
- What comes again within a session because it was left is hidden again and not given out.
- A target's message is delivered when SQS has answered with its id.

What does not: SQS counts roughly, keeps no order but within a group of a FIFO queue, and has no end to
freeze. Seeing a message counts as receiving it.
"""

from tenantry.brokers.sqs.source import SqsSource
from tenantry.brokers.sqs.target import SqsSender

__all__ = ["SqsSender", "SqsSource"]
