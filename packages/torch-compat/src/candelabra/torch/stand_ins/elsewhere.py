"""Where Candelabra has what PyTorch has in other modules. All names are without the prefixes
``torch.`` and ``candelabra.``.
"""

from __future__ import annotations

#: By folder of candelabra.distributions: those of its modules that PyTorch has without the folder.
_DISTRIBUTIONS = {
    "combined": "independent mixture_same_family transformed_distribution",
    "continuous": "cauchy continuous_bernoulli exponential generalized_pareto gumbel half_cauchy half_normal inverse_gamma kumaraswamy "
    "laplace log_normal normal pareto relaxed_bernoulli relaxed_categorical uniform von_mises weibull",
    "discrete": "bernoulli binomial categorical geometric multinomial negative_binomial one_hot_categorical poisson",
    "gammas": "beta chi2 dirichlet fishersnedecor gamma studentT",
    "multivariate": "lkj_cholesky logistic_normal lowrank_multivariate_normal multivariate_normal wishart",
}
#: Candelabra's modules by PyTorch's, where the two have other names.
COUNTERPARTS = {
    "_C._nn": "nn.functional",
    "_functorch.vmap": "autograd.transforms.vmap",
    # PyTorch's reference implementations have the names and the results of the operators.
    "_refs": "",
    "_subclasses": "fake_tensor",
    "_subclasses.fake_tensor": "fake_tensor",
    "amp.autocast_mode": "amp",
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "cuda.comm": "nn.parallel.comm",
    "cuda.graphs": "cuda",
    "cuda.memory": "cuda",
    "cuda.random": "cuda",
    "cuda.streams": "cuda",
    **{
        f"distributions.{name}": f"distributions.{folder}.{name}"
        for folder, names in _DISTRIBUTIONS.items()
        for name in names.split()
    },
    **dict.fromkeys(
        (
            f"distributed.checkpoint.{name}"
            for name in ("api", "planner", "state_dict_loader", "state_dict_saver", "storage")
        ),
        "distributed.checkpoint",
    ),
    "distributed.distributed_c10d": "distributed",
    "distributed.optim.utils": "distributed.functional_optimizers",
    "distributed.tensor.parallel.api": "distributed.tensor.parallel",
    "distributed.tensor.parallel.style": "distributed.tensor.parallel",
    "nn.utils._named_member_accessor": "nn.utils.named_members",
    "fx._pytree": "fx.flatten_spec",
    "fx._symbolic_trace": "fx.tracing",
    "export.dynamic_shapes": "export.dims",
    "export.exported_program": "export.program",
    "export.graph_signature": "export.signature",
    "multiprocessing.pool": "multiprocessing",
    "multiprocessing.queue": "multiprocessing.queues",
    "multiprocessing.spawn": "multiprocessing.spawning",
    "profiler.profiler": "profiler",
    "signal.windows.windows": "signal.windows",
    "utils._python_dispatch": "python_dispatch",
    "utils._pytree": "pytree",
    "utils.data._utils.collate": "utils.data.collate",
    "utils.hooks": "hooks",
}

#: By PyTorch module: the names it has besides those of its counterpart, by Candelabra's module;
#: ``name=other`` where Candelabra's module has another name for it.
NAMES_ELSEWHERE: dict[str, dict[str, str]] = {
    "": {"overrides": "DisableTorchFunction DisableTorchFunctionSubclass"},
    "_C": {
        "_C": "_disabled_torch_dispatch_impl _disabled_torch_function_impl",
        "overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
    },
    "autograd": {"torch.stand_ins.operators.profiler_names": "kineto_available"},
    "autograd.profiler_util": {"autograd.profiler": "EventList FunctionEvent FunctionEventAvg"},
    "_C._nn": {"nn.modules.base.conversion": "_parse_to"},
    "distributions.transforms": {"distributions.transforms.base": "_InverseTransform"},
    "distributed.constants": {"distributed": "default_pg_timeout"},
    "fft": {"": "Tensor"},
    "functional": {
        "": "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum istft "
        "lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index"
    },
    "fx._symbolic_trace": {"fx.symbolic": "symbolic_trace"},
    "multiprocessing.pool": {"multiprocessing": "Pool"},
    "nn.attention.flex_attention": {"nn.attention.flex_attention": "_DEFAULT_SPARSE_BLOCK_SIZE=DEFAULT_BLOCK"},
    "nn.functional": {
        "nn": "grad",
        "overrides": "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic",
    },
    "nn.modules": {"nn.modules.module": "Module"},
    "nn.modules.activation": {"nn": "MultiheadAttention"},
    "nn.modules.conv": {"nn.modules.convolution": "_ConvNd=_Convolution _ConvTransposeNd=_Transposed"},
    "nn.modules.dropout": {"nn.modules.dropout": "_DropoutNd=_Dropout"},
    "nn.modules.pooling": {"nn.modules.pooling": "_MaxPoolNd=_MaxPool"},
    "nn.modules.transformer": {"nn.modules.transformer": "_get_activation_fn=_activation"},
    "nn.modules.linear": {"nn": "LazyLinear"},
    "nn.modules.module": {"nn.modules.base.state_dict": "_EXTRA_STATE_KEY_SUFFIX=EXTRA_STATE _IncompatibleKeys"},
    "serialization": {"torch.stand_ins.types": "FILE_LIKE MAP_LOCATION"},
    "utils.hooks": {"nn.modules.base.backward_hook": "BackwardHook"},
}
