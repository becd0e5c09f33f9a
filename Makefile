# The commands of this repository; `make help` lists them. The work is done in dev/*.mjs.
.DEFAULT_GOAL := help
.PHONY: help run run-redis test docs lint fmt gen k8s pods providers packages images deb sbom reproducible screenshots bench bench-quick flood failover chaos mutants

help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {print "\n" substr($$0, 5) ":"} /^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Start here
run: ## build and start everything on this machine, with an embedded store; Ctrl-C stops it
	@exec node dev/run.mjs

run-redis: ## the same with Redis, two edges and two session services
	@exec node dev/run.mjs --redis

test: ## run every test; installs what they need and ends with a count
	@exec node dev/test.mjs

docs: ## build the documents as a site with search, in target/docs; `node dev/docs.mjs --serve` serves it
	@exec node dev/docs.mjs

##@ Check
lint: ## check formatting, code, dependencies and generated files
	@exec node dev/lint.mjs

fmt: ## format Rust and web sources
	cargo fmt --all
	cd web && npm run --silent fmt

gen: ## write generated code, settings tables, metrics and the Helm chart again
	@exec node dev/gen.mjs

k8s: ## render and validate the Kubernetes manifests
	@exec node dev/test.mjs --only kubernetes

pods: ## run the manifests as pods: sign-in, rollouts, a killed process, a lost Redis master
	@exec node dev/test.mjs --only pods

providers: ## sign in at every provider and write the tables of docs/providers.md
	@exec node dev/test.mjs --only providers --write-docs

images: ## build the container images
	@exec node dev/images.mjs

packages: ## build the npm and PyPI packages, in target/packages
	@exec node dev/packages.mjs

deb: ## build the Debian package of the one program, in target/deb
	@exec node dev/deb.mjs

sbom: ## list what the images contain, as CycloneDX files in target/sbom
	@exec node dev/sbom.mjs

reproducible: ## build everything twice in different places and compare every byte
	@exec node dev/reproducible.mjs

screenshots: ## take the pictures of the documents
	@exec node dev/screenshots.mjs

##@ Experiments
bench: ## measure everything in 20 minutes and write docs/performance.md
	@exec node bench/run.mjs

bench-quick: ## measure what a change is likely to move, in three minutes; records nothing
	@exec node bench/run.mjs --quick

flood: ## run every attack on the edge at once for a minute and print what other users noticed
	@exec node dev/flood.mjs

failover: ## replace Redis masters under load, ten times each way, and print the cost
	@exec node dev/failover.mjs

chaos: ## run users and random faults from seeds and check every answer: SEED=1 SEEDS=20 SECONDS=30
	@exec node dev/chaos.mjs --seed $(or $(SEED),1) --seeds $(or $(SEEDS),$(if $(SEED),1,20)) --seconds $(or $(SECONDS),30)

mutants: ## change guards at random places, a test has to fail: SHARD=0/40 is a sample
	@exec node dev/mutants.mjs --shard $(or $(SHARD),0/40)
