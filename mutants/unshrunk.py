"""A pytest plugin: examples that fail are reported as they were found, which is quicker.

A slow machine is no reason to fail: what fails has noticed the mutant.
"""

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "unshrunk",
    phases=(Phase.explicit, Phase.generate),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unshrunk")
