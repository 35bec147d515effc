"""What one node holds, and how long it may trust that. Pure.

A lease ends early on the holder's side: the trust window is counted from when the attempt to renew began
(C. Gray, D. Cheriton, "Leases", SOSP 1989), so that a job is dropped here before anyone may take it back.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from tenantry.kernel.instant import Instant
from tenantry.queue.model import ClaimedJob, ClaimId

JobKey = tuple[ClaimId, int, int]


def key_of(job: ClaimedJob) -> JobKey:
    """A job as one claim holds it: (claim, flow, seq)."""
    return (job.claim, job.flow, job.seq)


@dataclass(slots=True)
class _Lease:
    trusted_until: Instant
    jobs: dict[JobKey, ClaimedJob] = field(default_factory=dict)


class Leases:
    """The claims of one node and the jobs in them that have not been settled. One task at a time."""

    def __init__(self) -> None:
        self._held: dict[ClaimId, _Lease] = {}

    def __len__(self) -> int:
        return len(self._held)

    def claims(self) -> list[ClaimId]:
        return list(self._held)

    def jobs(self) -> list[ClaimedJob]:
        return [job for lease in self._held.values() for job in lease.jobs.values()]

    def holds(self, job: ClaimedJob) -> bool:
        lease = self._held.get(job.claim)
        return lease is not None and key_of(job) in lease.jobs

    def take(self, jobs: Iterable[ClaimedJob], trusted_until: Instant) -> None:
        """Jobs of new claims came into this node's hands."""
        for job in jobs:
            self._held.setdefault(job.claim, _Lease(trusted_until)).jobs[key_of(job)] = job

    def settled(self, jobs: Iterable[ClaimedJob]) -> None:
        """Jobs left their claims; a claim without jobs is gone."""
        for job in jobs:
            lease = self._held.get(job.claim)
            if lease is not None:
                lease.jobs.pop(key_of(job), None)
                if not lease.jobs:
                    del self._held[job.claim]

    def renewed(self, claims: Set[ClaimId], trusted_until: Instant) -> None:
        for claim in claims & self._held.keys():
            self._held[claim].trusted_until = trusted_until

    def untrusted(self, at: Instant) -> set[ClaimId]:
        """The claims that cannot be trusted any more at ``at``."""
        return {claim for claim, lease in self._held.items() if lease.trusted_until <= at}

    def drop(self, claims: Iterable[ClaimId]) -> list[ClaimedJob]:
        """Claims are lost: their jobs, which must be stopped here."""
        lost = [self._held.pop(claim) for claim in set(claims) if claim in self._held]
        return [job for lease in lost for job in lease.jobs.values()]
