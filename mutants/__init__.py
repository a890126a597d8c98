"""Small wrong changes to the library, each of which the tests must notice: see docs/mutants.md."""
