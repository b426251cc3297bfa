/*
 * compile.h: what a backend may do for compiled programs beside its kernels: the extension
 * "compile", which a backend of ABI 2.1 may return. Minor version 2 appended the graphs of
 * operators. docs/backends.md explains it.
 */
#ifndef CANDELABRA_COMPILE_H
#define CANDELABRA_COMPILE_H

#include "candelabra/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graphs of operators, since 2.2 */

/* One operator of a graph, which a kernel would compute otherwise. Lies in arrays. */
typedef struct cb_graph_node {
  const char* operator_name; /* "add", as in cb_call */
  /* In schema order, as in cb_call. as.tensor points into cb_graph.tensors. */
  const cb_value* arguments;
  int32_t argument_count;
  int32_t output; /* the tensor that it computes, by its number in cb_graph.tensors */
  uint64_t reserved[2];
} cb_graph_node;

/* cb_graph.flags */
enum cb_graph_flags {
  /* Results may differ from those of the backend's kernels within the rounding errors of the dtype:
   * contraction of products and sums, approximations of functions. Without it, the results have
   * the bits that the kernels compute, except for the sign and the payload of NaN. */
  CB_GRAPH_INEXACT = 1
};

/* Elementwise operators, one after the other, in static single assignment: each tensor is an input
 * or computed by one node, before it is used. All tensors have one dimension. The graph is computed
 * tile by tile: the number of elements is an argument of execute(). Valid during the call. */
typedef struct cb_graph {
  uint64_t size; /* sizeof(cb_graph) in the core's build */
  int32_t device_index;
  uint32_t flags; /* enum cb_graph_flags */
  /* Descriptors with dtype and stride: 1, or 0 for one element that all share. data is null but of
   * numbers (CB_TENSOR_NUMBER). numel is the elements of the memory that the tensor lies in: of the
   * whole tensor, or of one tile where only the kernels beside the graph use it. offset is that of
   * element 0 in its storage, in bytes; 0 in a tile. */
  const cb_tensor* tensors;
  const cb_graph_node* nodes;
  const int32_t* inputs;  /* the tensors whose addresses execute() gets, numbers excluded */
  const int32_t* outputs; /* those that it must write; the others are not needed outside */
  int32_t tensor_count;
  int32_t node_count;
  int32_t input_count;
  int32_t output_count;
} cb_graph;

/* One run of a compiled graph. */
typedef struct cb_graph_run {
  uint64_t size;             /* sizeof(cb_graph_run) in the core's build */
  int64_t numel;             /* elements of this tile, at least 1 */
  const void* const* inputs; /* the address of element 0 of each, as listed in cb_graph.inputs */
  /* The same of cb_graph.outputs. An output may lie where an input lies: element i of the inputs is
   * read before element i of an output is written. */
  void* const* outputs;
} cb_graph_run;

typedef struct cb_compile {
  uint64_t size; /* sizeof(cb_compile) in the backend's build */
  /* Of a backend whose memory is host memory and whose kernels complete before they return. Runs
   * body on parts of [begin, end), of at least `grain` but the last, on the threads that the
   * backend's kernels use, and returns when all are done. A kernel that a body calls runs on the
   * thread of the body.
   *
   * With it, the core calls the kernels of elementwise operators tile by tile: on contiguous tensors
   * of one dimension, which are a part of what the operator was called with, or on elements that are
   * repeated (stride 0). The backend promises that these kernels need no service of cb_host, and
   * that the bits of an element do not depend on the elements beside it.
   * (optional) each kernel gets whole tensors [any] */
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* context, int64_t begin, int64_t end), void* context);

  /* The following are all present or all null. They need parallel_for. Since 2.2. */

  /* Sets claimed[k] to 1 for each node k that the backend would compile together with claimed nodes
   * beside it, and to 0 for the others. It compiles nothing and is quick. A claimed operator cannot
   * fail. Returns enum cb_status. (optional) nothing is compiled [gil] */
  int32_t (*claim)(const cb_graph* graph, uint8_t* claimed);
  /* Compiles a graph whose nodes were all claimed. With any status but CB_OK, the core calls the
   * kernels, and does not ask again for this program. `result` is not null with CB_OK. [gil] */
  int32_t (*compile)(const cb_graph* graph, void** result);
  /* Computes a tile, on the calling thread alone. A failure ends the program with the exception of
   * the status, whose message is in last_error(). [any] */
  int32_t (*execute)(void* compiled, const cb_graph_run* run);
  /* Gives up what compile() or load() returned. [gil] */
  void (*destroy)(void* compiled);

  /* The following two are both present or both null. (optional) every process compiles anew */

  /* Writes to `bytes` how much load() needs to make a compiled graph again, and writes that to
   * `buffer` if `capacity` suffices for it. The core keeps it in the user's cache folder and nowhere
   * else: it may be machine code. [gil] */
  int32_t (*save)(void* compiled, void* buffer, uint64_t capacity, uint64_t* bytes);
  /* Makes a compiled graph from what save() has written, in another process. With any status but
   * CB_OK, the core calls compile(). The backend refuses what is damaged, was made for another
   * processor, or of another graph: `saved` is that of a graph which the core could not tell from
   * this one by a hash. [gil] */
  int32_t (*load)(const cb_graph* graph, const void* saved, uint64_t bytes, void** result);
} cb_compile;

#ifdef __cplusplus
}
#endif

#endif
