// NCCL: the functions in use.
#pragma once

#include <nccl.h>

#include "vendor/libraries.hpp"

namespace candelabra::cuda {

struct Nccl {
  Library library{"NCCL", "libnccl.so.2", "nvidia-nccl-cu13"};
  Function<decltype(ncclGetVersion)> version{library, "ncclGetVersion"};
  Function<decltype(ncclGetUniqueId)> unique_id{library, "ncclGetUniqueId"};
  Function<decltype(ncclCommInitRankConfig)> init{library, "ncclCommInitRankConfig"};
  Function<decltype(ncclCommSplit)> split{library, "ncclCommSplit"};
  Function<decltype(ncclCommFinalize)> finalize{library, "ncclCommFinalize"};
  Function<decltype(ncclCommDestroy)> destroy{library, "ncclCommDestroy"};
  Function<decltype(ncclCommAbort)> abort{library, "ncclCommAbort"};
  Function<decltype(ncclCommGetAsyncError)> async_error{library, "ncclCommGetAsyncError"};
  Function<decltype(ncclCommUserRank)> rank{library, "ncclCommUserRank"};
  Function<decltype(ncclCommCount)> count{library, "ncclCommCount"};
  Function<decltype(ncclGetErrorString)> error_string{library, "ncclGetErrorString"};
  Function<decltype(ncclGetLastError)> last_error{library, "ncclGetLastError"};
  Function<decltype(ncclAllReduce)> all_reduce{library, "ncclAllReduce"};
  Function<decltype(ncclBroadcast)> broadcast{library, "ncclBroadcast"};
  Function<decltype(ncclReduce)> reduce{library, "ncclReduce"};
  Function<decltype(ncclAllGather)> all_gather{library, "ncclAllGather"};
  Function<decltype(ncclReduceScatter)> reduce_scatter{library, "ncclReduceScatter"};
  Function<decltype(ncclSend)> send{library, "ncclSend"};
  Function<decltype(ncclRecv)> receive{library, "ncclRecv"};
  Function<decltype(ncclGroupStart)> group_start{library, "ncclGroupStart"};
  Function<decltype(ncclGroupEnd)> group_end{library, "ncclGroupEnd"};
};
const Nccl& nccl();

}  // namespace candelabra::cuda
