-- A node is there. KEYS: the nodes. ARGV: node, for how many seconds. Answers how many nodes are.
local now = clock()
redis.call('ZADD', KEYS[1], text(now + tonumber(ARGV[2])), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now))
redis.call('PEXPIRE', KEYS[1], 3600000)
return redis.call('ZCARD', KEYS[1])
