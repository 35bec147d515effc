-- One tenant is one hash: a field b:NAME for each bucket, a field n:NODE for each node's last answer.
-- A bucket is {tokens, at, base, capacity, {node, held, expires_at, ...}}, packed. The arithmetic is that of
-- tenantry.limiter.exchange; one suite of tests holds the two together.

local REMEMBERED_FOR = 60
local LEDGER_DAYS = 35
local DUST = 1e-9

local function text(number)
  return string.format('%.17g', number)
end

-- The balance of a bucket at `now`: refilled, expired leases returned. Also how much those were.
local function balance(key, name, base, capacity, now)
  local packed = redis.call('HGET', key, 'b:' .. name)
  if not packed then
    return { tokens = capacity, leases = {} }, 0
  end
  local kept = cmsgpack.unpack(packed)
  local tokens = math.min(capacity, kept[1] + math.max(0, now - kept[2]) * base)
  local leases, lapsed = {}, 0
  for i = 1, #kept[5], 3 do
    if kept[5][i + 2] <= now then
      lapsed = lapsed + kept[5][i + 1]
    else
      leases[kept[5][i]] = { kept[5][i + 1], kept[5][i + 2] }
    end
  end
  return { tokens = math.min(capacity, tokens + lapsed), leases = leases }, lapsed
end

local function keep(key, name, base, capacity, now, here)
  local leases = {}
  for node, lease in pairs(here.leases) do
    leases[#leases + 1] = node
    leases[#leases + 1] = lease[1]
    leases[#leases + 1] = lease[2]
  end
  redis.call('HSET', key, 'b:' .. name, cmsgpack.pack({ here.tokens, now, base, capacity, leases }))
end

-- The key lives until everything in it says no more than nothing would.
local function keep_for(key, seconds)
  local milliseconds = math.ceil(math.min(seconds, 1e9) * 1000)
  if redis.call('PTTL', key) < milliseconds then
    redis.call('PEXPIRE', key, milliseconds)
  end
end

local function full_in(tokens, base, capacity)
  return math.max(0, capacity - tokens) / base
end

-- Adds to the ledger; a day that is over 35 days old goes when a new one begins.
local function book(ledger, name, now, entries)
  local day = math.floor(now / 86400)
  if redis.call('HGET', ledger, 'day') ~= tostring(day) then
    for _, field in ipairs(redis.call('HKEYS', ledger)) do
      local of = tonumber(string.match(field, '^(%d+)|'))
      if of and of < day - LEDGER_DAYS then
        redis.call('HDEL', ledger, field)
      end
    end
    redis.call('HSET', ledger, 'day', day)
    redis.call('PEXPIRE', ledger, (LEDGER_DAYS + 1) * 86400000)
  end
  for what, amount in pairs(entries) do
    if amount ~= 0 then
      redis.call('HINCRBYFLOAT', ledger, day .. '|' .. what .. '|' .. name, text(amount))
    end
  end
end

-- Whether a bucket says no more than a new one would (no live lease, and full), and what its leases returned.
local function idle(kept, now)
  local lapsed = 0
  for i = 1, #kept[5], 3 do
    if kept[5][i + 2] > now then
      return false, 0
    end
    lapsed = lapsed + kept[5][i + 1]
  end
  return kept[1] + (now - kept[2]) * kept[3] + lapsed >= kept[4], lapsed
end

-- Once a second at most: look at a few fields and drop full buckets and nodes that have long been silent.
local function sweep(key, now, ledger)
  local swept = redis.call('HGET', key, 's')
  local last, cursor = 0, '0'
  if swept then
    local kept = cmsgpack.unpack(swept)
    last, cursor = kept[1], kept[2]
  end
  if now < last + 1 then
    return
  end
  local found = redis.call('HSCAN', key, cursor, 'COUNT', 32)
  for i = 1, #found[2], 2 do
    local field, value = found[2][i], found[2][i + 1]
    local kind = string.sub(field, 1, 2)
    if kind == 'n:' and cmsgpack.unpack(value)[2] + REMEMBERED_FOR < now then
      redis.call('HDEL', key, field)
    elseif kind == 'b:' then
      local drops, lapsed = idle(cmsgpack.unpack(value), now)
      if drops then
        redis.call('HDEL', key, field)
        if ledger then
          book(ledger, string.sub(field, 3), now, { lapsed = lapsed })
        end
      end
    end
  end
  redis.call('HSET', key, 's', cmsgpack.pack({ now, found[1] }))
end
