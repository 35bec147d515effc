"""The demo's second act: a mass incident, and fifty replays at once.

===============  =========================================================================================
``cast``         who the fifty tenants are now: how strong their targets, how much of theirs dies
``dependency``   what they all depend on, in a process of its own: down, then back, each part in its way
``ledger``       what the node tells: who held slots, what died, how long live work waited
``stage``        the incident itself, from the first live job to the books
``figures``      what follows from it, and which promises held
``screen``       the table while it runs; ``summary`` the words at the end, and the JSON
===============  =========================================================================================
"""
