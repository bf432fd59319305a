# Every target does its own set-up, so each works on a fresh clone.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
PLAN ?= plans/smoke.yaml

.PHONY: help tools hosts lab test test-full bench down clean

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

node_modules/.installed: package.json package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund
	touch $@

tools: node_modules/.installed ## install everything that the other targets need
	@node --import tsx tools/install.ts

hosts: tools ## raise the lab and prepare its hosts
	@./ztbench lab up
	eval "$$(./ztbench env)"
	pulumi up -s hosts --yes --skip-preview --non-interactive

lab: hosts ## raise the lab, measure the topologies, print the table, write the report
	@./ztbench campaign $(PLAN)

test: node_modules/.installed ## run all tests
	@node --import tsx tools/install.ts --with-tests
	npm run --silent typecheck
	npm run --silent lint
	npm run --silent format:check
	npm run --silent test

test-full: test ## the same, and what only the longest builds need: the lab's Kubernetes
	@node --import tsx tools/install.ts --with-tests --with-cluster
	npm run --silent test:full

bench: tools ## run the benchmarks
	@npm run --silent bench

down: ## undo the hosts' preparation and take the lab down
	@if [ -d .ztbench/current ]; then
	  eval "$$(./ztbench env)"
	  for stack in cluster hosts; do
	    if pulumi stack ls --json | grep -q "\"name\": \"$$stack\""; then
	      pulumi destroy -s "$$stack" --yes --skip-preview --non-interactive
	    fi
	  done
	fi
	./ztbench lab down

clean: ## take the lab down and remove what this checkout made, results excepted
	@if [ -d node_modules/tsx ]; then ./ztbench lab down --force; fi
	rm -rf .ztbench node_modules
