# The two commands are `make backfill` and `make test`; each sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin
MATERIALIZE := $(BIN)/dagster asset materialize -m backfill_assets.definitions
export DAGSTER_HOME ?= $(CURDIR)

.PHONY: backfill cluster test test-sail test-spark drill drills campaign check check-code check-units check-spark lock

# ENGINE=sail needs no Java.
ENGINE ?= $(or $(BACKFILL_ENGINE),spark)
backfill: export BACKFILL_ENGINE := $(ENGINE)
backfill: check-spark
	$(BIN)/backfill-assets sample flights
	$(MATERIALIZE) --select 'key:"raw/flights"' --partition-range 2013-01-01...2013-02-02
	$(MATERIALIZE) --select 'key:"staging/flights",key:"features/carrier_delays"' --partition-range 2013-01-01...2013-01-31
	$(BIN)/backfill-assets status --from 2013-01-01 --to 2013-01-31

# A master, two workers and a Spark Connect server on loopback; January there, the same here, compared.
cluster: check-spark
	$(BIN)/python -m benchmarks.cluster_january

# Two processes with an engine each; a file of tests stays in one, which shares what its fixtures made.
# On Spark all that reads and writes tables; on Sail all that needs an engine.
test: check-spark check-code
	$(BIN)/pytest -m "not slow and not (spark and either_engine)" -n 2 --dist loadfile
	@$(MAKE) --no-print-directory test-sail

# What `make test` runs on Sail alone, on Spark, before a release.
test-spark: check-spark
	$(BIN)/pytest -m "spark and either_engine and not slow" -n 2 --dist loadfile

# Without Java.
test-sail: export BACKFILL_ENGINE := sail
test-sail: .venv/installed
	SPARK_HOME=/dev/null JAVA_HOME=/dev/null $(BIN)/pytest -q -m "spark and not slow and not only_spark" -n 2 --dist loadfile

# Runs killed with -9, a real daemon, January and a year, clusters, the pages. CI leaves out those by hand.
DRILLS ?= slow
drills: check-spark
	$(BIN)/pytest -m "$(DRILLS)" -n 2 --dist loadfile --no-loadscope-reorder

# Breaks a run, the daemon, the code server and a landed day at random, puts each right, and reports how long it took.
SEED ?= 0
drill: check-spark
	$(BIN)/python -m benchmarks.drill --seed $(SEED) --report drill.md

# Random faults over a small pipeline, for so many minutes, checked against a model of its own; see docs/operating.md.
MINUTES ?= 60
STORE ?= sqlite
campaign: check-spark
	$(BIN)/python -m benchmarks.campaign --minutes $(MINUTES) --seed $(SEED) --store $(STORE) --report campaign.json

# The loop while working: lint, contracts, types, and beside them the tests without Spark.
check: .venv/installed
	@$(MAKE) --no-print-directory -j2 check-code check-units

check-code: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/pyright

# Where Spark can't start: a test that wants it without being marked fails here. Samples land years.
check-units: .venv/installed
	SPARK_HOME=/dev/null $(BIN)/pytest -q -m "not spark and not slow" --ignore backfill_assets_tests/samples

# Says in one line what is missing, and fetches the Delta jars, before anything starts.
check-spark: .venv/installed
	@$(BIN)/backfill-assets check

.venv/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 to 3.13 is needed, this is %d.%d: set PYTHON, as in make PYTHON=python3.11" % sys.version_info[:2] if not (3, 11) <= sys.version_info < (3, 14) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-strip-extras --all-extras --output-file requirements.lock pyproject.toml

