#include "archive.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "failure.hpp"

namespace candelabra::runner {

namespace {

constexpr uint64_t end_length = 22, end64_length = 56, locator_length = 20, central_length = 46, local_length = 30;
constexpr uint32_t end_mark = 0x06054b50, end64_mark = 0x06064b50, locator_mark = 0x07064b50, central_mark = 0x02014b50,
                   local_mark = 0x04034b50;
constexpr uint64_t most_entries = uint64_t{1} << 20;
constexpr uint64_t alignment = 64;

// CRC-32 of zip (ISO 3309).
uint32_t checksum_of(std::span<const std::byte> bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t k = 0; k < 256; ++k) {
      uint32_t value = k;
      for (int bit = 0; bit < 8; ++bit) value = value & 1 ? 0xEDB88320u ^ (value >> 1) : value >> 1;
      made[k] = value;
    }
    return made;
  }();
  uint32_t crc = ~uint32_t{0};
  for (const std::byte byte : bytes) crc = table[(crc ^ static_cast<uint32_t>(byte)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) fail(CR_FILE_ERROR, path, ": ", std::strerror(errno));
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) fail(CR_FILE_ERROR, path, ": ", std::strerror(errno));
  require(S_ISREG(status.st_mode), path, " is no regular file");
  const auto size = static_cast<size_t>(status.st_size);
  require(size > 0, path, " is empty");
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) fail(CR_FILE_ERROR, path, ": ", std::strerror(errno));
  bytes_ = {static_cast<std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  ::munmap(bytes_.data(), bytes_.size());
}

template <typename T>
T Archive::number(uint64_t at) const {
  const std::span<const std::byte> bytes = file_.bytes();
  require(at <= bytes.size() && bytes.size() - at >= sizeof(T), "the archive is too short");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Archive::Directory Archive::directory() const {
  const uint64_t size = file_.bytes().size();
  require(size >= end_length, "the end of an archive is missing");
  // candelabra.save writes no comment after the end.
  const uint64_t end = size - end_length;
  require(number<uint32_t>(end) == end_mark && number<uint16_t>(end + 20) == 0, "the end of an archive is missing");
  uint64_t here = number<uint16_t>(end + 8), count = number<uint16_t>(end + 10);
  uint64_t length = number<uint32_t>(end + 12), begin = number<uint32_t>(end + 16), stop = end;
  uint64_t disk = number<uint16_t>(end + 4) | number<uint16_t>(end + 6);
  if (end >= end64_length + locator_length && number<uint32_t>(end - locator_length) == locator_mark) {
    stop = end - locator_length - end64_length;
    require(number<uint32_t>(stop) == end64_mark, "the end of an archive makes no sense");
    disk = number<uint32_t>(stop + 16) | number<uint32_t>(stop + 20);
    here = number<uint64_t>(stop + 24), count = number<uint64_t>(stop + 32);
    length = number<uint64_t>(stop + 40), begin = number<uint64_t>(stop + 48);
  }
  require(disk == 0 && here == count, "an archive in several parts");
  require(begin <= stop && length == stop - begin, "the directory of the archive is not where it should be");
  require(count <= most_entries && count * central_length <= length, count, " entries in a directory of ", length,
          " bytes");
  return {begin, length, count};
}

Archive::Archive(const std::string& path) : file_(path) {
  const std::span<const std::byte> bytes = file_.bytes();
  const auto text = [&](uint64_t at, uint64_t length) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()) + at, length);
  };
  const Directory directory = this->directory();
  const uint64_t stop = directory.begin + directory.length;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  uint64_t at = directory.begin;
  for (uint64_t k = 0; k < directory.count; ++k) {
    require(stop - at >= central_length && number<uint32_t>(at) == central_mark,
            "the directory of the archive makes no sense");
    const uint64_t name_length = number<uint16_t>(at + 28), extra_length = number<uint16_t>(at + 30);
    const uint64_t whole = central_length + name_length + extra_length + number<uint16_t>(at + 32);
    require(stop - at >= whole, "the directory of the archive is too short");
    const std::string name(text(at + central_length, name_length));
    uint64_t packed = number<uint32_t>(at + 20), size = number<uint32_t>(at + 24), header = number<uint32_t>(at + 42);
    // 64-bit numbers are in the extra field 1, those that are needed in this order.
    for (uint64_t extra = at + central_length + name_length, end = extra + extra_length; end - extra >= 4;) {
      const uint64_t kind = number<uint16_t>(extra), length = number<uint16_t>(extra + 2);
      require(end - extra - 4 >= length, "the directory of the archive makes no sense");
      uint64_t next = extra + 4;
      for (uint64_t* value : {&size, &packed, &header}) {
        if (kind != 1 || *value != 0xFFFFFFFF) continue;
        require(extra + 4 + length - next >= 8, "the directory of the archive makes no sense");
        *value = number<uint64_t>(next);
        next += 8;
      }
      extra += 4 + length;
    }
    require(!(number<uint16_t>(at + 8) & 0x2041), name, " is encrypted");
    require(number<uint16_t>(at + 10) == 0 && packed == size, name, " is compressed; save the program again");
    require(
        header <= directory.begin && directory.begin - header >= local_length && number<uint32_t>(header) == local_mark,
        "the header of ", name, " is not where it should be");
    require(number<uint16_t>(header + 26) == name_length && directory.begin - header - local_length >= name_length &&
                text(header + local_length, name_length) == name,
            "the header of ", name, " does not agree with the directory");
    const uint64_t offset = header + local_length + name_length + number<uint16_t>(header + 28);
    require(offset <= directory.begin && size <= directory.begin - offset, name, " reaches beyond the archive");
    require(entries_.emplace(name, Entry{offset, size, number<uint32_t>(at + 16)}).second, "two entries with the name ",
            name);
    ranges.emplace_back(header, offset + size);
    at += whole;
  }
  require(at == stop, "the directory of the archive is too long");
  std::ranges::sort(ranges);
  for (size_t k = 1; k < ranges.size(); ++k) require(ranges[k].first >= ranges[k - 1].second, "entries overlap");
}

const Archive::Entry& Archive::find(const std::string& name) const {
  const auto found = entries_.find(name);
  require(found != entries_.end(), "there is no ", name, " in it");
  require(found->second.offset % alignment == 0, name, " is not aligned; save the program again");
  return found->second;
}

std::span<std::byte> Archive::entry(const std::string& name) const {
  const Entry& found = find(name);
  return file_.bytes().subspan(found.offset, found.size);
}

std::string_view Archive::verified_text(const std::string& name) const {
  const std::span<const std::byte> bytes = entry(name);
  // Without set_crc32_options(True) an archive has none.
  const uint32_t checksum = find(name).checksum;
  require(checksum == 0 || checksum_of(bytes) == checksum, "the checksum of ", name, " is wrong");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace candelabra::runner
