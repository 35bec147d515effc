"""The audit of the queue's books: every counter recounted, every reference followed (law K3)."""

from collections import Counter
from collections.abc import Iterator

from tenantry.memory.books import Books
from tenantry.memory.records import Account, Flow, Place
from tenantry.queue.model import ClaimId, Seq


def faults(books: Books) -> Iterator[str]:
    """Every way in which the books do not add up, as sentences. O(everything)."""
    yield from _claim_faults(books)
    for account in books.accounts.items():
        yield from _account_faults(books, *account)
    for flow in books.flows.values():
        yield from _flow_faults(flow)
    for place, job in books.deferred.items():
        if job.deferred is None or job.place != place or job.end is not None:
            yield f"flow {place[0]} seq {place[1]} is listed as deferred and is not"


def _claim_faults(books: Books) -> Iterator[str]:
    holders: Counter[Place] = Counter()
    for claim in books.claims.values():
        if not claim.held:
            yield f"claim {claim.id} holds nothing and is not closed"
        for place, job in claim.held.items():
            holders[place] += 1
            if job.claim != claim.id or job.end is not None:
                yield f"claim {claim.id} holds job {job.id}, which does not know it"
    for place, count in holders.items():
        if count > 1:
            yield f"flow {place[0]} seq {place[1]} is in {count} live claims"


def _account_faults(books: Books, tenant: str, account: Account) -> Iterator[str]:
    replayed = [job for job in account.jobs.values() if job.replay and job.end is None and not job.parked]
    unended = [job for job in account.jobs.values() if not job.replay and job.end is None]
    if len(unended) != account.unended:
        yield f"tenant {tenant} is counted {account.unended} jobs that have not ended and has {len(unended)}"
    if len(replayed) != account.replayed:
        yield f"tenant {tenant} is counted {account.replayed} jobs of replays and has {len(replayed)}"
    held = [job for job in [*unended, *replayed] if job.claim is not None]
    if len(held) != account.in_flight:
        yield f"tenant {tenant} is counted {account.in_flight} jobs in flight and has {len(held)}"
    for job in held:
        if not _holds(books, job.claim, job.place):
            yield f"job {job.id} believes to be in claim {job.claim}"
    for bulk in account.bulks.values():
        if len(bulk.waiting) + bulk.queued + sum(bulk.ends.values()) != bulk.total:
            yield f"bulk set {bulk.id} does not add up to its {bulk.total} jobs"


def _holds(books: Books, claim: ClaimId | None, place: object) -> bool:
    return claim is not None and claim in books.claims and place in books.claims[claim].held


def _flow_faults(flow: Flow) -> Iterator[str]:
    name = f"flow {flow.opened.flow}"
    if not 1 <= flow.head <= flow.tail + 1:
        yield f"{name} has head {flow.head} and tail {flow.tail}"
    for seq, job in flow.jobs.items():
        passed = seq < flow.head
        if passed and job.claim is None and job.deferred is None:
            yield f"{name} seq {seq} was passed by the head and nobody holds it: job {job.id} is lost"
    ahead = map(Seq, range(flow.head, flow.tail + 1))
    missing = [seq for seq in ahead if seq not in flow.jobs and seq not in flow.gone]
    if missing:
        yield f"{name} lacks seqs {missing[:5]}"
