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
  // Throws Failure if the file is in none of the folders (see set_library_folders). The message
  // names `distribution` as the package to install.
  Library(const char* title, const char* file, const char* distribution);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() = default;  // never closed: these libraries must not be unloaded before the process ends

  void* address(const char* name) const;  // throws if the library is too old to have the function
  void* find(const char* name) const;     // null if the library lacks the function
  const char* title() const { return title_; }

 private:
  const char* title_;
  const char* file_;
  void* handle_;
};

// A function of a library that can be called like the function.
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

// Folders that are searched first, separated by ':'. The package calls this before it uses the
// table. Then follow the folders beside this library (../../nvidia/*/lib), and the system's.
void set_library_folders(const char* folders);
// The file names of the loaded libraries, for describe().
std::string loaded_libraries();

}  // namespace candelabra::cuda
