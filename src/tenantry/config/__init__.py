"""The tenant document and the tiers as data: parsed, validated and frozen once, at the edge.

Authority: tiers and the tenant-to-tier mapping belong to the operator's registry. Nothing that a tenant
sends can change its weight. Every error names the path, the value, and the nearest key that exists.
"""
