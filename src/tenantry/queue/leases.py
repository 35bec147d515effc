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
        self._given_up: set[ClaimId] = set()

    def __len__(self) -> int:
        return len(self._held)

    def claims(self) -> list[ClaimId]:
        return list(self._held)

    def jobs(self) -> list[ClaimedJob]:
        return [job for lease in self._held.values() for job in lease.jobs.values()]

    def take(self, jobs: Iterable[ClaimedJob], trusted_until: Instant) -> list[ClaimedJob]:
        """Jobs came into this node's hands. Those that are new to it: a store repeats itself where an answer
        may have been lost. A claim that was given up stays so, since its attempts may be ending still."""
        new: list[ClaimedJob] = []
        for job in jobs:
            lease = self._held.get(job.claim)
            if lease is None:
                if job.claim in self._given_up:
                    continue
                lease = self._held[job.claim] = _Lease(trusted_until)
            key = key_of(job)
            if key not in lease.jobs:
                lease.jobs[key] = job
                new.append(job)
        return new

    def knows(self, job: ClaimedJob) -> bool:
        """Whether this node holds the job, or has given its claim up."""
        lease = self._held.get(job.claim)
        return job.claim in self._given_up if lease is None else key_of(job) in lease.jobs

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
        lost = {claim: self._held.pop(claim) for claim in set(claims) if claim in self._held}
        self._given_up.update(lost)
        return [job for lease in lost.values() for job in lease.jobs.values()]
