# The front door: `make run` starts Tierscope, `make test` and `make lint` are what CI runs, `make bench` measures.
BIN := .venv/bin
export PYTHONUNBUFFERED := 1
# Where a machine sets it, each of a test run's 200 Python processes would compile all our modules again (0.3 s of a
# core), and those that run tests rewrite all their assertions (13 s).
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test lint bench format clean
.DEFAULT_GOAL := run

run:
	@exec scripts/run.sh

test:
	@scripts/install.sh dev
	@scripts/test-packages.sh
	@$(BIN)/python -c "import tiers; from tiers.replay.warm_up import warm_up; tiers.warm_up(); warm_up()" # once, not in each of the processes that follow
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(BIN)/python -m pytest -n 3
endif

lint:
	@scripts/install.sh dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run

bench:
	@scripts/install.sh dev
	$(BIN)/python -m bench $(ARGS)

format:
	@scripts/install.sh dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Leaves var/ alone: that is data. `rm -r var` starts over.
clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
