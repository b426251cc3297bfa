#include "compile/loop_code.hpp"

#include <array>
#include <cstring>

#include "compile/loop_text.hpp"
#include "kernels.hpp"
#include "simd/processor.hpp"

namespace candelabra::cpu {

namespace {

// What is saved begins with it; then follow the text and the file.
struct SavedHeader {
  std::array<char, 8> form;
  ProcessorFeatures processor;
  uint64_t text_bytes, file_bytes;
  uint64_t checksum;  // of text and file
};
constexpr std::array<char, 8> saved_form{'c', 'b', 'l', 'o', 'o', 'p', '0', '1'};

// Finds accidents. Against malice there is only where it is kept.
uint64_t checksum_of(std::span<const std::byte> bytes) {
  uint64_t result = 1469598103934665603u;
  for (const std::byte byte : bytes) result = (result ^ static_cast<uint64_t>(byte)) * 1099511628211u;
  return result;
}

}  // namespace

LoopCode::LoopCode(std::string text, std::vector<std::byte> file)
    : text_(std::move(text)), file_(std::move(file)), code_(file_, loop_name) {}

std::vector<std::byte> LoopCode::saved() const {
  std::vector<std::byte> result(sizeof(SavedHeader) + text_.size() + file_.size());
  std::byte* const body = result.data() + sizeof(SavedHeader);
  std::memcpy(body, text_.data(), text_.size());
  std::memcpy(body + text_.size(), file_.data(), file_.size());
  const SavedHeader header{saved_form, processor_features(), text_.size(), file_.size(),
                           checksum_of({body, text_.size() + file_.size()})};
  std::memcpy(result.data(), &header, sizeof header);
  return result;
}

std::shared_ptr<const LoopCode> LoopCode::load(std::span<const std::byte> saved, std::string text) {
  SavedHeader header;
  if (saved.size() < sizeof header) throw failure(CB_RUNTIME_ERROR, "saved code is cut off");
  std::memcpy(&header, saved.data(), sizeof header);
  const std::span<const std::byte> body = saved.subspan(sizeof header);
  const bool fits = header.form == saved_form && header.processor == processor_features() &&
                    header.text_bytes == text.size() && header.text_bytes <= body.size() &&
                    header.file_bytes == body.size() - header.text_bytes && header.checksum == checksum_of(body) &&
                    std::memcmp(body.data(), text.data(), text.size()) == 0;
  if (!fits) throw failure(CB_RUNTIME_ERROR, "saved code is of another processor or other operators");
  const std::span<const std::byte> file = body.subspan(text.size());
  return std::make_shared<const LoopCode>(std::move(text), std::vector<std::byte>(file.begin(), file.end()));
}

}  // namespace candelabra::cpu
