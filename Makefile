# Entry points; CMake does the work. `make help` lists them.
BUILD      ?= build
BUILD_TYPE ?= Release
CMAKE      := $(CURDIR)/.venv/bin/cmake
CTEST      := $(CURDIR)/.venv/bin/ctest
NINJA      := $(CURDIR)/.venv/bin/ninja
PYTHON     := $(CURDIR)/.venv/bin/python

.PHONY: all setup configure build demo test test-long bench bench-kernels bench-peers bench-suite performance accuracy format lint clean help

all: build

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: ## install what is missing: Debian packages, .venv with torch 2.13
	@scripts/setup

configure: setup
	@[ -f $(BUILD)/build.ninja ] || $(CMAKE) -S . -B $(BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(NINJA) -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) \
	  -DPython3_EXECUTABLE=$(PYTHON)

build: configure ## build everything into build/
	@$(CMAKE) --build $(BUILD)

demo: build ## fetch the default model, inspect it, run it beside eager, tune it, and deploy what came out
	@scripts/demo $(BUILD)

# Two tests at a time on few cores: OpenMP threads that spin while they wait would take the other test's core.
test test-long: export OMP_WAIT_POLICY = passive

test: build ## all tests (what CI runs)
	@$(CTEST) --test-dir $(BUILD) --parallel 2 --output-on-failure --no-tests=error -LE long

test-long: build ## the tests that take hours too: ten million fuzz inputs, …
	@$(CTEST) --test-dir $(BUILD) --parallel 2 --output-on-failure --no-tests=error

bench: build ## our benchmarks, with their limits
	@scripts/bench $(BUILD)

bench-kernels: build ## every kernel beside the machine's limits and ATen's kernels
	@scripts/bench_kernels $(BUILD)

bench-peers: build ## kernels, MiniLM and ViT-B/16 beside PyTorch, ONNX Runtime and OpenVINO, in an environment of their own
	@scripts/bench_kernels $(BUILD) --ort
	@scripts/bench_encoder $(BUILD) --peers
	@scripts/bench_vision $(BUILD) --peers

bench-suite: build ## the whole suite of halftone bench: CSV, JSON and HTML in build/bench, its table in docs/performance.md
	@scripts/bench_suite $(BUILD)

performance: build ## everything that bench-peers and the load benchmark measure, as docs/performance.md; wants a quiet machine
	@scripts/performance $(BUILD) docs/performance.md

accuracy: build ## what each scheme does to MiniLM on real sentences; writes docs/accuracy.md
	@scripts/accuracy $(BUILD) --count 200 --markdown docs/accuracy.md

format: setup ## clang-format everything
	@git ls-files -co --exclude-standard '*.cpp' '*.h' | xargs clang-format-14 -i

lint: configure ## clang-format in check mode, clang-tidy, layer rule
	@scripts/lint $(BUILD)

clean: ## remove the build
	@rm -rf $(BUILD) build-*

.PHONY: package
package: build ## a Debian package and a tarball into build/packages, for machines that have torch
	@cd $(BUILD) && $(dir $(CMAKE))cpack
