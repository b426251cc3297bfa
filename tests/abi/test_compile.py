"""Test cb_compile: backends that run groups of operators tile by tile, or compile them."""

from __future__ import annotations

import pytest
from backends import Backend, install, outcomes

KERNELS = '{.operator_name = "mul", .kernel = mul}, {.operator_name = "add", .kernel = add}, {.operator_name = "exp", .kernel = k},'

#: A compiler that keeps operators, positions and numbers, and an interpreter that runs them. It
#: claims sums and products. The results of `exp` are the counts of calls.
DECLARATIONS = r"""
#include "candelabra/compile.h"
static int calls[6]; /* kernels, claim, compile, execute, destroy, tiles */
static const float *element(const cb_tensor *t, int64_t i) { return (const float *)t->data + offset_of(t, i); }
static int32_t mul(cb_call *c) {
  ++calls[0];
  for (int64_t i = 0; i < c->outputs[0].numel; ++i)
    ((float *)c->outputs[0].data)[offset_of(&c->outputs[0], i)] =
        *element(c->arguments[0].as.tensor, i) * *element(c->arguments[1].as.tensor, i);
  return CB_OK;
}
static int32_t add(cb_call *c) {
  ++calls[0];
  for (int64_t i = 0; i < c->outputs[0].numel; ++i)
    ((float *)c->outputs[0].data)[offset_of(&c->outputs[0], i)] =
        *element(c->arguments[0].as.tensor, i) + *element(c->arguments[1].as.tensor, i);
  return CB_OK;
}
static int32_t k(cb_call *c) {
  for (int i = 0; i < 6; ++i) ((float *)c->outputs[0].data)[i] = calls[i];
  return CB_OK;
}
static void serially(int64_t begin, int64_t end, int64_t grain, void (*body)(void *, int64_t, int64_t), void *context) {
  for (int64_t i = begin; i < end; ++i, ++calls[5]) body(context, i, i + 1);
}
typedef struct { int is_sum, a, b, output; } step;
typedef struct {
  int step_count, tensor_count, input_count, output_count;
  step steps[16];
  int inputs[16], outputs[16], strides[16];
  float numbers[32];
} program;
static int number_of(const cb_graph *g, const cb_value *v) { return (int)(v->as.tensor - g->tensors); }
static int32_t claim(const cb_graph *g, uint8_t *claimed) {
  ++calls[1];
  if (g->size < sizeof *g) return CB_RUNTIME_ERROR;
  for (int i = 0; i < g->node_count; ++i)
    claimed[i] = (!strcmp(g->nodes[i].operator_name, "mul") || !strcmp(g->nodes[i].operator_name, "add"))
                 && g->tensors[g->nodes[i].output].dtype == CB_FLOAT32;
  return CLAIM_STATUS;
}
static int32_t compile(const cb_graph *g, void **result) {
  ++calls[2];
  program *p = calloc(1, sizeof *p);
  p->step_count = g->node_count;
  p->tensor_count = g->tensor_count;
  for (int i = 0; i < g->tensor_count; ++i)
    if (g->tensors[i].flags & CB_TENSOR_NUMBER) p->numbers[i] = *(const float *)g->tensors[i].data;
  p->input_count = g->input_count;
  for (int i = 0; i < g->input_count; ++i) {
    const cb_tensor *t = &g->tensors[p->inputs[i] = g->inputs[i]];
    if (t->ndim != 1 || t->data || t->numel != t->sizes[0]) return CB_RUNTIME_ERROR;
    p->strides[i] = (int)t->strides[0];
  }
  p->output_count = g->output_count;
  for (int i = 0; i < g->output_count; ++i) p->outputs[i] = g->outputs[i];
  for (int i = 0; i < g->node_count; ++i) {
    const cb_graph_node *n = &g->nodes[i];
    p->steps[i] = (step){!strcmp(n->operator_name, "add"), number_of(g, &n->arguments[0]),
                         number_of(g, &n->arguments[1]), n->output};
  }
  *result = p;
  return COMPILE_STATUS;
}
static int32_t execute(void *compiled, const cb_graph_run *run) {
  const program *p = compiled;
  ++calls[3];
  for (int64_t i = 0; i < run->numel; ++i) {
    float values[32];
    memcpy(values, p->numbers, sizeof values);
    for (int k = 0; k < p->input_count; ++k)
      values[p->inputs[k]] = ((const float *)run->inputs[k])[i * p->strides[k]];
    for (int k = 0; k < p->step_count; ++k) {
      const step *s = &p->steps[k];
      values[s->output] = s->is_sum ? values[s->a] + values[s->b] : values[s->a] * values[s->b];
    }
    for (int k = 0; k < p->output_count; ++k) ((float *)run->outputs[k])[i] = values[p->outputs[k]];
  }
  return EXECUTE_STATUS;
}
static void destroy(void *compiled) { ++calls[4]; free(compiled); }
static const char *failure(void) { return "the compiled code is tired"; }
static cb_compile service = {TABLE_SIZE, serially, claim, compile, execute, destroy};
static const void *extension(const char *name) { return strcmp(name, "compile") ? NULL : &service; }
"""
SETUP = "table.capabilities = CB_CAP_HOST_MEMORY; table.extension = extension; table.last_error = failure;"

#: A program of the core, without candelabra-compile: three calls in one group, of which `y` and the
#: last are results. Returns whether its results are right, the sizes, and the counts.
PROGRAM = """
import gc
from candelabra import _C

def numbers(count):
    return (candelabra.arange(count).remainder(1000) / 8).to(D)

def function(x, z):
    y = x * z
    return y, (y + 0.5) * x * half + y

def counts():
    return [int(one) for one in candelabra.exp(candelabra.zeros(6, device="cpu").to(D)).tolist()]

half = candelabra.tensor(0.25).to(D)
x, z = numbers(70_001), numbers(70_001) + 1
recording = _C.Recording()
recording.start()
results = function(x, z)
recording.stop()
program = _C.Program(recording, False)
for tensor in (x, z):
    program.add_input(tensor, False, None, True)
for tensor in results:
    program.add_result("memory", tensor, -1, None, None)
program.set_trees((("tensor", 0), ("tensor", 1)), (), ("tuple", tuple, (("tensor", 0), ("tensor", 1))))
program.finish()
before = counts()
if FAILS:
    try:
        program.replay((x, z))
        message = "none"
    except RuntimeError as error:
        message = str(error)
    found = message
else:
    right = all(
        all(a.tolist() == b.tolist() for a, b in zip(program.replay(given), function(*given), strict=True))
        for given in ((x, z), (z, x), (x + 1, z))
    )
    sizes = program.group_sizes, program.compiled_sizes
    del program
    gc.collect()
    found = right, *sizes, [b - a for a, b in zip(before, counts())]
found
"""


@pytest.fixture
def run(tmp_path, cache):
    """Return a function that runs the program on a backend with these statuses."""

    def run_one(size="sizeof(cb_compile)", fails=False, **statuses: str):
        text = DECLARATIONS.replace("TABLE_SIZE", size)
        for name in ("claim", "compile", "execute"):
            text = text.replace(f"{name.upper()}_STATUS", statuses.get(name, "CB_OK"))
        install(tmp_path, cache, "abi-compile", Backend("serve", text, KERNELS, SETUP))
        program = PROGRAM.replace("FAILS", str(fails))
        return outcomes(tmp_path, [("only", "serve", program)])["only"]

    return run_one


def test_compiled_groups(run):
    found = run()
    assert "value" in found, found
    right, groups, compiled, counts = eval(found["value"])
    kernels, claims, compilations, executions, destroyed, tiles = counts
    assert right and groups == compiled == [5]
    # The kernels ran where the function ran as written: 3 times 5, and one `x + 1`.
    assert kernels == 16 and claims == 0 and compilations == 1 and destroyed == 1
    assert executions == tiles and tiles % 3 == 0 and tiles >= 9


@pytest.mark.parametrize(
    "changes",
    [
        {"size": "offsetof(cb_compile, claim)"},
        {"claim": "CB_RUNTIME_ERROR"},
        {"compile": "CB_NOT_IMPLEMENTED"},
    ],
    ids=["of 2.1", "claim fails", "compile fails"],
)
def test_kernels_run_tile_by_tile_without_a_compiled_group(run, changes):
    found = run(**changes)
    assert "value" in found, found
    right, groups, compiled, (kernels, _, _, executions, _, tiles) = eval(found["value"])
    assert right and groups == [5] and compiled == [0] and executions == 0
    assert kernels == 16 + 5 * tiles


def test_a_failure_of_a_compiled_group_is_raised(run):
    found = run(fails=True, execute="CB_RUNTIME_ERROR")
    assert found.get("value") == repr("the compiled code is tired (in a compiled program)"), found
