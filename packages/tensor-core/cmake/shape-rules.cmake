# The sources of the shape rules, for hosts without Python such as candelabra-runner, which check the calls of kernels by
# them. Included from the repository or from the installed wheel: both have the sources at ../src.
#
#   candelabra_shape_rules          the sources
#   candelabra_shape_rule_headers   what they include of src/, for the installation
#   candelabra_shape_rule_folder    the folder that both are in
get_filename_component(candelabra_shape_rule_folder "${CMAKE_CURRENT_LIST_DIR}/../src" ABSOLUTE)
file(GLOB candelabra_shape_rules CONFIGURE_DEPENDS
  "${candelabra_shape_rule_folder}/shapes/*.cpp" "${candelabra_shape_rule_folder}/shapes/nn/*.cpp")
foreach(name dispatch/call dtype/dtype dtype/promotion dtype/scalar python/error_text tensor/dims tensor/geometry)
  list(APPEND candelabra_shape_rules "${candelabra_shape_rule_folder}/${name}.cpp")
endforeach()
set(candelabra_shape_rule_headers
  device/device device/streams dispatch/call dtype/dtype dtype/scalar memory/storage operators/arguments operators/operator
  operators/out_arguments operators/refusals operators/schema python/errors shapes/checks shapes/indexing_overlapping
  shapes/matrices shapes/shapes tensor/dims tensor/layout_order tensor/tensor)
list(TRANSFORM candelabra_shape_rule_headers PREPEND "${candelabra_shape_rule_folder}/")
list(TRANSFORM candelabra_shape_rule_headers APPEND ".hpp")
