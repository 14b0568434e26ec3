# Entry points; CMake does the work. `make help` lists them.
BUILD      ?= build
BUILD_TYPE ?= Release
CMAKE      := $(CURDIR)/.venv/bin/cmake
CTEST      := $(CURDIR)/.venv/bin/ctest
NINJA      := $(CURDIR)/.venv/bin/ninja
PYTHON     := $(CURDIR)/.venv/bin/python

JOBS       ?= $(shell nproc)
# configured, TESTS: configures once; a build that has the tests keeps them.
configured  = $(CMAKE) -S . -B $(BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(NINJA) -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) \
	  -DPython3_EXECUTABLE=$(PYTHON) -DHALFTONE_TESTS=$(1) --log-level=WARNING
minutes     = scripts/minutes run $(BUILD)

.PHONY: all deps build demo demo-chat configure-tests build-tests test test-long bench bench-kernels bench-peers bench-suite performance accuracy operator-table format clean help

all: build

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

deps: ## install what the program needs and is missing: Debian packages, .venv with torch
	@scripts/setup base

build: deps ## the library and the program, into build/
	@[ -f $(BUILD)/build.ninja ] || $(call configured,OFF)
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target halftone_cli

demo: ## from a clone to the first result: fetch a real model, inspect it, run it beside eager, tune it, deploy it
	@scripts/minutes begin $(BUILD)
	@$(minutes) "set-up" scripts/setup base
	@[ -f $(BUILD)/build.ninja ] || $(minutes) "configuring" $(call configured,OFF)
	@$(minutes) "building" $(CMAKE) --build $(BUILD) --parallel $(JOBS) --target halftone_cli embed_sentences
	@$(minutes) "the demo itself" scripts/demo $(BUILD)
	@scripts/minutes show $(BUILD)

demo-chat: ## a chat with a small language model: fetch SmolLM2-135M-Instruct (90 MB), ask it three questions
	@scripts/minutes begin $(BUILD)
	@$(minutes) "set-up" scripts/setup base chat
	@[ -f $(BUILD)/build.ninja ] || $(minutes) "configuring" $(call configured,OFF)
	@$(minutes) "building" $(CMAKE) --build $(BUILD) --parallel $(JOBS) --target halftone_cli
	@$(minutes) "the demo itself" scripts/demo_chat $(BUILD)
	@scripts/minutes show $(BUILD)

configure-tests:
	@scripts/setup base test
	@grep -qs '^HALFTONE_TESTS:BOOL=ON' $(BUILD)/CMakeCache.txt && [ -f $(BUILD)/build.ninja ] || $(call configured,ON)

build-tests: configure-tests ## everything: library, program, tests, examples, benchmarks
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS)

# Two tests at a time on few cores: OpenMP threads that spin while they wait would take the other test's core.
test test-long: export OMP_WAIT_POLICY = passive

test: ## everything from a clone to the last test (what CI runs): dependencies, build, tests; says where the minutes went
	@scripts/minutes begin $(BUILD)
	@$(minutes) "set-up" $(MAKE) --no-print-directory configure-tests
	@$(minutes) "building" $(CMAKE) --build $(BUILD) --parallel $(JOBS)
	@$(minutes) "tests" $(CTEST) --test-dir $(BUILD) --parallel 2 --output-on-failure --no-tests=error -LE long; \
	  code=$$?; scripts/minutes show $(BUILD); exit $$code

test-long: build-tests ## the tests that take hours too: ten million fuzz inputs, a million hostile files under sanitizers, …
	@$(CTEST) --test-dir $(BUILD) --parallel 2 --output-on-failure --no-tests=error

bench: build-tests ## our benchmarks, with their limits
	@scripts/bench $(BUILD)

bench-kernels: build-tests ## every kernel beside the machine's limits and ATen's kernels
	@scripts/bench_kernels $(BUILD)

bench-peers: build-tests ## kernels, MiniLM and ViT-B/16 beside PyTorch, ONNX Runtime and OpenVINO, in an environment of their own
	@scripts/bench_kernels $(BUILD) --ort
	@scripts/bench_encoder $(BUILD) --peers
	@scripts/bench_vision $(BUILD) --peers

bench-suite: build-tests ## the whole suite of halftone bench: CSV, JSON and HTML in build/bench, its table in docs/performance.md
	@scripts/bench_suite $(BUILD)

performance: build-tests ## everything that bench-peers and the load benchmark measure, as docs/performance.md; wants a quiet machine
	@scripts/performance $(BUILD) docs/performance.md

accuracy: build-tests ## what each scheme does to MiniLM on real sentences; writes docs/accuracy.md
	@scripts/accuracy $(BUILD) --count 200 --markdown docs/accuracy.md

operator-table: configure-tests ## what graphs from files may call, from the schemas of this torch; review what changed
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target list_operators
	@$(BUILD)/bin/list_operators > $(BUILD)/allowed_operators.inc
	@mv $(BUILD)/allowed_operators.inc src/graph/checks/allowed_operators.inc

format: ## clang-format everything
	@scripts/setup lint
	@git ls-files -co --exclude-standard '*.cpp' '*.h' | xargs clang-format-14 -i

clean: ## remove the build
	@rm -rf $(BUILD) build-*

.PHONY: docs lint

docs: ## the reference of the C++ headers, with doxygen, in build/docs/html
	@scripts/setup docs
	@mkdir -p build/docs
	@doxygen docs/Doxyfile
	@echo "docs: build/docs/html/index.html"

lint: ## format, layer rule, duplicates, operator names, Python syntax, clang-tidy on what changed since the last tag (scripts/lint --all: on everything)
	@scripts/setup base lint
	@scripts/lint

.PHONY: package wheel
package: ## a Debian package and a tarball into build/packages, for machines that have torch
	@scripts/setup package
	@$(MAKE) --no-print-directory build
	@cd $(BUILD) && $(dir $(CMAKE))cpack

wheel: ## the Python package with library and program, for the torch and the Python in .venv, into build/wheels
	@scripts/setup base python
	@grep -qs '^HALFTONE_PYTHON:BOOL=ON' $(BUILD)/CMakeCache.txt && [ -f $(BUILD)/build.ninja ] || $(CMAKE) -S . -B $(BUILD) -G Ninja \
	  -DCMAKE_MAKE_PROGRAM=$(NINJA) -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DPython3_EXECUTABLE=$(PYTHON) -DHALFTONE_PYTHON=ON \
	  $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DHALFTONE_TESTS=OFF) --log-level=WARNING
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target halftone_cli halftone_python
	@$(PYTHON) scripts/make_wheel $(BUILD)

.PHONY: test-python-zoo
test-python-zoo: build-tests ## architectures of transformers and timm with random weights through torch.compile, in an environment of its own
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target halftone_python
	@ZOO_VENV=$(BUILD)/zoo-venv python/tests/zoo/run $(PYTHON) $(BUILD)/python --json $(BUILD)/zoo.json
