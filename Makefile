# Two commands for a newcomer: `make demo` and `make test`. Both install what they need, say so, and can be run again.

.PHONY: demo test lint unit e2e bench setup

demo: setup
	cargo run --locked --profile ci -p e2e -- demo

test: setup
	./.ci/test

lint unit e2e: setup
	./.ci/test $@

# Figures, with release builds; the one that measures is one too. BENCH='--only plugin' takes a part of it.
bench: setup
	cargo run --locked --release -p e2e -- bench $(BENCH)

setup:
	./.ci/setup
