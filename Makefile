# For people. A target installs what is missing (tools/setup), configures, builds and runs.
.DEFAULT_GOAL := help
.PHONY: help build demo test bench seeds golden debug asan tsan low-memory fuzz fuzzers format clean parity parity-torch

# $(call build,preset,folder,targets): Ninja runs CMake again when a CMake file changes; only the presets are beyond its
# sight, hence the comparison of dates.
define build
@tools/setup $(4)
@[ $(2)/build.ninja -nt CMakePresets.json ] || cmake --preset $(1)
cmake --build $(2) --parallel $(or $(JOBS),$(shell nproc)) $(addprefix --target ,$(3))
endef
CTEST := ctest -j2 --output-on-failure --test-dir

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

build:  ## the library, the tools, the Python package and the tests, in build/
	$(call build,release,build,,python)

demo:  ## trains a small network, eager and compiled, and prints a table
	$(call build,release,build,demo)
	@build/demo

test: build  ## every test that runs on a machine without a GPU
	@$(CTEST) build

bench:  ## measures, prints a table and writes build/bench.json
	$(call build,release,build,tenon_bench)
	@build/bench/bench --json build/bench.json

seeds:  ## counts the cases of the seed documents that have a passing test
	$(call build,release,build,tests_seeds_if_any)
	@tools/seeds --build build

golden:  ## writes the expected texts of tests/golden anew; read the difference before you commit it
	$(call build,release,build,tests_golden)
	@TENON_UPDATE_GOLDEN=1 build/tests_golden --gtest_brief=1
	@git diff --stat -- tests/golden

parity-torch: build  ## every operator of PyTorch's samples through torch.compile(backend="tenon"), SAMPLES (8) of each
	$(if $(TENON_PEER_PYTHON),,$(error make parity-torch needs TENON_PEER_PYTHON: a Python with PyTorch 2.13))
	@PYTHONPATH=build/python $(TENON_PEER_PYTHON) tools/parity_torch --samples $(or $(SAMPLES),8) \
	  $(if $(DYNAMIC),--dynamic)

parity:  ## calls that PyTorch's own samples make, replayed, eager and compiled; SEED (1) draws others, MOST (60) a kind
	$(if $(TENON_PEER_PYTHON),,$(error make parity needs TENON_PEER_PYTHON: a Python with PyTorch 2.13 and expecttest))
	$(call build,release,build,parity)
	@$(TENON_PEER_PYTHON) tools/parity/record.py --out build/parity_calls --seed $(or $(SEED),1) --most $(or $(MOST),60)
	@build/parity build/parity_calls --compiled --known tools/parity/known.txt > build/parity_compiled.txt
	@build/parity build/parity_calls --known tools/parity/known.txt
	@echo "compiled: $$(tail -n 1 build/parity_compiled.txt) (build/parity_compiled.txt)"

debug:  ## the tests without optimisation, in build/debug
	$(call build,debug,build/debug)
	@$(CTEST) build/debug

asan:  ## the tests under the address and undefined-behaviour sanitizers, in build/asan
	$(call build,asan,build/asan)
	@$(CTEST) build/asan

tsan:  ## the tests under the thread sanitizer, in build/tsan
	$(call build,tsan,build/tsan)
	@$(CTEST) build/tsan

low-memory:  ## every test with allocations that fail at a point drawn by SEED (1)
	$(call build,release,build)
	cmake --build build --target failing_allocator
	@tools/low_memory --seed $(or $(SEED),1)

fuzz:  ## runs COUNT (20000) random programs, from seed SEED (1) on: eager and compiled must agree; PEER=1: and PyTorch
	$(if $(PEER),$(if $(TENON_PEER_PYTHON),,$(error make fuzz PEER=1 needs TENON_PEER_PYTHON: a Python with PyTorch 2.13)))
	$(call build,release,build,tests_fuzz)
	@TENON_FUZZ_COUNT=$(or $(COUNT),$(if $(PEER),5000,20000)) TENON_FUZZ_SEED=$(or $(SEED),1) \
	  $(if $(PEER),TENON_FUZZ_PEER=1) build/tests_fuzz --gtest_brief=1 --gtest_filter='$(if $(PEER),Peer,Seeds/)*'

fuzzers:  ## builds the libFuzzer targets with clang-19, in build/fuzz
	$(call build,fuzz,build/fuzz,,fuzz)

format:  ## clang-format on every source file
	@tools/setup format
	git ls-files '*.cpp' '*.h' | xargs clang-format-19 -i

clean:  ## removes the build folder
	rm -rf build
