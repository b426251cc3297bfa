"""Functions that hypothesis builds of elementwise operators."""

from hypothesis import strategies as st


def random_function(draw, unary, binary):
    """A function of two tensors, built of operators on earlier results."""
    steps = [
        (draw(st.integers(0, len(unary) + len(binary) - 1)), draw(st.integers(0, 9)), draw(st.integers(0, 9)))
        for _ in range(draw(st.integers(2, 10)))
    ]
    kept = draw(st.integers(0, 2))

    def function(x, y):
        made = [x, y]
        for operator, a, b in steps:
            first, second = made[a % len(made)], made[b % len(made)]
            if operator < len(unary):
                made.append(unary[operator](first))
            else:
                made.append(binary[operator - len(unary)](first, second))
        return made[-1], made[-1 - kept]

    return function
