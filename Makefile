# Everyday commands. The build itself is CMake's: see CMakeLists.txt and CMakePresets.json.
#
#   make            build everything into build/release
#   make demo       build, then show rlx at work
#   make check      the fast tests; SAN=1 with address and undefined sanitizers, SAN=thread
#   make test       all tests, sanitizers, checks of the tree, short fuzzing
#   make test-full  that and the long runs
#   make fuzz       every fuzz target, FUZZ_SECONDS=1200 long
#   make bench lint format coverage install clean
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
export JOBS

preset_ = release
preset_1 = asan
preset_thread = tsan
PRESET = $(or $(preset_$(SAN)),$(error SAN is 1, thread or not set, not "$(SAN)"))

all:
	@tools/build release

demo:
	@tools/setup build
	@tools/demo

check:
	@tools/setup build
	@tools/test-all check --preset $(PRESET)

test:
	@tools/setup test
	@tools/test-all test

test-full:
	@tools/setup test
	@tools/test-all full

FUZZ_SECONDS ?= 1200
fuzz:
	@tools/setup test
	@tools/build fuzz
	@tools/fuzz-kit build/fuzzkit
	@build/fuzzkit/run.sh $(FUZZ_SECONDS)

# A peer that cannot be installed is a line of the table that says so.
bench: all
	@tools/setup bench || true
	@tools/bench

lint:
	@tools/setup test
	@tools/lint

format:
	@tools/setup test
	@tools/format

coverage:
	@tools/setup build
	@tools/coverage

# DESTDIR is respected.
install: all
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build

.PHONY: all demo check test test-full fuzz bench lint format coverage install clean
