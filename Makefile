# Deep Framework Mechanics. `make` alone lists what there is.
#
# Variables:  PYTHON=/path/to/python   makes .venv with this interpreter (3.11 or newer)
#             PORT=8888                the port of JupyterLab
#             LAB_ARGS='--no-browser'  more arguments for JupyterLab
#             PYTEST_ARGS='-k lock'    more arguments for pytest
#             CHAPTER=ch03_buffers_and_state   what `make grade` grades
#             GRADE_ARGS='--student ada'       more arguments for `autograder grade`
#             UPGRADE=1                lets `make lock` move to newer versions

.DEFAULT_GOAL := help
.PHONY: help lab test lint grade notebooks notebooks-check bench lock clean
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PORT ?=
LAB_ARGS ?=
PYTEST_ARGS ?=
CHAPTER ?=
GRADE_ARGS ?=

# JupyterLab refuses to run as root unless told; in a container root is the ordinary user.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

help:
	@echo "Deep Framework Mechanics"
	@echo
	@echo "For students"
	@echo "  make lab              install the course if need be and open it in JupyterLab"
	@echo
	@echo "For instructors"
	@echo "  make test             install what is missing and run every check"
	@echo "  make grade CHAPTER=…  grade a class, sandboxed and in parallel"
	@echo "  make bench            time the checks that students run"
	@echo
	@echo "For authors"
	@echo "  make notebooks        build the notebooks from solutions/*/*.py"
	@echo "  make notebooks-check  say which notebooks are not what their source gives"
	@echo "  make lint             read the code with ruff"
	@echo "  make lock             remake requirements.lock (UPGRADE=1 for newer versions)"
	@echo "  make clean            remove .venv and caches; your work and your progress stay"
	@echo
	@echo "More: make lab PORT=8899 LAB_ARGS=--no-browser     make test PYTEST_ARGS='-k environment'"

lab:
	@tools/install.sh lab
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m jupyterlab \
		--ServerApp.ip=127.0.0.1 --LabApp.default_url=/lab/tree/notebooks \
		$(if $(PORT),--ServerApp.port=$(PORT)) $(AS_ROOT) $(LAB_ARGS)

test:
	@tools/install.sh test
	@$(BIN)/ruff check
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest $(PYTEST_ARGS)

lint:
	@tools/install.sh test
	@$(BIN)/ruff check

grade:
	@tools/install.sh test
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/autograder grade "$(CHAPTER)" $(GRADE_ARGS)

notebooks:
	@tools/install.sh test
	@$(BIN)/autograder build

notebooks-check:
	@tools/install.sh test
	@$(BIN)/autograder build --check

bench:
	@tools/install.sh test
	@$(BIN)/autograder bench

lock:
	@tools/install.sh lock
	@UPGRADE='$(UPGRADE)' tools/remake_lock.sh

clean:
	rm -rf .venv .venv.lock .venv.turn .pytest_cache .ruff_cache build dist *.egg-info
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
