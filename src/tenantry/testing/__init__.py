"""For tests, yours and ours: a clock that moves when told, and an HTTP target that misbehaves on cue.

Public: these names change only with a note in the changelog. Nothing here reads time or chance by itself.

``clock``    :class:`ManualClock`
``target``   :class:`Target`, :class:`Story`, :class:`Received`; how it is under load is in ``load``
``jobs``     :func:`claimed_job`
``isolation``      which doors of a table are open between two tenants; ``pytest_plugin`` has it as
                   ``assert_isolated(table)``
``row_policies``   the mutation kit of the audit of row policies
"""
