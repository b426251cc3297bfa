// NVIDIA's libraries, opened when the first operator needs them: the backend loads, lists and
// computes without those it does not use.
//
//   struct CublasLt {
//     Library library{"cuBLAS", "libcublasLt.so.13", "nvidia-cublas"};
//     Function<decltype(cublasLtCreate)> create{library, "cublasLtCreate"};
//   };
//   inline const CublasLt& cublas_lt() {
//     static const CublasLt table;      // throws where it cannot be loaded; the next call tries again
//     return table;
//   }
#pragma once

#include <string>

#include "kernels.hpp"

namespace candelabra::cuda {

class Library {
 public:
  // Throws Failure where the file is in none of the folders (see set_library_folders);
  // `distribution` is what to install then.
  Library(const char* title, const char* file, const char* distribution);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() = default;  // stays loaded: these libraries do not like to go before the process does

  void* address(const char* name) const;  // throws where the library is too old to have it
  void* find(const char* name) const;     // null where it has not
  const char* title() const { return title_; }

 private:
  const char* title_;
  const char* file_;
  void* handle_;
};

// A function of a library, called as itself.
template <typename Signature>
class Function;
template <typename Result, typename... Parameters>
class Function<Result(Parameters...)> {
 public:
  Function(const Library& library, const char* name)
      : address_(reinterpret_cast<Result (*)(Parameters...)>(library.address(name))) {}
  Result operator()(Parameters... arguments) const { return address_(arguments...); }

 private:
  Result (*address_)(Parameters...);
};

// Folders that are looked into first, with ':' between them; called by the package before the table
// is used. Then come those beside this library (../../nvidia/*/lib), then the system's.
void set_library_folders(const char* folders);
// The file names of what is loaded, for describe().
std::string loaded_libraries();

}  // namespace candelabra::cuda
