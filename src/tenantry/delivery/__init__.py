"""Work to its target: over HTTP, signed and guarded, or to a Python handler registered by name.

Theory. One call delivers one attempt of one job and returns an :class:`~tenantry.lanes.outcome.Outcome`; it
never raises for what a target did. Retrying, settling and recording are the worker's business, by the pure
rule :func:`tenantry.lanes.retry.settle_rule`. Delivery is at least once (law K2): a target tells repeats
apart by ``webhook-id``, which is the job's id and the same in every attempt.

What a target can do to us is bounded: the exchange ends by its timeout, at most 64 KiB of an answer are read,
answers are not decompressed, redirects are not followed, cookies are not kept, and no address is connected to
that the operator does not allow (:mod:`tenantry.delivery.guard`). The proxy environment is not read.

This room alone imports the HTTP client. The names:

``http``        :class:`HttpDelivery`, :class:`DeliverySettings`
``handlers``    :class:`Handlers`, :class:`RetryLater`, :class:`Reject`
``router``      :class:`Router`: a job to its handler or over HTTP
``guard``       :class:`AddressRule`, :func:`networks`
``resolver``    :class:`GuardedResolver`
``signature``   :func:`new_secret`, :func:`signing_keys`, :func:`signature_header`
"""
