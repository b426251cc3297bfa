"""Malformed backends: one row each, with the error that a program gets."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

LOAD = "candelabra.device(D)"
MAKE = "candelabra.tensor([1.0], device=D)"
EXP = "candelabra.exp(candelabra.tensor([1.0], device=D))"
NEG = "(-candelabra.tensor([1.0, -2.0], device=D)).tolist()"
MASKED = "candelabra.tensor([1.0, 0.0], device=D)[candelabra.tensor([True, False], device=D)]"
NONZERO = "candelabra.tensor([1.0, 0.0], device=D).nonzero()"


@dataclass(frozen=True)
class Row:
    """A malformed backend."""

    name: str
    #: The type of the exception; None where the program works and returns `message`.
    error: str | None
    message: str
    program: str = LOAD
    declarations: str = ""
    kernels: str = ""
    setup: str = ""
    result: str = "return &table;"
    #: Whether message or notes name the distribution.
    names: bool = True
    #: Python code of the plugin, instead of a compiled library.
    plugin: str | None = None
    #: The bytes of the library, instead of a compiled one.
    library: bytes | None = None
    #: What the message must not have.
    absent: str = field(default="\0")


def table(name: str, setup: str, message: str, error: str = "BackendError", **others: str) -> Row:
    """Return a row of a table that the core refuses."""
    return Row(name, error, message, setup=setup, **others)


def kernel(
    name: str,
    body: str,
    message: str,
    error: str | None = "RuntimeError",
    program: str = EXP,
    operator: str = "exp",
    entry: str = "",
    names: bool = True,
    declarations: str = "",
    kernels: str = "",
    absent: str = "\0",
) -> Row:
    """Return a row of a kernel that fails. `body` is its C code, with the call in `c`."""
    function = f"{declarations}\nstatic int32_t k(cb_call *c) {{ (void)c; {body} }}"
    row = f'{{.operator_name = "{operator}", .kernel = k, {entry}}}, {kernels}'
    return Row(
        name, error, message, program=program, declarations=function, kernels=row, names=names, absent=absent
    )  # fmt: skip


def function(name: str, field_name: str, parameters: str, body: str, message: str, **others: object) -> Row:
    """Return a row whose table has a function of its own. `body` is its C code."""
    returned = "void" if field_name in ("deallocate", "shutdown") else "int32_t"
    if field_name in ("last_error", "describe"):
        returned = "const char *"
    before = others.pop("declarations", "")
    setup = others.pop("setup", "")
    error = others.pop("error", "BackendError")
    return Row(
        name, error, message, declarations=f"{before}\nstatic {returned} f({parameters}) {{ {body} }}",
        setup=f"table.{field_name} = f; {setup}", **others,
    )  # fmt: skip


ENTRIES = 'static cb_kernel_entry many[4] = {{"exp", neg, 0, 0, 0}, {"log", neg, 0, 0, 0}}; table.kernels = many;'

#: Capabilities that promise functions of the accelerator's table.
PROMISES = [
    ("pinned-memory", "PINNED_MEMORY"),
    ("peer-access", "PEER_ACCESS"),
    ("ipc", "IPC"),
    ("graphs", "GRAPHS"),
    ("collectives", "COLLECTIVES"),
]
EMPTY_ACCELERATOR = """
static const cb_accelerator a = {.size = sizeof a};
static const void *e(const char *n) { return strcmp(n, "accelerator") ? NULL : &a; }"""

TABLES = [
    table("null-table", "", "returned null", result="return NULL;"),
    table("misaligned-table", "", "not aligned", result="return (const cb_backend *)((char *)&table + 1);"),
    table("size-zero", "table.size = 0;", "its size is 0"),
    table("size-tiny", "table.size = 16;", "its size is 16"),
    table("size-huge", "table.size = (uint64_t)1 << 40;", "its size is 1099511627776"),
    table("size-all-ones", "table.size = UINT64_MAX;", "its size is 18446744073709551615"),
    table("size-within-a-field", "table.size = sizeof table - 4;", "not sizeof(cb_backend)"),
    table("major-of-the-past", "table.abi_major = 1;", "built for ABI 1.", "BackendVersionError"),
    table("major-of-the-future", "table.abi_major = 3;", "upgrade candelabra-tensor-core", "BackendVersionError"),
    table("major-is-garbage", "table.abi_major = 0xdeadbeef;", "built for ABI 3735928559", "BackendVersionError"),
    table("other-device-type", 'table.device_type = "another";', "its device_type is 'another'"),
    table("device-type-null", "table.device_type = NULL;", "its device_type is '(null)'"),
    table("device-type-empty", 'table.device_type = "";', "its device_type is ''"),
    table("device-type-no-word", 'table.device_type = "two words";', "its device_type is 'two words'"),
    table("device-type-bytes", 'table.device_type = "\\xff\\xfe";', "its device_type is '��'"),
    table("no-allocate", "table.allocate = NULL;", "lacks one of allocate"),
    table("no-deallocate", "table.deallocate = NULL;", "lacks one of allocate, deallocate"),
    table("no-copy-from-host", "table.copy_from_host = NULL;", "copy_from_host, copy_to_host, which have no default"),
    table("no-copy-to-host", "table.copy_to_host = NULL;", "copy_from_host, copy_to_host, which have no default"),
    table("null-kernels", "table.kernels = NULL;", "kernels is null"),
    table("misaligned-kernels", "table.kernels = (void *)((char *)kernels + 1);", "kernels is not aligned"),
    table("absurd-kernel-count", "table.kernel_count = (uint64_t)1 << 60;", "kernel_count is 1152921504606846976"),
    table("entry-size-zero", "table.kernel_entry_size = 0;", "kernel_entry_size is 0"),
    table("entry-size-odd", "table.kernel_entry_size = 33;", "kernel_entry_size is 33"),
    table("entry-size-small", "table.kernel_entry_size = 16;", "kernel_entry_size is 16"),
    table("entry-size-huge", "table.kernel_entry_size = 1 << 20;", "kernel_entry_size is 1048576"),
    table("null-operator-name", ENTRIES + "table.kernel_count = 3;", "operator_name of kernel 2 is null"),
    table("null-kernel", ENTRIES + "many[1].kernel = NULL; table.kernel_count = 2;", "the kernel of log is null"),
    table("two-kernels", ENTRIES + 'many[1].operator_name = "exp"; table.kernel_count = 2;', "two kernels of exp"),
    table("streams-missing", "table.capabilities = CB_CAP_STREAMS;", "has CB_CAP_STREAMS, but lacks"),
    table("events-missing", "table.capabilities = CB_CAP_EVENTS;", "has CB_CAP_EVENTS, but lacks"),
    *(table(f"{word}-missing", f"table.capabilities = CB_CAP_{capability};", f"has CB_CAP_{capability}, but lacks")
      for word, capability in PROMISES),
    *(table(f"{word}-empty", f"table.capabilities = CB_CAP_{capability}; table.extension = e;",
            f"has CB_CAP_{capability}, but lacks", declarations=EMPTY_ACCELERATOR) for word, capability in PROMISES),
    table("asynchronous-missing", "table.capabilities = CB_CAP_ASYNCHRONOUS;", "but lacks synchronize"),
]  # fmt: skip

STATUSES = [
    ("runtime", "CB_RUNTIME_ERROR", "RuntimeError"),
    ("memory", "CB_OUT_OF_MEMORY", "OutOfMemoryError"),
    ("value", "CB_VALUE_ERROR", "ValueError"),
    ("index", "CB_INDEX_ERROR", "IndexError"),
    ("type", "CB_TYPE_ERROR", "TypeError"),
    ("not-implemented", "CB_NOT_IMPLEMENTED", "NotImplementedError"),
    ("accelerator", "CB_ACCELERATOR_ERROR", "AcceleratorError"),
    ("lost", "CB_DEVICE_LOST", "AcceleratorError"),
    ("cancelled", "CB_CANCELLED", "RuntimeError"),
    ("unknown", "77", "RuntimeError"),
    ("negative", "-1", "RuntimeError"),
]
SAID = 'static const char *said(void) { return "the fan stands still"; }'
SAY = "table.last_error = said;"

LOADING = [
    *(function(f"initialize-{word}", "initialize", "void", f"return {status};", "initialize failed")
      for word, status, _ in STATUSES),
    *(function(f"initialize-{word}-said", "initialize", "void", f"return {status};", "the fan stands still",
               declarations=SAID, setup=SAY) for word, status, _ in STATUSES),
    function("device-count-fails", "device_count", "int32_t *n", "return CB_RUNTIME_ERROR;", "device_count failed"),
    function("device-count-zero", "device_count", "int32_t *n", "*n = 0; return CB_OK;", "no device found"),
    function("device-count-negative", "device_count", "int32_t *n", "*n = -1; return CB_OK;", "device_count() gave -1"),
    function("device-count-1000", "device_count", "int32_t *n", "*n = 1000; return CB_OK;", "device_count() gave 1000"),
    function("last-error-null", "last_error", "void", "return NULL;", "initialize failed with status 1",
             declarations="static int32_t i(void) { return CB_RUNTIME_ERROR; }", setup="table.initialize = i;"),
    function("last-error-bytes", "last_error", "void", 'return "bad \\xff\\xfe bytes";', "bad �� bytes",
             declarations="static int32_t i(void) { return CB_RUNTIME_ERROR; }", setup="table.initialize = i;"),
    function("last-error-long", "last_error", "void", "memset(text, 'x', sizeof text); return text;", "xxxx",
             declarations="static char text[10240]; static int32_t i(void) { return CB_RUNTIME_ERROR; }",
             setup="table.initialize = i;", absent="x" * 4097),
    Row("accelerator-size-zero", "BackendError", "cb_accelerator", declarations="""
        static cb_accelerator a; static const void *e(const char *n) { return strcmp(n, "accelerator") ? NULL : &a; }""",
        setup="table.extension = e;"),
    Row("accelerator-size-odd", "BackendError", "its size is 33", declarations="""
        static cb_accelerator a = {33}; static const void *e(const char *n) { return &a; }""",
        setup="table.extension = e;"),
    Row("collectives-size-zero", "BackendError", "cb_collectives", declarations="""
        static cb_collectives c; static cb_accelerator a = {.size = sizeof a, .collectives = &c};
        static const void *e(const char *n) { return &a; }""", setup="table.extension = e;"),
    Row("extension-null", None, "(False, [-1.0, 2.0])", f"(candelabra._C.set_flush_denormal(D, True), {NEG})",
        declarations="static const void *e(const char *n) { return NULL; }", setup="table.extension = e;"),
    Row("describe-null", None, "None", "candelabra._C.backend_info(D)['description']",
        declarations="static const char *d(void) { return NULL; }", setup="table.describe = d;"),
    Row("describe-bytes", None, "'a��b'", "candelabra._C.backend_info(D)['description']",
        declarations='static const char *d(void) { return "a\\xff\\xfe" "b"; }', setup="table.describe = d;"),
    Row("version-null", None, "''", "candelabra._C.backend_info(D)['version']", setup="table.version = NULL;"),
    Row("version-bytes", None, "'1.�'", "candelabra._C.backend_info(D)['version']", setup='table.version = "1.\\xff";'),
    function("name-unterminated", "device_properties", "int32_t d, cb_device_properties *p",
             "memset(p->name, 'n', sizeof p->name); p->total_memory = 0x4141414141414141; return CB_OK;", repr("n" * 128),
             error=None, program="candelabra.backends.device_properties(D)['name']"),
    function("name-bytes", "device_properties", "int32_t d, cb_device_properties *p",
             'strcpy(p->name, "\\xff"); return CB_OK;', "'�'",
             error=None, program="candelabra.backends.device_properties(D)['name']"),
    function("properties-fail", "device_properties", "int32_t d, cb_device_properties *p", "return CB_INDEX_ERROR;",
             "device_properties failed", error="IndexError", program="candelabra.backends.device_properties(D)"),
    function("status-unterminated", "device_status", "int32_t d, char *m, uint64_t n",
             "memset(m, 's', n); return CB_DEVICE_LOST;", "1023", error=None,
             program="len(candelabra.backends.device_status(D))"),
    function("status-bytes", "device_status", "int32_t d, char *m, uint64_t n",
             'strcpy(m, "\\xff"); return CB_DEVICE_LOST;', "'�'", error=None,
             program="candelabra.backends.device_status(D)"),
    function("status-silent", "device_status", "int32_t d, char *m, uint64_t n", "return CB_DEVICE_LOST;",
             "'status 8'", error=None, program="candelabra.backends.device_status(D)"),
]  # fmt: skip

ALLOCATE = "int32_t d, cb_allocation *a"
MEMORY = [
    function("allocate-null", "allocate", ALLOCATE, "return CB_OK;", "no memory: set storage", program=MAKE),
    *(function(f"allocate-{word}", "allocate", ALLOCATE, f"return {status};", "allocate failed", error=error, program=MAKE)
      for word, status, error in STATUSES),
    *(function(f"allocate-{word}-said", "allocate", ALLOCATE, f"return {status};", "the fan stands still", error=error,
               program=MAKE, declarations=SAID, setup=SAY) for word, status, error in STATUSES[:3]),
    function("copy-in-fails", "copy_from_host", "int32_t d, const cb_memory *t, const void *f, uint64_t n, void *s",
             "return CB_ACCELERATOR_ERROR;", "copy_from_host failed", error="AcceleratorError", program=MAKE),
    function("copy-out-fails", "copy_to_host", "int32_t d, void *t, const cb_memory *f, uint64_t n, void *s",
             "return CB_ACCELERATOR_ERROR;", "copy_to_host failed", error="AcceleratorError", program=f"{MAKE}.tolist()"),
    function("synchronize-fails", "synchronize", "int32_t d", "return CB_DEVICE_LOST;", "synchronize failed",
             error="AcceleratorError", program="candelabra.backends.synchronize(D)"),
    function("statistics-fail", "memory_statistics", "int32_t d, cb_memory_statistics *s", "return CB_RUNTIME_ERROR;",
             "memory_statistics failed", error="RuntimeError", program="candelabra.backends.memory_statistics(D)"),
    Row("no-reset", "NotImplementedError", "reset_device failed", "candelabra.backends.reset_device(D)"),
    Row("no-limit", "NotImplementedError", "set_memory_limit failed", "candelabra.backends.set_memory_limit(D, 100)"),
]  # fmt: skip

SUB = """
static int32_t sub(cb_call *c) {
  const cb_tensor *o = &c->outputs[0], *a = c->arguments[0].as.tensor, *b = c->arguments[1].as.tensor;
  for (int64_t i = 0; i < o->numel; ++i)
    ((float *)o->data)[offset_of(o, i)] = ((float *)a->data)[offset_of(a, i)] - ((float *)b->data)[offset_of(b, i)];
  return CB_OK;
}"""
RSUB = "candelabra.rsub(candelabra.tensor([1.0, 2.0], device=D), candelabra.tensor([5.0, 5.0], device=D)).tolist()"
SUB_ENTRY = '{.operator_name = "sub", .kernel = sub}'
FLOAT64_ONLY = ".dtypes = CB_DTYPE_BIT(CB_FLOAT64)"
DENSE = """
  const cb_tensor *o = &c->outputs[0], *a = c->arguments[0].as.tensor;
  if (a->numel != o->numel) return CB_VALUE_ERROR;
  for (int64_t i = 0; i < o->numel; ++i) ((float *)o->data)[i] = 2 * ((float *)a->data)[i];
  return CB_OK;"""
DENSE_ADD = """
  const cb_tensor *o = &c->outputs[0], *a = c->arguments[0].as.tensor, *b = c->arguments[1].as.tensor;
  if (a->numel != o->numel || b->numel != o->numel) return CB_VALUE_ERROR;
  for (int64_t i = 0; i < o->numel; ++i) ((float *)o->data)[i] = ((float *)a->data)[i] + ((float *)b->data)[i];
  return CB_OK;"""
# A number in place of a tensor stays one.
DENSE_NUMBER = """
  const cb_tensor *o = &c->outputs[0], *a = c->arguments[0].as.tensor, *b = c->arguments[1].as.tensor;
  if (a->numel != o->numel || !(b->flags & CB_TENSOR_NUMBER)) return CB_VALUE_ERROR;
  for (int64_t i = 0; i < o->numel; ++i) ((float *)o->data)[i] = ((float *)a->data)[i] + ((float *)b->data)[0];
  return CB_OK;"""
CONTIGUOUS = ".flags = CB_KERNEL_CONTIGUOUS"
GRID = "t = candelabra.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=D)\n"

KERNELS = [
    *(kernel(f"kernel-{word}", f"return {status};", "left no message", error)
      for word, status, error in STATUSES if word != "not-implemented"),
    *(kernel(f"kernel-{word}-said", f'strcpy(c->error, "the fan stands still"); return {status};', "the fan stands still",
             error) for word, status, error in STATUSES),
    kernel("kernel-not-implemented", "return CB_NOT_IMPLEMENTED;", "not implemented for 'Float'", "NotImplementedError"),
    kernel("error-unterminated", "memset(c->error, 'e', c->error_capacity); return CB_VALUE_ERROR;", "eeee", "ValueError"),
    kernel("error-bytes", 'strcpy(c->error, "a\\xff\\xfe"); return CB_VALUE_ERROR;', "a��", "ValueError"),
    kernel("mask-excludes", "return CB_OK;", "not implemented for 'Float'", "NotImplementedError", entry=FLOAT64_ONLY),
    kernel("mask-of-unknown-dtypes", "return CB_OK;", "not implemented for 'Float'", "NotImplementedError",
           entry=".dtypes = (uint64_t)1 << 63"),
    kernel("composite-mask-excludes", "return CB_VALUE_ERROR;", "[4.0, 3.0]", None, RSUB, "rsub", FLOAT64_ONLY,
           declarations=SUB, kernels=SUB_ENTRY),
    kernel("composite-declines", "return CB_NOT_IMPLEMENTED;", "[4.0, 3.0]", None, RSUB, "rsub", declarations=SUB,
           kernels=SUB_ENTRY),
    kernel("composite-declines-and-says", 'strcpy(c->error, "never"); return CB_NOT_IMPLEMENTED;', "never",
           "NotImplementedError", RSUB, "rsub", declarations=SUB, kernels=SUB_ENTRY),
    kernel("output-not-dependent", "int64_t n = 1; return host->allocate_output(c, 0, 1, &n);",
           "which the core has allocated", "BackendError"),
    kernel("output-twice", "int64_t n[2] = {1, 1}; host->allocate_output(c, 0, 2, n);"
           "return host->allocate_output(c, 0, 2, n);", "output 0 twice", "BackendError", NONZERO, "nonzero"),
    kernel("output-twice-ignored", "int64_t n[2] = {1, 1}; host->allocate_output(c, 0, 2, n);"
           "host->allocate_output(c, 0, 2, n); return CB_OK;", "output 0 twice", "BackendError", NONZERO, "nonzero"),
    kernel("output-wrong-index", "int64_t n[2] = {1, 1}; return host->allocate_output(c, 5, 2, n);",
           "memory of output 5; there are 1", "BackendError", NONZERO, "nonzero"),
    kernel("output-negative-index", "int64_t n[2] = {1, 1}; return host->allocate_output(c, -1, 2, n);",
           "memory of output -1", "BackendError", NONZERO, "nonzero"),
    kernel("output-negative-sizes", "int64_t n[2] = {-3, 1}; return host->allocate_output(c, 0, 2, n);",
           "output of sizes", "BackendError", NONZERO, "nonzero"),
    kernel("output-many-dims", "int64_t n[100] = {0}; return host->allocate_output(c, 0, 100, n);",
           "output of 100 dimensions", "BackendError", NONZERO, "nonzero"),
    kernel("output-negative-dims", "return host->allocate_output(c, 0, -1, NULL);", "output of -1 dimensions",
           "BackendError", NONZERO, "nonzero"),
    kernel("output-null-sizes", "return host->allocate_output(c, 0, 2, NULL);", "output of 2 dimensions", "BackendError",
           NONZERO, "nonzero"),
    kernel("output-absurd-sizes", "int64_t n[2] = {INT64_MAX, 1}; return host->allocate_output(c, 0, 2, n);",
           "overflow", "RuntimeError", NONZERO, "nonzero", names=False),
    kernel("output-never", "return CB_OK;", "asked for no memory for output 0", "BackendError", NONZERO, "nonzero"),
    kernel("output-of-other-dims", "int64_t n = 4; return host->allocate_output(c, 0, 1, &n);", "the operator declares",
           "BackendError", MASKED, "nonzero", kernels='{.operator_name = "index", .kernel = k}'),
    kernel("output-of-other-sizes", "int64_t n[2] = {4, 3}; return host->allocate_output(c, 0, 2, n);",
           "the operator declares", "BackendError", MASKED, "nonzero",
           kernels='{.operator_name = "index", .kernel = k}'),
    kernel("workspace-absurd", "cb_memory m; return host->allocate_workspace(c, (uint64_t)1 << 62, &m);",
           "allocate failed", "OutOfMemoryError"),
    kernel("workspace-all-ones", "cb_memory m; return host->allocate_workspace(c, UINT64_MAX, &m);",
           "allocate failed", "OutOfMemoryError"),
    kernel("workspace-failure-ignored", "cb_memory m; host->allocate_workspace(c, UINT64_MAX, &m); return CB_OK;",
           "allocate failed", "OutOfMemoryError"),
    kernel("workspace-empty", "cb_memory m; int32_t s = host->allocate_workspace(c, 0, &m);"
           "((float *)c->outputs[0].data)[0] = m.address ? 1 : 2; return s;", "[2.0]", None, f"{EXP}.tolist()"),
    kernel("contiguous-strided", DENSE, "[[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]", None, f"{GRID}candelabra.exp(t.T).tolist()",
           entry=CONTIGUOUS),
    kernel("contiguous-slice", DENSE, "[[4.0], [10.0]]", None, f"{GRID}candelabra.exp(t[:, 1:2]).tolist()", entry=CONTIGUOUS),
    kernel("contiguous-expanded", DENSE, "[[2.0, 2.0], [8.0, 8.0]]", None,
           f"{GRID}candelabra.exp(t[:, :1].expand(2, 2)).tolist()", entry=CONTIGUOUS),
    kernel("contiguous-broadcast", DENSE_ADD, "[[2.0, 3.0, 4.0], [8.0, 9.0, 10.0]]", None, f"{GRID}(t + t[:, :1]).tolist()",
           "add", CONTIGUOUS),
    kernel("contiguous-number", DENSE_NUMBER, "[[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]", None, f"{GRID}(t + 1.0).tolist()", "add",
           CONTIGUOUS),
    kernel("contiguous-in-place", DENSE, "[[1.0, 4.0, 3.0], [4.0, 10.0, 6.0]]", None, f"{GRID}t[:, 1].exp_()\nt.tolist()",
           entry=CONTIGUOUS),
    kernel("contiguous-in-place-broadcast", DENSE_ADD, "[[2.0, 2.0, 3.0], [5.0, 5.0, 6.0]]", None,
           f"{GRID}t[:, 0].add_(t[0, :1].clone())\nt.tolist()", "add", CONTIGUOUS),
    kernel("contiguous-in-place-overlap", DENSE_ADD, "single memory location", program=f"{GRID}t[:, :2].add_(t[:, 1:])",
           operator="add", entry=CONTIGUOUS, names=False),
    kernel("contiguous-out", DENSE, "[[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]", None,
           f"{GRID}o = candelabra.empty(3, 2, device=D).T\ncandelabra.exp(t, out=o)\no.tolist()", entry=CONTIGUOUS),
    kernel("contiguous-out-is-argument", DENSE, "[[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]", None,
           f"{GRID}candelabra.exp(t.T, out=t.T)\nt.T.tolist()", entry=CONTIGUOUS),
    kernel("unknown-flags", DENSE, "[2.0]", None, f"{EXP}.tolist()", entry=".flags = 0xfffffff0"),
]  # fmt: skip


def elf(machine: int, is_64: bool = True) -> bytes:
    """Return the head of a shared library for a machine, padded."""
    ident = b"\x7fELF" + bytes([2 if is_64 else 1, 1, 1]) + bytes(9)
    return ident + struct.pack("<HHI", 3, machine, 1) + bytes(200)


RAISING = """
import candelabra
@candelabra.backends.hookimpl
def candelabra_register_backend(registrar):
    {body}
"""

PLUGINS = [
    Row("plugin-raises", "BackendError", "ZeroDivisionError", plugin=RAISING.format(body="1 / 0")),
    Row("plugin-exits", "BackendError", "SystemExit", plugin=RAISING.format(body="raise SystemExit(3)")),
    Row("plugin-exits-at-import", "BackendError", "SystemExit", plugin="raise SystemExit(3)"),
    Row("plugin-import-error", "BackendError", "a_module_that_is_not", plugin="import a_module_that_is_not"),
    Row("plugin-syntax-error", "BackendError", "SyntaxError", plugin="def"),
    Row("plugin-without-hook", "BackendError", "candelabra_register_backend", plugin="x = 1"),
    Row("plugin-registers-nothing", "BackendError", "neither a library nor", plugin=RAISING.format(body="pass")),
    Row("plugin-missing-library", "BackendError", "is missing",
        plugin=RAISING.format(body="registrar.library('/nowhere/lib.so')")),
    Row("plugin-two-libraries", "BackendError", "registers two libraries",
        plugin=RAISING.format(body="registrar.library(__file__); registrar.library(__file__)")),
    Row("plugin-not-callable", "BackendError", "expected a callable",
        plugin=RAISING.format(body="registrar.kernel('exp', 3)")),
    Row("library-is-text", "BackendError", "not a shared library", library=b"not a library\n" * 20),
    Row("library-is-empty", "BackendError", "not a shared library", library=b""),
    Row("library-is-folder", "BackendError", "could not be opened",
        plugin=RAISING.format(body="registrar.library('/tmp')")),
    Row("library-of-arm64", "BackendError", "AArch64", library=elf(183)),
    Row("library-of-riscv", "BackendError", "RISC-V", library=elf(243)),
    Row("library-of-i386", "BackendError", "i386 (32 bits)", library=elf(3, is_64=False)),
    Row("library-of-nobody", "BackendError", "ELF machine 9999", library=elf(9999)),
    Row("library-without-entry", "BackendError", "exports no function candelabra_backend",
        plugin=RAISING.format(body="import _ctypes; registrar.library(_ctypes.__file__)")),
]  # fmt: skip

ROWS = [*TABLES, *LOADING, *MEMORY, *KERNELS, *PLUGINS]
