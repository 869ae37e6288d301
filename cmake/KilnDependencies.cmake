# What Kiln stands on, all from the distribution. Each target that needs one links the imported name given here.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)  # and Boost.DLL, of which only headers are used
# Static: each shared library that core needs is found, mapped and bound at every start of every command, and of these a few
# functions are used. libcrypto alone was a third of a start.
set(OPENSSL_USE_STATIC_LIBS TRUE)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_library(KILN_zstd_LIBRARY NAMES libzstd.a REQUIRED)
find_path(KILN_zstd_INCLUDE_DIR zstd.h REQUIRED)
find_path(KILN_xxhash_INCLUDE_DIR xxhash.h REQUIRED)  # used as a header
find_package(PNG REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(tomlplusplus REQUIRED)
pkg_check_modules(drm REQUIRED IMPORTED_TARGET libdrm libdrm_amdgpu)
# The package file that Debian ships with oneDNN demands OpenCL's headers, which nothing here uses.
find_path(KILN_DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(KILN_DNNL_LIBRARY dnnl REQUIRED)
find_program(KILN_GLAD glad REQUIRED)
if(KILN_TESTS)
  find_package(Catch2 2.13 REQUIRED)
endif()
if(KILN_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

# Optional: Chart.js (libjs-chart.js), which `kiln report` draws with: inlined in every page, never fetched.
find_file(KILN_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH)

# Optional: Mesa's RADV as a witness of the simulated card and as a peer of submissions.
find_path(KILN_VULKAN_INCLUDE_DIR vulkan/vulkan.h)
find_library(KILN_VULKAN_LIBRARY vulkan)
find_program(KILN_GLSLANG glslangValidator)

# Optional: what the plugin vulkan needs beside Vulkan's headers: glslang (glslang-dev), linked statically, in the order of the linker.
find_path(KILN_GLSLANG_INCLUDE_DIR glslang/Public/ShaderLang.h)
set(KILN_GLSLANG_LIBRARIES "")
foreach(library IN ITEMS SPIRV glslang MachineIndependent GenericCodeGen OSDependent OGLCompiler glslang-default-resource-limits
                         SPIRV-Tools-opt SPIRV-Tools)
  find_library(KILN_${library}_ARCHIVE NAMES lib${library}.a)
  if(NOT KILN_${library}_ARCHIVE)
    set(KILN_GLSLANG_LIBRARIES "")
    break()
  endif()
  list(APPEND KILN_GLSLANG_LIBRARIES ${KILN_${library}_ARCHIVE})
endforeach()
