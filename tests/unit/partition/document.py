"""The document's own program, on this library: run by itself, it prints what the document prints."""

from collections import Counter

from tenantry.partition import Layout, Placement

PLACEMENT = Placement(
    [
        Layout(32, {"tenant-A": 4}, effective_from=0),
        Layout(32, {"tenant-A": 8}, effective_from=1_700_000_000),
    ]
)
T_OLD, T_NEW = 1_690_000_000, 1_710_000_000


def main() -> None:
    place = PLACEMENT.partition_for
    for tenant in ("tenant-A", "tenant-B"):
        print(tenant, "allowed set (new config):", list(PLACEMENT.where_at(tenant, None, T_NEW)))
        for i in range(5):
            message = f"msg-{i}"
            old, new = place(tenant, message, T_OLD), place(tenant, message, T_NEW)
            print(f"  {message}: old={old:2d}  new={new:2d}")
    for tenant in ("tenant-A", "tenant-B"):
        used = Counter(place(tenant, f"m{i}", T_NEW) for i in range(10_000))
        share = 100 * max(used.values()) / 10_000
        print(tenant, "partitions used:", len(used), f"max share: {share:.1f}%")
    before = PLACEMENT.where_at("tenant-A", None, T_OLD)
    subset = set(before) <= set(PLACEMENT.where_at("tenant-A", None, T_NEW))
    print("old set:", list(before), "subset of new:", subset)
    events = [f"m{i}" for i in range(10_000)]
    moved = sum(place("tenant-A", each, T_OLD) != place("tenant-A", each, T_NEW) for each in events)
    print("messages whose partition changed at widening:", moved, "of 10000")
    again = [place("tenant-A", each, T_NEW) for each in events[:1000]]
    batch = PLACEMENT.partitions_for(("tenant-A", each, T_NEW) for each in events[:1000])
    print("deterministic:", again == batch)


if __name__ == "__main__":
    main()
