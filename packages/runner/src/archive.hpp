// A mapped zip archive (PKWARE's APPNOTE 6.3), as candelabra.save writes it: entries that are not
// compressed and begin at multiples of 64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace candelabra::runner {

// A file mapped for reading; writes stay in this process.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // throws Failure
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

class Archive {
 public:
  // Checks the directory of the archive, not the contents of the entries. Throws Failure.
  explicit Archive(const std::string& path);

  // The bytes of an entry. Throws Failure if it is missing.
  std::span<std::byte> entry(const std::string& name) const;
  // The same, whose checksum is verified.
  std::string_view verified_text(const std::string& name) const;

 private:
  struct Entry {
    uint64_t offset, size;
    uint32_t checksum;
  };
  struct Directory {
    uint64_t begin, length, count;
  };
  Directory directory() const;
  const Entry& find(const std::string& name) const;
  template <typename T>
  T number(uint64_t at) const;

  MappedFile file_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace candelabra::runner
