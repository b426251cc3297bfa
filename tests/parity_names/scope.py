"""Which of PyTorch's modules and names are outside Candelabra's scope, and why."""

from __future__ import annotations

QUANTIZED = "quantized tensors: planned with the other kinds of tensors"
SPARSE = "sparse tensors: planned with the other kinds of tensors"
MASKED = "masked and nested tensors: planned with the other kinds of tensors"
COMPILER = "compiling, tracing and exporting: planned with the compiler"
OTHER_DISTRIBUTED = (
    "`torch.distributed`: launchers' and checkpoints' inner parts, pipelines, and what PyTorch keeps for itself"
)
HARDWARE = "hardware without a backend"
PIPES = "data pipes, which PyTorch has deprecated"
TOOLS = "tools for developers of PyTorch itself and of its builds"
PACKAGES = "`torch.package` archives and mobile builds"
INTERNAL = "PyTorch's internals, which its public functions use"
DTYPES = "dtypes of less than a byte and of bits, which have no operators in PyTorch either"

#: The modules of `torch.distributed` in scope, but not what is below them. Of these, the parameters
#: of functions and classes are compared, too.
DISTRIBUTED = frozenset(
    "torch.nn.parallel.distributed" if path == "data_parallel" else f"torch.distributed{path}"
    for path in (
        "", ".distributed_c10d", ".device_mesh", ".checkpoint", ".checkpoint.state_dict", ".fsdp", ".optim", ".optim.utils", ".rpc", ".tensor",
        ".tensor.experimental", ".tensor.parallel", ".tensor.placement_types", ".algorithms.join", ".algorithms.ddp_comm_hooks",
        ".algorithms.ddp_comm_hooks.ddp_zero_hook", ".algorithms.ddp_comm_hooks.debugging_hooks",
        ".algorithms.ddp_comm_hooks.default_hooks", ".algorithms.ddp_comm_hooks.optimizer_overlap_hooks",
        ".algorithms.ddp_comm_hooks.post_localSGD_hook", ".algorithms.ddp_comm_hooks.powerSGD_hook",
        ".algorithms.ddp_comm_hooks.quantization_hooks", ".algorithms.model_averaging.averagers",
        ".algorithms.model_averaging.hierarchical_model_averager", ".algorithms.model_averaging.utils", "data_parallel",
    )
)  # fmt: skip
_DISTRIBUTED_MODULES = frozenset(
    f"torch.distributed.{name}"
    for name in (
        "algorithms", "argparse_util", "autograd", "benchmarks", "c10d_logger", "collective_utils", "config", "constants",
        "debug", "elastic", "flight_recorder", "launch", "launcher", "logging_handlers", "nn", "pipelining",
        "remote_device", "rendezvous", "run", "utils",
    )
)  # fmt: skip
#: Modules, with all below them.
MODULES: dict[str, str] = {
    **dict.fromkeys(
        (
            "torch.ao", "torch.quantization", "torch.nn.quantized", "torch.nn.quantizable", "torch.nn.qat", "torch.nn.intrinsic",
            "torch.backends.quantized", "torch.jit.quantized",
        ),
        QUANTIZED,
    ),
    **dict.fromkeys(("torch.sparse", "torch.cuda.sparse", "torch.utils.mkldnn", "torch.backends.cusparselt"), SPARSE),
    **dict.fromkeys(("torch.masked", "torch.nested"), MASKED),
    **dict.fromkeys(
        (
            "torch.fx.experimental", "torch.fx.passes", "torch.fx.tensor_type", "torch.fx.config", "torch.export", "torch.onnx", "torch.compiler", "torch.jit.annotations", "torch.jit.frontend", "torch.jit.mobile",
            "torch.jit.generate_bytecode", "torch.jit.supported_ops", "torch.jit.unsupported_tensor_ops", "torch.nativert",
            "torch.utils.jit", "torch.cuda.jiterator", "torch.jit",
        ),
        COMPILER,
    ),
    **dict.fromkeys(("torch.distributed", "torch.numa"), OTHER_DISTRIBUTED),
    **dict.fromkeys(
        (
            "torch.xpu", "torch.mtia", "torch.mps", "torch.backends.mps", "torch.backends.miopen", "torch.backends.kleidiai",
            "torch.backends.nnpack", "torch.backends.xnnpack", "torch.backends.xeon", "torch.cuda.gds", "torch.cuda.green_contexts",
            "torch.backends.python_native", "torch.utils.backend_registration", "torch.profiler.itt",
        ),
        HARDWARE,
    ),
    **dict.fromkeys(
        ("torch.utils.data.datapipes", "torch.utils.data.graph", "torch.utils.data.graph_settings", "torch.utils.data.backward_compatibility"),
        PIPES,
    ),
    **dict.fromkeys(
        (
            "torch.utils.hipify", "torch.utils.benchmark.examples", "torch.utils.benchmark.op_fuzzers", "torch.utils.benchmark.utils",
            "torch.utils.collect_env", "torch.utils.show_pickle", "torch.utils.throughput_benchmark", "torch.utils.cpp_backtrace",
            "torch.utils.debug_log", "torch.utils.viz", "torch.utils.backcompat", "torch.monitor", "torch.nn.cpp", "torch.nn.backends",
            "torch.contrib", "torch.cuda.tunable", "torch.profiler.python_tracer", "torch.autograd.profiler_legacy",
        ),
        TOOLS,
    ),
    **dict.fromkeys(("torch.multiprocessing.reductions", "torch.nn.attention.experimental", "torch.backends.cudnn.rnn"), INTERNAL),
    **dict.fromkeys(
        ("torch.package", "torch.utils.mobile_optimizer", "torch.utils.model_dump"),
        PACKAGES,
    ),
}  # fmt: skip

_WORDS: tuple[tuple[str, str], ...] = (
    ("quant", QUANTIZED), ("qint", QUANTIZED), ("quint", QUANTIZED), ("qscheme", QUANTIZED), ("per_channel", QUANTIZED), ("per_tensor", QUANTIZED),
    ("int_repr", QUANTIZED), ("q_scale", QUANTIZED), ("q_zero_point", QUANTIZED), ("q_per", QUANTIZED), ("QInt", QUANTIZED), ("QUInt", QUANTIZED),
    ("fbgemm", QUANTIZED), ("DataPipe", PIPES), ("cudnn_", INTERNAL), ("datapipe", PIPES), ("sparse", SPARSE), ("Sparse", SPARSE), ("ccol_indices", SPARSE), ("crow_indices", SPARSE), ("col_indices", SPARSE),
    ("row_indices", SPARSE), ("mkldnn", SPARSE), ("nested", MASKED), ("jagged", MASKED), ("mtia", HARDWARE), ("mps", HARDWARE), ("xpu", HARDWARE),
    ("hpu", HARDWARE), ("ipu", HARDWARE), ("vulkan", HARDWARE), ("miopen", HARDWARE), ("maia", HARDWARE), ("xla", HARDWARE), ("Script", COMPILER),
    ("export", COMPILER), ("jit", COMPILER), ("import_ir_module", COMPILER), ("parse_ir", COMPILER), ("parse_schema", COMPILER),
    ("parse_type_comment", COMPILER), ("merge_type_from_type_comment", COMPILER), ("unify_type_list", COMPILER),
)  # fmt: skip
#: Single names of `torch`: types that describe compiled programs, and what belongs to them.
_COMPILED = frozenset({
    "AliasDb", "AnyType", "Argument", "AwaitType", "Block", "BoolType", "BufferDict", "CallStack", "Capsule",
    "ClassType", "Code", "CompilationUnit", "CompleteArgumentSpec", "ComplexType", "ConcreteModuleType",
    "ConcreteModuleTypeBuilder", "DeepCopyMemoTable", "DeserializationStorageContext", "DeviceObjType", "DictType",
    "EnumType", "ErrorReport", "ExecutionPlan", "FileCheck", "FloatType", "FunctionSchema", "Future", "FutureType",
    "Gradient", "Graph", "GraphExecutorState", "InferredType", "IntType", "InterfaceType", "JITException",
    "ListType", "LiteScriptModule", "LockingLogger", "LoggerBase", "ModuleDict", "Node", "NoneType", "NoopLogger",
    "NumberType", "OperatorInfo", "OptionalType", "PyObjectType", "RRefType", "ScriptDict",
    "SerializationStorageContext", "StaticModule", "StringType", "SymBoolType", "SymIntType", "TensorType",
    "TracingState", "TupleType", "Type", "UnionType", "Use", "Value", "freeze",
})  # fmt: skip


def _names(names: str, why: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), why)


#: Single names of `torch`.
_OF_TORCH = {
    **dict.fromkeys(_COMPILED, COMPILER),
    **_names("dsmm hsmm hspmm saddmm smm spmm sspaddmm indices_copy values_copy", SPARSE),
    **_names(
        "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats "
        "batch_norm_gather_stats_with_counts batch_norm_stats native_norm ArgumentSpec ExcludeDispatchKeyGuard IODescriptor StreamObjType "
        "FatalError cpp ParameterDict",
        INTERNAL,
    ),
    **_names("AVG SUM AggregationType BenchmarkConfig BenchmarkExecutionStats", TOOLS),
    **_names("bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2", DTYPES),
    **{f"{kind}int{bits}": DTYPES for kind in ("", "u") for bits in range(1, 8)},
    **_names("choose_qparams_optimized", QUANTIZED),
}
#: Single names of other modules.
_OF_OTHERS: dict[str, dict[str, str]] = {
    "torch.autograd.profiler": _names("EnforceUnique load_nvprof parse_nvprof_trace", TOOLS),
    "torch.backends.cuda": _names(
        "cuBLASModule cuFFTPlanCache cuFFTPlanCacheAttrContextProp cuFFTPlanCacheManager preferred_rocm_fa_library "
        "is_ck_sdpa_available",
        INTERNAL,
    ),
    "torch.cuda": _names("GreenContext", HARDWARE),
    "torch.fx.graph_module": _names("reduce_package_graph_module", PACKAGES),
    "torch.fx.operator_schemas": _names("create_type_hint type_matches", COMPILER),
    "torch.fx.proxy": _names("MetaProxy", COMPILER),
    "torch.fx.traceback": _names(
        "NodeSource NodeSourceAction get_current_replay_node get_graph_provenance_json reset_grad_fn_seq_nr set_current_replay_node "
        "set_grad_fn_seq_nr",
        COMPILER,
    ),
    "torch.library.Library": _names("register_symm_mem_args", OTHER_DISTRIBUTED),
    # The arguments of process groups' own methods, and what `DistributedDataParallel` is made of.
    "torch.distributed": _names(
        "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BackendConfig BarrierOptions BroadcastOptions GatherOptions GroupName "
        "Logger ProcessGroupGloo ReduceOptions ReduceScatterOptions Reducer ScatterOptions record_comm",
        OTHER_DISTRIBUTED,
    ),
    "torch.distributed.checkpoint": _names(
        "format_utils logger logging_handlers planner_helpers quantized_hf_storage resharding staging utils",
        OTHER_DISTRIBUTED,
    ),
    "torch.distributed.checkpoint.state_dict": _names(
        "DictValueType FQNS_T ListDictValueType OptimizerStateType PrimitiveType ValueType", OTHER_DISTRIBUTED
    ),
    "torch.distributed.rpc": _names("AllGatherStates is_available method_factory new_method", OTHER_DISTRIBUTED),
    "torch.distributed.Work": _names("boxed get_future_result unbox", OTHER_DISTRIBUTED),
    "torch.nn.parallel.DistributedDataParallel": _names("compile", COMPILER),
}
_OF_OTHERS["torch.distributed.distributed_c10d"] = _OF_OTHERS["torch.distributed"]
#: Functions and classes of `torch.distributed` whose parameters are not compared: they describe
#: PyTorch's files.
_OTHER_PARAMETERS = frozenset(
    {"torch.distributed.checkpoint.Metadata", "torch.distributed.checkpoint.TensorProperties"}
)
_OF_DATA = _names(
    "DataChunk argument_validation guaranteed_datapipes_determinism non_deterministic runtime_validation "
    "runtime_validation_disabled",
    PIPES,
)


def reason_of_parameters(path: str) -> str | None:
    """Return why the parameters of a function or class of `torch.distributed` are not compared, or
    None.
    """
    return OTHER_DISTRIBUTED if path in _OTHER_PARAMETERS else None


def reason(module: str, name: str) -> str | None:
    """Return why a name is outside the scope, or None."""
    if module in DISTRIBUTED:
        # A name that is a module is in scope if the module is.
        is_module = name.islower() and f"{module}.{name}" in _DISTRIBUTED_MODULES
        return OTHER_DISTRIBUTED if is_module else _OF_OTHERS.get(module, {}).get(name)
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        found = MODULES.get(".".join(parts[:length]))
        if found is not None:
            return found
    whole = MODULES.get(f"{module}.{name}") if name else None
    if whole is not None:
        return whole
    for word, why in _WORDS:
        if word in name:
            return why
    if name in _OF_OTHERS.get(module, ()):
        return _OF_OTHERS[module][name]
    if module == "torch.utils.data":
        return _OF_DATA.get(name)
    if module.startswith("torch.nn.modules") or module == "torch.nn.Module":
        return COMPILER if name == "compile" else None
    return _OF_TORCH.get(name) if module == "torch" else None
