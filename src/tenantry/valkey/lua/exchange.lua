-- One node's ask about one tenant. KEYS: the tenant; its ledger, if there is one. ARGV: node, sequence, term, whether
-- to book, and for each bucket: name, base, capacity, need, want, spent, returned, charge, unleased.
-- Answers the sequence and for each bucket what is granted, in how many seconds, and the level.

local tenant, ledger = KEYS[1], KEYS[2]
local node, sequence, term = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now = clock()

-- A retry is answered as the first time and changes nothing.
local last = redis.call('HGET', tenant, 'n:' .. node)
if last then
  local kept = cmsgpack.unpack(last)
  if kept[1] >= sequence then
    redis.call('HSET', tenant, 'n:' .. node, cmsgpack.pack({ kept[1], now, kept[3] }))
    keep_for(tenant, REMEMBERED_FOR)
    return kept[3]
  end
end

-- Whole tokens that it has; else what is needed, reserved, where it will have that within half a term or where
-- nobody has reserved before.
local function granted(tokens, base, capacity, need, want)
  if need <= 0 then
    return 0, 0, tokens
  end
  if tokens >= need - DUST then
    local amount = math.max(need, math.min(want, math.floor(tokens + DUST)))
    return amount, 0, tokens - amount
  end
  if need > capacity then
    return 0, math.huge, tokens
  end
  local ready_in = (need - tokens) / base
  if ready_in <= term / 2 or tokens >= 0 then
    return need, ready_in, tokens - need
  end
  return 0, ready_in, tokens
end

local answer, longest = { tostring(sequence) }, REMEMBERED_FOR
for i = 5, #ARGV, 9 do
  local name, base, capacity = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local need, want = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
  local reported, given = tonumber(ARGV[i + 5]), tonumber(ARGV[i + 6])
  local charge, unleased = tonumber(ARGV[i + 7]), tonumber(ARGV[i + 8])
  local here, lapsed = balance(tenant, name, base, capacity, now)

  local held = here.leases[node] and here.leases[node][1] or 0
  local spent = math.min(reported, held)
  local returned = math.min(given, held - spent)
  local late = reported - spent
  local tokens = math.min(here.tokens + returned, capacity) - late - charge
  local amount, ready_in, level = granted(tokens, base, capacity, need, want)
  local keeps = held - spent - returned + amount
  here.tokens = math.min(level, capacity)
  here.leases[node] = nil
  if keeps > DUST then
    here.leases[node] = { keeps, now + (amount > 0 and ready_in or 0) + term }
    longest = math.max(longest, here.leases[node][2] - now)
  end
  keep(tenant, name, base, capacity, now, here)
  longest = math.max(longest, full_in(here.tokens, base, capacity))
  if ARGV[4] == '1' then
    book(ledger, name, now, {
      granted = amount, spent = spent, returned = returned, lapsed = lapsed, late = late, unleased = unleased,
    })
  end
  answer[#answer + 1] = text(amount)
  answer[#answer + 1] = text(ready_in)
  answer[#answer + 1] = text(level)
end

local told = table.concat(answer, ' ')
redis.call('HSET', tenant, 'n:' .. node, cmsgpack.pack({ sequence, now, told }))
keep_for(tenant, longest)
sweep(tenant, now, ARGV[4] == '1' and ledger)
return told
