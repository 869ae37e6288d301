# kiln_add_plugin(NAME SOURCES… [LIBRARIES…] [NO_INSTALL]): target kiln_plugin_NAME, the loadable module NAME.so, which
# exports its entry object and nothing else and leaves no symbol unresolved. It is installed to lib/kiln/plugins.
# Public: installed with the CMake package, so that plugins outside this tree are built by the same line.
function(kiln_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_INSTALL" "" "SOURCES;LIBRARIES")
  add_library(kiln_plugin_${name} MODULE ${arg_SOURCES})
  target_link_libraries(kiln_plugin_${name} PRIVATE kiln::core ${arg_LIBRARIES})
  # Hidden visibility does not reach what the standard library's own headers mark as visible: the linker's script does.
  set(exports ${CMAKE_CURRENT_BINARY_DIR}/kiln_plugin.map)
  file(CONFIGURE OUTPUT ${exports} CONTENT "{ global: kiln_plugin_entry; local: *; };\n")
  target_link_options(kiln_plugin_${name} PRIVATE -Wl,--no-undefined -Wl,--version-script=${exports})
  set_target_properties(kiln_plugin_${name} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name}
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    INSTALL_RPATH "$ORIGIN/../..")
  if(arg_NO_INSTALL)
    return()
  endif()
  if(KILN_PLUGIN_OUTPUT_DIRECTORY)  # within Kiln's own tree
    set_target_properties(kiln_plugin_${name} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${KILN_PLUGIN_OUTPUT_DIRECTORY} BUILD_WITH_INSTALL_RPATH ON)
    set_property(GLOBAL APPEND PROPERTY KILN_SHIPPED_PLUGINS kiln_plugin_${name})
  endif()
  install(TARGETS kiln_plugin_${name} LIBRARY DESTINATION lib/kiln/plugins)
endfunction()
