# Deep Framework Mechanics. `make` alone lists what there is.
#
# Variables:  PYTHON=/path/to/python   makes .venv with this interpreter (3.11 or newer)
#             PORT=8888                the port of JupyterLab
#             LAB_ARGS='--no-browser'  more arguments for JupyterLab
#             PYTEST_ARGS='-k lock'    more arguments for pytest
#             WORKERS=1                tests in one process; 2 unless told
#             CHAPTER=ch03_buffers_and_state   what `make grade` and `make report` are about
#             GRADE_ARGS='--student ada'       more arguments for `autograder grade`
#             FOLDER=~/nn_2027         where `make course` makes a course for a class
#             COURSE_ARGS='--chapters ch03'    more arguments for `autograder course`
#             REPORT_ARGS='--anonymous'        more arguments for `autograder report`
#             BENCH_ARGS='grading --classes 20'  what `make bench` measures: checks, figures, grading
#             MOMENTS=20               at how many moments `make hostile` kills a run
#             EXAMPLES=2000            how many inputs `make fuzz` makes up for each test
#             UPGRADE=1                lets `make lock` move to newer versions

.DEFAULT_GOAL := help
.PHONY: help lab site check watch doctor reset preflight test lint course grade report hostile fuzz notebooks \
	notebooks-check bench lock clean
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PORT ?=
LAB_ARGS ?=
PYTEST_ARGS ?=
WORKERS ?= 2
CHAPTER ?=
GRADE_ARGS ?=
FOLDER ?=
COURSE_ARGS ?=
REPORT_ARGS ?=
BENCH_ARGS ?=
MOMENTS ?= 20
EXAMPLES ?= 2000

# JupyterLab refuses to run as root unless told; in a container root is the ordinary user.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

# By files, in their order: what a file's tests share is made once, and the solved notebooks fill the end.
IN_PARALLEL := $(if $(filter-out 0 1,$(WORKERS)),-n $(WORKERS) --dist loadfile --no-loadscope-reorder)

help:
	@echo "Deep Framework Mechanics"
	@echo
	@echo "For students"
	@echo "  make lab              install the course if need be and open it in JupyterLab"
	@echo "  make check            run your notebooks as they are saved and print what their checks say"
	@echo "  make watch            the same for a chapter whenever you save it"
	@echo "  make doctor           say what works on this machine and how to mend what does not"
	@echo "  make reset CHAPTER=ch03      a fresh chapter; your answers are kept beside it"
	@echo "  make preflight CHAPTER=ch03  say what would break the grading of a chapter"
	@echo "  make site             write the chapters as pages that need no kernel and no network (SOLVED=1)"
	@echo
	@echo "For instructors"
	@echo "  make test             install what is missing and run every check"
	@echo "  make course FOLDER=…  a course folder for a class; docs/instructors.md leads through the term"
	@echo "  make grade CHAPTER=…  grade a class, sandboxed and in parallel"
	@echo "  make report CHAPTER=… one page on how the class did, and a table (REPORT_ARGS=--anonymous)"
	@echo "  make bench            time checks, figures and grading beside a peer"
	@echo
	@echo "For authors"
	@echo "  make notebooks        build the notebooks from solutions/*/*.py"
	@echo "  make notebooks-check  say which notebooks are not what their source gives"
	@echo "  make hostile          grade every hostile and broken submission, both ways (MOMENTS=20)"
	@echo "  make fuzz             make up notebooks and observations for minutes (EXAMPLES=2000)"
	@echo "  make lint             read the code with ruff"
	@echo "  make lock             remake requirements.lock (UPGRADE=1 for newer versions)"
	@echo "  make clean            remove .venv and caches; your work and your progress stay"
	@echo
	@echo "More: make lab PORT=8899 LAB_ARGS=--no-browser     make test PYTEST_ARGS='-k environment'"

lab:
	@tools/install.sh lab
	@$(BIN)/autograder start >/dev/null || true
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m jupyterlab \
		--ServerApp.ip=127.0.0.1 \
		--LabApp.default_url="/lab/tree/notebooks$$(test ! -f notebooks/start_here.ipynb || echo /start_here.ipynb)" \
		$(if $(PORT),--ServerApp.port=$(PORT)) $(AS_ROOT) $(LAB_ARGS)

check:
	@tools/install.sh lab
	@$(BIN)/autograder check $(CHAPTER)

watch:
	@tools/install.sh lab
	@$(BIN)/autograder check --watch $(CHAPTER)

doctor:
	@tools/install.sh lab
	@$(BIN)/autograder doctor

site:
	@tools/install.sh lab
	@$(BIN)/autograder site $(if $(SOLVED),--solved)

reset preflight:
	@tools/install.sh lab
	@test -n "$(CHAPTER)" || { echo "Name a chapter: make $@ CHAPTER=ch03" >&2; exit 2; }
	@$(BIN)/autograder $@ $(CHAPTER)

test:
	@tools/install.sh test
	@$(BIN)/ruff check
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest $(IN_PARALLEL) $(PYTEST_ARGS)

lint:
	@tools/install.sh test
	@$(BIN)/ruff check

course:
	@tools/install.sh test
	@test -n "$(FOLDER)" || { echo "Name a folder: make course FOLDER=~/nn_2027" >&2; exit 2; }
	@$(BIN)/autograder course "$(FOLDER)" $(COURSE_ARGS)

grade:
	@tools/install.sh test
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/autograder grade "$(CHAPTER)" $(GRADE_ARGS)

report:
	@tools/install.sh test
	@test -n "$(CHAPTER)" || { echo "Name a chapter: make report CHAPTER=ch03_buffers_and_state" >&2; exit 2; }
	@$(BIN)/autograder report "$(CHAPTER)" $(REPORT_ARGS)

hostile:
	@tools/install.sh test
	@HOSTILE_MOMENTS='$(MOMENTS)' HOSTILE_PLAIN=every PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest tests/hostile $(IN_PARALLEL) $(PYTEST_ARGS)

fuzz:
	@tools/install.sh test
	@FUZZ_EXAMPLES='$(EXAMPLES)' PATH="$(CURDIR)/$(BIN):$$PATH" \
		$(BIN)/python -m pytest tests/hostile/test_fuzz.py -o timeout=0 $(PYTEST_ARGS)

notebooks:
	@tools/install.sh test
	@$(BIN)/autograder build $(CHAPTER)

notebooks-check:
	@tools/install.sh test
	@$(BIN)/autograder build --check

bench:
	@tools/install.sh test
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/autograder bench $(BENCH_ARGS)

lock:
	@tools/install.sh lock
	@UPGRADE='$(UPGRADE)' tools/remake_lock.sh

clean:
	rm -rf .venv .venv.lock .venv.turn .pytest_cache .ruff_cache build dist *.egg-info
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
