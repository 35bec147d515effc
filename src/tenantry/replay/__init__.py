"""Dead letters back into their lanes: as fast as each target can take them, and no faster.

Authority
    A *source* (a broker's queue, a file, a table, our own dead letters) has the messages; a *replay* takes
    them, a window at a time, into flows of their own in the lanes of one tenant. From there on they are jobs
    like any other: the queue's planner gives them their turns, the lane's shaper finds out how much the
    target can take. The replay's store is the only place that knows how far a replay has come.

Invariants
    - One transaction stages a window: the dedup store is asked and told, the jobs are appended, the position
      in the source is moved, the counts are written. Only after its commit is anything acknowledged to the
      source.
    - taken = duplicate + waiting + in flight + delivered + parked + dead + returned, at every instant.
    - A message is in one active replay at most.
    - Every change of a replay names the token of the lease that its coordinator holds; an old one changes
      nothing.

Failures
    A coordinator that is killed leaves its leases to run out; another goes on from what is stored. A source
    that delivers again what was staged but not acknowledged is told that we have it. A replay is held, with
    the reason and when it frees, where a budget, a quota or a rule says so; nothing of it is lost, and
    cancelling returns what was taken and not delivered to our own dead letters.

Files
    ``model``, ``ports``, ``events``: records, what is needed of others, what is told. ``specs``: what a
    person may ask for; ``filters``, ``edits``, ``json_path``, ``payload``: which messages, and how they
    are changed. ``lifecycle``, ``dedup``, ``quotas``: what every store keeps to. ``window``, ``budget``,
    ``poison``, ``plan``, ``progress``: the rules. ``staging``, ``watch``: those of one replay, compiled
    and remembered. ``coordinator`` leads replays, each in a ``run``, which reads (``reading``), feeds
    (``feeding``) and looks at its lanes (``lanes_ahead``). ``desk``: the side of people. ``connections``,
    ``fields``: for sources.

Source: the seed "Multi-Tenancy and Isolation"; DESIGN sections 4 and 6.
"""
