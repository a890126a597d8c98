"""A pytest plugin: examples that fail are reported as they were found, which is quicker."""

from hypothesis import Phase, settings

settings.register_profile("unshrunk", phases=(Phase.explicit, Phase.generate))
settings.load_profile("unshrunk")
