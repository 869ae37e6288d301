# What a packaged Kiln has beside the installed tree: man pages, bash completion, and Debian packages: `kiln`,
# `kiln-clang` with the one library that needs Clang's, a hundred megabytes that only compiling for AMD cards wants, and,
# where they are built, `python3-kiln` with the Python module, and `kiln-bench` with the programs of `kiln bench` and what their peers need.
#
#   cmake --build build/release && cpack --config build/release/CPackConfig.cmake -B FOLDER
#
# A package declares what its programs are linked with, as dpkg-shlibdeps finds it, and what the OpenGL plugin opens at run time:
# EGL and Mesa's drivers, with which the packaged example runs on any machine. Anything else that is opened only where it is there
# is suggested. scripts/package-check installs the packages in a clean Debian.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(kiln_man_dir ${PROJECT_BINARY_DIR}/man1)
add_custom_command(OUTPUT ${kiln_man_dir}.stamp
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/packaging/man_pages.py $<TARGET_FILE:kiln> ${kiln_man_dir}
    ${PROJECT_VERSION}
  COMMAND ${CMAKE_COMMAND} -E touch ${kiln_man_dir}.stamp
  DEPENDS kiln packaging/man_pages.py
  VERBATIM)
add_custom_target(kiln_man_pages ALL DEPENDS ${kiln_man_dir}.stamp)
install(DIRECTORY ${kiln_man_dir}/ DESTINATION share/man/man1)
install(FILES packaging/kiln.3 DESTINATION share/man/man3)
install(FILES packaging/kiln.bash DESTINATION share/bash-completion/completions RENAME kiln)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kiln)
set(CPACK_PACKAGE_VENDOR Kiln)
set(CPACK_PACKAGE_CONTACT "Kiln maintainers <maintainers@kiln.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "persistent-kernel framework for GPU compute")
set(CPACK_DEBIAN_UNSPECIFIED_DESCRIPTION
"Builds a GPU program once, keeps it, and runs it for ever: a program cache in
memory and on disk between an application and its GPU, an asynchronous
executor, a device selector that learns, a generator of convolution kernels,
and backends as plugins: OpenGL and Vulkan compute, AMD GPUs by PM4, the CPU
by oneDNN.
This package has the command, the library with its headers, and the simulated
AMD card.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified)
if(TARGET kiln_clang)  # where Clang's headers and libraries are
  list(APPEND CPACK_COMPONENTS_ALL clang)
endif()
if(KILN_BENCHMARKS)
  list(APPEND CPACK_COMPONENTS_ALL bench)
endif()
if(TARGET kiln_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS  # whatever the umask is
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME kiln)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_DEPENDS "libegl1, libgl1-mesa-dri")
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_RECOMMENDS kiln-bench)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_SUGGESTS "kiln-clang, libvulkan1, mesa-vulkan-drivers, libcurl4, libssl3, clang-19, rocm-device-libs, bash-completion")
set(CPACK_DEBIAN_CLANG_PACKAGE_NAME kiln-clang)
set(CPACK_DEBIAN_CLANG_DESCRIPTION
"Compiles OpenCL C for gfx10.3 and gfx11 within the process that asks for it.
Without this package kiln runs clang-19 as a child, where that is there.")
set(CPACK_DEBIAN_CLANG_PACKAGE_DEPENDS "kiln (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_BENCH_PACKAGE_NAME kiln-bench)
set(CPACK_DEBIAN_BENCH_DESCRIPTION
"The programs that `kiln bench` runs: Kiln beside what would be used instead,
on the same work in the same run.")
set(CPACK_DEBIAN_BENCH_PACKAGE_DEPENDS "kiln (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-kiln)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION
"The Python module kiln: runs GPU kernels and layers on numpy arrays, tunes them,
and caches what any compiler makes.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "kiln (= ${PROJECT_VERSION}), python3 (>= 3.11), python3-numpy")
# Without these CPack makes a package that names no dependencies.
find_program(KILN_SHLIBDEPS dpkg-shlibdeps)
find_program(KILN_FILE file)
if(KILN_SHLIBDEPS AND KILN_FILE)
  include(CPack)
else()
  message(STATUS "No Debian packages: dpkg-shlibdeps (dpkg-dev) or file is not installed")
endif()
