# kiln-probe: lies in libexec and finds libkiln_core.so by its own place, in the build tree as where it is installed.
add_executable(kiln_probe ${CMAKE_CURRENT_LIST_DIR}/probe.cpp ${CMAKE_CURRENT_LIST_DIR}/plugin_path.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tune/bench_child.cpp)
target_link_libraries(kiln_probe PRIVATE kiln_core nlohmann_json::nlohmann_json)
target_include_directories(kiln_probe PRIVATE ${PROJECT_SOURCE_DIR}/core ${CMAKE_CURRENT_LIST_DIR})
set_target_properties(kiln_probe PROPERTIES
  OUTPUT_NAME kiln-probe RUNTIME_OUTPUT_DIRECTORY ${KILN_LIBEXEC_OUTPUT_DIRECTORY}
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../../lib")
install(TARGETS kiln_probe RUNTIME DESTINATION libexec/kiln)
