# SPDX-License-Identifier: MIT
# A thin door to meson and ninja. `make` builds build/numabal; `make help` lists the rest.
#   BUILD=DIR             another build directory
#   FUZZ_SECONDS=N        seconds for each fuzzer (10)
#   NUMABAL_NO_INSTALL=1  never install packages
BUILD ?= build
FUZZ_SECONDS ?= 10
MESON_OPTIONS ?=
NINJA = ninja -C $(BUILD)

.PHONY: all help demo check check-faults check-programs bench-live fidelity bench fuzz asan format lint lab lab-check lab-fidelity lab-deps install clean

# The command and what it loads; the tests are built by `make check`.
all: $(BUILD)/build.ninja
	@$(NINJA) command

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || tools/install-deps build
	meson setup $(BUILD) $(MESON_OPTIONS)

help:
	@sed -n 's/^#   /  /p' Makefile
	@echo 'Targets: all demo check check-programs bench-live fidelity bench fuzz asan format lint lab lab-check lab-fidelity lab-deps install clean'

demo:
	@tools/install-deps build
	@$(MAKE) --no-print-directory all
	@tools/demo $(BUILD)

check:
	@tools/install-deps build check
	@tools/check $(BUILD)

# Real programs of Debian's, with numabal and without; those that are installed.
check-programs: all
	@$(NINJA) tests/live/bytes
	@tests/live/programs $(BUILD)/numabal

# What numabal costs settled programs here, with huge pages off and on: under 5 minutes. BENCH_LIVE="--part faults" for less.
bench-live: all
	@$(NINJA) tests/live/cost
	@tests/live/bench $(BUILD)/numabal $(BUILD)/tests/live/cost $(BENCH_LIVE)

# Helpers of the live machine stopped for ever in each of their system calls: 15 minutes. What it finds is a bug.
check-faults: all
	@$(NINJA)
	@tests/live/hunt $(BUILD)/numabal $(BUILD)/tests/live/libnumabal-run-inject.so $(BUILD)/tests/live/stress

fidelity: all
	@tests/fidelity/fidelity --numabal $(BUILD)/numabal
	@tests/fidelity/mainline --numabal $(BUILD)/numabal --iterations 2

bench:
	@tools/install-deps build bench
	@$(MAKE) --no-print-directory all
	@bench/run $(BUILD)

fuzz:
	@tools/install-deps build fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz build-fuzz

asan:
	@tools/install-deps build check
	@tools/check build-asan -Db_sanitize=address,undefined -Db_lundef=false

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

lint:
	@tools/install-deps lint
	@tools/lint

# lab/run's own programs and the lab's workloads (docs/lab.md).
lab: $(BUILD)/build.ninja
	@$(NINJA) lab

# The kernel's own balancing against numabal's, side by side: an hour. LAB_CHECK="--machine lab-2x2 --runs 1" for less.
lab-check: all lab
	@$(NINJA)
	@lab/check $(LAB_CHECK)

# The simulator against runs of the lab's kernel (docs/simulator.md): those in LAB_HAVE, and as many new ones in LAB_RUNS as
# are missing there. `make lab-fidelity LAB_HAVE=` makes them all, in hours.
LAB_HAVE ?= tests/data/lab
LAB_RUNS ?= out/lab
LAB_FIDELITY ?=
lab-fidelity: all
	@$(NINJA) lab
	@tests/fidelity/lab/runs --out $(LAB_RUNS) --have "$(LAB_HAVE)" --build $(BUILD)
	@tests/fidelity/lab/fidelity --numabal $(BUILD)/numabal --runs "$(LAB_HAVE)" --runs $(LAB_RUNS) $(LAB_FIDELITY)

# What lab/run needs: QEMU, a static busybox, and the kernel (fetched into a cache, not installed).
lab-deps:
	@tools/install-deps lab
	@lab/kernel

# Everything is built first: what is installed is more than the command.
install: all
	@$(NINJA)
	@meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) build-fuzz build-asan out
