// Reads one program of a file, and checks everything that its kernels rely on.
#pragma once

#include "program.hpp"
#include "schemas.hpp"

namespace candelabra::runner {

class ProgramReader {
 public:
  ProgramReader(const Json& source, const Backend& backend, Programs& shared, Program& result)
      : source_(source), backend_(backend), shared_(shared), result_(result) {}
  void read();

 private:
  // What a tensor of a call is used for.
  enum class Use : uint8_t { Read, Changed, Written };

  void read_described(const Json& one, bool is_input);
  void read_buffer(const Json& one);
  void read_call(const Json& one);
  void read_kernel(const Json::Array& parts, Call& call);
  void read_copy(const Json::Array& parts, Call& call);
  void read_fill(const Json::Array& parts, Call& call);

  cb_tensor read_tensor(const Json& one);
  cb_tensor read_number(const Json::Array& parts);
  void place(cb_tensor* tensor, const Json& one, Call& call, Use use);
  cb_value read_argument(const Json& one, Call& call, Use use);
  void read_tensors(const Json& one, Call& call, Use use, cb_value& value);
  void read_scalar(const Json::Array& parts, cb_value& value);
  // `is_dense`: a write reaches each of the bytes.
  Range read_range(const Json& buffer, const Json& offset, uint64_t bytes, Use use, bool is_dense);
  void use(int buffer, Use use, bool is_covered);
  void check_dtypes(const Call& call) const;
  void check_outputs();
  void check_arena() const;
  void check_bools();

  std::vector<int64_t> read_integers(const Json& one, std::string_view what, int64_t least, int64_t most) const;
  int32_t read_dtype(const Json& one) const;
  template <typename T>
  T* make(size_t count);
  const int64_t* keep(const std::vector<int64_t>& values);

  const Json& source_;
  const Backend& backend_;
  Programs& shared_;
  Program& result_;
};

}  // namespace candelabra::runner
