"""Test the version policy: frozen headers, and backends of each minor version, of newer ones and of
other major ones.
"""

from __future__ import annotations

import re

import pytest
from backends import BATCH, CURRENT, FROZEN, Backend, install, outcomes

MINORS = sorted(folder.name for folder in FROZEN.iterdir())

#: A backend that has every function of the table.
DECLARATIONS = """
static int32_t count(int32_t *n) { *n = 2; return CB_OK; }
static int32_t properties(int32_t d, cb_device_properties *p) { strcpy(p->name, "full"); return CB_OK; }
static int32_t of_device(int32_t d) { return CB_OK; }
static void void_of_device(int32_t d) {}
static int32_t status(int32_t d, char *m, uint64_t n) { *m = 0; return CB_OK; }
static int32_t within(int32_t d, const cb_memory *to, const cb_memory *from, uint64_t n, void *s) {
  memmove(to->address, from->address, n);
  return CB_OK;
}
static int32_t statistics(int32_t d, cb_memory_statistics *s) { s->allocated = allocated; return CB_OK; }
static int32_t limit(int32_t d, int64_t n) { return CB_OK; }
static int32_t threads(void) { return 3; }
static int32_t set_threads(int32_t n) { return CB_OK; }
static void nothing(void) {}
static int32_t initialize(void) { return CB_OK; }
static const char *last_error(void) { return "said"; }
static int32_t supports(int32_t d, const char *n, const int32_t *t, int32_t k) { return t[0] == CB_FLOAT32; }
static int32_t create(int32_t d, int32_t p, void **r) { *r = malloc(8); return CB_OK; }
static void destroy(int32_t d, void *x) { free(x); }
static int32_t with(int32_t d, void *x) { return CB_OK; }
static int32_t query(int32_t d, void *x, int32_t *done) { *done = 1; return CB_OK; }
static int32_t two(int32_t d, void *x, void *y) { return CB_OK; }
static int32_t elapsed(int32_t d, void *x, void *y, double *ms) { *ms = 1.5; return CB_OK; }
static const void *extension(const char *n) { return NULL; }
static const char *describe(void) { return "picks the first"; }
"""
SETUP = """
table.initialize = initialize; table.shutdown = nothing; table.last_error = last_error; table.supports = supports;
table.device_count = count; table.device_properties = properties; table.synchronize = of_device;
table.device_status = status; table.reset_device = of_device; table.copy_within = within;
table.memory_statistics = statistics; table.reset_peak_statistics = void_of_device;
table.empty_cache = void_of_device; table.set_memory_limit = limit; table.thread_count = threads;
table.set_thread_count = set_threads; table.after_fork_in_child = nothing;
table.stream_create = create; table.stream_destroy = destroy; table.stream_synchronize = with;
table.stream_query = query; table.stream_record_memory = two; table.event_create = create;
table.event_destroy = destroy; table.event_record = two; table.event_wait = two;
table.event_synchronize = with; table.event_query = query; table.event_elapsed = elapsed;
table.extension = extension; table.describe = describe;
"""
ALL = SETUP + "table.capabilities = CB_CAP_STREAMS | CB_CAP_EVENTS;"
WORKS = """
b = cb.backends
t = cb.tensor([[1.0, -2.0], [3.0, 4.0]], device=D)
u = -t
u[0] = t[1]
b.synchronize(D); b.empty_cache(D); b.reset_peak_statistics(D)
results = [u.tolist(), (-t.T).tolist(), t.clone().cpu().tolist(), b.device_status(D), cb.ones(2).to(D).tolist()]
assert results == [[[3.0, 4.0], [-3.0, -4.0]], [[-1.0, -3.0], [2.0, -4.0]], [[1.0, -2.0], [3.0, 4.0]], '', [1.0, 1.0]], results
assert b.supports(D, 'neg', cb.float32) and not b.supports(D, 'exp', cb.float32)
"""
FULL = """
assert (b.device_count(D), b.device_properties(D)['name'], cb._C.get_num_threads(D)) == (2, 'full', 3)
assert b.memory_statistics(D)['allocated'] > 0 and not b.supports(D, 'neg', cb.float64)
assert cb._C.backend_info(D)['description'] == 'picks the first'
b.set_memory_limit(D, 1 << 30); b.reset_device(D)
s = cb.accelerator.Stream(D + ':0')
first, last = [cb._C.event_create(D, 1) for _ in range(2)]
with cb.accelerator.stream(s):
    v = -t
s.synchronize()
d = cb.device(D + ':0')
cb._C.event_record(d, first, 0); cb._C.event_record(d, last, 0); cb._C.event_wait(d, first, 0)
assert s.query() and cb._C.event_query(d, first) and cb._C.event_elapsed(d, first, last) == 1.5
cb._C.event_destroy(d, first); cb._C.event_destroy(d, last)
"""
VALUE = "v = (-t).tolist()\nv"
RESULT = "[[-1.0, 2.0], [-3.0, -4.0]]"

NEWER = """
static struct { cb_backend table; void *more[20]; } newer;
static struct { cb_kernel_entry entry; uint64_t more[3]; } wide[3];
"""
NEWER_SETUP = """
for (int i = 0; i < 2; ++i) {
  wide[i].entry = kernels[i];
  wide[i].entry.flags |= 0xffff0000u;
  wide[i].entry.reserved = 5;
  memset(wide[i].more, 0xab, sizeof wide[i].more);
}
wide[2].entry = (cb_kernel_entry){"operator_of_a_newer_minor", neg, 0, 0, 0};
table.kernels = &wide[0].entry;
table.kernel_count = 3;
table.kernel_entry_size = sizeof wide[0];
table.capabilities |= (uint64_t)0xff << 40;
table.abi_minor = CB_ABI_MINOR + 7;
newer.table = table;
newer.table.size = sizeof newer;
memset(newer.more, 0xcd, sizeof newer.more);
"""


def without_comments(text: str) -> list[str]:
    """Return the words of a C header without its comments."""
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).split()


def minor_of(text: str) -> str:
    """Return the version that a backend.h states."""
    return ".".join(re.search(rf"#define CB_ABI_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR"))


def functions_of_table(text: str) -> list[str]:
    """Return the names of the functions of cb_backend in order."""
    code = " ".join(without_comments(text))
    return re.findall(r"\(\*(\w+)\)\(", code.split("typedef struct cb_backend {")[1].split("} cb_backend;")[0])


@pytest.mark.parametrize("name", ["backend.h", "accelerator.h"])
def test_the_released_minor_has_not_changed(name):
    version = minor_of((CURRENT / "candelabra" / "backend.h").read_text())
    frozen = FROZEN / version / "candelabra" / name
    assert frozen.exists(), f"tests/abi/README.md tells how to freeze {version}"
    assert without_comments((CURRENT / "candelabra" / name).read_text()) == without_comments(frozen.read_text()), (
        f"{name} of {version} is released: raise CB_ABI_MINOR, and only append"
    )


@pytest.mark.parametrize("minor", MINORS)
def test_each_minor_states_its_version(minor):
    assert minor_of((FROZEN / minor / "candelabra" / "backend.h").read_text()) == minor


@pytest.fixture
def run(tmp_path, cache):
    """Return a function that runs programs, each on a backend of its own, and returns the
    outcomes.
    """

    def run_all(backends: list[Backend], programs: list[str]) -> list[dict[str, str]]:
        results = {}
        for first in range(0, len(backends), BATCH):
            part = list(zip(backends, programs, strict=True))[first : first + BATCH]
            folder = tmp_path / str(first)
            for backend, _ in part:
                install(folder, cache, f"abi-{backend.device}", backend)
            found = outcomes(folder, [(backend.device, backend.device, program) for backend, program in part])
            results.update(found)
        return [results.get(backend.device, {"died": "before"}) for backend in backends]

    return run_all


@pytest.mark.parametrize("minor", MINORS)
def test_a_backend_of_each_minor_works(run, minor):
    include = FROZEN / minor
    simple = Backend("simple", setup="table.capabilities = CB_CAP_HOST_MEMORY;", include=include)
    full = Backend("full", DECLARATIONS, setup=ALL, include=include)
    first, second = run([simple, full], [WORKS + VALUE, WORKS + FULL + VALUE])
    assert first.get("value") == RESULT, first
    assert second.get("value") == RESULT, second


@pytest.mark.parametrize("minor", MINORS)
def test_newer_dtypes_are_withheld(run, minor):
    program = (
        "x = cb.ones(2, dtype=cb.float8_e5m2).to(D)\n"
        "v = [b.supports(D, 'neg', cb.float32), b.supports(D, 'neg', cb.float8_e5m2), str(x.dtype)]\nv"
    )
    (found,) = run([Backend("dtypes", include=FROZEN / minor)], [WORKS + program])
    assert found.get("value") == f"[True, {minor != '2.0'}, 'candelabra.float8_e5m2']", found


def test_a_backend_of_a_newer_minor_works(run):
    newer = Backend("newer", DECLARATIONS + NEWER, setup=ALL + NEWER_SETUP, result="return &newer.table;")
    (found,) = run([newer], [WORKS + FULL + VALUE])
    assert found.get("value") == RESULT, found


@pytest.mark.parametrize("minor", MINORS)
def test_a_table_that_ends_at_any_field(run, minor):
    fields = functions_of_table((FROZEN / minor / "candelabra" / "backend.h").read_text())
    first = fields.index("copy_to_host") + 1
    backends = []
    for number, name in enumerate(fields):
        cut = f"table.size = offsetof(cb_backend, {name}); if (table.size >= offsetof(cb_backend, extension)) "
        cut += "table.capabilities = CB_CAP_STREAMS | CB_CAP_EVENTS;"
        backends.append(Backend(f"cut{number}", DECLARATIONS, setup=SETUP + cut, include=FROZEN / minor))
    required, optional = backends[:first], backends[first:]
    refused = run(required, ["candelabra.device(D)"] * len(required))
    assert len(refused) > 5
    for found in refused:
        assert found.get("error") == "BackendError", found
        assert "which have no default" in found["message"]
    works = run(optional, [WORKS + "b.memory_statistics(D)\nb.device_properties(D)\n" + VALUE] * len(optional))
    assert len(works) > 15
    for found in works:
        assert found.get("value") == RESULT, found
