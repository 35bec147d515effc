"""A lane is one tenant's way to one target. It is never shared.

``model``         the lane's identity, and what a target's text means
``outcome``       how one attempt ended, and whose fault it was: a table
``retry``         what becomes of the job: delivered, tried again later, dead
``summary``       what a worker says about a lane when it settles; summaries add up
``shaper``        how much may be in flight to the target, stepped by summaries; with it the lane's breaker
``shaper_model``  its records: settings, state, what it permits
``shaper_state``  the shaper's state as a plain value, for the row in which it is kept
``orders``        what a person orders of lanes: pauses, ceilings, resets

All of it is pure: values in, values out. Whoever holds a lane's state is the one that steps it.
"""
