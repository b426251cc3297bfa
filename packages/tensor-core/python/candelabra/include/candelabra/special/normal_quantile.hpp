// The inverse of the normal distribution function (probit), by Wichura's rational approximations
// (Algorithm AS 241, "The percentage points of the normal distribution", Applied Statistics 37,
// 1988). The relative error is about 1e-16. There are no branches, so that the compiler can
// vectorize a loop over it.
#ifndef CANDELABRA_SPECIAL_NORMAL_QUANTILE_HPP
#define CANDELABRA_SPECIAL_NORMAL_QUANTILE_HPP

#include "candelabra/math.hpp"

namespace candelabra::math {

// The quantile of a probability p, which is given as from_half = p - 1/2 and tail = min(p, 1 - p).
// Both arguments exist because a caller knows one of them without rounding error. The result is
// infinite for tail = 0 and NaN for tail < 0.
CANDELABRA_FORMULA double normal_quantile(double from_half, double tail) {
  using detail::polynomial;
  const double a = abs(from_half);
  const double z = 0.180625 - a * a;
  const double middle =
      a *
      polynomial(z, 2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
                 1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0) /
      polynomial(z, 5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
                 5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0);
  const double r = sqrt(-log(tail));
  const double s = r - 1.6, t = r - 5.0;
  const double near =
      polynomial(s, 7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
                 3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0) /
      polynomial(s, 1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
                 6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0);
  const double far =
      polynomial(t, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
                 2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0) /
      polynomial(t, 2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
                 1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0);
  double magnitude = a <= 0.425 ? middle : r <= 5.0 ? near : far;
  magnitude = tail == 0.0 ? detail::infinity<double> : magnitude;
  magnitude = tail < 0.0 || tail != tail ? detail::nan<double> : magnitude;
  return with_sign_of(magnitude, from_half);
}

}  // namespace candelabra::math

#endif
