// The families of kernels. Each adds its operators to the table.
#ifndef CANDELABRA_OPENCL_FAMILIES_HPP
#define CANDELABRA_OPENCL_FAMILIES_HPP

#include "candelabra/kernel.hpp"

namespace candelabra::opencl {

using Table = kernel::KernelTable<kernel::Call, kernel::Guarded>;

void add_elementwise(Table& table);
void add_copying(Table& table);
void add_reduction(Table& table);
void add_slices(Table& table);
void add_indexing(Table& table);
void add_advanced_indexing(Table& table);
void add_linalg(Table& table);
void add_normalization(Table& table);
void add_convolution(Table& table);
void add_pooling(Table& table);
void add_attention(Table& table);
void add_loss(Table& table);
void add_random(Table& table);
void add_optimizer(Table& table);

}  // namespace candelabra::opencl

#endif
