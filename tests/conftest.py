"""Settings of the whole suite: reproducible examples, pictures without a display."""

import matplotlib
from hypothesis import HealthCheck, settings

matplotlib.use("Agg")
settings.register_profile(
    "everyday", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("everyday")
