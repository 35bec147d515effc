"""The only importer of the Redis client."""
