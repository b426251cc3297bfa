"""Test the HTML of modules in notebooks."""

from candelabra import nn


def test_a_tree_with_numbers_of_parameters():
    html = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(3, 4))))._repr_html_()
    assert "(0): Linear(in_features=2, out_features=3, bias=True) <small>9 parameters</small>" in html
    assert "<summary>Sequential() <small>25 parameters</small></summary>" in html
    assert html.count("<details") == html.count("</details>") == 3
    assert html.count("<details open") == 2


def test_texts_are_escaped():
    class Strange(nn.Module):
        def extra_repr(self):
            return "<b>"

    assert "Strange(&lt;b&gt;)" in Strange()._repr_html_()


def test_lazy_parameters_have_no_number():
    assert "parameters" not in nn.LazyLinear(3)._repr_html_()


def test_subclasses_may_have_their_own():
    class Mine(nn.Linear):
        def _repr_html_(self):
            return "mine"

    assert Mine(1, 1)._repr_html_() == "mine"
    assert "Mine(" in nn.Sequential(Mine(1, 1))._repr_html_()
