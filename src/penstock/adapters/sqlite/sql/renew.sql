UPDATE processes SET heartbeat_at = :now, lease_until = :lease_until, status = :status
WHERE number = :member AND id = :id
