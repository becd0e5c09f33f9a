# What you can ask for; `make help` lists it. The work is in dev/*.mjs, so that it reads the same everywhere.
.DEFAULT_GOAL := help
.PHONY: help run run-redis test providers mutants lint fmt gen docs images sbom reproducible k8s pods bench bench-quick screenshots flood failover chaos

help: ## lists the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## builds and starts everything on this machine with the embedded store; Ctrl-C stops it
	@exec node dev/run.mjs

run-redis: ## the same on Redis, with two edges and two session services
	@exec node dev/run.mjs --redis

test: ## every test: Rust, web, provider, Python, browser, Kubernetes; closes on a count
	@exec node dev/test.mjs

providers: ## signs people in at every provider there is, and writes the tables of docs/providers.md
	@exec node dev/test.mjs --only providers --write-docs

mutants: ## changes the guards of both programs at random places: a test has to fail; SHARD=0/40 is a sample
	@exec node dev/mutants.mjs --shard $(or $(SHARD),0/40)

lint: ## formatting, clippy, types, generated code
	@exec node dev/lint.mjs

fmt: ## formats Rust and web sources
	cargo fmt --all
	cd web && npm run --silent fmt

gen: ## writes generated code again
	@exec node dev/gen.mjs

docs: ## the documents as a site with search, in target/docs (`node dev/docs.mjs --serve` shows it)
	@exec node dev/docs.mjs

images: ## container images of edge, session service, web app and development provider
	@exec node dev/images.mjs

sbom: ## what the images are made of, as CycloneDX bills of materials under target/sbom
	@exec node dev/sbom.mjs

reproducible: ## builds both programs and the web app twice, in different places, and compares every byte
	@exec node dev/reproducible.mjs

k8s: ## renders and validates the Kubernetes manifests
	@exec node dev/test.mjs --only kubernetes

pods: ## the manifests as real pods: a sign-in, rollouts, a killed process, a lost master of Redis
	@exec node dev/test.mjs --only pods

flood: ## every attack on the edge at once for a minute, under the memory limit of its pod; prints what others noticed
	@exec node dev/flood.mjs

failover: ## masters of Redis replaced under load, ten times in each way; prints what it cost
	@exec node dev/failover.mjs

chaos: ## people and faults from seeds, half a minute each, and an oracle for every answer: SEED=1 SEEDS=20 SECONDS=30
	@exec node dev/chaos.mjs --seed $(or $(SEED),1) --seeds $(or $(SEEDS),$(if $(SEED),1,20)) --seconds $(or $(SECONDS),30)

bench: ## measures everything in 20 minutes, beside bounds; writes docs/performance.md
	@exec node bench/run.mjs

bench-quick: ## measures what a change is likely to move, in three minutes; records nothing
	@exec node bench/run.mjs --quick

screenshots: ## makes the pictures of the documents
	@exec node dev/screenshots.mjs
