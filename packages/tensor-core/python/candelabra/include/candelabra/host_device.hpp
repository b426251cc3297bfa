// Attributes for functions that are compiled for the host and, by a device compiler, for devices
// too.
#ifndef CANDELABRA_HOST_DEVICE_HPP
#define CANDELABRA_HOST_DEVICE_HPP

#if defined(__CUDACC__) || defined(__HIPCC__)
#define CANDELABRA_HOST_DEVICE __host__ __device__
// A short formula that the host compiler always inlines, so that the loop around it can be
// vectorized.
#define CANDELABRA_FORMULA __host__ __device__ inline
#else
#define CANDELABRA_HOST_DEVICE
#define CANDELABRA_FORMULA [[gnu::always_inline]] inline
#endif

// A backend that compiles its kernels for several instruction sets defines a different name for
// each. Otherwise the linker could merge inline functions that were compiled for different
// instruction sets.
#ifndef CANDELABRA_ISA_NAMESPACE
#define CANDELABRA_ISA_NAMESPACE portable
#endif

#endif  // CANDELABRA_HOST_DEVICE_HPP
