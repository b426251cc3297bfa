#include "vendor/blas.hpp"

namespace candelabra::cpu {

#if CANDELABRA_OPENBLAS
void prepare_blas() {
  scipy_openblas_set_num_threads(1);
}
#else
void prepare_blas() {}
#endif

}  // namespace candelabra::cpu
