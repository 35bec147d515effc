-- One exact decision: every limit is charged, or none. KEYS: the tenant, its ledger, this decision.
-- ARGV: cost, whether to book, and for each bucket: name, base, capacity.
-- Answers whether it is allowed, in how many seconds it would be, and which bucket refused (its place).

local tenant, ledger, decision = KEYS[1], KEYS[2], KEYS[3]
local cost, now = tonumber(ARGV[1]), clock()

-- The same decision asked again is not charged again.
local known = redis.call('GET', decision)
if known then
  return known
end

local balances, longest, refused = {}, 0, 0
for i = 3, #ARGV, 3 do
  local base, capacity = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local here, lapsed = balance(tenant, ARGV[i], base, capacity, now)
  if ARGV[2] == '1' then
    book(ledger, ARGV[i], now, { lapsed = lapsed })
  end
  local waits = cost > capacity and math.huge or math.max(0, cost - DUST - here.tokens) / base
  if waits > longest then
    longest, refused = waits, (i - 3) / 3
  end
  balances[i] = here
end

local lives = REMEMBERED_FOR
for i = 3, #ARGV, 3 do
  local name, base, capacity, here = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), balances[i]
  if longest == 0 then
    here.tokens = here.tokens - cost
    if ARGV[2] == '1' then
      book(ledger, name, now, { exact = cost })
    end
  end
  keep(tenant, name, base, capacity, now, here)
  for _, lease in pairs(here.leases) do
    lives = math.max(lives, lease[2] - now)
  end
  lives = math.max(lives, full_in(here.tokens, base, capacity))
end

local told = (longest == 0 and '1' or '0') .. ' ' .. text(longest) .. ' ' .. text(refused)
redis.call('SET', decision, told, 'PX', REMEMBERED_FOR * 1000)
keep_for(tenant, lives)
sweep(tenant, now, ARGV[2] == '1' and ledger)
return told
