#include "shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "error.hpp"

namespace candelabra::mpi {
namespace {

static_assert(std::atomic<int64_t>::is_always_lock_free);

constexpr int most_ranks = 256;
constexpr int64_t page = 4096;

int64_t rounded(int64_t bytes) {
  return (bytes + page - 1) / page * page;
}
// Parts are rounded up to 16 elements of at most 16 bytes.
int64_t result_bytes(int ranks) {
  return rounded(SharedMemory::piece_bytes / ranks + 256);
}
int64_t progress_bytes(int ranks) {
  return rounded(static_cast<int64_t>(sizeof(SharedMemory::Progress)) * ranks);
}
int64_t rank_bytes(int ranks) {
  return SharedMemory::slots * (SharedMemory::piece_bytes + result_bytes(ranks));
}
// A page that tells the memory from any other, the progress of all ranks, and their slots.
int64_t all_bytes(int ranks) {
  return page + progress_bytes(ranks) + ranks * rank_bytes(ranks);
}

// Where rank 0 has the memory.
struct Invitation {
  int64_t process = 0, descriptor = -1;
  uint64_t device = 0, inode = 0, mark = 0;
};

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  const int number_;
};

std::byte* map(int descriptor, int64_t bytes) {
  void* mapped = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

bool is_wanted() {
  const char* given = std::getenv("CANDELABRA_MPI_SHARED_MEMORY");
  return !given || std::strcmp(given, "0") != 0;
}

std::byte* create(int descriptor, int64_t bytes, Invitation& invitation) {
  struct stat found{};
  if (descriptor < 0 || ftruncate(descriptor, bytes) != 0 || fstat(descriptor, &found) != 0) return nullptr;
  if (getrandom(&invitation.mark, sizeof invitation.mark, 0) != sizeof invitation.mark) return nullptr;
  std::byte* memory = map(descriptor, bytes);
  if (!memory) return nullptr;
  std::memcpy(memory, &invitation.mark, sizeof invitation.mark);
  invitation.process = getpid();
  invitation.descriptor = descriptor;
  invitation.device = found.st_dev;
  invitation.inode = found.st_ino;
  return memory;
}

// On another machine the same path may be any file, which is not opened.
std::byte* join(const Invitation& invitation, int64_t bytes) {
  if (invitation.process == 0) return nullptr;
  const std::string path =
      "/proc/" + std::to_string(invitation.process) + "/fd/" + std::to_string(invitation.descriptor);
  struct stat found{};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_dev != invitation.device ||
      found.st_ino != invitation.inode || found.st_size != bytes)
    return nullptr;
  const Descriptor descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  std::byte* memory = descriptor.number() < 0 ? nullptr : map(descriptor.number(), bytes);
  if (memory && std::memcmp(memory, &invitation.mark, sizeof invitation.mark) != 0) {
    munmap(memory, static_cast<size_t>(bytes));
    memory = nullptr;
  }
  return memory;
}

void complete(MPI_Request& request, const char* what) {
  for (int is_done = 0; !is_done;) {
    succeed(mpi().test(&request, &is_done, MPI_STATUS_IGNORE), what);
    if (!is_done) std::this_thread::yield();
  }
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::make(MPI_Comm comm, int rank, int ranks) {
  if (ranks < 2 || ranks > most_ranks) return nullptr;
  const int64_t bytes = all_bytes(ranks);
  const Descriptor descriptor(rank == 0 && is_wanted() ? memfd_create("candelabra_mpi", MFD_CLOEXEC) : -1);
  Invitation invitation;
  std::byte* memory = rank == 0 ? create(descriptor.number(), bytes, invitation) : nullptr;
  MPI_Request request = MPI_REQUEST_NULL;
  succeed(mpi().ibcast(&invitation, sizeof invitation, MPI_BYTE, 0, comm, &request), "MPI_Ibcast");
  complete(request, "MPI_Ibcast");
  if (rank != 0 && is_wanted()) memory = join(invitation, bytes);
  auto made = memory ? std::make_unique<SharedMemory>(Passkey(), memory, rank, ranks) : nullptr;
  int32_t is_ready = memory != nullptr, are_ready = 0;
  succeed(mpi().iallreduce(&is_ready, &are_ready, 1, MPI_INT32_T, MPI_MIN, comm, &request), "MPI_Iallreduce");
  complete(request, "MPI_Iallreduce");
  return are_ready ? std::move(made) : nullptr;
}

SharedMemory::~SharedMemory() {
  munmap(memory_, static_cast<size_t>(all_bytes(ranks_)));
}

// The memory starts as zeros, which is what an atomic number starts as.
SharedMemory::Progress& SharedMemory::progress(int rank) const {
  return reinterpret_cast<Progress*>(memory_ + page)[rank];
}

std::byte* SharedMemory::given(int rank, int64_t piece) const {
  return memory_ + page + progress_bytes(ranks_) + rank * rank_bytes(ranks_) + piece % slots * piece_bytes;
}

std::byte* SharedMemory::result(int rank, int64_t piece) const {
  return given(rank, 0) + slots * piece_bytes + piece % slots * result_bytes(ranks_);
}

}  // namespace candelabra::mpi
