// LRU cache of oneDNN primitives by shape. Creating one generates code, which is slow.
#pragma once

#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "kernels.hpp"
#include "memory/allocator.hpp"

namespace candelabra::cpu {

// All parameters of a primitive, as numbers.
class PrimitiveKey {
 public:
  template <typename... Numbers>
  void add(Numbers... numbers) {
    (add_one(static_cast<int64_t>(numbers)), ...);
  }
  void add_all(std::span<const int64_t> numbers) {
    for (int64_t number : numbers) add_one(number);
  }
  friend bool operator==(const PrimitiveKey& a, const PrimitiveKey& b) {
    return a.count_ == b.count_ && std::equal(a.values_.begin(), a.values_.begin() + a.count_, b.values_.begin());
  }
  size_t hash() const {
    uint64_t result = 1469598103934665603u;
    for (int i = 0; i < count_; ++i)
      result = (result ^ static_cast<uint64_t>(values_[i])) * 1099511628211u + (result >> 29);
    return result;
  }

 private:
  void add_one(int64_t number) {
    if (count_ == static_cast<int>(values_.size()))
      throw failure(CB_RUNTIME_ERROR, "a oneDNN primitive's key is too long");
    values_[count_++] = number;
  }
  std::array<int64_t, 48> values_;
  int count_ = 0;
};

struct PrimitiveKeyHash {
  size_t operator()(const PrimitiveKey& key) const { return key.hash(); }
};

// Declare one per thread (thread_local): no lock that a fork could leave held, and no primitive is
// used by two threads at once. A null value means that oneDNN has no such primitive on this
// processor.
template <typename Value>
class PrimitiveCache {
 public:
  explicit PrimitiveCache(size_t capacity) : capacity_(capacity) {}

  template <typename Make>
  const Value* find(const PrimitiveKey& key, Make&& make) {
    auto found = index_.find(key);
    if (found != index_.end()) {
      if (found->second != entries_.begin()) entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().second.get();
    }
    std::unique_ptr<Value> made = make();
    if (entries_.size() >= capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, std::move(made));
    index_.emplace(key, entries_.begin());
    return entries_.front().second.get();
  }

 private:
  using Entry = std::pair<PrimitiveKey, std::unique_ptr<Value>>;
  size_t capacity_;
  std::list<Entry> entries_;
  std::unordered_map<PrimitiveKey, typename std::list<Entry>::iterator, PrimitiveKeyHash> index_;
};

// The process's CPU engine, and this thread's stream.
const dnnl::engine& onednn_engine();
dnnl::stream& onednn_stream();

// oneDNN's type for a dtype.
dnnl::memory::data_type onednn_type(int32_t dtype);

// Runs f(), and rethrows failures of oneDNN as Failures that name the operator.
[[noreturn]] void rethrow_onednn(const dnnl::error& error, const char* what);
template <typename F>
decltype(auto) with_onednn(const char* what, F&& f) {
  try {
    return f();
  } catch (const dnnl::error& error) {
    rethrow_onednn(error, what);
  }
}

// Whether the failure means that oneDNN has no such kernel here, so that the caller must use
// another one.
inline bool is_unimplemented(const dnnl::error& error) {
  return error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments;
}

// A oneDNN view of memory at an address.
inline dnnl::memory onednn_memory(const dnnl::memory::desc& description, const void* data) {
  return dnnl::memory(description, onednn_engine(), const_cast<void*>(data));
}

}  // namespace candelabra::cpu
