# Two commands for a newcomer: `make demo` and `make test`. Both install what they need, say so, and can be run again.

.PHONY: demo test lint unit e2e bench setup

demo: setup
	cargo run --locked --profile ci -p e2e -- demo

test: setup
	./.ci/test

lint unit e2e: setup
	./.ci/test $@

# Figures, with release builds.
bench: setup
	cargo run --locked --profile ci -p e2e -- bench

setup:
	./.ci/setup
