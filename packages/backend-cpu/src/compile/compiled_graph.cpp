#include "compile/compiled_graph.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "compile/block_chain.hpp"
#include "compile/formulas.hpp"
#include "compile/loop_graph.hpp"
#include "kernels.hpp"

namespace candelabra::cpu {

namespace {

std::atomic<TextCompiler> text_compiler{nullptr};

// The codes of this process by their text: programs with the same operators share one.
class KnownCodes {
 public:
  std::shared_ptr<const LoopCode> find(const std::string& text) {
    const std::lock_guard lock(mutex_);
    const auto found = codes_.find(text);
    return found == codes_.end() ? nullptr : found->second.lock();
  }
  void add(const std::string& text, const std::shared_ptr<const LoopCode>& code) {
    const std::lock_guard lock(mutex_);
    std::erase_if(codes_, [](const auto& entry) { return entry.second.expired(); });
    codes_.emplace(text, code);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const LoopCode>> codes_;
};

KnownCodes& known_codes() {
  static KnownCodes codes;
  return codes;
}

// No lock is held here: the compiler takes Python's.
std::shared_ptr<const LoopCode> compiled_code(std::string text) {
  if (auto known = known_codes().find(text)) return known;
  std::vector<std::byte> file;
  const auto accept = [](void* context, const void* bytes, uint64_t count) {
    const auto* const begin = static_cast<const std::byte*>(bytes);
    static_cast<std::vector<std::byte>*>(context)->assign(begin, begin + count);
  };
  const TextCompiler compiler = text_compiler.load();
  if (compiler) compiler(text.c_str(), accept, &file);
  if (file.empty()) throw failure(CB_RUNTIME_ERROR, "LLVM could not compile the operators");
  auto code = std::make_shared<const LoopCode>(std::move(text), std::move(file));
  known_codes().add(code->text(), code);
  return code;
}

bool is_for_llvm(const cb_graph_node& node, const cb_graph& graph) {
  return text_compiler.load() && is_compiled(node, graph);
}

// One loop where LLVM compiles all operators, or else a chain of loops.
std::unique_ptr<CompiledGraph> made_graph(const cb_graph& graph, const CodeSource& source) {
  std::vector<bool> is_code;
  for (int k = 0; k < graph.node_count; ++k) is_code.push_back(is_for_llvm(graph.nodes[k], graph));
  if (std::ranges::count(is_code, false) == 0) return std::make_unique<LoopGraph>(graph, source);
  return std::make_unique<BlockChain>(graph, is_code, source);
}

}  // namespace

void claim_graph(const cb_graph& graph, uint8_t* claimed) {
  for (int k = 0; k < graph.node_count; ++k)
    claimed[k] = is_for_llvm(graph.nodes[k], graph) || BlockChain::accepts(graph.nodes[k], graph);
}

std::unique_ptr<CompiledGraph> compile_graph(const cb_graph& graph) {
  return made_graph(graph, compiled_code);
}

// Each code, after its size.
std::vector<std::byte> saved_graph(const CompiledGraph& compiled) {
  std::vector<const LoopCode*> codes;
  compiled.add_codes(codes);
  if (codes.empty()) throw failure(CB_NOT_IMPLEMENTED, "nothing was compiled");
  std::vector<std::byte> result;
  for (const LoopCode* code : codes) {
    const std::vector<std::byte> saved = code->saved();
    const uint64_t bytes = saved.size();
    const auto* const size = reinterpret_cast<const std::byte*>(&bytes);
    result.insert(result.end(), size, size + sizeof bytes);
    result.insert(result.end(), saved.begin(), saved.end());
  }
  return result;
}

std::unique_ptr<CompiledGraph> load_graph(const cb_graph& graph, std::span<const std::byte> saved) {
  const auto next = [&](std::string text) {
    uint64_t bytes = 0;
    if (saved.size() < sizeof bytes) throw failure(CB_RUNTIME_ERROR, "saved code is cut off");
    std::memcpy(&bytes, saved.data(), sizeof bytes);
    saved = saved.subspan(sizeof bytes);
    if (bytes > saved.size()) throw failure(CB_RUNTIME_ERROR, "saved code is cut off");
    const std::span<const std::byte> one = saved.first(bytes);
    saved = saved.subspan(bytes);
    if (auto known = known_codes().find(text)) return known;
    std::shared_ptr<const LoopCode> code = LoopCode::load(one, std::move(text));
    known_codes().add(code->text(), code);
    return code;
  };
  return made_graph(graph, next);
}

}  // namespace candelabra::cpu

// Called by candelabra_backend_cpu.llvm.
extern "C" CB_EXPORT void candelabra_cpu_set_text_compiler(candelabra::cpu::TextCompiler compiler);
extern "C" CB_EXPORT void candelabra_cpu_set_text_compiler(candelabra::cpu::TextCompiler compiler) {
  // The loader (object_code.cpp) reads files of x86-64 only; elsewhere the kernels run.
#ifdef __x86_64__
  candelabra::cpu::text_compiler = compiler;
#else
  static_cast<void>(compiler);
#endif
}
