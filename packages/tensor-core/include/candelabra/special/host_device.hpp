// Functions that are compiled for devices as well, where the compiler knows of them.
#ifndef CANDELABRA_SPECIAL_HOST_DEVICE_HPP
#define CANDELABRA_SPECIAL_HOST_DEVICE_HPP

#ifndef CANDELABRA_HOST_DEVICE
#if defined(__CUDACC__) || defined(__HIPCC__)
#define CANDELABRA_HOST_DEVICE __host__ __device__
#else
#define CANDELABRA_HOST_DEVICE
#endif
#endif

#endif
