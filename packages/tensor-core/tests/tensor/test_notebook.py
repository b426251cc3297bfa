"""Test the HTML of tensors in notebooks."""

import re

import pytest

import candelabra as c


def cells(html):
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]


def test_a_matrix_is_a_table():
    html = c.tensor([[1.5, -2.0], [0.25, 3.0]])._repr_html_()
    assert cells(html) == [["1.5000", "-2.0000"], ["0.2500", "3.0000"]]
    assert "Tensor · (2, 2) · candelabra.float32 · cpu" in html


@pytest.mark.parametrize(
    ("values", "row"), [([1, 20], ["1", "20"]), ([True, False], ["True", "False"]), ([1j], ["0.+1.j"])]
)
def test_a_vector_is_a_row(values, row):
    assert cells(c.tensor(values)._repr_html_()) == [row]


def test_large_matrices_are_shown_by_their_edges():
    rows = cells(c.arange(10_000).reshape(100, 100)._repr_html_())
    assert len(rows) == 7
    assert rows[0] == ["0", "1", "2", "…", "97", "98", "99"]
    assert rows[3] == ["…"] * 7
    assert rows[6][-1] == "9999"


@pytest.mark.parametrize("tensor", [c.ones(2, 2, 2), c.tensor(3.0), c.empty(0), c.empty(3, device="meta")])
def test_others_are_text(tensor):
    html = tensor._repr_html_()
    assert "<pre>" in html
    assert "<table" not in html


def test_subclasses_say_their_names_escaped():
    cls = type("A<b>", (c.Tensor,), {})
    html = c.ones(2).as_subclass(cls)._repr_html_()
    assert "A&lt;b&gt; · (2,)" in html
