"""The composition roots: where ports meet what serves them, and where the environment is read.

Theory. A *node* is one process with some of the roles ``api``, ``planner``, ``worker`` and ``feeder``; one
with all of them is the whole product on one machine, and many with some are the same code spread out. The
database is the only meeting place. :func:`~tenantry.cli.assembly.assemble` builds a node from a frozen
:class:`~tenantry.cli.settings.NodeSettings`; the commands only turn words and environment variables into one.

Invariants. Loops run as tasks of one group and share nothing but the database's pools: none waits for
another. A loop that ends by itself is a bug of ours, so the process ends with it, saying which, and a
supervisor starts it again; whatever it held runs out by its lease. Modules of commands import what they need
when they run, so that ``tenantry --help`` loads none of it.

``settings``   :class:`NodeSettings`, :class:`Role`, :class:`Address`
``assembly``   :func:`assemble`, :class:`Node`
``running``    a node under signals, as a process
``main``       the table of commands; exit codes
"""
