"""The durable home: PostgreSQL, and the only room that imports asyncpg.

Authority. PostgreSQL's clock decides leases (law K4) and its commits decide what happened. A process's
memory is a cache of it.

Logins. The operator's own login (``admin``) migrates and owns. ``tenantry_engine`` serves all tenants and is
the one named exception to law I2. ``tenantry_tenant`` sees the tenant bound for its transaction and nothing
else. Neither is a member of the other, and nothing here says ``SET ROLE``.

Failures. Exceptions of the driver and the socket end at this room's edge: ``errors.translated`` turns them
into :class:`~tenantry.kernel.errors.StoreUnavailable`, which may be tried again, or into
:class:`~tenantry.kernel.errors.InvariantBroken`, which may not. No statement is ever run twice by this room.

Names in SQL are qualified (``tenantry.jobs``); nothing depends on ``search_path``.
"""
