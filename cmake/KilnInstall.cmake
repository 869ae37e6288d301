# The installed tree: headers, CMake package (kiln::core, kiln::gl, kiln::c, kiln_add_plugin), pkg-config files, configurations. Relocatable:
# nothing in it names the prefix. Programs and plugins install themselves where they are made.
include(CMakePackageConfigHelpers)
set(KILN_PLUGIN_INSTALL_DIR lib/kiln/plugins)
install(TARGETS kiln_core EXPORT kiln LIBRARY DESTINATION lib)
install(DIRECTORY core/include/kiln DESTINATION include)
install(EXPORT kiln DESTINATION lib/cmake/kiln NAMESPACE kiln:: FILE kilnTargets.cmake)
configure_package_config_file(cmake/kilnConfig.cmake.in ${PROJECT_BINARY_DIR}/kilnConfig.cmake
  INSTALL_DESTINATION lib/cmake/kiln PATH_VARS KILN_PLUGIN_INSTALL_DIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/kiln.pc.in ${PROJECT_BINARY_DIR}/kiln.pc @ONLY)
configure_file(cmake/kiln-gl.pc.in ${PROJECT_BINARY_DIR}/kiln-gl.pc @ONLY)
configure_file(cmake/kiln-c.pc.in ${PROJECT_BINARY_DIR}/kiln-c.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kilnConfig.cmake ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake cmake/KilnPlugin.cmake
  DESTINATION lib/cmake/kiln)
install(FILES ${PROJECT_BINARY_DIR}/kiln.pc ${PROJECT_BINARY_DIR}/kiln-gl.pc ${PROJECT_BINARY_DIR}/kiln-c.pc DESTINATION lib/pkgconfig)
install(DIRECTORY configs/ DESTINATION share/kiln/configs)
# The documentation, with the examples and configurations that it links to, in the layout of the source tree.
install(FILES README.md CHANGELOG.md DESTINATION share/doc/kiln)
install(DIRECTORY docs DESTINATION share/doc/kiln)
install(DIRECTORY examples/embedding examples/adopted_context examples/plugin_template examples/c_egl
  examples/c_opencl examples/c_opengl examples/c_vulkan examples/other_languages examples/python DESTINATION share/doc/kiln/examples)
install(FILES benchmarks/baseline.json DESTINATION share/doc/kiln/benchmarks)
install(CODE [[file(CREATE_LINK ../../kiln/configs "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/doc/kiln/configs" SYMBOLIC)]])
