// Dims: sizes, strides or dimension lists. Up to six entries are stored inline.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

namespace candelabra {

constexpr int inline_dims = 6;
constexpr int max_dims = 64;

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values) { assign(values); }
  Dims(int count, int64_t value) {
    resize(count);
    std::fill_n(data(), count, value);
  }
  Dims(const Dims& other) { assign(other); }
  Dims(Dims&& other) noexcept = default;
  Dims& operator=(const Dims& other) {
    if (this != &other) assign(other);
    return *this;
  }
  Dims& operator=(Dims&& other) noexcept = default;

  int size() const { return count_; }
  bool empty() const { return count_ == 0; }
  int64_t* data() { return heap_ ? heap_.get() : inline_; }
  const int64_t* data() const { return heap_ ? heap_.get() : inline_; }
  int64_t& operator[](int i) { return data()[i]; }
  int64_t operator[](int i) const { return data()[i]; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + count_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + count_; }
  operator std::span<const int64_t>() const { return {data(), static_cast<size_t>(count_)}; }

  // Keeps existing values; new entries are uninitialized.
  void resize(int count) {
    if (count > inline_dims && count > capacity_) {
      auto grown = std::make_unique<int64_t[]>(count);
      std::copy_n(data(), std::min(count, count_), grown.get());
      heap_ = std::move(grown);
      capacity_ = count;
    }
    count_ = count;
  }
  void assign(std::span<const int64_t> values) {
    resize(static_cast<int>(values.size()));
    std::copy(values.begin(), values.end(), data());
  }
  void push_back(int64_t value) {
    resize(count_ + 1);
    data()[count_ - 1] = value;
  }
  void insert(int at, int64_t value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(int at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --count_;
  }
  bool operator==(const Dims& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  int count_ = 0;
  int capacity_ = inline_dims;
  int64_t inline_[inline_dims];
  std::unique_ptr<int64_t[]> heap_;
};

// "[2, 3]", as in error messages.
std::string to_text(std::span<const int64_t> values);

// Formats sizes only when the message is built. Use it in arguments of check(), which are evaluated
// in any case.
struct SizesText {
  std::span<const int64_t> values;
};
inline SizesText shown(std::span<const int64_t> values) {
  return {values};
}
std::ostream& operator<<(std::ostream& stream, SizesText sizes);

// Larger strides are rejected, even for dimensions of size 1, because strides are multiplied by
// item sizes and indices.
constexpr int64_t max_stride = int64_t{1} << 56;
// The product of sizes; throws RuntimeError on overflow.
int64_t product(std::span<const int64_t> sizes);

// Row-major strides, and the channels-last strides of a 4-D or 5-D shape, where dimension 1 is
// innermost.
Dims contiguous_strides(std::span<const int64_t> sizes);
Dims channels_last_strides(std::span<const int64_t> sizes);

// Wraps a negative dimension: -1 is the last. Throws IndexError with PyTorch's text. With
// wrap_zero, a 0-dim tensor counts as having one dimension.
int wrap_dim(int64_t dim, int ndim, bool wrap_zero = true);

// The broadcast shape of two shapes. Throws a RuntimeError that names the operator and both shapes.
Dims broadcast_sizes(const char* operator_name, std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace candelabra
