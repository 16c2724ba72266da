"""Settings the unit tests share."""

from hypothesis import HealthCheck, settings

# The same examples on every run, and no limit on their time: the machine may be busy.
settings.register_profile(
    "penstock",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("penstock")
