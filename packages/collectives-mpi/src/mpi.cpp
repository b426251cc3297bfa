#include "mpi.hpp"

#include <dlfcn.h>

#include "error.hpp"

namespace candelabra::mpi {
namespace {

Mpi functions{};
std::string opened;

template <typename Function>
void find(void* library, const std::string& path, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) throw Failure(CB_RUNTIME_ERROR, path + " has no " + name + ": it is not of the standard ABI of MPI 5");
}

}  // namespace

void open_mpi(const std::string& path) {
  if (!opened.empty()) {
    if (opened == path) return;
    throw Failure(CB_RUNTIME_ERROR, "MPI is open already, from " + opened + "; " + path + " cannot be used, too");
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    throw Failure(CB_RUNTIME_ERROR, "MPI could not be opened: " + (reason ? std::string(reason) : path));
  }
  Mpi found{};
  find(library, path, found.abi_get_version, "MPI_Abi_get_version");
  find(library, path, found.initialized, "MPI_Initialized");
  find(library, path, found.init_thread, "MPI_Init_thread");
  find(library, path, found.query_thread, "MPI_Query_thread");
  find(library, path, found.finalize, "MPI_Finalize");
  find(library, path, found.get_version, "MPI_Get_version");
  find(library, path, found.get_library_version, "MPI_Get_library_version");
  find(library, path, found.error_string, "MPI_Error_string");
  find(library, path, found.comm_rank, "MPI_Comm_rank");
  find(library, path, found.comm_size, "MPI_Comm_size");
  find(library, path, found.comm_group, "MPI_Comm_group");
  find(library, path, found.comm_dup, "MPI_Comm_dup");
  find(library, path, found.comm_split, "MPI_Comm_split");
  find(library, path, found.comm_create_group, "MPI_Comm_create_group");
  find(library, path, found.comm_free, "MPI_Comm_free");
  find(library, path, found.comm_set_errhandler, "MPI_Comm_set_errhandler");
  find(library, path, found.group_incl, "MPI_Group_incl");
  find(library, path, found.group_free, "MPI_Group_free");
  find(library, path, found.op_create, "MPI_Op_create_c");
  find(library, path, found.reduce_local, "MPI_Reduce_local_c");
  find(library, path, found.test, "MPI_Test");
  find(library, path, found.iallreduce, "MPI_Iallreduce_c");
  find(library, path, found.ibcast, "MPI_Ibcast_c");
  find(library, path, found.ireduce, "MPI_Ireduce_c");
  find(library, path, found.iallgather, "MPI_Iallgather_c");
  find(library, path, found.ireduce_scatter_block, "MPI_Ireduce_scatter_block_c");
  find(library, path, found.ialltoall, "MPI_Ialltoall_c");
  find(library, path, found.ibarrier, "MPI_Ibarrier");
  find(library, path, found.isend, "MPI_Isend_c");
  find(library, path, found.irecv, "MPI_Irecv_c");
  int major = 0, minor = 0;
  if (found.abi_get_version(&major, &minor) != MPI_SUCCESS || major != MPI_ABI_VERSION)
    throw Failure(CB_RUNTIME_ERROR, path + " has version " + std::to_string(major) + " of the ABI, not " +
                                        std::to_string(MPI_ABI_VERSION));
  functions = found;
  opened = path;
}

const Mpi& mpi() {
  return functions;
}

std::string error_text(int error) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (functions.error_string(error, text, &length) != MPI_SUCCESS) return "MPI error " + std::to_string(error);
  return text;
}

void succeed(int error, const char* what) {
  if (error != MPI_SUCCESS) throw Failure(CB_RUNTIME_ERROR, std::string(what) + " failed: " + error_text(error));
}

}  // namespace candelabra::mpi
