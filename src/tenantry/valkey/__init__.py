"""The authority on Valkey or Redis, and the only importer of their client.

Theory. One key a tenant, a hash whose name carries the tenant as its hash tag: one script call is one
tenant's ask, atomic, and a cluster shards by tenant. The server's clock decides leases (law K4). All asks of
one tick that go to one server travel as one pipeline.

Failures. A script that is missing (a replica took over, the server was restarted) is loaded and the call made
again. A server that answers READONLY, MOVED, ASK, LOADING or CLUSTERDOWN, or does not answer within
``timeout``, makes this room look afresh who serves what, and try once more; an ask that was carried out
already is known by its number. What still fails is a :class:`~tenantry.kernel.errors.StoreUnavailable`, and
nodes go on with their share.

A replica that takes over lacks the writes of the last instant: what was granted in them may be granted again.

``urls``        where it is: one server, Sentinel, or a cluster
``topology``    who serves a tenant now
``authority``   the port; its scripts are in ``lua/``
"""

from tenantry.valkey.authority import ValkeyLeaseAuthority

__all__ = ["ValkeyLeaseAuthority"]
