// The shape rules that make their results themselves, without a kernel: new memory, copies and
// views; and the search among all rules.
#include <algorithm>
#include <iterator>
#include <utility>

#include "shapes/shapes.hpp"

namespace candelabra {
namespace {

constexpr std::pair<std::string_view, ShapeRuleEntry> rows[] = {
    {"empty", {shapes::empty}},
    {"empty_factory", {shapes::empty_factory}},
    {"zeros", {shapes::zeros}},
    {"ones", {shapes::ones}},
    {"full", {shapes::full}},
    {"empty_like", {shapes::empty_like}},
    {"zeros_like", {shapes::zeros_like}},
    {"ones_like", {shapes::ones_like}},
    {"full_like", {shapes::full_like}},
    {"empty_strided", {shapes::empty_strided}},
    {"clone", {shapes::clone}},
    {"_to_copy", {shapes::to_copy}},
    {"to", {shapes::to}},
    {"contiguous", {shapes::contiguous}},
    {"custom", {shapes::custom}},
    {"view", {shapes::view}},
    {"reshape", {shapes::reshape}},
    {"split", {shapes::split}},
    {"view_dtype", {shapes::view_dtype}},
    {"as_strided", {shapes::as_strided}},
    {"expand", {shapes::expand}},
    {"permute", {shapes::permute}},
    {"transpose", {shapes::transpose}},
    {"t", {shapes::t}},
    {"squeeze", {shapes::squeeze}},
    {"unsqueeze", {shapes::unsqueeze}},
    {"select", {shapes::select}},
    {"slice", {shapes::slice}},
    {"narrow", {shapes::narrow}},
    {"diagonal", {shapes::diagonal}},
    {"unfold", {shapes::unfold}},
    {"movedim", {shapes::movedim}},
    {"unflatten", {shapes::unflatten}},
    {"alias", {shapes::alias}},
    {"view_as_real", {shapes::view_as_real}},
    {"view_as_complex", {shapes::view_as_complex}},
    {"detach", {shapes::detach}},
};

}  // namespace

const ShapeRuleEntry* find_shape_rule(std::string_view name) {
  const auto* const found = std::ranges::find(rows, name, &std::pair<std::string_view, ShapeRuleEntry>::first);
  return found == std::end(rows) ? find_kernel_rule(name) : &found->second;
}

}  // namespace candelabra
