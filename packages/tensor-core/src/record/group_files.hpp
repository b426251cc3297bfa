// Compiled graphs (claimed_groups.hpp) in the user's cache folder, from which other processes load
// them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "candelabra/compile.h"

namespace candelabra {

// A name of a graph as a file. Graphs that differ may share one: backends look.
std::string file_name_of(const cb_graph& graph);

// Files are machine code, so they are read only where nobody but this user can have written them.
// CANDELABRA_COMPILE_CACHE=0: none are.
std::vector<std::byte> read_saved(const cb_backend* backend, const std::string& name);
// Fails silently: the next process compiles.
void write_saved(const cb_backend* backend, const std::string& name, std::span<const std::byte> saved);

}  // namespace candelabra
