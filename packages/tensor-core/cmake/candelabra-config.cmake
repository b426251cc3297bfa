# find_package(candelabra CONFIG) against the installed tensor-core wheel. Defines the target candelabra::backend: the headers.
# Its folder: python -c "import candelabra; print(candelabra.cmake_prefix_path)".
get_filename_component(_candelabra_include "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)
if(NOT TARGET candelabra::backend)
  add_library(candelabra::backend INTERFACE IMPORTED)
  set_target_properties(candelabra::backend PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_candelabra_include}")
endif()
unset(_candelabra_include)
