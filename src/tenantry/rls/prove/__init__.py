"""The attack on row policies: what the audit finds is shown, refuted, or said to be beyond reach.

Theory. A tenant is isolated if nothing that it can do depends on another's rows, and nothing that it does
changes them. So nobody has to know beforehand what a leak looks like: two tenants are planted, A and B, and
each attempt of A is made twice, without B's rows and with them. An answer that differs, be it rows, a count,
an error or a notice, has told A of B; rows of B that are not as they were have been written by A. What is
asked of the server about rows comes back as a count, a hash and such rows as were planted: rows of the
database itself never leave it.

Authority: the server. Attempts are made as the application's role (SET SESSION AUTHORIZATION, so that SET
ROLE, ``session_user`` and privileges are as after a login), each in a savepoint, all in one transaction that
nothing commits. Failure: what a time limit, a lock or a value stops is beyond reach and says so; silence is
never counted as proof.
"""
