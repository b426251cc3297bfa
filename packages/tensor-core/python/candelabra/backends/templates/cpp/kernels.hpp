// The kernels of this backend. Each file adds its own to the table.
#ifndef KERNELS_HPP
#define KERNELS_HPP

#include "candelabra/kernel.hpp"

using Table = candelabra::kernel::KernelTable<candelabra::kernel::Call, candelabra::kernel::Guarded>;

void add_creation_kernels(Table& table);
void add_elementwise_kernels(Table& table);
void add_reduction_kernels(Table& table);
void add_indexing_kernels(Table& table);
void add_linalg_kernels(Table& table);
void add_random_kernels(Table& table);

#endif
