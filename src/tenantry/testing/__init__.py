"""For tests, yours and ours: a clock that moves when told, and an HTTP target that misbehaves on cue.

Public: these names change only with a note in the changelog. Nothing here reads time or chance by itself.

``clock``    :class:`ManualClock`
``target``   :class:`Target`, :class:`Story`, :class:`Received`; how it is under load is in ``load``
``jobs``     :func:`claimed_job`
"""
