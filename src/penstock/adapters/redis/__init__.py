"""The queue in Redis or Valkey; `lua/` has its operations, `lua/common/` the rules they share."""

from penstock.adapters.redis.queue import RedisQueue

__all__ = ["RedisQueue"]
