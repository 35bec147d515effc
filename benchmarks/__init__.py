"""One file a claim, each against its peers in one run, on one server. See ``docs/benchmarks.md``."""
