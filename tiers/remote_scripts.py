"""What the server does in one go, as Lua: the index of one namespace changes together with the values, or not at all.

A namespace is four keys and a value a block. `index`: block keys by their stamp of last use; `tree`: parent key,
position and tenant of each (older programs leave the tenant out); `gone`: what was removed lately, by stamp, so that
those who follow the index can forget it; `meta`: the newest stamp, the stamp up to which `gone` was cut, and a name
that dies with the namespace. Stamps are microseconds of the server's clock, but always above the one before: all that
changed since a look has a stamp above that look's. Other keys of the server are never touched. Every script handles a
bounded number of blocks: others wait meanwhile.
"""

# Also where the server is out of memory: removing blocks is what helps then. (Redis 7 or Valkey.)
_PRELUDE = """#!lua flags=allow-oom
local index, tree, gone, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local values, ttl = ARGV[1], tonumber(ARGV[2])
local function number(stamp) return string.format('%.0f', stamp) end
local function stamps(count)
  local time = redis.call('TIME')
  local last = tonumber(redis.call('HGET', meta, 'last') or 0)
  local first = math.max(time[1] * 1000000 + time[2], last + 1)
  redis.call('HSET', meta, 'last', number(first + count - 1))
  return first
end
local function live_on()
  for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ttl + 60) end
end
local function remove(keys)
  local count = 0
  local stamp = stamps(#keys)
  for i, key in ipairs(keys) do
    if redis.call('ZREM', index, key) == 1 then
      redis.call('UNLINK', values .. key)
      redis.call('HDEL', tree, key)
      redis.call('ZADD', gone, number(stamp + i - 1), key)
      count = count + 1
    end
  end
  local over = redis.call('ZCARD', gone) - 10000
  if over > 0 then
    local cut = redis.call('ZPOPMIN', gone, over)
    redis.call('HSET', meta, 'cut', cut[#cut])
  end
  return count
end
"""

# ARGV: values, ttl, largest number of blocks, then key and place of each. → [first stamp, last, number trimmed]
ADD = (
    _PRELUDE
    + """
local count = (#ARGV - 3) / 2
local first = stamps(count)
for i = 0, count - 1 do
  local key = ARGV[4 + 2 * i]
  redis.call('ZADD', index, number(first + i), key)
  redis.call('HSET', tree, key, ARGV[5 + 2 * i])
  redis.call('ZREM', gone, key)
end
local over, trimmed = redis.call('ZCARD', index) - tonumber(ARGV[3]), 0
if over > 0 then trimmed = remove(redis.call('ZRANGE', index, 0, math.min(over, 500) - 1)) end
live_on()
return {number(first), number(first + count - 1), trimmed}
"""
)

# ARGV: values, ttl, then the keys of blocks that were used, longest ago first. → [first stamp, last]
TOUCH = (
    _PRELUDE
    + """
local count = #ARGV - 2
local first = stamps(count)
for i = 0, count - 1 do
  redis.call('ZADD', index, 'XX', number(first + i), ARGV[3 + i])
  redis.call('EXPIRE', values .. ARGV[3 + i], ttl + 30)
end
live_on()
return {number(first), number(first + count - 1)}
"""
)

# ARGV: values, ttl, then keys. → how many were there
REMOVE = (
    _PRELUDE
    + """
local keys = {}
for i = 3, #ARGV do keys[i - 2] = ARGV[i] end
return remove(keys)
"""
)

# ARGV: values, ttl, a new namespace's name, stamps beyond which to look in index and gone, largest number of blocks.
# → [name, newest stamp, stamp up to which gone was cut, number expired, number of blocks, records of the index, records
# of gone, whether there are more]. A record is key, place and stamp (a big-endian double), or key and stamp.
LOOK = (
    _PRELUDE
    + """
local limit = tonumber(ARGV[6])
redis.call('HSETNX', meta, 'name', ARGV[3])
local oldest = stamps(1) - ttl * 1000000
local expired = remove(redis.call('ZRANGEBYSCORE', index, '-inf', number(oldest), 'LIMIT', 0, 500))
live_on()
local found = redis.call('ZRANGEBYSCORE', index, '(' .. ARGV[4], '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
local records = {}
for i = 1, #found, 2 do
  local place = redis.call('HGET', tree, found[i])
  if place and #place == 20 then place = place .. string.rep('\\0', 32) end
  if place and #place == 52 then
    records[#records + 1] = found[i] .. place .. struct.pack('>d', tonumber(found[i + 1]))
  end
end
local left = redis.call('ZRANGEBYSCORE', gone, '(' .. ARGV[5], '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
local removed = {}
for i = 1, #left, 2 do removed[#removed + 1] = left[i] .. struct.pack('>d', tonumber(left[i + 1])) end
return {
  redis.call('HGET', meta, 'name'), redis.call('HGET', meta, 'last'), redis.call('HGET', meta, 'cut') or '0', expired,
  redis.call('ZCARD', index), table.concat(records), table.concat(removed),
  (#found == 2 * limit or #left == 2 * limit) and 1 or 0
}
"""
)
