"""Test the services that the core provides to backends, and what programs ask of a device."""

from __future__ import annotations

import pytest
from backends import Backend, install, outcomes

#: The call's result is 1 where everything was right: the kernel of exp writes it.
KERNEL = "static int32_t k(cb_call *c) {{ {body} }}"
ENTRY = '{.operator_name = "exp", .kernel = k},'
RESULT = "candelabra.exp(candelabra.tensor([3.0], device=D)).tolist()"

LOOP = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
typedef struct { int64_t sum, calls, smallest; int is_nested; } state;
static void add(void *context, int64_t begin, int64_t end) {
  state *s = context;
  if (end - begin < s->smallest) s->smallest = end - begin;
  __atomic_fetch_add(&s->calls, 1, __ATOMIC_RELAXED);
  int64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += i;
  __atomic_fetch_add(&s->sum, sum, __ATOMIC_RELAXED);
}
static void nested(void *context, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    state inner = {0, 0, 1000000, 0};
    host->parallel_for(0, 1000, 1, add, &inner);
    if (inner.sum == 499500) __atomic_fetch_add(&((state *)context)->sum, 1, __ATOMIC_RELAXED);
  }
}
static int is_right(void) {
  state s = {0, 0, 1000000, 0};
  host->parallel_for(-10, 100000, 7, add, &s);
  if (s.sum != 4999950000 - 55) return 0;
  s = (state){0, 0, 1000000, 0};
  host->parallel_for(5, 5, 1, add, &s);
  host->parallel_for(7, 5, 1, add, &s);
  if (s.calls) return 0;
  host->parallel_for(0, 10, 10, add, &s);
  if (s.calls != 1 || s.sum != 45) return 0;
  s = (state){0, 0, 1000000, 0};
  host->parallel_for(0, 10, -3, add, &s);
  return s.sum == 45;
}
static void *several(void *result) {
  for (int i = 0; i < 50; ++i) if (!is_right()) return NULL;
  *(int *)result = 1;
  return NULL;
}
"""
THREADS = """
  pthread_t threads[6]; int right[6] = {0}, all = 1;
  for (int i = 0; i < 6; ++i) if (pthread_create(&threads[i], NULL, several, &right[i])) return CB_RUNTIME_ERROR;
  for (int i = 0; i < 6; ++i) { pthread_join(threads[i], NULL); all &= right[i]; }
  ((float *)c->outputs[0].data)[0] = all; return CB_OK;"""
NESTED = """
  state s = {0, 0, 1000000, 0};
  host->parallel_for(0, 500, 1, nested, &s);
  ((float *)c->outputs[0].data)[0] = s.sum == 500; return CB_OK;"""
FORKED = """
  if (!is_right()) return CB_RUNTIME_ERROR;
  for (int i = 0; i < 4; ++i) {
    pid_t child = fork();
    if (child == 0) _exit(is_right() && is_right() ? 7 : 8);
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) return CB_RUNTIME_ERROR;
  }
  ((float *)c->outputs[0].data)[0] = is_right(); return CB_OK;"""
#: The text of a service goes to Python as the message of an error.
ASK_OPTION = """
  char value[8]; int32_t status = host->option("serve", "Precision", value, sizeof value);
  if (status == CB_OK) strcpy(c->error, value); else snprintf(c->error, 64, "status %d", status);
  return CB_VALUE_ERROR;"""
ERROR = """
def said():
    try:
        candelabra.exp(candelabra.tensor([3.0], device=D))
    except ValueError as error:
        return str(error).removeprefix('exp(): ')
"""
LOG = r"""
  host->log("serve", CB_LOG_WARNING, "a line with 100% and \xff bytes");
  host->log(NULL, CB_LOG_ERROR, NULL);
  ((float *)c->outputs[0].data)[0] = 1; return CB_OK;"""
LOGGED = """
import logging
lines = []
class Keep(logging.Handler):
    def emit(self, record): lines.append((record.name, record.levelname, record.getMessage()))
logging.getLogger('candelabra.backends').addHandler(Keep())
candelabra.exp(candelabra.tensor([3.0], device=D))
lines
"""
DIRECTORY = """
  char path[4096]; char small[4] = "abc";
  static const char *const keys[] = {{"H100 / driver 1.2", "..", ".", "", "a/../../b", "\\xff", NULL}};
  for (int i = 0; i < 7; ++i) {{
    if (host->cache_directory(c->backend, keys[i], path, sizeof path) != CB_OK) return CB_RUNTIME_ERROR;
    if (host->cache_directory(c->backend, keys[i], small, sizeof small) != CB_VALUE_ERROR) return CB_RUNTIME_ERROR;
    if (host->cache_directory(c->backend, keys[i], NULL, 100) != CB_VALUE_ERROR) return CB_RUNTIME_ERROR;
    strcat(c->error, path); strcat(c->error, "\\n");
  }}
  if (strcmp(small, "abc")) return CB_RUNTIME_ERROR;
  return CB_VALUE_ERROR;"""


@pytest.fixture
def run(tmp_path, cache):
    """Return a function that runs a program on the device type "serve" and returns the outcome."""

    def run_one(program: str, body: str = "return CB_OK;", declarations: str = "", setup: str = "", **variables: str):
        declarations += KERNEL.format(body=body)
        install(tmp_path, cache, "abi-services", Backend("serve", declarations, ENTRY, setup))
        return outcomes(tmp_path, [("only", "serve", program)], **variables)["only"]

    return run_one


@pytest.mark.parametrize("body", [THREADS, NESTED, FORKED], ids=["threads", "nested", "forked"])
def test_parallel_for(run, body):
    found = run(RESULT, body, LOOP)
    assert found.get("value") == "[1.0]", found


def test_parallel_for_in_a_child_of_a_program_that_has_threads(run):
    program = """
import os, threading
x = candelabra.tensor([3.0], device=D)
assert candelabra.exp(x).tolist() == [1.0]
stop = threading.Event()
def spin():
    while not stop.is_set(): candelabra.exp(x)
thread = threading.Thread(target=spin); thread.start()
codes = []
for _ in range(5):
    child = os.fork()
    if child == 0: os._exit(int(candelabra.exp(x).tolist() != [1.0]))
    codes.append(os.waitpid(child, 0)[1])
stop.set(); thread.join()
codes
"""
    body = "((float *)c->outputs[0].data)[0] = is_right(); return CB_OK;"
    assert run(program, body, LOOP).get("value") == "[0, 0, 0, 0, 0]"


def test_option_that_is_not_set(run):
    assert run(f"{ERROR}said()", ASK_OPTION).get("value") == "'status 6'"


def test_option_of_the_program(run):
    program = f"{ERROR}candelabra.backends.set_option(D, 'PRECISION', 'high')\nsaid()"
    assert run(program, ASK_OPTION, CANDELABRA_SERVE_PRECISION="low").get("value") == "'high'"


def test_option_of_the_environment(run):
    assert run(f"{ERROR}said()", ASK_OPTION, CANDELABRA_SERVE_PRECISION="low").get("value") == "'low'"


def test_option_that_does_not_fit(run):
    assert run(f"{ERROR}said()", ASK_OPTION, CANDELABRA_SERVE_PRECISION="12345678").get("value") == "'status 3'"


def test_log(run):
    found = run(LOGGED, LOG)
    lines = [
        ("candelabra.backends.serve", "WARNING", "a line with 100% and � bytes"),
        ("candelabra.backends.unknown", "ERROR", ""),
    ]
    assert found.get("value") == repr(lines), found


def test_cache_directory(run, tmp_path):
    root = tmp_path / "kept"
    program = f"{ERROR}import os\n[(os.path.isdir(p), os.path.realpath(p)) for p in said().split()]"
    found = run(program, DIRECTORY.format(), CANDELABRA_CACHE_DIR=str(root))
    assert "value" in found, found
    paths = eval(found["value"])
    assert len(paths) == 7
    owner = str((root / "serve-1.2.3").resolve())
    for is_folder, path in paths:
        assert is_folder
        assert path.startswith(f"{owner}/") and len(path) > len(owner) + 1, path


def test_cache_directory_that_cannot_be(run, tmp_path):
    (tmp_path / "file").write_text("")
    body = """char path[4096];
      ((float *)c->outputs[0].data)[0] = host->cache_directory(c->backend, "k", path, sizeof path); return CB_OK;"""
    assert run(RESULT, body, CANDELABRA_CACHE_DIR=str(tmp_path / "file")).get("value") == "[1.0]"


def test_a_lost_device_is_reset(run):
    declarations = """static int is_lost;
      static int32_t status(int32_t d, char *m, uint64_t n) {
        snprintf(m, n, "fell off the bus"); return is_lost ? CB_DEVICE_LOST : CB_OK; }
      static int32_t reset(int32_t d) { is_lost = 0; return CB_OK; }"""
    setup = "table.device_status = status; table.reset_device = reset;"
    program = """
b = candelabra.backends
x = candelabra.tensor([3.0], device=D)
before = b.device_status(D)
try: candelabra.exp(x)
except candelabra.AcceleratorError as error: kind = error.__notes__
lost = b.device_status(D)
b.reset_device(D)
before, lost, b.device_status(D), kind
"""
    found = run(program, 'is_lost = 1; strcpy(c->error, "lost"); return CB_DEVICE_LOST;', declarations, setup)
    notes = ["in the kernel of exp for device serve:0, from abi-services 0.3"]
    assert found.get("value") == repr(("", "fell off the bus", "", notes)), found


def test_supports(run):
    declarations = """static int32_t supports(int32_t d, const char *n, const int32_t *t, int32_t k) {
        return strcmp(n, "exp") || (k == 2 && t[1] == CB_FLOAT64); }"""
    program = """
s = candelabra.backends.supports
f, d = candelabra.float32, candelabra.float64
[s(D, 'exp', f), s(D, 'exp', f, d), s(D, 'exp', f, f), s(D, 'neg', f), s(D, 'neg'), s(D, 'tan', f)]
"""
    found = run(program, declarations=declarations, setup="table.supports = supports;")
    assert found.get("value") == "[False, True, False, True, True, False]", found


def test_supports_of_no_operator(run):
    found = run("candelabra.backends.supports(D, 'no_such_operator', candelabra.float32)")
    assert found.get("error") == "ValueError", found
    assert "no_such_operator" in found["message"]
