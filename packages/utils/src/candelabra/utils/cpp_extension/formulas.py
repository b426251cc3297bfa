"""Elementwise operators from a formula: translation of a Python expression to C++."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NoReturn

from .glue import Function, cpp_types, symbol_of

if TYPE_CHECKING:
    from candelabra.catalogue.schemas import Parsed

#: Default dtypes of a formula.
FLOATING = ("float16", "bfloat16", "float32", "float64")
_REAL = (*FLOATING, "uint8", "int8", "int16", "int32", "int64")
#: Functions by name and number of arguments, with their C++ names.
_FUNCTIONS = {
    **{
        (name, 1): f"candelabra::math::{name}"
        for name in (
            "sqrt", "floor", "ceil", "trunc", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sinh", "cosh", "asinh", "acosh",
            "atanh", "sin", "cos", "tan", "atan", "asin", "acos", "sigmoid", "softplus", "silu", "gelu", "erf", "erfc", "erfinv", "lgamma",
            "digamma",
        )
    },
    ("abs", 1): "candelabra::formula::absolute", ("sign", 1): "candelabra::formula::sign", ("round", 1): "candelabra::math::round_even",
    ("atan2", 2): "candelabra::math::atan2", ("hypot", 2): "candelabra::math::hypot", ("xlogy", 2): "candelabra::math::xlogy",
    ("pow", 2): "candelabra::formula::power", ("min", 2): "candelabra::formula::minimum", ("max", 2): "candelabra::formula::maximum",
    ("minimum", 2): "candelabra::formula::minimum", ("maximum", 2): "candelabra::formula::maximum",
    ("clamp", 3): "candelabra::formula::clamp",
}  # fmt: skip
_CONSTANTS = {
    "pi": "3.14159265358979323846", "e": "2.71828182845904523536", "inf": "std::numeric_limits<double>::infinity()",
    "nan": "std::numeric_limits<double>::quiet_NaN()",
}  # fmt: skip
_OPERATIONS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_CALLED_OPERATIONS = {ast.Div: "divide", ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.Pow: "power"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


class _Translation:
    """Translates an expression to C++, as numbers of the compute type ``C`` or as conditions."""

    def __init__(self, function: str, formula: str, parsed: Parsed) -> None:
        self.function, self.formula = function, formula
        self.names = {parameter.name for parameter in parsed.parameters}

    def refuse(self, why: str) -> NoReturn:
        raise ValueError(f"{self.function}: the formula {self.formula!r}: {why}")

    def translate(self) -> str:
        try:
            tree = ast.parse(self.formula.strip(), mode="eval")
        except SyntaxError as error:
            self.refuse(f"it is no expression: {error.msg}")
        return self.number(tree.body)

    def number(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return f"C({node.value!r})"
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return node.id
            if node.id in _CONSTANTS:
                return f"C({_CONSTANTS[node.id]})"
            self.refuse(f"there is neither an argument nor a constant named {node.id!r}")
        if isinstance(node, ast.BinOp):
            left, right = self.number(node.left), self.number(node.right)
            if type(node.op) in _OPERATIONS:
                return f"C({left} {_OPERATIONS[type(node.op)]} {right})"
            if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
                return f"C({left} * {left})"
            if type(node.op) in _CALLED_OPERATIONS:
                return f"candelabra::formula::{_CALLED_OPERATIONS[type(node.op)]}<C>({left}, {right})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return f"C({'-' if isinstance(node.op, ast.USub) else '+'}{self.number(node.operand)})"
        if isinstance(node, ast.IfExp):
            return self.choice(node.test, node.body, node.orelse)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            name = node.func.id
            if name == "where" and len(node.args) == 3:
                return self.choice(*node.args)
            written = _FUNCTIONS.get((name, len(node.args)))
            if written is None:
                known = ", ".join(sorted({*(each for each, _ in _FUNCTIONS), "where"}))
                self.refuse(f"there is no function {name} of {len(node.args)} argument(s); there are {known}")
            given = ", ".join(f"C({self.number(argument)})" for argument in node.args)
            return f"{written}({given})"
        if isinstance(node, (ast.Compare, ast.BoolOp)):
            return f"C({self.condition(node)})"
        self.refuse(
            f"{ast.unparse(node)!r} is none of the numbers, names, operations and functions that a formula is made of"
        )

    def choice(self, condition: ast.expr, first: ast.expr, second: ast.expr) -> str:
        test = self.condition(condition)
        return f"candelabra::formula::choose<C>({test}, [&] {{ return {self.number(first)}; }}, [&] {{ return {self.number(second)}; }})"

    def condition(self, node: ast.expr) -> str:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            parts = []
            for left, operation, right in zip(operands, node.ops, operands[1:], strict=False):
                if type(operation) not in _COMPARISONS:
                    self.refuse(f"{ast.unparse(node)!r} is no comparison of numbers")
                parts.append(f"({self.number(left)} {_COMPARISONS[type(operation)]} {self.number(right)})")
            return f"({' && '.join(parts)})"
        if isinstance(node, ast.BoolOp):
            joined = " && " if isinstance(node.op, ast.And) else " || "
            return f"({joined.join(self.condition(value) for value in node.values)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"(!{self.condition(node.operand)})"
        return f"({self.number(node)} != C(0))"


def check(function: Function) -> None:
    """Raise if the schema or the dtypes of a formula are not supported."""
    tensors = [parameter for parameter in function.parsed.parameters if parameter.type == "Tensor"]
    others = [one for one in function.parsed.parameters if one.type not in ("Tensor", "float", "int", "SymInt", "bool")]
    if not tensors or others or function.parsed.results != ("Tensor",) or not function.parsed.is_functional:
        raise ValueError(
            f"{function.name}: an operator with a formula takes tensors and numbers (float, int, bool) and has one result, but its schema is "
            f"{function.schema}"
        )
    unknown = [name for name in function.dtypes if name not in _REAL]
    if unknown:
        raise ValueError(f"{function.name}: formulas are computed in {', '.join(_REAL)}, not in {unknown[0]}")


def keeps_integers(function: Function) -> bool:
    """Return whether integers are computed as integers, and not in the default dtype."""
    return any("int" in name for name in function.dtypes)


def formula_source(functions: list[Function]) -> str:
    """Generate the kernels of formulas."""
    return '#include "candelabra/formula.hpp"\n\n' + "\n".join(map(_kernel, functions))


def _kernel(function: Function) -> str:
    assert function.formula is not None
    body = _Translation(function.name, function.formula, function.parsed).translate()
    tensors = [(number, one.name) for number, one in enumerate(function.parsed.parameters) if one.type == "Tensor"]
    numbers = [(number, one) for number, one in enumerate(function.parsed.parameters) if one.type != "Tensor"]
    count = len(tensors)
    members = "".join(f"  C {one.name};\n" for _, one in numbers)
    read = ", ".join(
        f"static_cast<C>(call->arguments[{number}].as.{'f' if one.type == 'float' else 'i'})" for number, one in numbers
    )
    rows = "".join(f"    const C* const {name}_row = in[{at}];\n" for at, (_, name) in enumerate(tensors))
    elements = "".join(f"      [[maybe_unused]] const C {name} = {name}_row[i];\n" for _, name in tensors)
    pointers = ", ".join(["&call->outputs[0]", *(f"call->arguments[{number}].as.tensor" for number, _ in tensors)])
    return (
        f"template <typename C>\nstruct {function.name}_formula {{\n{members}"
        f"  [[gnu::noinline]] void operator()(C* out, const std::array<const C*, {count}>& in, int64_t count) const {{\n{rows}"
        # ivdep is valid because an output element may alias only the input element with the same
        # index.
        "#pragma GCC ivdep\n"
        f"    for (int64_t i = 0; i < count; ++i) {{\n{elements}      out[i] = static_cast<C>({body});\n    }}\n  }}\n}};\n"
        f'extern "C" CB_EXPORT int32_t {symbol_of(function.name)}(cb_call* call) {{\n'
        "  return candelabra::extension::guarded(call, [&] {\n"
        f"    return candelabra::extension::dispatch<{', '.join(cpp_types(function))}>(call->outputs[0].dtype, [&]<typename T>() -> int32_t {{\n"
        "      using C = typename candelabra::formula::Compute<T>::Type;\n"
        f"      const std::array<const cb_tensor*, {count + 1}> tensors{{{pointers}}};\n"
        f"      candelabra::formula::elementwise<T, C>(call, tensors, {function.name}_formula<C>{{{read}}});\n"
        "      return CB_OK;\n    });\n  });\n}\n"
    )
