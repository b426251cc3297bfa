"""Runs programs on devices in a process of its own; prints one line of JSON for each.

The input is a JSON list of [name, device type, program]. A program is Python code that sees the
device type as `D` and prints nothing; the value of its last expression is the result.
"""

from __future__ import annotations

import ast
import json
import sys

import candelabra


def evaluate(program: str, device: str) -> object:
    """Run a program and return the value of its last expression."""
    tree = ast.parse(program)
    last = tree.body.pop()
    names = {"candelabra": candelabra, "cb": candelabra, "D": device}
    exec(compile(tree, "<row>", "exec"), names)
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "<row>", "eval"), names)


def outcome(program: str, device: str) -> dict[str, str]:
    """Return the value of a program, or its error with notes."""
    try:
        return {"value": repr(evaluate(program, device))}
    except (Exception, SystemExit) as error:
        return {
            "error": type(error).__name__,
            "message": str(error),
            "notes": "\n".join(getattr(error, "__notes__", [])),
        }


for name, device, program in json.load(sys.stdin):
    found = outcome(program, device)
    found["cpu"] = repr((candelabra.ones(2, device="cpu") + 1).tolist())
    print(json.dumps([name, found]), flush=True)
