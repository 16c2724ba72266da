"""The queue in Redis or Valkey, shared by any number of processes on any number of machines."""

from penstock.adapters.redis.queue import RedisQueue

__all__ = ["RedisQueue"]
