// The functions of MPI that are used, found at run time: the library does not link against MPI.
#pragma once

#include <mpi_abi.h>

#include <string>

namespace candelabra::mpi {

struct Mpi {
  decltype(&::MPI_Abi_get_version) abi_get_version;
  decltype(&::MPI_Initialized) initialized;
  decltype(&::MPI_Init_thread) init_thread;
  decltype(&::MPI_Query_thread) query_thread;
  decltype(&::MPI_Finalize) finalize;
  decltype(&::MPI_Get_version) get_version;
  decltype(&::MPI_Get_library_version) get_library_version;
  decltype(&::MPI_Error_string) error_string;
  decltype(&::MPI_Comm_rank) comm_rank;
  decltype(&::MPI_Comm_size) comm_size;
  decltype(&::MPI_Comm_group) comm_group;
  decltype(&::MPI_Comm_dup) comm_dup;
  decltype(&::MPI_Comm_split) comm_split;
  decltype(&::MPI_Comm_create_group) comm_create_group;
  decltype(&::MPI_Comm_free) comm_free;
  decltype(&::MPI_Comm_set_errhandler) comm_set_errhandler;
  decltype(&::MPI_Group_incl) group_incl;
  decltype(&::MPI_Group_free) group_free;
  decltype(&::MPI_Op_create_c) op_create;
  decltype(&::MPI_Reduce_local_c) reduce_local;
  decltype(&::MPI_Test) test;
  decltype(&::MPI_Iallreduce_c) iallreduce;
  decltype(&::MPI_Ibcast_c) ibcast;
  decltype(&::MPI_Ireduce_c) ireduce;
  decltype(&::MPI_Iallgather_c) iallgather;
  decltype(&::MPI_Ireduce_scatter_block_c) ireduce_scatter_block;
  decltype(&::MPI_Ialltoall_c) ialltoall;
  decltype(&::MPI_Ibarrier) ibarrier;
  decltype(&::MPI_Isend_c) isend;
  decltype(&::MPI_Irecv_c) irecv;
};

// Opens the library of MPI, of which only one can be open in a process. Throws if it is not of the
// standard ABI.
void open_mpi(const std::string& path);
const Mpi& mpi();

std::string error_text(int error);
// Throws for an error that MPI has returned.
void succeed(int error, const char* what);

}  // namespace candelabra::mpi
