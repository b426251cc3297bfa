"""``candelabra.special``: special functions, by the names of torch.special."""

from __future__ import annotations

from candelabra.catalogue import OPERATORS
from candelabra.composite import FUNCTIONS
from candelabra.composite.elementwise.special import mvlgamma as multigammaln
from candelabra.composite.elementwise.special import polygamma
from candelabra.composite.registration import overridable

airy_ai = OPERATORS["special_airy_ai"]
bessel_j0 = OPERATORS["special_bessel_j0"]
bessel_j1 = OPERATORS["special_bessel_j1"]
bessel_y0 = OPERATORS["special_bessel_y0"]
bessel_y1 = OPERATORS["special_bessel_y1"]
chebyshev_polynomial_t = OPERATORS["special_chebyshev_polynomial_t"]
chebyshev_polynomial_u = OPERATORS["special_chebyshev_polynomial_u"]
chebyshev_polynomial_v = OPERATORS["special_chebyshev_polynomial_v"]
chebyshev_polynomial_w = OPERATORS["special_chebyshev_polynomial_w"]
digamma = psi = OPERATORS["digamma"]
entr = OPERATORS["special_entr"]
erf = OPERATORS["erf"]
erfc = OPERATORS["erfc"]
erfcx = OPERATORS["special_erfcx"]
erfinv = OPERATORS["erfinv"]
exp2 = OPERATORS["exp2"]
expit = OPERATORS["sigmoid"]
expm1 = OPERATORS["expm1"]
gammainc = OPERATORS["igamma"]
gammaincc = OPERATORS["igammac"]
gammaln = OPERATORS["lgamma"]
hermite_polynomial_h = OPERATORS["special_hermite_polynomial_h"]
hermite_polynomial_he = OPERATORS["special_hermite_polynomial_he"]
i0 = modified_bessel_i0 = OPERATORS["i0"]
i0e = OPERATORS["special_i0e"]
i1 = modified_bessel_i1 = OPERATORS["special_i1"]
i1e = OPERATORS["special_i1e"]
laguerre_polynomial_l = OPERATORS["special_laguerre_polynomial_l"]
legendre_polynomial_p = OPERATORS["special_legendre_polynomial_p"]
log1p = OPERATORS["log1p"]
log_ndtr = OPERATORS["special_log_ndtr"]
log_softmax = FUNCTIONS.get("log_softmax") or OPERATORS["log_softmax"]
logit = OPERATORS["logit"]
logsumexp = FUNCTIONS.get("logsumexp") or OPERATORS["logsumexp"]
modified_bessel_k0 = OPERATORS["special_modified_bessel_k0"]
modified_bessel_k1 = OPERATORS["special_modified_bessel_k1"]
ndtr = OPERATORS["special_ndtr"]
ndtri = OPERATORS["special_ndtri"]
round = OPERATORS["round"]
scaled_modified_bessel_k0 = OPERATORS["special_scaled_modified_bessel_k0"]
scaled_modified_bessel_k1 = OPERATORS["special_scaled_modified_bessel_k1"]
shifted_chebyshev_polynomial_t = OPERATORS["special_shifted_chebyshev_polynomial_t"]
shifted_chebyshev_polynomial_u = OPERATORS["special_shifted_chebyshev_polynomial_u"]
shifted_chebyshev_polynomial_v = OPERATORS["special_shifted_chebyshev_polynomial_v"]
shifted_chebyshev_polynomial_w = OPERATORS["special_shifted_chebyshev_polynomial_w"]
sinc = FUNCTIONS["sinc"]
softmax = FUNCTIONS.get("softmax") or OPERATORS["softmax"]
spherical_bessel_j0 = OPERATORS["special_spherical_bessel_j0"]
xlog1py = OPERATORS["special_xlog1py"]
xlogy = OPERATORS["xlogy"]
zeta = OPERATORS["special_zeta"]

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1",
    "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_i0",
    "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy",
    "zeta",
]  # fmt: skip

for _name in __all__:
    if type(globals()[_name]).__name__ == "function":
        globals()[_name] = overridable(_name, globals()[_name])
