"""How an operator is declared: one call of `operator` with its schema, shape rule and tags.

Everything else about an operator follows from that line: its function, method, in-place variant,
``out=``, its number in the kernel tables, its place in the conformance suite and in the
documentation.
"""

from __future__ import annotations

from candelabra import _C

# Tags. The values are those of `enum Tag` in src/operators/schema.hpp.
INPLACE = 1  #: has an in-place variant, the name with an underscore
VIEW = 2  #: returns a view of its first argument; done by the core, no kernel is called
RANDOM = 4  #: draws from the generator of its device; takes a keyword ``generator``
NONDIFFERENTIABLE = 8  #: results never require grad
NUMBERS = 16  #: a Python number may stand for a tensor argument (it takes part in promotion as a wrapped number)
HIDDEN = 32  #: reached as ``candelabra.ops.name`` only: neither a function of the package nor a method
FUNCTION_ONLY = 64  #: a function of the package, not a method
METHOD_ONLY = 128  #: a method, not a function of the package
COMPOSITE = 256  #: has a decomposition in candelabra.composite; a backend may override it with a kernel
DATA_DEPENDENT = 512  #: the shape of a result depends on data: the kernel asks the core for the memory
NONDETERMINISTIC = 1024  #: equal inputs may give unequal results on some device
NO_OUT = 2048  #: takes no ``out=``
CORE = 4096  #: implemented in the core for every device; no kernel is called
TENSOR_FIRST = 8192  #: with NUMBERS: the first argument is a tensor all the same
CUSTOM = 16384  #: defined by candelabra.library, with a Python function or a compiled kernel
ONE_VALUE = 32768  #: writes one value to all elements, which may share memory
ANY_DEVICE = 65536  #: takes tensors of several devices; the shape rule copies between them
FLOAT32_NUMBERS = 131072  #: with NUMBERS: a number beside half precision is float32, so that the result is rounded once
WRAPPED_NUMBERS = 262144  #: a tensor of a transformation, given for a number, goes to the fallback
REQUIRED = 524288  #: in the tier "required"; the fact `tier` of a row sets it
OVERWRITES = 1048576  #: in place, without reading what its first argument held

#: What a row says in `refuses` of a category of dtypes: the exception and its message, in which
#: ``{}`` is the operator's name, or None for a NotImplementedError with PyTorch's message for that.
Refusal = tuple[type[Exception], str] | None

#: Every declared operator by name, in the order of declaration.
OPERATORS: dict[str, _C.Operator] = {}
#: Operator names by family (the name of the declaring module).
FAMILIES: dict[str, list[str]] = {}


class Facts:
    """What a row says of its operator beside what the core is told."""

    __slots__ = (
        "autocast",
        "batching",
        "bilinear",
        "jvp",
        "kernel_types",
        "linear",
        "refuses",
        "sees",
        "shape",
        "tier",
    )

    def __init__(
        self,
        shape: str,
        sees: str,
        kernel_types: dict[str, str],
        autocast: str,
        linear: tuple[str, ...],
        bilinear: tuple[str, ...],
        batching: str,
        jvp: str,
        refuses: tuple[str, ...],
        tier: str,
    ) -> None:
        self.shape = shape
        self.sees = sees
        self.kernel_types = kernel_types
        self.autocast = autocast
        self.linear = linear
        self.bilinear = bilinear
        self.batching = batching
        self.jvp = jvp
        self.refuses = refuses
        self.tier = tier


#: By operator name.
FACTS: dict[str, Facts] = {}


def operator(
    schema: str,
    *,
    shape: str,
    tags: int = 0,
    doc: str = "",
    sees: str = "",
    kernel_types: dict[str, str] | None = None,
    out: str = "",
    autocast: str = "",
    linear: tuple[str, ...] = (),
    bilinear: tuple[str, ...] = (),
    batching: str = "",
    jvp: str = "",
    refuses: dict[str, Refusal] | None = None,
    title: str = "",
    tier: str = "",
) -> _C.Operator:
    """Declare one operator.

    Parameters
    ----------
    schema
        For instance ``"add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"``. Types:
        ``Tensor``, ``Tensor?``, ``Tensor[]``, ``Tensor?[]``, ``Scalar``, ``int``, ``float``,
        ``bool``, ``str``, ``dtype``, ``device``, ``memory_format``, ``Generator`` (each also with
        ``?``), ``int[]``, ``int[N]``, ``int[]?``, ``bool[]``, ``float[]``, ``object``.
        ``Tensor(a!)`` marks an argument that is changed.
    shape
        Name of the shape rule, a C++ function in ``src/shapes/``.
    tags
        The constants above, or-ed.
    doc
        The docstring of the function and the method.
    sees
        What a kernel is given beyond the general rules of ``docs/kernel-contract.template.md``:
        normalized arguments, layouts, dtypes. Plain sentences; the page of the kernel contract is
        generated from them.
    kernel_types
        The type that a kernel reads of an argument, by its name, where the shape rule replaces the
        value by one of another type than the schema's: ``{"reduction": "int"}``.
    out
        What PyTorch asks of a tensor given as ``out=``, beyond a dtype that the result can be cast
        to. ``"exact"``: it has the dtype of the result. ``"whole"``: it is an input itself or has
        no memory in common with one, as for all elementwise operators. ``"apart"``: it has no
        memory in common with an input. ``"any_dtype"``: it has any dtype.
    autocast
        The dtype of the computation within :class:`candelabra.amp.autocast`: ``"lower"``, the fast
        dtype; ``"float32"``; the same followed by ``" on accelerators"`` where it holds for devices
        other than the CPU only; or ``"widest on accelerators"``, the widest among the arguments'
        dtypes.
    linear
        The arguments in which the operator is linear, all together: applied to their tangents it
        gives that of the result.
    bilinear
        Two arguments in each of which the operator is linear by itself: their tangents follow the
        product rule.
    batching
        The rule by which :func:`candelabra.func.vmap` runs the operator for a whole batch, a
        function of ``candelabra.autograd.transforms.batch_rules``. Elementwise operators need none.
    jvp
        The rule of its tangent, a function of ``candelabra.autograd.transforms.dual_rules``, where
        neither `linear` nor `bilinear` states it. ``"composite"``: that of its decomposition,
        although the operator has a gradient formula. ``"elementwise"``: its gradient formulas,
        applied to tangents, as for all elementwise shape rules. ``"elementwise reals"``: the same
        unless a tensor is complex, as the operator is not holomorphic.
    refuses
        For the elementwise shape rules: the categories of dtypes (``"bool"``, ``"integer"``,
        ``"float"``, ``"complex"``) that the operator does not take, each with what is raised.
    title
        What error messages call the operator, where that is not its name: ``"linalg.cholesky"``.
        Hidden operators ``linalg_x`` and ``special_x`` are called ``linalg.x`` and ``special.x``.
    tier
        ``"required"``: decompositions end in the operator's kernel, so that every backend has one.
        ``"fast"``: its kernel is worth the most for training. See
        :mod:`candelabra.backends.tiers`.
    """
    name = schema[: schema.index("(")]
    if out:
        _C.declare_out_rule(name, out)
    refusals = {
        category: refusal and (refusal[0], refusal[1].replace("{}", name))
        for category, refusal in (refuses or {}).items()
    }
    family, _, rest = name.partition("_")
    if not title and tags & HIDDEN and family in ("linalg", "special"):
        title = f"{family}.{rest}"
    if tier == "required":
        tags |= REQUIRED
    declared = _C.declare_operator(schema, shape, tags, doc, refusals, title)
    OPERATORS[name] = declared
    FACTS[name] = Facts(
        shape, sees, kernel_types or {}, autocast, linear, bilinear, batching, jvp, tuple(refusals), tier
    )
    return declared


_OUT = "Tensor, optional: where the result is written"


def document(
    summary: str,
    example: str,
    *,
    returns: str = "",
    raises: str = "",
    notes: str = "",
    out: str = _OUT,
    **parameters: str,
) -> str:
    """Put together the docstring of an operator, in NumPy's style.

    Parameters
    ----------
    summary
        One sentence, and more after an empty line where needed.
    example
        Doctest lines; ``import candelabra`` goes before them.
    returns, raises, notes
        The text of these sections; ``returns`` and ``raises`` begin with the type and a colon.
    out
        The same for the keyword ``out``; empty where there is none.
    parameters
        The text of each parameter: its type, a colon, what it is.
    """
    if out:
        parameters["out"] = out
    parts = [summary]
    sections = (
        ("Parameters", [_entry(text, name) for name, text in parameters.items()]),
        ("Returns", [_entry(returns)] if returns else []),
        ("Raises", [_entry(raises)] if raises else []),
    )
    parts += [f"{title}\n{'-' * len(title)}\n" + "\n".join(entries) for title, entries in sections if entries]
    if notes:
        parts.append(f"Notes\n-----\n{notes}")
    parts.append(f"Examples\n--------\n>>> import candelabra\n{example}")
    return "\n\n".join(parts) + "\n"


def _entry(text: str, name: str = "") -> str:
    kind, _, description = text.partition(": ")
    head = f"{name} : {kind}" if name else kind
    return f"{head}\n    {description[0].upper()}{description[1:]}." if description else head


def declare_family(family: str, first: int) -> None:
    """Note that the operators declared since there were `first` of them belong to `family`."""
    FAMILIES[family] = list(OPERATORS)[first:]
