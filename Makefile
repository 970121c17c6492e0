# What there is to do here. Everything works from a clean clone with Rust, Python, Node and gcc;
# what else the tests need is installed by name into .cache and kept between runs.

SHELL := /bin/bash
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export WINDROW := $(CARGO_TARGET_DIR)/release/windrow
BENCH := $(CARGO_TARGET_DIR)/release/windrow-bench
PYTHON := .cache/venv/bin/python
RESULTS := bench/out/results.jsonl
WORKLOADS := w1 w1-report w2 w3 w4 w5 w7 w8 w9 reads concurrency space
BENCHES := $(addprefix bench-,$(WORKLOADS))
W6_BENCHES := bench-w6-words bench-w6-latency bench-w6-memory

# make run FOLDER=~/Documents
FOLDER ?=
# make serve DATA=… LISTEN=…
DATA ?= $(HOME)/.local/share/windrow
LISTEN ?= 127.0.0.1:27017
# The page for browsers; make serve WEB= serves none.
WEB ?= 127.0.0.1:8080
# make bench-w8 ARGUMENTS="--cases find --connections 1,8,64"
ARGUMENTS ?=
# make simulate SEEDS=10000 FIRST=1
SEEDS ?= 1000
FIRST ?= 1
# make soak ROUNDS=1000
ROUNDS ?= 100
# make fuzz TARGET=filter SECONDS=3600
TARGET ?=
SECONDS ?= 60

.PHONY: help build run serve screenshots test test-rust test-wire lint rivals rival-tantivy corpus inside oracle oracle-floor simulate soak test-cluster fuzz bench-w6 bench-page $(W6_BENCHES) $(BENCHES)

help:
	@echo 'make run [FOLDER=…]   index a folder, search it, build a text index over the wire'
	@echo 'make serve            a server on $(LISTEN), its data in $(DATA),'
	@echo '                      and a page for browsers on $(WEB)'
	@echo 'make test             everything that CI runs'
	@echo 'make screenshots      the pictures of the page in docs/images'
	@echo 'make lint             formatting, clippy, links in documentation, licences'
	@echo 'make oracle           recorded conversations with MongoDB: what passes, by area'
	@echo 'make oracle-floor     raise tests/oracle-floor.txt to what passes now'
	@echo 'make simulate SEEDS=…  the engine on a simulated disk, and servers over a simulated object store'
	@echo 'make soak             a loaded server is killed $(ROUNDS) times, and so is windrow index; nothing'
	@echo '                      is lost'
	@echo 'make test-cluster ARGUMENTS="--seconds 120"  servers over a Ceph cluster (apt-get install ceph-mon'
	@echo '                      ceph-mgr ceph-osd radosgw ceph-common), killed in turn for 10 minutes'
	@echo 'make fuzz TARGET=… SECONDS=…  run libFuzzer on a fuzz target, see fuzz/fuzz_targets; needs a'
	@echo '                      nightly compiler and cargo-fuzz'
	@echo 'make rival-tantivy corpus bench-w7  search in text beside tantivy, on Debian documentation'
	@echo 'make bench-w6         folders of files, beside recollindex; ARGUMENTS="--kinds html,pdf"'
	@echo 'make bench-w6-words bench-w6-latency bench-w6-memory  words that recollindex finds and Windrow does'
	@echo '                      not; searches among 200,000 files; memory of the whole process tree'
	@echo 'make bench-page       the page for browsers: search while typing, many open pages'
	@echo 'make bench-w1 …       a workload beside its baseline; ARGUMENTS="--documents 1000"; there are'
	@echo '                      $(WORKLOADS)'

build:
	cargo build --release -p windrow -p windrow-bench

run: build rivals
	bench/run.sh $(if $(FOLDER),"$(FOLDER)")

serve: build
	mkdir -p "$(DATA)"
	exec $(WINDROW) serve --data "$(DATA)" --listen $(LISTEN) $(if $(WEB),--web $(WEB))

test: lint test-rust test-wire

test-rust:
	cargo test --workspace --quiet

# Everything that needs the server's binary: pytest's closing line counts it all. Most tests wait
# most of the time, so two processes share the files. Long files are early in the alphabet.
test-wire: build rivals .cache/venv/ready .cache/mongosh/ready .cache/page/ready
	$(PYTHON) -m pytest tests --numprocesses 2 --dist loadfile --no-loadscope-reorder

# The pictures of the page in docs/images.
screenshots: build .cache/venv/ready .cache/page/ready
	$(PYTHON) tests/page/screenshots.py

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	cargo clippy --manifest-path bench/inside/Cargo.toml --quiet -- -D warnings
	@if mdbook --version >/dev/null 2>&1; then mdbook build docs/guide; \
	else echo 'mdbook is not installed: tests/guide alone checks the links and examples of the guide'; fi
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; \
	else echo 'cargo-deny is not installed: licences are checked by tests/test_licences.py alone'; fi

# A hundred kills of a loaded server, and of `windrow index` while files change.
soak: build .cache/venv/ready
	CRASH_ROUNDS=$(ROUNDS) $(PYTHON) -m pytest tests/crash
	FOLDER_ROUNDS=$(ROUNDS) $(PYTHON) -m pytest tests/folders/test_killed.py

# Servers over a Ceph cluster on the loopback addresses. Needs root for the daemons' addresses and
# about 3 GB of memory.
test-cluster: build .cache/venv/ready
	$(PYTHON) tests/cluster/run.py $(ARGUMENTS)

oracle: build .cache/venv/ready
	$(PYTHON) tests/oracle/replay.py $(ARGUMENTS)

# With assertions: see the profile.
simulate:
	cargo run --profile simulation -p windrow-simulation -- --seeds $(SEEDS) --first $(FIRST)
	cargo run --profile simulation -p windrow-simulation -- --servers --steps 1000 \
		--seeds $(SEEDS) --first $(FIRST)

# Inputs that reveal bugs are in fuzz/artifacts; `fuzz/corpus.py line` prints the line to save.
fuzz:
	python3 fuzz/corpus.py unpack $(TARGET)
	cargo +nightly fuzz run -s none --fuzz-dir fuzz $(TARGET) -- \
		-max_total_time=$(SECONDS) -timeout=15 -rss_limit_mb=3000 -max_len=600

oracle-floor: build .cache/venv/ready
	$(PYTHON) tests/oracle/replay.py --write-floor

rivals:
	@bench/rivals.sh

bench-w1-report bench-w7: inside

# Not among the others, as the next: compiling them takes minutes.
inside:
	cargo build --release --manifest-path bench/inside/Cargo.toml --target-dir bench/out/inside-target
	cp bench/out/inside-target/release/inside bench/out/inside-target/release/inside-search bench/out/

rival-tantivy:
	cargo build --release --manifest-path bench/rivals/tantivy/Cargo.toml --target-dir bench/out/tantivy-target
	cp bench/out/tantivy-target/release/tantivy-rival bench/out/tantivy
	cp bench/out/tantivy-target/release/tantivy-search bench/out/tantivy-search

# The text of Debian's documentation packages for W7, 320 MB, kept in bench/out/corpus.
corpus:
	@bench/corpus.sh

# W6: folders of files beside recollindex (apt install recollcmd). The files are kept in bench/out/w6.
bench-w6: build
	python3 bench/w6/corpus.py
	python3 bench/w6/run.py --windrow $(WINDROW) $(ARGUMENTS)

# The page for browsers, on the files of bench-w6-latency.
bench-page: build .cache/venv/ready .cache/page/ready
	$(PYTHON) bench/page/measure.py --windrow $(WINDROW) $(ARGUMENTS)

# On the same files. words.py needs recollindex, too.
$(W6_BENCHES): bench-w6-%: build .cache/venv/ready
	python3 bench/w6/corpus.py
	$(PYTHON) bench/w6/$*.py --windrow $(WINDROW) $(ARGUMENTS)

$(BENCHES): bench-%: build rivals
	$(BENCH) $* --server $(WINDROW) --results $(RESULTS) $(ARGUMENTS)

.cache/venv/ready: tests/requirements.txt
	tests/python.sh

.cache/mongosh/ready: tests/mongosh/version
	rm -rf .cache/mongosh
	mkdir -p .cache/mongosh
	npm install --silent --no-save --prefix .cache/mongosh "mongosh@$$(cat tests/mongosh/version)"
	touch $@

.cache/page/ready: tests/page/install.sh
	tests/page/install.sh
