// Functions that are compiled for devices as well, where the compiler knows of them.
#ifndef CANDELABRA_HOST_DEVICE_HPP
#define CANDELABRA_HOST_DEVICE_HPP

#if defined(__CUDACC__) || defined(__HIPCC__)
#define CANDELABRA_HOST_DEVICE __host__ __device__
// A formula of few instructions: on the host it becomes part of the loop it is called in.
#define CANDELABRA_FORMULA __host__ __device__ inline
#else
#define CANDELABRA_HOST_DEVICE
#define CANDELABRA_FORMULA [[gnu::always_inline]] inline
#endif

// A backend that compiles its kernels for several instruction sets defines this as another name for each of them, so that no inline
// function compiled for one is used by another.
#ifndef CANDELABRA_ISA_NAMESPACE
#define CANDELABRA_ISA_NAMESPACE portable
#endif

#endif  // CANDELABRA_HOST_DEVICE_HPP
