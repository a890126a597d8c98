# Everything here works on a bare machine with Python 3.11 or newer and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One lock for users' commands, one for developers'; both are hashed and hold no addresses.
RUN_READY := $(VENV)/.run-ready
DEV_READY := $(VENV)/.dev-ready

# Every process of the tests would compile what it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint unit coverage test-long test-gpu mutants bench soak figures docs lock clean

demo: $(RUN_READY)
	$(BIN)/coinhaze demo -o coinhaze-demo

test: $(DEV_READY)
	$(MAKE) -j2 lint docs
	$(MAKE) unit

lint: $(DEV_READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests of a file share what they build, so one process has them all.
unit: $(DEV_READY)
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --few-examples -m "not long and not gpu"

# What takes minutes, and every example of the properties that `unit` tries on a few.
test-long: $(DEV_READY)
	$(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder --compiled -m "(long or hypothesis) and not gpu"

# Lines and branches that `make unit` runs, by package; TESTS="tests/store" takes a part of it.
TESTS ?=
coverage: $(DEV_READY)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 --dist loadfile --no-loadscope-reorder --few-examples -m "not long and not gpu" $(TESTS)
	$(BIN)/coverage combine -q
	$(BIN)/python tests/covered.py

# On a machine with a GPU and CuPy: pip install -e '.[gpu]'.
test-gpu: $(DEV_READY)
	$(BIN)/pytest -m gpu

# Small wrong changes, each of which some test must notice; at most 20 minutes on two cores.
mutants: $(DEV_READY)
	$(BIN)/python -m mutants

# A fraction of a week: `make bench SIZE=0.1` takes minutes, a whole week half an hour.
SIZE ?= 1
bench: $(DEV_READY)
	$(BIN)/python -m benchmarks.side_by_side --size $(SIZE)
	$(BIN)/python -m benchmarks.growth --size $(SIZE)
	$(BIN)/python -m benchmarks.previews --size $(SIZE)
	$(BIN)/python -m benchmarks.history
	$(BIN)/python -m benchmarks.following
	$(BIN)/python -m benchmarks.one_coin --size $(SIZE)
	$(BIN)/python -m benchmarks.building --size $(SIZE)
	$(BIN)/python -m benchmarks.ingesting --size $(SIZE)
	$(BIN)/python -m benchmarks.lots --size $(SIZE)

# Ten minutes of mixed requests to the page; fails if its memory grows.
soak: $(DEV_READY)
	$(BIN)/python -m benchmarks.soak

# The pictures of the docs, from simulated weeks and, where COINHAZE_DATA names them, real sets.
figures: $(DEV_READY)
	set -e; for script in docs/figures/*.py; do $(BIN)/python $$script; done

docs: $(DEV_READY)
	$(BIN)/sphinx-build -W -q -b html docs docs/_build

$(BIN)/uv: requirements/bootstrap.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coinhaze needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/bootstrap.txt
	touch $@

$(RUN_READY): $(BIN)/uv requirements/run.txt pyproject.toml
	test -e $(DEV_READY) || $(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/run.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $@

$(DEV_READY): $(BIN)/uv requirements/dev.txt pyproject.toml
	$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes requirements/dev.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $@ $(RUN_READY)

COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock: $(BIN)/uv
	$(COMPILE) requirements/bootstrap.in -o requirements/bootstrap.txt
	$(COMPILE) .ci/electrumx.in -o .ci/electrumx.txt
	$(COMPILE) --extra figures --extra keys --extra labels --extra nodes --extra page pyproject.toml requirements/run.in -o requirements/run.txt
	$(COMPILE) --extra cluster --extra figures --extra keys --extra labels --extra nodes --extra page pyproject.toml requirements/dev.in -o requirements/dev.txt

clean:
	rm -rf $(VENV) coinhaze-demo docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
